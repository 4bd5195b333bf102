"""Contiguous runs of tasks: `block` of equal cost, `proportional` by the speed of each worker."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.schedule.policy import LevelPolicy, static
from tilewise.schedule.schedule import Phase
from tilewise.schedule.team import Team


def contiguous_runs(cost: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """Boundaries of contiguous runs, one per worker, whose largest time is as small as it can be.

    The answer lies between the largest single cost and the whole: bisection on the longest time that is
    allowed, filling greedily, which is optimal for a given bound.
    """
    total = np.concatenate([[0.0], np.cumsum(cost)]).tolist()
    speeds = np.asarray(speeds, np.float64)
    listed = speeds.tolist()

    def fill(bound: float) -> np.ndarray:
        cuts, cut = [0], 0
        for speed in listed:
            cut = bisect_right(total, total[cut] + bound * speed, cut) - 1
            cuts.append(cut)
        return np.array(cuts)

    low = total[-1] / float(speeds.sum())
    high = low + float(cost.max(initial=0.0) / speeds.min())  # always enough
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


def _runs(tasks: np.ndarray, cost: np.ndarray, speeds: np.ndarray) -> Phase:
    cuts = contiguous_runs(cost, speeds)
    every = np.arange(len(tasks))
    return static(tasks, [every[cuts[w] : cuts[w + 1]] for w in range(len(speeds))])


@dataclass(frozen=True)
class Block(LevelPolicy):
    """Each level is cut into contiguous runs, one per worker, of equal cost."""

    name: ClassVar[str] = "block"

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        return _runs(tasks, cost, np.ones(team.size))


@dataclass(frozen=True)
class Proportional(LevelPolicy):
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

    def _speeds(self, team: Team) -> np.ndarray:
        if not self.speeds:
            return np.array(team.speeds)
        given = self._given
        return np.array([given[w % len(given)] for w in range(team.size)])

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        return _runs(tasks, cost, self._speeds(team))

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        shown = ":".join(f"{s:.3g}" for s in self._speeds(team))
        return f"{len(phases)} levels, contiguous runs for speeds {shown}"
