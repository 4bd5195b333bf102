"""What a run of a schedule has shown, for policies that learn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tilewise.inspect import Graph
from tilewise.schedule.schedule import WHOLE, Schedule

Measured = TypeVar("Measured", float, np.ndarray)

SMOOTHING = 0.5
"""Weight of the newest measurement against those before it."""


@dataclass(frozen=True)
class LevelRun:
    """What one level took with static lists for some operations and a counter for the others."""

    lists: frozenset[int]
    seconds: float
    spread: float = 0.0
    """Seconds by which runs like this one differed from each other."""


@dataclass(frozen=True)
class Observation:
    """One run. Seconds of tasks are those on a worker of speed 1."""

    schedule: Schedule
    expected: np.ndarray
    """Seconds of each task that were expected of this run."""
    measured: np.ndarray
    phases: np.ndarray
    """Seconds of each phase."""
    worth: float = 0.0
    """Seconds that another schedule must save in every run, to pay for being made."""

    def errors(self, graph: Graph) -> np.ndarray:
        """Of each operation: how far its tasks were from what was expected, as a part of what they took."""
        operation, n = graph.tasks["operation"], len(graph.operations)
        took = np.bincount(operation, self.measured, n)
        off = np.bincount(operation, np.abs(self.measured - self.expected), n)
        return np.divide(off, took, out=np.zeros(n), where=took > 0)

    def levels(self, graph: Graph) -> list[LevelRun]:
        """What each level of the graph took, all its phases together."""
        count = int(graph.levels.max(initial=-1)) + 1
        seconds = np.zeros(count)
        lists: list[set[int]] = [set() for _ in range(count)]
        for phase, took in zip(self.schedule.phases, self.phases.tolist(), strict=True):
            tasks = phase.tasks
            if not len(tasks):
                continue
            level = int(graph.levels[tasks[0]])
            seconds[level] += took
            if all(queue.quantum == WHOLE for queue in phase.queues):
                lists[level].update(graph.tasks["operation"][tasks].tolist())
        return [LevelRun(frozenset(mine), took) for mine, took in zip(lists, seconds.tolist(), strict=True)]


def smoothed(old: Measured, new: Measured) -> Measured:
    """Seconds that were known before, and a newer measurement of them."""
    return SMOOTHING * new + (1 - SMOOTHING) * old
