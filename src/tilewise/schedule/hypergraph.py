"""`hypergraph`: tasks are shared so that the costs are even and few blocks are read by two workers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect import Graph
from tilewise.schedule.lpt import longest_first
from tilewise.schedule.policy import Policy, static, tasks_by_level
from tilewise.schedule.schedule import Phase, Schedule
from tilewise.schedule.team import Team
from tilewise.wording import counted

_UNITS = 1_000_000  # weights of tasks are whole numbers: shares of a level's cost
_SEED = 1


@dataclass(frozen=True)
class Hypergraph(Policy):
    """Nodes are tasks, weighted by cost; nets are the blocks that several of them read, by size.

    No part exceeds an even share by more than `tolerance`, or by the longest task if that is more.
    """

    name: ClassVar[str] = "hypergraph"
    tolerance: float = 0.03

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(f"policy {self}: tolerance is a share between 0 and 1, such as 0.03")

    def schedule(self, graph: Graph, seconds: np.ndarray, team: Team) -> Schedule:
        levels = tasks_by_level(graph)
        partitioner = _partitioner()
        if partitioner is None:
            warnings.warn(
                "policy hypergraph needs Mt-KaHyPar (pip install 'tilewise[hypergraph]'); using lpt instead",
                RuntimeWarning,
                stacklevel=3,
            )
        nets = _Nets(*graph.operands)
        phases, cut, whole = [], 0.0, 0.0
        for tasks in levels:
            cost = seconds[tasks]
            part = _even(cost, team.size)
            readers, size = nets.within(tasks)
            if partitioner is not None and team.size > 1 and readers:
                found = _partition(partitioner, cost, readers, size, team.size, self.tolerance)
                part = part if found is None else found
            extra = np.array([len(np.unique(part[nodes])) - 1 for nodes in readers])
            cut, whole = cut + float((size * extra).sum()), whole + float(size.sum())
            order = np.argsort(-cost, kind="stable")
            phases.append(static(tasks, [order[part[order] == w] for w in range(team.size)]))
        how = f"{cut / 1e6:.3g} MB of {whole / 1e6:.3g} read once more by another worker"
        decision = f"{counted(len(phases), 'level')}, {how}, {counted(team.size, 'worker')}"
        return Schedule(self.name, team.size, tuple(phases) or (Phase(),), decision=decision)


def _even(cost: np.ndarray, workers: int) -> np.ndarray:
    part = np.zeros(len(cost), np.int64)
    for w, mine in enumerate(longest_first(cost, workers)):
        part[mine] = w
    return part


def _partitioner() -> Any:
    """Mt-KaHyPar, started once; None where it is not installed."""
    try:
        import mtkahypar
    except ImportError:
        return None
    if not _started:
        _started.append(mtkahypar.initialize(1))
    mtkahypar.set_seed(_SEED)
    return _started[0]


_started: list[Any] = []


@dataclass(frozen=True)
class _Nets:
    """Which tasks read which blocks: pairs in the order of the blocks, and the bytes of each block."""

    task: np.ndarray
    block: np.ndarray
    size: np.ndarray

    def within(self, tasks: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Blocks that several of these tasks read: the positions of their readers, and their bytes."""
        place = np.full(int(max(tasks.max(initial=0), self.task.max(initial=0))) + 1, -1, np.int64)
        place[tasks] = np.arange(len(tasks))
        mine = place[self.task] >= 0
        node, block = place[self.task[mine]], self.block[mine]
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        several = np.flatnonzero(np.diff(np.append(starts, len(block))) > 1)
        readers = np.split(node, starts[1:])
        return [readers[k] for k in several], self.size[block[starts[several]]]


def _partition(
    partitioner: Any,
    cost: np.ndarray,
    readers: list[np.ndarray],
    size: np.ndarray,
    workers: int,
    tolerance: float,
) -> np.ndarray | None:
    """The part of each task: even in cost, few blocks read by several parts; None if that was not found."""
    import mtkahypar

    total = float(cost.sum())
    weights = np.maximum(1, np.rint(_UNITS * cost / total)) if total > 0 else np.ones(len(cost))
    # An even share may be impossible: the longest task then sets the tolerance.
    allowed = max(tolerance, float(weights.max() * workers / weights.sum()) - 1 + tolerance)
    context = partitioner.context_from_preset(mtkahypar.PresetType.QUALITY)
    context.set_partitioning_parameters(workers, allowed, mtkahypar.Objective.KM1)
    context.logging = False
    made = partitioner.create_hypergraph(
        context,
        len(cost),
        len(readers),
        [nodes.tolist() for nodes in readers],
        weights.astype(int).tolist(),
        np.maximum(1, np.rint(size / 1024)).astype(int).tolist(),
    )
    part = np.array(made.partition(context).get_partition(), np.int64)
    return part if _is_even(part, cost, workers, allowed) else None


def _is_even(part: np.ndarray, cost: np.ndarray, workers: int, allowed: float) -> bool:
    """Whether this is a partition, and in balance: nothing else is used."""
    if len(part) != len(cost) or part.min(initial=0) < 0 or part.max(initial=0) >= workers:
        return False
    loads = np.bincount(part, weights=cost, minlength=workers)
    return bool(loads.max(initial=0.0) <= (1.0 + allowed) * cost.sum() / workers + 1e-3 * cost.sum())
