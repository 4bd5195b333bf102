"""What a policy is: a frozen dataclass whose fields are its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from tilewise.inspect import Graph
from tilewise.inspect.dependencies import AnyGraph
from tilewise.schedule.observation import Observation
from tilewise.schedule.schedule import WHOLE, Phase, Queue, Schedule
from tilewise.schedule.team import Team
from tilewise.wording import counted


@dataclass(frozen=True)
class Policy(ABC):
    """Decides from the graph, the estimated seconds of each task and the workers alone.

    One that learns is shown each run, and answers with a policy that decides with that in mind.
    """

    name: ClassVar[str]
    first_runs: ClassVar[int] = 0
    """Runs that it has to see before it can decide for good."""

    def __call__(self, graph: Graph, seconds: np.ndarray, workers: int | Team) -> Schedule:
        """The schedule for a number of workers, or for a team whose speeds and groups are known."""
        return self.schedule(graph, np.asarray(seconds, np.float64), Team.of(workers))

    @abstractmethod
    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule: ...

    def prepared(self, graph: AnyGraph, seconds: np.ndarray, workers: int) -> AnyGraph:
        """The graph in the form that suits the policy, before costs are estimated for good."""
        return graph

    def learn(self, graph: Graph, seen: Observation) -> Self:
        """The policy after a run; another one (by ==) if it would decide otherwise."""
        return self

    @property
    def parameters(self) -> tuple[Field[Any], ...]:
        """The fields that users set; those without a text form hold what was learned."""
        return tuple(f for f in fields(self) if f.repr)

    def __str__(self) -> str:
        """The text form, with the parameters that differ from their defaults."""
        values = ((f.name, getattr(self, f.name), f.default) for f in self.parameters)
        shown = ", ".join(f"{name}={value}" for name, value, default in values if value != default)
        return f"{self.name}({shown})" if shown else self.name


@dataclass(frozen=True)
class LevelPolicy(Policy):
    """Goes through the graph level by level, with a barrier after each."""

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        phases = tuple(self.phase(tasks, seconds[tasks], team) for tasks in tasks_by_level(graph))
        return Schedule(
            self.name,
            team.size,
            phases or (Phase(),),
            work=seconds,
            decision=self.decided(phases, team),
        )

    @abstractmethod
    def phase(self, tasks: np.ndarray, cost: np.ndarray, team: Team) -> Phase:
        """Shares the tasks of one level, given in the order of the program."""

    def decided(self, phases: tuple[Phase, ...], team: Team) -> str:
        """What was decided, for people."""
        queues = [queue for phase in phases for queue in phase.queues]
        shared = sum(len(queue.workers) > 1 for queue in queues)
        kind = f"{shared} shared queues" if shared else "static lists"
        return f"{counted(len(phases), 'level')}, {kind}, {counted(team.size, 'worker')}"


@dataclass(frozen=True)
class ListPolicy(Policy):
    """Gives each worker a list of its own, level by level. With `barriers`, all wait for all after each.

    Without them a task waits for those that it needs, and for no others; who has had less in one level gets
    more in the next.
    """

    barriers: bool = False

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        speeds, phases = self.assumed_speeds(team), []
        before = np.zeros(team.size)
        for tasks in tasks_by_level(graph):
            cost = seconds[tasks]
            parts = self.parts(cost, speeds, before)
            phases.append(static(tasks, parts))
            if not self.barriers:
                before += [cost[part].sum() for part in parts] / speeds
                before -= before.min()
        return Schedule(
            self.name,
            team.size,
            tuple(phases) or (Phase(),),
            decision=self.decided(len(phases), team),
            waits=not self.barriers,
        )

    def assumed_speeds(self, team: Team) -> np.ndarray:
        """Of each worker; all are the same by default."""
        return np.ones(team.size)

    @abstractmethod
    def parts(self, cost: np.ndarray, speeds: np.ndarray, before: np.ndarray) -> list[np.ndarray]:
        """Shares the tasks of one level, given in the order of the program, by their positions.

        `before` are the seconds that each worker is behind the one that begins the level first.
        """

    def decided(self, levels: int, team: Team) -> str:
        """What was decided, for people."""
        between = "a barrier after each" if self.barriers else "no barriers"
        return f"{counted(levels, 'level')}, {between}, static lists, {counted(team.size, 'worker')}"


def static(tasks: np.ndarray, parts: list[np.ndarray]) -> Phase:
    """A list for each worker; `parts` are positions in `tasks`."""
    return Phase(tuple(Queue(tasks[part], (w,), quantum=WHOLE) for w, part in enumerate(parts)))


def tasks_by_level(graph: Graph) -> list[np.ndarray]:
    """Task numbers of each level, in the order of the program."""
    levels = graph.levels
    order = np.argsort(levels, kind="stable")
    count = int(levels.max()) + 1 if len(levels) else 0
    return np.split(order, np.searchsorted(levels[order], np.arange(1, count))) if count else []
