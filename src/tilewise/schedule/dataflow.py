"""`dataflow`: no barriers; of the tasks that are ready, the one with the longest way to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect import Graph
from tilewise.inspect.chains import with_trees
from tilewise.inspect.dependencies import AnyGraph
from tilewise.schedule.policy import Policy
from tilewise.schedule.schedule import Schedule
from tilewise.schedule.team import Team


@dataclass(frozen=True)
class Dataflow(Policy):
    """The whole graph at once; the priority of a task is the cost of its longest path to the end.

    With `trees`, chains of products that are too long for one worker become reduction trees. Paths that
    differ by less than the part `alike` of a worker's share of the work have the same priority: their tasks
    keep their order, in which neighbours find each other's data in the cache.
    """

    name: ClassVar[str] = "dataflow"
    trees: bool = True
    alike: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.alike <= 1:
            raise InputError(f"policy {self}: alike must be a part of the work, from 0 to 1")

    def prepared(self, graph: AnyGraph, seconds: np.ndarray, workers: int) -> AnyGraph:
        return with_trees(graph, seconds, workers) if self.trees else graph

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        paths = graph.longest_path(seconds)
        path, share = float(paths.max(initial=0.0)), float(seconds.sum()) / team.size
        step = self.alike * share
        priority = step * np.round(paths / step) if step > 0 else paths
        decision = (
            f"{len(graph)} tasks by priority on {team.size} workers; longest path {path:.3g} s, "
            f"{share:.3g} s of work for each"
        )
        return Schedule(self.name, team.size, (), priority, decision=decision)
