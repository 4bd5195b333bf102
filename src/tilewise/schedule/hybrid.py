"""`hybrid`: static lists for long operations whose times are known well, a counter for the others.

The first runs decide, as the authors of I/E Hybrid decided by experiment (Ozog et al., section IV-C):

1. Counters for all: the times of the tasks are measured.
2. Counters again: now it shows how well the times are known, and what each level takes by its counter.
3. Lists for the long operations that are trusted: what each level takes with them.
4. From then on each level has what was faster. Every run is timed, so that a level may turn back, and
   an operation that becomes long or trusted later gets its trial then.

A level stays as it is unless a change promises more than it costs, and more than runs differ by themselves.
A change promises the difference to other runs, a trial all that the workers waited. Each further change of a
level has to promise twice as much as the one before: so there are few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect import Graph
from tilewise.schedule.block import contiguous_runs
from tilewise.schedule.observation import LevelRun, Observation, smoothed
from tilewise.schedule.policy import Policy, static, tasks_by_level
from tilewise.schedule.schedule import Phase, Queue, Schedule
from tilewise.schedule.team import Team
from tilewise.wording import counted

COUNTER: frozenset[int] = frozenset()
"""The operations with lists in a level that has a counter for all."""


@dataclass(frozen=True)
class Hybrid(Policy):
    """Lists are contiguous runs of equal cost by the speeds of the workers; what is left has a counter.

    `long`: the longest operations of a level, which take this part of its time together, are long.
    `trust`: how far the tasks of an operation may be from what was expected, as a part of their time;
    a trial of lists should not cost much more than that.
    `gain`: the part of a level's time that lists must gain over the counter; less may be noise.

    Two of them are equal if they decide alike: `runs`, from which `lists` were chosen, is of no account.
    """

    name: ClassVar[str] = "hybrid"
    first_runs: ClassVar[int] = 3
    long: float = 0.9
    trust: float = 0.2
    gain: float = 0.02
    lists: frozenset[int] = field(default=COUNTER, repr=False)
    """The operations that have static lists."""
    runs: tuple[tuple[LevelRun, ...], ...] | None = field(default=None, repr=False, compare=False)
    """What each level took, by the operations that had lists; none before the first run."""
    changes: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """How often each level has changed."""

    def __post_init__(self) -> None:
        if not 0 <= self.long <= 1 or not 0 <= self.gain <= 1:
            raise InputError(f"policy {self}: long and gain are parts of a level's time, from 0 to 1")
        if not self.trust >= 0:
            raise InputError(f"policy {self}: trust is a part of the time of an operation, 0 or more")

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        levels = tasks_by_level(graph)
        phases = tuple(phase for tasks in levels for phase in self._phases(graph, tasks, seconds, team))
        used = frozenset(graph.tasks["operation"].tolist())
        decision = (
            f"{counted(len(levels), 'level')}, static lists for {len(self.lists & used)} of {len(used)} "
            f"operations, counters for the others, {counted(team.size, 'worker')}"
        )
        return Schedule(self.name, team.size, phases or (Phase(),), decision=decision)

    def _phases(self, graph: Graph, tasks: np.ndarray, seconds: np.ndarray, team: Team) -> list[Phase]:
        """The lists of a level, and its counter."""
        listed = np.isin(graph.tasks["operation"][tasks], list(self.lists))
        known, others = tasks[listed], tasks[~listed]
        phases = []
        if len(known):
            cuts = contiguous_runs(seconds[known], np.array(team.speeds))
            phases.append(static(known, [np.arange(*run) for run in pairwise(cuts.tolist())]))
        if len(others):
            phases.append(Phase((Queue(others, team.everyone),)))
        return phases

    def learn(self, graph: Graph, seen: Observation) -> Hybrid:
        levels = tasks_by_level(graph)
        if self.runs is None:  # the first run has cold caches, and times that nobody could know
            return replace(self, runs=((),) * len(levels), changes=(0,) * len(levels))
        newest = seen.levels(graph)
        runs = tuple(with_run(before, run) for before, run in zip(self.runs, newest, strict=True))
        trusted = np.flatnonzero(seen.errors(graph) <= self.trust).tolist()
        lists, changes = COUNTER, []
        for tasks, known, run, before in zip(levels, runs, newest, self.changes, strict=True):
            long = long_operations(graph.tasks["operation"][tasks], seen.measured[tasks], self.long)
            ideal = shortest(seen.measured[tasks], seen.schedule.workers)
            price = seen.worth * 2**before
            mine = chosen(known, long.intersection(trusted), self.gain, run.lists, price, ideal)
            changes.append(before + (mine != run.lists))
            lists |= mine
        return replace(self, lists=lists, runs=runs, changes=tuple(changes))


def shortest(seconds: np.ndarray, workers: int) -> float:
    """Seconds of tasks that need not wait for each other, if no worker waits either."""
    return max(float(seconds.sum()) / workers, float(seconds.max(initial=0.0)))


def long_operations(operation: np.ndarray, seconds: np.ndarray, share: float) -> frozenset[int]:
    """The longest operations, which take this share of the time of the tasks, or a little more."""
    total = np.bincount(operation, seconds)
    order = np.argsort(-total, kind="stable")
    before = np.cumsum(total[order]) - total[order]
    return frozenset(order[(before < share * total.sum()) & (total[order] > 0)].tolist())


def chosen(
    runs: Sequence[LevelRun],
    candidates: frozenset[int],
    gain: float,
    now: frozenset[int],
    price: float,
    ideal: float = 0.0,
) -> frozenset[int]:
    """The operations of a level that get lists: those to be tried, else those with which it was fastest.

    What makes a difference of less than `price` seconds, or of less than runs differ, stays as it is `now`.
    A trial cannot gain more than what is left to the `ideal` seconds.
    """
    known = {run.lists: run for run in runs}
    if COUNTER not in known:
        return COUNTER
    here, counter = known[now], known[COUNTER]
    is_new = not candidates <= COUNTER.union(*known)
    if is_new and here.seconds - ideal > price + here.spread:
        return candidates
    best = min(runs, key=lambda run: run.seconds)
    wanted = best if best.seconds < (1 - gain) * counter.seconds else counter
    noise = here.spread + wanted.spread
    return wanted.lists if abs(here.seconds - wanted.seconds) >= price + noise else now


def with_run(runs: Sequence[LevelRun], new: LevelRun) -> tuple[LevelRun, ...]:
    """The runs of a level with one more; of runs with the same lists newer ones count more."""
    known = {run.lists: run for run in runs}
    old = known.get(new.lists, new)
    known[new.lists] = LevelRun(
        new.lists,
        smoothed(old.seconds, new.seconds),
        smoothed(old.spread, abs(new.seconds - old.seconds)),
    )
    return tuple(known.values())
