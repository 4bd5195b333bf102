"""I/E Hybrid of Ozog et al.: static lists for the routines that run long, counters for the others."""

from __future__ import annotations

import numpy as np

from tilewise.execute.simulated import Simulation
from tilewise.inspect import Graph
from tilewise.schedule import Phase, Schedule, policies
from tilewise.schedule.block import Block
from tilewise.schedule.counter import IeNxtval
from tilewise.schedule.policy import static as static_lists
from tilewise.schedule.policy import tasks_by_level
from tilewise.schedule.team import Team
from tilewise.studies.routines import Iteration, measured

LONG = 0.9
"""Share of a level's time that its longest routines have together."""

CLEARLY = 0.02
"""What static lists must gain in a trial: less may be noise."""


def long_running(graph: Graph, tasks: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Which of the tasks belong to the routines that take most of the time."""
    operation = graph.tasks["operation"][tasks]
    total = np.bincount(operation, seconds[tasks], len(graph.operations))
    order = np.argsort(-total, kind="stable")
    before = np.cumsum(total[order]) - total[order]
    return np.isin(operation, order[before < LONG * total.sum()])


def split_level(graph: Graph, tasks: np.ndarray, seconds: np.ndarray, team: Team) -> tuple[Phase, Phase]:
    """Static lists of the long-running routines, and a counter for the others."""
    long = long_running(graph, tasks, seconds)
    static, dynamic = tasks[long], tasks[~long]
    parts = Block().parts(seconds[static], np.ones(team.size), np.zeros(team.size))
    return static_lists(static, parts), IeNxtval().phase(dynamic, seconds[dynamic], team)


def hybrid_run(iteration: Iteration, workers: int, actual: np.ndarray, seed: int = 0) -> Simulation:
    """A later iteration: in the first ones times were measured, and static lists tried level by level.

    A level is split where that was clearly faster than one counter for all.
    """
    graph, team = iteration.graph, iteration.machine.team(workers)
    counters = iteration.run(policies["ie-nxtval"], workers, seconds=actual, seed=seed)
    costs = measured(counters)
    splits = [split_level(graph, tasks, costs, team) for tasks in tasks_by_level(graph)]
    tried = iteration.run(
        Schedule("static", team.size, tuple(phase for split in splits for phase in split)),
        workers,
        seconds=actual,
        seed=seed + 1,
    )
    faster = tried.phases.reshape(-1, 2).sum(axis=1) < (1 - CLEARLY) * counters.phases
    plain = policies["ie-nxtval"](graph, costs, team).phases
    chosen = [
        phase
        for split, whole, better in zip(splits, plain, faster.tolist(), strict=True)
        for phase in (split if better else (whole,))
    ]
    return iteration.run(Schedule("hybrid", team.size, tuple(chosen)), workers, seconds=actual, seed=seed + 2)
