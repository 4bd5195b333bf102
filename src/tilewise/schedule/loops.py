"""Ordered loops: `interleaved`, `chunk`, `gss`, `tss` and `factoring`.

The last four are self-scheduling: whoever is idle takes the next chunk. What a chunk holds is counted in
estimated work, so that a triangular loop is shared by its elements and not by its columns. With `delta`
the imbalance is bounded: each worker's first chunk is a probe of its speed, no chunk is smaller than what
the slowest worker does in delta seconds (Stathopoulos and Ynnerman, equations 3 to 5), and none is larger
than its worker's share of what is left, by speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.schedule.policy import LevelPolicy, static
from tilewise.schedule.schedule import Phase, Queue, Rule
from tilewise.schedule.team import Team


@dataclass
class Loop:
    """Hands out an ordered loop; the twin of the native core's class of the same name."""

    rule: Rule
    work: np.ndarray
    workers: int
    at: int = 0
    _batch: int = 0
    _part: float = 0.0
    _step: float = 0.0
    _started: bool = False
    _taken: dict[int, float] = field(default_factory=dict)
    _rates: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        work = self.work if self.work.sum() > 0 else np.ones(len(self.work))
        self._before = np.concatenate([[0.0], np.cumsum(work)])

    def next(self, worker: int, seconds: float) -> tuple[int, int]:
        """The next chunk [first, last) for a worker whose previous one took `seconds`; empty at the end."""
        if self._taken.get(worker) and seconds > 0:
            self._rates[worker] = self._taken[worker] / seconds
        first, count = self.at, len(self.work)
        if first >= count:
            return first, first
        if self.rule.delta > 0 and worker not in self._rates:
            last = first + max(1, min(self.rule.probe, count // (4 * self.workers)))
        else:
            last = self._last(worker, self.rule.delta * min(self._rates.values(), default=0.0))
        self.at = min(max(last, first + 1), count)
        self._taken[worker] = float(self._before[self.at] - self._before[first])
        return first, self.at

    def _last(self, worker: int, least: float) -> int:
        if self.rule.taking == "chunk":
            tail = int(np.searchsorted(self._before, self._before[-1] - least))
            return self.at + max(1, len(self.work) - tail)
        rest = float(self._before[-1] - self._before[self.at])
        if self.rule.taking == "guided":
            wanted = rest / self.workers
        elif self.rule.taking == "trapezoid":
            wanted = self._trapezoid(least, rest)
        else:
            if self._batch == 0:
                self._part, self._batch = rest / (self.rule.f * self.workers), self.workers
            self._batch -= 1
            wanted = self._part
        return self._reach(max(least, min(wanted, rest * self._share(worker))))

    def _share(self, worker: int) -> float:
        """Of the work, by its speed, if speeds are measured: with more it might be the last to end."""
        if self.rule.delta <= 0 or worker not in self._rates:
            return 1.0
        return self._rates[worker] / (self.workers * sum(self._rates.values()) / len(self._rates))

    def _reach(self, work: float) -> int:
        end = (self._before[self.at] + work) * (1 + 1e-12)
        return int(np.searchsorted(self._before, end, side="right")) - 1

    def _trapezoid(self, least: float, rest: float) -> float:
        if self._started:
            self._part -= self._step
            return self._part
        self._started = True
        self._part = rest / (2 * self.workers)
        lowest = min(self._part, max(least, rest / len(self.work)))
        steps = math.ceil(2 * rest / (self._part + lowest))
        self._step = (self._part - lowest) / (steps - 1) if steps > 1 else 0.0
        return self._part


@dataclass(frozen=True)
class Interleaved(LevelPolicy):
    """Task k to worker k modulo the number of workers."""

    name: ClassVar[str] = "interleaved"

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        every = np.arange(len(tasks))
        return static(tasks, [every[w :: team.size] for w in range(team.size)])


@dataclass(frozen=True)
class SelfScheduled(LevelPolicy):
    """One loop for all workers; `rule` says how much each takes."""

    taking: ClassVar[str]
    delta: float = 0.0
    probe: int = 30

    def __post_init__(self) -> None:
        if not 0 <= self.delta < math.inf:
            raise InputError(f"policy {self}: delta is a number of seconds, 0 or more")
        if self.probe < 1:
            raise InputError(f"policy {self}: probe must be a whole number from 1 up")

    @property
    def rule(self) -> Rule:
        return Rule(self.taking, getattr(self, "f", 2.0), self.delta, self.probe)

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        return Phase((Queue(tasks, team.everyone, rule=self.rule),))

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        bound = f"chunks of {self.delta:g} s or more" if self.delta else "chunks of one task or more"
        return f"{len(phases)} self-scheduled loops, {bound}, {team.size} workers"


@dataclass(frozen=True)
class Chunk(SelfScheduled):
    """`size` tasks at a time; 0 for as many as the last ones of the loop that take `delta` seconds.

    On a triangular loop the latter is trapezoid self-scheduling of its elements (equation 3).
    """

    name: ClassVar[str] = "chunk"
    taking: ClassVar[str] = "chunk"
    size: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 0 or (self.size == 0 and self.delta == 0):
            raise InputError(f"policy {self}: give size=1 or more, or size=0 and delta in seconds")

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        rule = Rule() if self.size else self.rule
        return Phase((Queue(tasks, team.everyone, max(1, self.size), rule),))

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        if not self.size:
            return super().decided(phases, team)
        return f"{len(phases)} counters, {self.size} at a time, {team.size} workers"


@dataclass(frozen=True)
class Guided(SelfScheduled):
    """Guided self-scheduling: 1/p of the rest."""

    name: ClassVar[str] = "gss"
    taking: ClassVar[str] = "guided"


@dataclass(frozen=True)
class Trapezoid(SelfScheduled):
    """Trapezoid self-scheduling: from half of an equal share linearly down."""

    name: ClassVar[str] = "tss"
    taking: ClassVar[str] = "trapezoid"


@dataclass(frozen=True)
class Factoring(SelfScheduled):
    """1/f of the rest in p equal parts, then 1/f of what is left, and so on (equation 4)."""

    name: ClassVar[str] = "factoring"
    taking: ClassVar[str] = "factoring"
    f: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.f < math.inf:
            raise InputError(f"policy {self}: f must be a number above 1")
