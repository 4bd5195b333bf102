"""Ordered loops: `interleaved`, `chunk`, `gss`, `tss` and `factoring`.

The last four are self-scheduling: whoever is idle takes the next chunk. What a chunk holds is counted in
estimated work, so that a triangular loop is shared by its elements and not by its columns. With `delta`
the imbalance is bounded: each worker's first chunk is a probe of its speed, no chunk is larger than its
worker's share of what is left, by speed, and, once all speeds are known, none is smaller than what the
slowest worker does in delta seconds (`chunk`, whose chunks are all of this size, takes the slowest of those
known so far). With `taper` there is no such least, and the last chunks shrink to single tasks: where costs
are guesses, or grow along the loop, that bounds the imbalance by one task, for some more chunks. With `most`
no chunk is longer than so many seconds, at the rate of its worker's last one, and the first ones are single
tasks: where hard tasks stand together, no worker gets all of them, whatever was estimated.

With `literal`, `chunk` and `factoring` follow the letter of Stathopoulos and Ynnerman instead. Speeds are
those of the first chunks alone, and c, the number of the last tasks that the slowest of all workers does in
delta seconds (equation 3), is decided once, when all are known; who asks before that gets one more chunk like
the first, so that nobody waits. `chunk` then hands out c tasks at a time. `factoring` hands out a p-th of the
tasks that hold 1/f of the rest (equation 4), or of c tasks if those are more, to each of the next p that ask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.schedule.policy import LevelPolicy, static
from tilewise.schedule.schedule import Phase, Queue, Rule
from tilewise.schedule.team import Team
from tilewise.wording import counted


@dataclass
class Loop:
    """Hands out an ordered loop; the twin of the native core's class of the same name."""

    rule: Rule
    work: np.ndarray
    workers: int
    at: int = 0
    _batch: int = 0
    _part: float = 0.0
    _length: int = 0
    _step: float = 0.0
    _started: bool = False
    _taken: dict[int, float] = field(default_factory=dict)
    _rates: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        work = self.work if self.work.sum() > 0 else np.ones(len(self.work))
        self._before = np.concatenate([[0.0], np.cumsum(work)])

    def next(self, worker: int, seconds: float) -> tuple[int, int]:
        """The next chunk [first, last) for a worker whose previous one took `seconds`; empty at the end."""
        self._measure(worker, seconds)
        first, count = self.at, len(self.work)
        if first >= count:
            return first, first
        last = self._end_of_probe() if self._probing(worker) else self._end_of_chunk(worker)
        self.at = min(max(last, first + 1), count)
        self._taken[worker] = float(self._before[self.at] - self._before[first])
        return first, self.at

    def _measure(self, worker: int, seconds: float) -> None:
        """By the letter the first chunk alone counts."""
        known = self.rule.literal and worker in self._rates
        if self._taken.get(worker) and seconds > 0 and not known:
            self._rates[worker] = self._taken[worker] / seconds

    def _probing(self, worker: int) -> bool:
        """By the letter nothing is decided before all speeds are known: who asks earlier probes again."""
        if not self._measured:
            return False
        return len(self._rates) < self.workers if self.rule.literal else worker not in self._rates

    def _end_of_probe(self) -> int:
        if self.rule.most:
            return self.at + 1
        return self.at + max(1, min(self.rule.probe, len(self.work) // (4 * self.workers)))

    def _end_of_chunk(self, worker: int) -> int:
        least = self.rule.delta * min(self._rates.values(), default=0.0)
        if self.rule.taking == "chunk":
            return self.at + self._last_tasks(least)
        if self.rule.taking == "factoring" and self.rule.literal:
            return self.at + self._equal_length(least)
        part = min(self._wanted(least), self._rest * self._share(worker))
        # A short first chunk says little: until all speeds are known, nobody gets more than its share.
        floor = len(self._rates) == self.workers and not self.rule.taper
        part = max(least, part) if floor else part
        return self._reach(min(part, self.rule.most * self._rates[worker]) if self.rule.most else part)

    @property
    def _measured(self) -> bool:
        """Whether it matters how fast workers are."""
        return self.rule.delta > 0 or self.rule.most > 0

    @property
    def _rest(self) -> float:
        return float(self._before[-1] - self._before[self.at])

    def _wanted(self, least: float) -> float:
        if self.rule.taking == "guided":
            return self._rest / self.workers
        return self._trapezoid(least) if self.rule.taking == "trapezoid" else self._equal_work()

    def _share(self, worker: int) -> float:
        """Of the work, by its speed, if speeds are measured: with more it might be the last to end.

        Those whose speed is not known yet may be twice as fast as the others.
        """
        if not self._measured or worker not in self._rates:
            return 1.0
        known, total = len(self._rates), sum(self._rates.values())
        return self._rates[worker] / (total + 2.0 * (self.workers - known) * total / known)

    def _reach(self, work: float) -> int:
        """Where a chunk of about this much work ends."""
        end = (self._before[self.at] + work) * (1 + 1e-12)
        return int(np.searchsorted(self._before, end, side="right")) - 1

    def _last_tasks(self, work: float) -> int:
        """Tasks at the end of the loop that make up this much work."""
        return max(1, len(self.work) - int(np.searchsorted(self._before, self._before[-1] - work)))

    def _trapezoid(self, least: float) -> float:
        """The first is half of an equal share; each one is smaller by the same step, down to the least."""
        if self._started:
            self._part -= self._step
            return self._part
        self._started, rest = True, self._rest
        self._part = rest / (2 * self.workers)
        lowest = min(self._part, max(least, rest / len(self.work)))
        steps = math.ceil(2 * rest / (self._part + lowest))
        self._step = (self._part - lowest) / (steps - 1) if steps > 1 else 0.0
        return self._part

    def _equal_work(self) -> float:
        """A p-th of the work of a batch, which holds 1/f of the rest."""
        if self._batch == 0:
            self._part, self._batch = self._rest / (self.rule.f * self.workers), self.workers
        self._batch -= 1
        return self._part

    def _equal_length(self, least: float) -> int:
        """A p-th of the tasks of a batch, which holds 1/f of the rest, or the tasks of equation 3."""
        if self._batch == 0:
            batch = max(self._reach(self._rest / self.rule.f) - self.at, self._last_tasks(least))
            self._length, self._batch = -(-batch // self.workers), self.workers
        self._batch -= 1
        return self._length


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
        return Rule(self.taking, delta=self.delta, probe=self.probe)

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        return Phase((Queue(tasks, team.everyone, rule=self.rule),))

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        least = f"{self.delta:g} s" if self.delta else "one task"
        loops, workers = counted(len(phases), "self-scheduled loop"), counted(team.size, "worker")
        return f"{loops}, chunks of {least} or more, {workers}"


@dataclass(frozen=True)
class Chunk(SelfScheduled):
    """`size` tasks at a time; 0 for as many as the last ones of the loop that take `delta` seconds.

    On a triangular loop the latter is trapezoid self-scheduling of its elements (equation 3). With `literal`
    their number is decided once, from the first chunks of all workers.
    """

    name: ClassVar[str] = "chunk"
    taking: ClassVar[str] = "chunk"
    size: int = 4
    literal: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 0 or (self.size == 0 and self.delta == 0):
            raise InputError(f"policy {self}: give size=1 or more, or size=0 and delta in seconds")
        if self.literal and self.size:
            raise InputError(f"policy {self}: literal decides the size itself: give size=0 and delta")

    @property
    def rule(self) -> Rule:
        return replace(super().rule, literal=self.literal)

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        rule = Rule() if self.size else self.rule
        return Phase((Queue(tasks, team.everyone, max(1, self.size), rule),))

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        if not self.size:
            return super().decided(phases, team)
        return f"{counted(len(phases), 'counter')}, {self.size} at a time, {counted(team.size, 'worker')}"


@dataclass(frozen=True)
class Shrinking(SelfScheduled):
    """Chunks that become smaller along the loop, with `taper` down to single tasks.

    `most` is what a chunk may take in seconds, 0 for any time. With `longest_first` the longest tasks of a
    level come first, for loops whose order is of no account.
    """

    taper: bool = False
    most: float = 0.0
    longest_first: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.most < math.inf:
            raise InputError(f"policy {self}: most is a number of seconds, or 0 for any time")

    @property
    def rule(self) -> Rule:
        return replace(super().rule, taper=self.taper, most=self.most)

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        if self.longest_first:
            order = np.argsort(-cost, kind="stable")
            tasks, cost = tasks[order], cost[order]
        return super().phase(tasks, cost, team)

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        if self.taper or self.most:
            loops, workers = counted(len(phases), "self-scheduled loop"), counted(team.size, "worker")
            chunks = f"of {self.most:g} s at most" if self.most else "that shrink to single tasks"
            decision = f"{loops}, chunks {chunks}, {workers}"
        else:
            decision = super().decided(phases, team)
        return f"{decision}, the longest first" if self.longest_first else decision


@dataclass(frozen=True)
class Guided(Shrinking):
    """Guided self-scheduling: 1/p of the rest."""

    name: ClassVar[str] = "gss"
    taking: ClassVar[str] = "guided"


@dataclass(frozen=True)
class Trapezoid(Shrinking):
    """Trapezoid self-scheduling: from half of an equal share linearly down."""

    name: ClassVar[str] = "tss"
    taking: ClassVar[str] = "trapezoid"


@dataclass(frozen=True)
class Factoring(Shrinking):
    """1/f of the rest in p equal parts, then 1/f of what is left, and so on (equation 4).

    Parts are equal in work; with `literal`, in number of tasks.
    """

    name: ClassVar[str] = "factoring"
    taking: ClassVar[str] = "factoring"
    f: float = 2.0
    literal: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.literal and (self.taper or self.most):
            raise InputError(
                f"policy {self}: literal says what chunks are: give it alone, or taper and most without it"
            )
        if not 1 < self.f < math.inf:
            raise InputError(f"policy {self}: f must be a number above 1")

    @property
    def rule(self) -> Rule:
        return replace(super().rule, f=self.f, literal=self.literal)

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        if not (self.literal and self.delta):
            return super().decided(phases, team)
        steps = f"steps of {counted(team.size, 'chunk')} with {self.delta:g} s or more"
        loops, workers = counted(len(phases), "self-scheduled loop"), counted(team.size, "worker")
        return f"{loops}, {steps}, {workers}"
