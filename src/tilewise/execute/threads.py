"""The threads of this machine: a whole task list in one call of the C++ core, with the GIL released."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewise import native
from tilewise.config import thread_limits
from tilewise.execute.executor import Job
from tilewise.inspect import TaskGraph
from tilewise.native import Outcome
from tilewise.schedule import Schedule


class Threads:
    """Keeps the tables of its graph, the arrays of its last schedule and the memory of the workers."""

    name: ClassVar[str] = "threads"

    def __init__(self, graph: TaskGraph, processors: tuple[int, ...] = ()) -> None:
        """`processors` are those that the workers are bound to; none by default."""
        self.graph, self.processors = graph, processors
        self._tables = native.tables(graph)
        self._schedule: Schedule | None = None
        self._arrays: dict[str, np.ndarray] = {}
        self._scratch = np.zeros(0)
        self._part: tuple[np.ndarray, int, dict[str, np.ndarray]] | None = None
        self._rest: tuple[np.ndarray, dict[str, np.ndarray]] | None = None

    def prepare(self, schedule: Schedule) -> None:
        """Makes what runs by this schedule need, ahead of the first of them."""
        if schedule is self._schedule:
            return
        self._schedule, self._arrays, self._rest = schedule, schedule.arrays(self.graph), None
        size = native.scratch_size(self.graph) * schedule.workers
        if len(self._scratch) != size:
            self._scratch = np.zeros(size)  # pages are touched first by the worker that uses them

    def run(self, job: Job) -> Outcome:
        self.prepare(job.schedule)
        arrays, workers = self._arrays, job.schedule.workers
        if job.tasks is not None:
            workers = workers if job.shared else 1
            arrays = self._lists_of(job.tasks, workers)
        elif job.done is not None:
            arrays = self._arrays_without(job.done)
        with thread_limits(1):  # one BLAS thread per worker
            return native.run(
                self.graph,
                self._tables,
                arrays,
                job.buffers,
                self._scratch,
                workers,
                self.processors[:workers],
                job.shift,
            )

    def _lists_of(self, tasks: np.ndarray, workers: int) -> dict[str, np.ndarray]:
        """Of tasks that run for themselves, level by level; kept, for mostly they are the same again."""
        if self._part is None or self._part[0] is not tasks or self._part[1] != workers:
            level = self.graph.levels[tasks]
            phases = [tasks[level == k] for k in np.unique(level)]
            self._part = tasks, workers, native.shared_lists(phases, workers)
        return self._part[2]

    def _arrays_without(self, done: np.ndarray) -> dict[str, np.ndarray]:
        """Of the schedule, for the tasks that are left; kept like these."""
        if self._rest is None or self._rest[0] is not done:
            self._rest = done, native.without(self._arrays, self.graph, done)
        return self._rest[1]
