"""The machine at hand as a model for the simulator: counters, barriers and its cores, measured now."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tilewise import native
from tilewise.config import available_cpus, thread_limits
from tilewise.cost.sample import Experiment, Molecule, program
from tilewise.execute.machine import Machine
from tilewise.execute.machine_model import MachineModel
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import EXTRAS, RECORDS, TASK
from tilewise.schedule import Phase, Queue, Schedule, policies
from tilewise.schedule.schedule import WHOLE

HERE = "here"
MOLECULE = Molecule((8,), (50,))
"""An iteration of it, about 20 ms, is run on one core, by all together, and on each at the same time."""

DRAWS, BARRIERS = 20_000, 500
REPEATS, TOGETHER = 5, 12


def this_machine() -> MachineModel:
    """One node, whose cores have the speed that costs are measured with; data are in shared memory."""
    cores = available_cpus()
    tasks, everyone = np.arange(DRAWS), tuple(range(cores))
    draw = _seconds(Schedule(HERE, cores, (Phase((Queue(tasks, everyone),)),)), DRAWS) / DRAWS
    lists = np.arange(BARRIERS * cores).reshape(BARRIERS, cores, 1)
    phases = tuple(Phase(tuple(Queue(own, (w,), WHOLE) for w, own in enumerate(row))) for row in lists)
    barrier = _seconds(Schedule(HERE, cores, phases), lists.size) / BARRIERS
    return MachineModel(
        HERE,
        1,
        cores,
        crowding=_crowding(cores),
        drift=_drift(cores),
        barrier=barrier,
        counter_service=draw,
        counter_shared=draw,
    )


def _crowding(cores: int) -> float:
    """How much longer the tasks of an iteration take together when all cores share them."""
    experiment = program(MOLECULE)
    graph, tensors = experiment.graph, dict(zip(experiment.graph.buffers, experiment.buffers, strict=True))
    alone, shared = (
        Machine(graph, policies["dataflow"](graph, graph.flops, workers), tensors) for workers in (1, cores)
    )
    runs = [[machine.run().seconds.sum() for machine in (alone, shared)] for _ in range(TOGETHER)]
    one, all_of_them = np.median(runs, axis=0)
    return max(1.0, float(all_of_them / one))


def _drift(cores: int) -> float:
    """How the speeds of the cores differ while each goes through an iteration of its own."""
    copies = [program(MOLECULE) for _ in range(cores)]
    with thread_limits(1), ThreadPoolExecutor(cores) as pool:
        for _ in range(TOGETHER):
            list(pool.map(Experiment.run, copies))
    seconds = np.log([[run.sum() for run in copy.runs] for copy in copies])
    return float(np.sqrt(seconds.var(axis=0, ddof=1).mean())) if cores > 1 else 0.0


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
