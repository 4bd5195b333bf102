"""Schedules that run one operation after the other, as the TCE runs its routines: a barrier after each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilewise.inspect import Graph
from tilewise.schedule.policy import Policy
from tilewise.schedule.schedule import NULL, Phase, Schedule
from tilewise.schedule.team import Team


def by_operation(
    graph: Graph, seconds: np.ndarray, team: Team, policy: Policy | Callable[[int], Policy]
) -> Schedule:
    """A phase for each operation that has tasks, by a policy for all or by the one of its number.

    With a counter each operation has its own, and every worker draws once more from it at the end.
    """
    chosen = (lambda operation: policy) if isinstance(policy, Policy) else policy
    phases: list[Phase] = []
    names: list[str] = []
    for operation, tasks in operations_with_tasks(graph):
        made = chosen(operation)(graph.part(tasks), seconds[tasks], team)
        phases += (_renumbered(phase, tasks) for phase in made.phases)
        names.append(made.policy)
    used = ", ".join(f"{names.count(name)} by {name}" for name in dict.fromkeys(names))
    decision = f"{len(phases)} operations one after the other: {used}"
    return Schedule("by-operation", team.size, tuple(phases) or (Phase(),), work=seconds, decision=decision)


def operations_with_tasks(graph: Graph) -> list[tuple[int, np.ndarray]]:
    """The number of each operation that has tasks, and the numbers of these, in the order of the program."""
    operation = graph.tasks["operation"]
    order = np.argsort(operation, kind="stable")
    wanted, first = np.unique(operation[order], return_index=True)
    return list(zip(wanted.tolist(), np.split(order, first[1:]), strict=True))


def _renumbered(phase: Phase, tasks: np.ndarray) -> Phase:
    def numbers(part: np.ndarray) -> np.ndarray:
        return np.where(part == NULL, NULL, tasks[part]) if len(part) else part

    queues = tuple(replace(queue, tasks=numbers(queue.tasks)) for queue in phase.queues)
    return replace(phase, queues=queues)
