"""Shared counters, with a barrier after each level: `nxtval`, `ie-nxtval` and `levels`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect import Graph
from tilewise.schedule.policy import LevelPolicy, Policy, tasks_by_level
from tilewise.schedule.schedule import NULL, Phase, Queue, Schedule
from tilewise.schedule.team import Team
from tilewise.wording import counted


@dataclass(frozen=True)
class Nxtval(Policy):
    """The TCE's template: one counter over all tuples of each level, those that are null included."""

    name: ClassVar[str] = "nxtval"

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        place, count = graph.tuples
        operation = graph.tasks["operation"]
        phases, total = [], 0
        for tasks in tasks_by_level(graph):
            wanted = np.unique(operation[tasks])
            first = dict(zip(wanted.tolist(), np.cumsum([0, *count[wanted]]).tolist(), strict=False))
            drawn = np.full(int(count[wanted].sum()), NULL, np.int64)
            drawn[place[tasks] + np.array([first[op] for op in operation[tasks].tolist()])] = tasks
            phases.append(Phase((Queue(drawn, team.everyone),)))
            total += len(drawn)
        decision = f"{total} tuples, {total - len(graph)} of them null, {counted(len(phases), 'counter')}"
        return Schedule(self.name, team.size, tuple(phases) or (Phase(),), decision=decision)


@dataclass(frozen=True)
class IeNxtval(LevelPolicy):
    """Every worker draws the next tasks of the list, null ones having been left out by the inspector.

    The list has the order of the program, or begins with the longest tasks.
    """

    name: ClassVar[str] = "ie-nxtval"
    quantum: int = 1
    longest_first: bool = False

    def __post_init__(self) -> None:
        if self.quantum < 1:
            raise InputError(f"policy {self}: quantum must be a whole number from 1 up")

    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        listed = tasks[np.argsort(-cost, kind="stable")] if self.longest_first else tasks
        return Phase((Queue(listed, team.everyone, self.quantum),))

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        order = ", the longest first" if self.longest_first else ""
        counters, workers = counted(len(phases), "counter"), counted(team.size, "worker")
        return f"{counters}, {self.quantum} at a time{order}, {workers}"


@dataclass(frozen=True)
class Levels(Policy):
    """As `dataflow`, by priority, but with a barrier after each level, as the TCE runs."""

    name: ClassVar[str] = "levels"

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        priority = graph.longest_path(seconds)
        phases = tuple(
            Phase((Queue(tasks[np.argsort(-priority[tasks], kind="stable")], team.everyone),))
            for tasks in tasks_by_level(graph)
        )
        levels, workers = counted(len(phases), "level"), counted(team.size, "worker")
        decision = f"{levels} by priority, a barrier after each, {workers}"
        return Schedule(self.name, team.size, phases or (Phase(),), decision=decision)
