"""The serial executor: NumPy twins of the native kernels, one task after the other.

Slow, and written to be read: the tests hold the native kernels against these. The twin of a kernel is in the
module of its kind of record.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from tilewise.execute.executor import Job
from tilewise.inspect import TaskGraph
from tilewise.inspect.operations import Work, kinds
from tilewise.inspect.records import TRACE
from tilewise.native import COUNTS, Outcome
from tilewise.schedule import Schedule


class Serial:
    """Runs the tasks level by level on one worker, whatever the schedule says."""

    name: ClassVar[str] = "serial"

    def __init__(self, graph: TaskGraph, processors: tuple[int, ...] = ()) -> None:
        self.graph = graph

    def prepare(self, schedule: Schedule) -> None:
        """It needs nothing."""

    def run(self, job: Job) -> Outcome:
        order = np.argsort(self.graph.levels, kind="stable") if job.tasks is None else job.tasks
        if job.done is not None:
            order = order[~np.isin(order, job.done)]
        failed, reason, partial, seconds = run(self.graph, job.buffers, order, job.shift)
        trace = np.zeros(len(self.graph), TRACE)
        trace["end"] = (1e9 * seconds).astype(np.int64)
        counts = np.zeros((job.schedule.workers, len(COUNTS)), np.int64)
        return Outcome(failed, reason, partial, trace, counts)


def run(
    graph: TaskGraph, buffers: list[np.ndarray], order: np.ndarray, shift: float = 0.0
) -> tuple[int, str, np.ndarray, np.ndarray]:
    """(failed task or -1, reason, partial sums, seconds per task)."""
    partial, seconds = np.zeros(len(graph)), np.zeros(len(graph))
    work = Work(kinds, graph.records, [*buffers, np.zeros(graph.arena)], shift)
    for t in order:
        began = time.perf_counter()
        with np.errstate(invalid="ignore", over="ignore"):
            partial[t] = work.step(graph.tasks[t])
        if not np.isfinite(partial[t]):
            return int(t), "the result is not finite", partial, seconds
        seconds[t] = time.perf_counter() - began
    return -1, "", partial, seconds
