"""`lpt`: longest task first, each to the worker that has least so far; `steal`: the same, not final."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.schedule.policy import LevelPolicy, ListPolicy
from tilewise.schedule.schedule import Phase, Queue
from tilewise.schedule.team import Team
from tilewise.wording import counted


def longest_first(
    cost: np.ndarray, speeds: np.ndarray | int, before: np.ndarray | None = None
) -> list[np.ndarray]:
    """Indices of each part, longest first: each task to the part that is done with it soonest.

    `before` are the seconds after which each part can begin.
    """
    speeds = np.ones(speeds) if isinstance(speeds, int) else np.asarray(speeds, np.float64)
    begin = np.zeros(len(speeds)) if before is None else np.asarray(before, np.float64)
    order = np.argsort(-cost, kind="stable")
    share = _by_load if (speeds == speeds[0]).all() else _by_end
    part = np.array(share(cost[order], 1.0 / speeds, begin), np.int64)
    ends = np.cumsum(np.bincount(part, minlength=len(speeds)))
    return np.split(order[np.argsort(part, kind="stable")], ends[:-1])


def _by_load(cost: np.ndarray, slowness: np.ndarray, begin: np.ndarray) -> list[int]:
    """The part of each task: of parts that are equally fast, the one with least so far is done soonest."""
    heap = [(load, w) for w, load in enumerate(begin.tolist())]
    heapq.heapify(heap)
    parts = []
    for seconds in (slowness[0] * cost).tolist():
        load, w = heap[0]
        heapq.heapreplace(heap, (load + seconds, w))
        parts.append(w)
    return parts


def _by_end(cost: np.ndarray, slowness: np.ndarray, begin: np.ndarray) -> list[int]:
    """The part of each task, where some are faster than others."""
    load, end = begin.copy(), np.empty_like(begin)
    parts = []
    for seconds in cost.tolist():
        np.multiply(slowness, seconds, out=end)
        end += load
        w = int(end.argmin())
        load[w] = end[w]
        parts.append(w)
    return parts


@dataclass(frozen=True)
class Lpt(ListPolicy):
    """Each level is shared by cost, the longest tasks first."""

    name: ClassVar[str] = "lpt"

    def parts(self, cost: np.ndarray, speeds: np.ndarray, before: np.ndarray) -> list[np.ndarray]:
        return longest_first(cost, speeds, before)


@dataclass(frozen=True)
class Steal(LevelPolicy):
    """A deque for each worker, filled as by `lpt`, but by the speeds of the workers.

    Who has none left takes from the end of another's.
    """

    name: ClassVar[str] = "steal"

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        parts = enumerate(longest_first(cost, np.array(team.speeds)))
        return Phase(tuple(Queue(tasks[part], (w,)) for w, part in parts), steal=True)

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        return f"{counted(len(phases), 'level')}, a deque for each of {counted(team.size, 'worker')}"
