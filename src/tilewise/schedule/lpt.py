"""`lpt`: longest task first, each to the worker that has least so far; `steal`: the same, not final."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.schedule.policy import LevelPolicy, ListPolicy
from tilewise.schedule.schedule import Phase, Queue
from tilewise.schedule.team import Team


def longest_first(
    cost: np.ndarray, speeds: np.ndarray | int, before: np.ndarray | None = None
) -> list[np.ndarray]:
    """Indices of each part, longest first. A part is done sooner the higher its speed.

    `before` are the seconds after which each part can begin.
    """
    speeds = np.ones(speeds) if isinstance(speeds, int) else np.asarray(speeds, np.float64)
    heap = [(0.0 if before is None else float(before[w]), w) for w in range(len(speeds))]
    heapq.heapify(heap)
    chosen: list[list[int]] = [[] for _ in speeds]
    slowness = (1.0 / speeds).tolist()
    order = np.argsort(-cost, kind="stable")
    for k, seconds in zip(order.tolist(), cost[order].tolist(), strict=True):
        load, w = heap[0]
        chosen[w].append(k)
        heapq.heapreplace(heap, (load + seconds * slowness[w], w))
    return [np.array(c, np.int64) for c in chosen]


@dataclass(frozen=True)
class Lpt(ListPolicy):
    """Each level is shared by cost, the longest tasks first."""

    name: ClassVar[str] = "lpt"

    def parts(self, cost: np.ndarray, speeds: np.ndarray, before: np.ndarray) -> list[np.ndarray]:
        return longest_first(cost, speeds, before)


@dataclass(frozen=True)
class Steal(LevelPolicy):
    """A deque for each worker, filled as by `lpt`; who has none left takes from the end of another's."""

    name: ClassVar[str] = "steal"

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        parts = enumerate(longest_first(cost, team.size))
        return Phase(tuple(Queue(tasks[part], (w,)) for w, part in parts), steal=True)

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        return f"{len(phases)} levels, a deque for each of {team.size} workers"
