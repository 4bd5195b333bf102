"""`buckets`: groups of workers, tasks to groups by LPT, a counter inside each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.schedule.lpt import longest_first
from tilewise.schedule.policy import LevelPolicy
from tilewise.schedule.schedule import Phase, Queue
from tilewise.schedule.team import Team
from tilewise.wording import counted


@dataclass(frozen=True)
class Buckets(LevelPolicy):
    """`size` workers in a group; 0 for those that share a cache or a node. `steal` between groups.

    One round of refinement comes from the measured times of the first iteration, as for all policies.
    """

    name: ClassVar[str] = "buckets"
    size: int = 0
    steal: bool = False
    quantum: int = 1

    def __post_init__(self) -> None:
        if self.size < 0 or self.quantum < 1:
            raise InputError(f"policy {self}: size must be 0 or more, quantum 1 or more")

    def groups(self, team: Team) -> tuple[tuple[int, ...], ...]:
        if not self.size:
            return team.groups
        return tuple(team.everyone[first : first + self.size] for first in range(0, team.size, self.size))

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        groups = self.groups(team)
        speeds = np.array([len(group) for group in groups], np.float64)
        parts = longest_first(cost, speeds)
        queues = (Queue(tasks[part], group, self.quantum) for part, group in zip(parts, groups, strict=True))
        return Phase(tuple(queues), self.steal)

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        groups = self.groups(team)
        sizes = "+".join(str(len(group)) for group in groups)
        stealing = ", stealing between them" if self.steal else ""
        workers = f"{sizes} worker{'' if sizes == '1' else 's'}"
        levels, parts = counted(len(phases), "level"), counted(len(groups), "group")
        return f"{levels}, {parts} of {workers}, a counter in each{stealing}"
