"""`hypergraph`: tasks are shared so that the costs are even and few blocks are read by two workers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect import TaskGraph
from tilewise.schedule.lpt import longest_first
from tilewise.schedule.policy import Policy, static, tasks_by_level
from tilewise.schedule.schedule import Phase, Schedule
from tilewise.schedule.team import Team

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

    def schedule(self, graph: TaskGraph, seconds: np.ndarray, team: Team) -> Schedule:
        levels = tasks_by_level(graph)
        partitioner = _partitioner()
        if partitioner is None:
            warnings.warn(
                "policy hypergraph needs Mt-KaHyPar (pip install 'tilewise[hypergraph]'); using lpt instead",
                RuntimeWarning,
                stacklevel=3,
            )
        nets = _shared_blocks(graph) if partitioner else (np.zeros((2, 0), np.int64), np.zeros(0))
        phases, cut, whole = [], 0.0, 0.0
        for tasks in levels:
            part = _even(seconds[tasks], team.size)
            if partitioner is not None and team.size > 1 and len(tasks) > team.size:
                found, (cut_here, all_here) = _partition(
                    partitioner, tasks, seconds[tasks], nets, team.size, self.tolerance
                )
                cut, whole = cut + cut_here, whole + all_here
                if found is not None:
                    part = found
            order = np.argsort(-seconds[tasks], kind="stable")
            phases.append(static(tasks, [order[part[order] == w] for w in range(team.size)]))
        how = f"{cut / 1e6:.3g} of {whole / 1e6:.3g} MB shared between workers" if partitioner else "by lpt"
        return Schedule(
            self.name,
            team.size,
            tuple(phases) or (Phase(),),
            decision=f"{len(phases)} levels, {how}, {team.size} workers",
        )


def _even(cost: np.ndarray, workers: int) -> np.ndarray:
    part = np.zeros(len(cost), np.int64)
    for w, mine in enumerate(longest_first(cost, workers)):
        part[mine] = w
    return part


def _partitioner() -> object | None:
    """Mt-KaHyPar, started once; None where it is not installed."""
    try:
        import mtkahypar
    except ImportError:
        return None
    if not _started:
        _started.append(mtkahypar.initialize(1))
    mtkahypar.set_seed(_SEED)
    return _started[0]


_started: list[object] = []


def _shared_blocks(graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
    """(task, block) pairs of what products read, and the bytes of each block; a block is a panel of an operand."""
    g = graph.records["gemm"]
    owner = graph.owners("gemm")
    keys, sizes = [], []
    for side in ("a", "b"):
        size = g["k"] * (g["m"] if side == "a" else g["n"])
        keys.append(np.stack([owner, g[side], g[f"{side}_offset"]]))
        sizes.append(size)
    task, buffer, offset = np.concatenate(keys, axis=1)
    size = np.concatenate(sizes)
    keep = task >= 0
    names, block = np.unique(np.stack([buffer, offset])[:, keep], axis=1, return_inverse=True)
    weight = np.zeros(names.shape[1])
    np.maximum.at(weight, block.ravel(), 8.0 * size[keep])
    pairs = np.unique(np.stack([task[keep], block.ravel()]), axis=1)
    return pairs, weight


def _partition(
    partitioner: object,
    tasks: np.ndarray,
    cost: np.ndarray,
    nets: tuple[np.ndarray, np.ndarray],
    workers: int,
    tolerance: float,
) -> tuple[np.ndarray | None, tuple[float, float]]:
    """A part for each task, or None if there is nothing to gain; bytes that are cut, of how many."""
    import mtkahypar

    pairs, bytes_of = nets
    number = np.full(int(max(tasks.max(initial=0), pairs[0].max(initial=0))) + 1, -1, np.int64)
    number[tasks] = np.arange(len(tasks))
    mine = pairs[:, number[pairs[0]] >= 0]
    order = np.argsort(mine[1], kind="stable")
    node, block = number[mine[0][order]], mine[1][order]
    first = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]])) if len(block) else []
    groups = [g for g in np.split(node, first[1:]) if len(g) > 1] if len(block) else []
    if not groups:
        return None, (0.0, 0.0)
    several = np.array(
        [block[f] for f, g in zip(first, np.split(node, first[1:]), strict=True) if len(g) > 1]
    )
    total = float(cost.sum())
    weights = (
        np.maximum(1, np.rint(_UNITS * cost / total)).astype(int) if total > 0 else np.ones(len(cost), int)
    )
    net_weights = np.maximum(1, np.rint(bytes_of[several] / 1024)).astype(int)
    # An even share may be impossible: the longest task then sets the tolerance.
    share = weights.sum() / workers
    allowed = max(tolerance, float(weights.max()) / share - 1 + tolerance)
    context = partitioner.context_from_preset(mtkahypar.PresetType.QUALITY)  # type: ignore[attr-defined]
    context.set_partitioning_parameters(workers, allowed, mtkahypar.Objective.KM1)
    context.logging = False
    made = partitioner.create_hypergraph(  # type: ignore[attr-defined]
        context, len(tasks), len(groups), [g.tolist() for g in groups], weights.tolist(), net_weights.tolist()
    )
    part = np.array(made.partition(context).get_partition(), np.int64)
    _verify(part, cost, workers, allowed)
    cut = sum(w * (len(set(part[g].tolist())) - 1) for w, g in zip(net_weights.tolist(), groups, strict=True))
    return part, (1024.0 * cut, 1024.0 * float(net_weights.sum()))


def _verify(part: np.ndarray, cost: np.ndarray, workers: int, allowed: float) -> None:
    """A partition is used only if it is one, and keeps its balance."""
    if len(part) != len(cost) or part.min(initial=0) < 0 or part.max(initial=0) >= workers:
        raise AssertionError("Mt-KaHyPar returned something that is no partition")
    loads = np.bincount(part, weights=cost, minlength=workers)
    if loads.max(initial=0.0) > (1.0 + allowed) * cost.sum() / workers + 1e-3 * cost.sum():
        raise AssertionError("Mt-KaHyPar returned a partition that is out of balance")
