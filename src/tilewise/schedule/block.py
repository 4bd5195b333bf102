"""`block`: each level is cut into contiguous runs, one per worker, of equal cost."""

from __future__ import annotations

import numpy as np

from tilewise.inspect import TaskGraph
from tilewise.schedule.levels import tasks_by_level
from tilewise.schedule.schedule import Queue, Schedule


def contiguous_runs(cost: np.ndarray, parts: int) -> np.ndarray:
    """Boundaries (parts + 1) of contiguous runs whose largest cost is as small as it can be.

    The answer lies between the largest single cost and the whole: bisection on the largest cost that is
    allowed, filling greedily, which is optimal for a given bound.
    """
    total = np.concatenate([[0.0], np.cumsum(cost)])

    def fill(bound: float) -> np.ndarray:
        cuts = [0]
        for _ in range(parts):
            cuts.append(int(np.searchsorted(total, total[cuts[-1]] + bound, side="right")) - 1)
        return np.array(cuts)

    low, high = float(cost.max(initial=0.0)), float(total[-1])
    for _ in range(60):
        middle = 0.5 * (low + high)
        if fill(middle)[-1] >= len(cost):
            high = middle
        else:
            low = middle
    cuts = fill(high * (1 + 1e-12))
    cuts[-1] = len(cost)
    return cuts


def block(graph: TaskGraph, seconds: np.ndarray, workers: int) -> Schedule:
    phases = []
    for tasks in tasks_by_level(graph):
        cuts = contiguous_runs(seconds[tasks], workers)
        phases.append(tuple(Queue(tasks[cuts[w] : cuts[w + 1]], (w,)) for w in range(workers)))
    return Schedule("block", workers, tuple(phases) or ((),))
