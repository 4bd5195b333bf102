"""`dataflow`: no barriers; of the tasks that are ready, the one with the longest way to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.inspect import Graph
from tilewise.inspect.chains import with_trees
from tilewise.inspect.dependencies import AnyGraph
from tilewise.schedule.policy import Policy
from tilewise.schedule.schedule import Schedule
from tilewise.schedule.team import Team


@dataclass(frozen=True)
class Dataflow(Policy):
    """The whole graph at once; the priority of a task is the cost of its longest path to the end.

    With `trees`, chains of products that are too long for one worker become reduction trees.
    """

    name: ClassVar[str] = "dataflow"
    trees: bool = True

    def prepared(self, graph: AnyGraph, seconds: np.ndarray, workers: int) -> AnyGraph:
        return with_trees(graph, seconds, workers) if self.trees else graph

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        priority = graph.longest_path(seconds)
        path, share = float(priority.max(initial=0.0)), float(seconds.sum()) / team.size
        decision = (
            f"{len(graph)} tasks by priority on {team.size} workers; longest path {path:.3g} s, "
            f"{share:.3g} s of work for each"
        )
        return Schedule(self.name, team.size, (), priority, decision=decision)
