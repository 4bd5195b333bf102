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

    def prepare(self, schedule: Schedule) -> None:
        """Makes what runs by this schedule need, ahead of the first of them."""
        if schedule is self._schedule:
            return
        self._schedule, self._arrays = schedule, schedule.arrays(self.graph)
        size = native.scratch_size(self.graph) * schedule.workers
        if len(self._scratch) != size:
            self._scratch = np.zeros(size)  # pages are touched first by the worker that uses them

    def run(self, job: Job) -> Outcome:
        self.prepare(job.schedule)
        arrays, workers = self._arrays, job.schedule.workers
        if job.tasks is not None:
            arrays, workers = native.static_lists([job.tasks]), 1
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
