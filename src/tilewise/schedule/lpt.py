"""`lpt`: longest task first, each to the worker that has least so far."""

from __future__ import annotations

import heapq

import numpy as np

from tilewise.inspect import TaskGraph
from tilewise.schedule.levels import tasks_by_level
from tilewise.schedule.schedule import Queue, Schedule


def longest_first(cost: np.ndarray, parts: int) -> list[np.ndarray]:
    """Indices of each part, longest first."""
    heap = [(0.0, w) for w in range(parts)]
    chosen: list[list[int]] = [[] for _ in range(parts)]
    for k in np.argsort(-cost, kind="stable").tolist():
        load, w = heapq.heappop(heap)
        chosen[w].append(k)
        heapq.heappush(heap, (load + float(cost[k]), w))
    return [np.array(c, np.int64) for c in chosen]


def lpt(graph: TaskGraph, seconds: np.ndarray, workers: int) -> Schedule:
    phases = []
    for tasks in tasks_by_level(graph):
        parts = longest_first(seconds[tasks], workers)
        phases.append(tuple(Queue(tasks[part], (w,)) for w, part in enumerate(parts)))
    return Schedule("lpt", workers, tuple(phases) or ((),))
