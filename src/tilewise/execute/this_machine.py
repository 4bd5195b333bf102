"""The machine at hand as a model for the simulator: counters, barriers and its cores, measured now."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tilewise import native
from tilewise.config import available_cpus, thread_limits
from tilewise.cost.sample import Experiment, Molecule, program
from tilewise.execute.machine_model import MachineModel
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import EXTRAS, RECORDS, TASK
from tilewise.schedule import Phase, Queue, Schedule
from tilewise.schedule.schedule import WHOLE

HERE = "here"
MOLECULE = Molecule((8,), (50,))
"""An iteration of it, about 20 ms, is run on one core and on all at the same time."""

DRAWS, BARRIERS = 20_000, 500
REPEATS, TOGETHER = 5, 12


def this_machine() -> MachineModel:
    """One node, whose cores have the speed that costs are measured with; data are in shared memory."""
    cores = available_cpus()
    crowding, drift = _crowding(cores)
    tasks, everyone = np.arange(DRAWS), tuple(range(cores))
    draw = _seconds(Schedule(HERE, cores, (Phase((Queue(tasks, everyone),)),)), DRAWS) / DRAWS
    lists = np.arange(BARRIERS * cores).reshape(BARRIERS, cores, 1)
    phases = tuple(Phase(tuple(Queue(own, (w,), WHOLE) for w, own in enumerate(row))) for row in lists)
    barrier = _seconds(Schedule(HERE, cores, phases), lists.size) / BARRIERS
    return MachineModel(
        HERE,
        1,
        cores,
        crowding=crowding,
        drift=drift,
        barrier=barrier,
        counter_service=draw,
        counter_shared=draw,
    )


def _crowding(cores: int) -> tuple[float, float]:
    """How much longer the same work takes on a core when all do it, and how their speeds differ then."""
    copies = [program(MOLECULE) for _ in range(cores)]
    alone, together = [], []
    with thread_limits(1), ThreadPoolExecutor(cores) as pool:
        for _ in range(TOGETHER):
            copies[0].run()
            alone.append(copies[0].runs[-1].sum())
            list(pool.map(Experiment.run, copies))
            together.append([copy.runs[-1].sum() for copy in copies])
    crowding = max(1.0, float(np.median(np.mean(together, axis=1)) / np.median(alone)))
    drift = float(np.sqrt(np.log(together).var(axis=1, ddof=1).mean())) if cores > 1 else 0.0
    return crowding, drift


def _seconds(schedule: Schedule, count: int) -> float:
    """The best of a few runs of so many tasks that do nothing."""
    records = {key: np.zeros(0, dtype) for key, dtype in (RECORDS | EXTRAS).items()}
    none = np.zeros(0, np.int64)
    graph = TaskGraph((), (), {}, np.zeros(count, TASK), records, np.zeros(0), none, 0, 0, none, none)
    tables, arrays = native.tables(graph), schedule.arrays(graph)
    scratch, best = np.zeros(schedule.workers), np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        native.run(tables, arrays, graph, [], scratch, schedule.workers)
        best = min(best, time.perf_counter() - began)
    return float(best)
