"""`dataflow`: no barriers; of the tasks that are ready, the one with the longest way to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect import Graph
from tilewise.inspect.chains import with_trees
from tilewise.inspect.dependencies import AnyGraph
from tilewise.schedule.lpt import longest_first
from tilewise.schedule.policy import Policy
from tilewise.schedule.ready import ReadyQueues
from tilewise.schedule.schedule import Schedule
from tilewise.schedule.team import Team
from tilewise.wording import counted

QUEUES = ("one", "node", "worker")
PLACEMENTS = ("robin", "lpt")


@dataclass(frozen=True)
class Dataflow(Policy):
    """The whole graph at once; the priority of a task is the cost of its longest path to the end.

    With `trees`, chains of products that are too long for one worker become reduction trees. Paths that
    differ by less than the part `alike` of a worker's share of the work have the same priority: their tasks
    keep their order, in which neighbours find each other's data in the cache.

    `queues` says where ready tasks wait: in one queue for all; in one for each node (of threads: for those
    that share a cache); or in one for each worker, who takes from others in its node if its own is empty. In
    the last two cases all tasks of a chain are at home in one node: chains go to the nodes in turn
    (`placement` "robin"), or the longest first to the node that has least ("lpt").
    """

    name: ClassVar[str] = "dataflow"
    trees: bool = True
    alike: float = 0.02
    queues: str = "one"
    placement: str = "robin"

    def __post_init__(self) -> None:
        if not 0 <= self.alike <= 1:
            raise InputError(f"policy {self}: alike must be a part of the work, from 0 to 1")
        for key, value, valid in (
            ("queues", self.queues, QUEUES),
            ("placement", self.placement, PLACEMENTS),
        ):
            if value not in valid:
                raise InputError(f"policy {self}: {key} must be {' or '.join(valid)}")

    def prepared(self, graph: AnyGraph, seconds: np.ndarray, workers: int) -> AnyGraph:
        return with_trees(graph, seconds, workers) if self.trees else graph

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        paths = graph.longest_path(seconds)
        path, share = float(paths.max(initial=0.0)), float(seconds.sum()) / team.size
        step = self.alike * share
        priority = step * np.round(paths / step) if step > 0 else paths
        decision = (
            f"{counted(len(graph), 'task')} by priority on {counted(team.size, 'worker')}; "
            f"longest path {path:.3g} s, {share:.3g} s of work for each{self._waiting(team)}"
        )
        ready = self._ready_queues(graph, seconds, team)
        return Schedule(self.name, team.size, (), priority, decision=decision, ready=ready)

    def _ready_queues(self, graph: Graph, seconds: np.ndarray, team: Team) -> ReadyQueues | None:
        if self.queues == "one":
            return None
        made = ReadyQueues.of_groups if self.queues == "node" else ReadyQueues.of_workers
        return made(team, self._homes(graph, seconds, team))

    def _homes(self, graph: Graph, seconds: np.ndarray, team: Team) -> np.ndarray:
        """The group of workers to which each task goes, with all others of its chain."""
        chain = graph.chains
        if self.placement == "robin":
            return chain % len(team.groups)
        speeds = np.array([sum(team.speeds[w] for w in group) for group in team.groups])
        group_of_chain = np.zeros(int(chain.max(initial=-1)) + 1, np.int64)
        for group, chains in enumerate(longest_first(np.bincount(chain, seconds), speeds)):
            group_of_chain[chains] = group
        return group_of_chain[chain]

    def _waiting(self, team: Team) -> str:
        """Where ready tasks wait, for people."""
        if self.queues == "one":
            return ""
        if self.queues == "worker":
            return "; a queue for each worker"
        return f"; a queue for each of {len(team.groups)} groups of workers"
