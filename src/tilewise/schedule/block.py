"""Contiguous runs of tasks: `block` of equal cost, `proportional` by the speed of each worker."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.schedule.policy import ListPolicy
from tilewise.schedule.team import Team
from tilewise.wording import counted


def contiguous_runs(cost: np.ndarray, speeds: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
    """Boundaries of contiguous runs, one per worker, whose latest end is as early as it can be.

    `before` are the seconds after which each worker can begin. Bisection on the latest end that is allowed,
    filling greedily, which is optimal for a given bound.
    """
    total = np.concatenate([[0.0], np.cumsum(cost)]).tolist()
    speeds = np.asarray(speeds, np.float64)
    before = np.zeros(len(speeds)) if before is None else np.asarray(before, np.float64)

    def fill(bound: float) -> np.ndarray:
        cuts, cut = [0], 0
        for room in (np.maximum(bound - before, 0.0) * speeds).tolist():
            cut = bisect_right(total, total[cut] + room, cut) - 1
            cuts.append(cut)
        return np.array(cuts)

    low = total[-1] / float(speeds.sum())
    high = low + float(before.max()) + float(cost.max(initial=0.0) / speeds.min())  # always enough
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if fill(middle)[-1] >= len(cost):
            high = middle
        else:
            low = middle
    cuts = fill(high * (1 + 1e-12))
    cuts[-1] = len(cost)
    return cuts


@dataclass(frozen=True)
class Block(ListPolicy):
    """Each level is cut into contiguous runs, one per worker, of equal cost."""

    name: ClassVar[str] = "block"

    def parts(self, cost: np.ndarray, speeds: np.ndarray, before: np.ndarray) -> list[np.ndarray]:
        cuts = contiguous_runs(cost, speeds, before)
        return [np.arange(first, last) for first, last in pairwise(cuts.tolist())]


@dataclass(frozen=True)
class Proportional(Block):
    """Contiguous runs whose cost is in proportion to the speed of their worker.

    `speeds` such as "2:1:1"; by default those that the team is known to have.
    """

    name: ClassVar[str] = "proportional"
    speeds: str = ""

    def __post_init__(self) -> None:
        if self.speeds and not self._given:
            raise InputError(f"policy {self}: speeds must be positive numbers such as 2:1")

    @property
    def _given(self) -> tuple[float, ...]:
        try:
            found = tuple(float(word) for word in self.speeds.split(":"))
        except ValueError:
            return ()
        return found if all(0 < s < np.inf for s in found) else ()

    def assumed_speeds(self, team: Team) -> np.ndarray:
        if not self.speeds:
            return np.array(team.speeds)
        given = self._given
        return np.array([given[w % len(given)] for w in range(team.size)])

    def decided(self, levels: int, team: Team) -> str:
        shown = ":".join(f"{s:.3g}" for s in self.assumed_speeds(team))
        return f"{counted(levels, 'level')}, contiguous runs for speeds {shown}"
