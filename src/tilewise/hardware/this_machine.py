"""The machine at hand as a model for the simulator: counters, barriers and its cores, measured now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tilewise import native
from tilewise.config import available_cpus, thread_limits
from tilewise.cost.sample import Experiment, Molecule, program, typical
from tilewise.hardware.model import MachineModel
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import TASK
from tilewise.schedule import Phase, Queue, Schedule, policies
from tilewise.schedule.schedule import WHOLE

HERE = "here"
MOLECULE, SMALL = Molecule((8,), (50,)), Molecule((6,), (36,))
"""An iteration of the first (some 20 ms) tells how much slower cores are together; one of the second (some
5 ms), run on each of them at the same time, how their speeds differ and for how long."""

DRAWS, BARRIERS = 20_000, 500
REPEATS, TOGETHER, APART = 5, 12, 32
STRETCHES = np.geomspace(1e-3, 1.0, 61)


def this_machine() -> MachineModel:
    probe = Probe()
    probe.measure()
    return probe.model()


class _Together:
    """A small calculation by some workers."""

    def __init__(self, experiment: Experiment, workers: int) -> None:
        self.graph, self.buffers, self.workers = experiment.graph, experiment.buffers, workers
        schedule = policies["dataflow"](self.graph, self.graph.flops, workers)
        self._tables, self._arrays = native.tables(self.graph), schedule.arrays(self.graph)
        self._scratch = np.zeros(native.scratch_size(self.graph) * workers)

    def run(self) -> float:
        """Seconds of work, those of all workers added up."""
        how = (self._tables, self._arrays, self.buffers, self._scratch, self.workers)
        trace = native.run(self.graph, *how).trace
        return 1e-9 * float((trace["end"] - trace["start"]).sum())


class Probe:
    """One node, whose cores have the speed that costs are measured with; data are in shared memory.

    The more often it is measured, the better it is known.
    """

    def __init__(self) -> None:
        self.cores = available_cpus()
        experiment = program(MOLECULE)
        self._programs = {workers: _Together(experiment, workers) for workers in sorted({1, self.cores})}
        self._seconds: dict[int, list[float]] = {workers: [] for workers in self._programs}
        self._copies = [program(SMALL) for _ in range(self.cores)]
        self._apart: list[np.ndarray] = []
        self._draws: list[float] = []
        self._barriers: list[float] = []

    def measure(self) -> None:
        """Takes one or two seconds."""
        tasks, everyone = np.arange(DRAWS), tuple(range(self.cores))
        counter = Schedule(HERE, self.cores, (Phase((Queue(tasks, everyone),)),))
        self._draws.append(_best(counter, DRAWS) / DRAWS)
        lists = np.arange(BARRIERS * self.cores).reshape(BARRIERS, self.cores, 1)
        phases = tuple(Phase(tuple(Queue(own, (w,), WHOLE) for w, own in enumerate(row))) for row in lists)
        self._barriers.append(_best(Schedule(HERE, self.cores, phases), lists.size) / BARRIERS)
        for _ in range(TOGETHER):
            for workers in self._programs:
                self.work(workers)
        with thread_limits(1), ThreadPoolExecutor(self.cores) as pool:
            for copy in self._copies:
                copy.runs.clear()
            for _ in range(APART):
                list(pool.map(Experiment.run, self._copies))
        self._apart.append(np.array([[run.sum() for run in copy.runs] for copy in self._copies]))

    def work(self, workers: int) -> float:
        """Seconds that one core, or all of them together, work on a small calculation: changes all the time.

        It runs twice. The first run finds other data in the caches, and cores that slept.
        """
        with thread_limits(1):
            *_, seconds = (self._programs[workers].run() for _ in range(2))
        self._seconds[workers].append(seconds)
        return self._seconds[workers][-1]

    def model(self) -> MachineModel:
        draw = float(np.median(self._draws))
        one, all_of_them = (float(typical(self._seconds[workers])) for workers in (1, self.cores))
        drift, stretch = drift_and_stretch(self._apart)
        return MachineModel(
            HERE,
            1,
            self.cores,
            crowding=max(1.0, all_of_them / one),
            drift=drift,
            stretch=stretch,
            barrier=float(np.median(self._barriers)),
            counter_service=draw,
            counter_shared=draw,
        )


def drift_and_stretch(sequences: Sequence[np.ndarray]) -> tuple[float, float]:
    """How speeds vary, from (cores, runs) arrays: the seconds that cores took for the same work side by side.

    A speed that lasts for a stretch s varies less on average over a time T: its variance falls by
    1 - T / 3s as long as T < s, and by s / T - s^2 / 3T^2 from there. What fits best for averages over one,
    two, four and more runs is found among some stretches.
    """
    if len(sequences[0]) < 2:
        return 0.0, MachineModel.stretch
    spans, variances = [], []
    for runs in 2 ** np.arange(int(np.log2(sequences[0].shape[1] // 2)) + 1):
        averages = [
            np.log(times[:, : times.shape[1] // runs * runs].reshape(len(times), -1, runs).mean(axis=2))
            for times in sequences
        ]
        variances.append(np.mean([part.var(axis=0, ddof=1).mean() for part in averages]))
        spans.append(runs * np.median(sequences))
    x = np.array(spans) / STRETCHES[:, None]
    falls = np.log(np.where(x < 1, 1 - x / 3, 1 / x - 1 / (3 * x**2)))
    rest = np.log(variances) - falls
    best = rest.var(axis=1).argmin()
    return float(np.exp(rest[best].mean() / 2)), float(STRETCHES[best])


def _best(schedule: Schedule, count: int) -> float:
    """The best of a few runs of so many tasks that do nothing."""
    graph = TaskGraph.bare(np.zeros(count, TASK))
    tables, arrays = native.tables(graph), schedule.arrays(graph)
    scratch, best = np.zeros(schedule.workers), np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        native.run(graph, tables, arrays, [], scratch, schedule.workers)
        best = min(best, time.perf_counter() - began)
    return float(best)
