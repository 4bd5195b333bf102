"""The workers that a policy has to do with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Team:
    """How many workers there are, how fast each is, and which of them share a cache or a node."""

    size: int
    speeds: tuple[float, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a team of {self.size} workers")
        if not self.speeds:
            object.__setattr__(self, "speeds", (1.0,) * self.size)
        if len(self.speeds) != self.size or not all(0 < s < np.inf for s in self.speeds):
            raise ValueError(f"{self.speeds}: a positive speed is needed for each of {self.size} workers")
        if not self.groups:
            object.__setattr__(self, "groups", (tuple(range(self.size)),))
        if sorted(w for group in self.groups for w in group) != list(range(self.size)):
            raise ValueError(f"{self.groups}: each of {self.size} workers must be in one group")

    @classmethod
    def of(cls, workers: int | Team) -> Team:
        return workers if isinstance(workers, Team) else cls(workers)

    @property
    def everyone(self) -> tuple[int, ...]:
        return tuple(range(self.size))
