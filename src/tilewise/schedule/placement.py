"""Placements: which rank runs each task, and where each cell of each tensor has its home.

The owner computes: a task runs at the home of the panel that it is named by, and all columns of a row panel
have one home, as have the two parities of a pair. Rows are shared out along the index that is cut into most
tiles, so that tensors over the same orbitals lie together; bands of tensors that are stored by half fill up
what each rank has to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewise.equations.program import Contract
from tilewise.inspect.graph import TaskGraph, place_of
from tilewise.inspect.panels import Panels, runs
from tilewise.inspect.splitting import Split
from tilewise.tensor import Compound
from tilewise.tensor.shard import Cells

WORTH_BALANCING = 0.1
"""Rows with less than this share of the work are shared out by their number, for the memory's sake."""


@dataclass(frozen=True)
class Homes:
    """Where panels and cells of tensors lie, before tasks are placed."""

    ranks: int
    of_cut: dict[Compound, np.ndarray]
    """Of compound indices that are rows: the rank of each row panel."""
    of_band: dict[str, np.ndarray]
    """Of tensors that are stored by half: the rank of each band."""

    def panels(self, panels: Panels) -> np.ndarray:
        """The rank of each panel of a tensor."""
        return self.of_cut[panels.layout.rows][panels.table["row_cut"]]

    def cells(self, panels: Panels) -> np.ndarray:
        """The rank of each cell of a tensor."""
        of_tuple = panels.row_cut_of_tuple[Cells.of(panels.layout).of_tuple]
        return self.of_cut[panels.layout.rows][of_tuple]


@dataclass(frozen=True)
class Placement:
    """The rank of each task, and of each cell of what tasks write, by the name of the tensor."""

    ranks: int
    task_rank: np.ndarray
    homes: dict[str, np.ndarray]

    def loads(self, seconds: np.ndarray) -> np.ndarray:
        """Seconds of work of each rank."""
        return np.bincount(self.task_rank, weights=seconds, minlength=self.ranks)

    def imbalance(self, seconds: np.ndarray) -> float:
        """The largest load over the mean."""
        loads = self.loads(seconds)
        return float(loads.max() / loads.mean()) if loads.sum() > 0 else 1.0

    def check(self, graph: TaskGraph) -> None:
        """Raises unless every task has a rank, and is at home where it writes."""
        from tilewise.inspect.spans import cell_touches

        if len(self.task_rank) != len(graph):
            raise AssertionError(f"{len(self.task_rank)} ranks for {len(graph)} tasks")
        if len(graph) and not 0 <= self.task_rank.min() <= self.task_rank.max() < self.ranks:
            raise AssertionError("a task is placed on a rank that does not exist")
        _, written = cell_touches(graph)
        for number in np.unique(written.tensor).tolist():
            name = graph.buffers[number]
            task, cell = written.of_tensor(number)
            foreign = self.homes[name][cell] != self.task_rank[task]
            if foreign.any():
                t = int(task[foreign][0])
                raise AssertionError(f"{graph.describe(t)} is not run where {name} is at home")


class _Rows(NamedTuple):
    """The row panels of a compound index."""

    compound: Compound
    kind: tuple[object, ...]
    """Compound indices of one kind are cut at the same places."""
    position: np.ndarray
    """Of each panel: where its orbitals stand along the index that is shared out, from 0 to 1."""
    rows: np.ndarray


def find_homes(
    graph: TaskGraph,
    splits: list[Split],
    own: Mapping[str, int],
    seconds: np.ndarray,
    ranks: int,
    manner: str = "block",
) -> Homes:
    """Shares out rows of equal work, then bands such that all ranks have the same to do.

    `own` are tensors that a rank makes for itself, and the rank; all ranks have the same work with them.
    `manner`: "block" (runs along an index), "interleaved" (one after the other) or "lpt" (largest first).
    """
    written = {name for op in graph.operations for name in op.outputs} & set(graph.panels)
    named = {place_of(op) for op in graph.operations}
    tables = {graph.panels[name].layout.rows: graph.panels[name] for name in sorted(written | named)}
    shared = {number for split in splits for number in split.copies}
    work = {compound: np.zeros(panels.shape[0]) for compound, panels in tables.items()}
    for number, op in enumerate(graph.operations):
        if number not in shared and not any(name in own for name in op.outputs):
            mine = graph.tasks["operation"] == number
            panels = graph.panels[place_of(op)]
            cut = panels.table["row_cut"][graph.tasks["panel"][mine]]
            np.add.at(work[panels.layout.rows], cut, seconds[mine])
    rows = [_rows(compound, panels) for compound, panels in tables.items()]
    of_cut: dict[Compound, np.ndarray] = {}
    total = float(seconds.sum()) or 1.0
    for kind in dict.fromkeys(r.kind for r in rows):
        alike = [r for r in rows if r.kind == kind]
        weights = [work[r.compound] for r in alike]
        if sum(w.sum() for w in weights) < WORTH_BALANCING * total:
            weights = [r.rows / max(r.rows.sum(), 1) for r in alike]
        for r, found in zip(alike, _shared_out(alike, weights, ranks, manner), strict=True):
            of_cut[r.compound] = found
    loads = np.zeros(ranks)
    for compound, found in of_cut.items():
        loads += np.bincount(found, weights=work[compound], minlength=ranks)
    for split in splits:
        if split.own >= 0:
            loads += _moved_to_owners(graph, split, seconds, Homes(ranks, of_cut, {}))
    of_band = {}
    for split in splits:
        if split.halved:
            bands = _band_seconds(graph, split, seconds)
            of_band[split.halved] = _fill_up(bands, loads, ranks, manner)
            loads += np.bincount(of_band[split.halved], weights=bands, minlength=ranks)
    return Homes(ranks, of_cut, of_band)


def place(graph: TaskGraph, splits: list[Split], own: Mapping[str, int], homes: Homes) -> Placement:
    """The tasks of a graph that was shared out, where their panels are at home.

    `own` are tensors that a rank makes for itself, and the rank.
    """
    parts = {name: rank for split in splits for rank, name in enumerate(split.parts)} | dict(own)
    written = {name for op in graph.operations for name in op.outputs} & set(graph.panels)
    of_cell = {}
    for name in written:
        panels = graph.panels[name]
        of_cell[name] = (
            np.full(len(Cells.of(panels.layout)), parts[name]) if name in parts else homes.cells(panels)
        )
    rank = np.zeros(len(graph), np.int64)
    for number, op in enumerate(graph.operations):
        mine = np.flatnonzero(graph.tasks["operation"] == number)
        name = place_of(op)
        if name in parts:
            rank[mine] = parts[name]
        else:
            rank[mine] = homes.panels(graph.panels[name])[graph.tasks["panel"][mine]]
    return Placement(homes.ranks, rank, of_cell)


def _rows(compound: Compound, panels: Panels) -> _Rows:
    cut, table = panels.row_cut_of_tuple, compound.tuples
    count = panels.shape[0]
    size = np.bincount(cut, weights=table.size, minlength=count)
    if not compound.rank:
        return _Rows(compound, (), np.zeros(count), size)
    tiles = [len(space.tiles) for space in compound.spaces]
    axis = int(np.argmax(tiles))
    space = compound.spaces[axis]
    # A panel goes with the largest of its tuples: their mean might be far from all of them.
    largest = np.lexsort((-table.size, cut))[np.searchsorted(cut, np.arange(count))]
    position = (table.tiles[largest, axis] + 0.5) / tiles[axis]
    kind = (space.name, sum(s == space for s in compound.spaces))
    # Both parities of a pair go by the position of the symmetric one, which has all tuples.
    if compound.packing == "+-":
        first = np.flatnonzero(np.append(True, np.diff(cut) != 0))
        minus = first[table.parity[first] < 0]
        mate = cut[compound.find(list(table.tiles[minus].T), 1)]
        position[cut[minus]] = position[mate]
    return _Rows(compound, kind, position, size)


def _shared_out(alike: list[_Rows], weights: list[np.ndarray], ranks: int, manner: str) -> list[np.ndarray]:
    """The rank of each row panel of compound indices that are cut at the same places."""
    position, which = np.unique(np.concatenate([r.position for r in alike]).round(9), return_inverse=True)
    weight = np.bincount(which.ravel(), weights=np.concatenate(weights), minlength=len(position))
    found = _assigned(weight, np.zeros(ranks), ranks, manner)[which.ravel()]
    return np.split(found, np.cumsum([len(r.position) for r in alike])[:-1])


def _fill_up(weight: np.ndarray, loads: np.ndarray, ranks: int, manner: str) -> np.ndarray:
    return _assigned(weight, loads, ranks, manner)


def _assigned(weight: np.ndarray, loads: np.ndarray, ranks: int, manner: str) -> np.ndarray:
    """The rank of each piece, if ranks have loads already."""
    if manner == "interleaved":
        return np.arange(len(weight)) % ranks
    if manner == "lpt":
        loads, found = loads.copy(), np.zeros(len(weight), np.int64)
        for k in np.argsort(-weight, kind="stable"):
            found[k] = int(np.argmin(loads))
            loads[found[k]] += weight[k]
        return found
    # Runs, as long as each rank has room up to a level that all reach.
    level = _level(loads, float(weight.sum()))
    ends = np.cumsum(np.maximum(level - loads, 0.0))
    middle = np.cumsum(weight) - 0.5 * weight
    return np.minimum(np.searchsorted(ends, middle, side="left"), ranks - 1)


def _level(loads: np.ndarray, amount: float) -> float:
    """How high all ranks stand when an amount has been poured on them."""
    ordered = np.sort(loads)
    for count in range(len(ordered), 0, -1):
        level = (float(ordered[:count].sum()) + amount) / count
        if level >= ordered[count - 1]:
            return level
    return float(ordered[0]) + amount


def _moved_to_owners(graph: TaskGraph, split: Split, seconds: np.ndarray, homes: Homes) -> np.ndarray:
    """By how much the seconds of ranks change if each adds its own rows, and not the home of the target."""
    sorts, reads, views = (graph.records[name] for name in ("sort", "read", "view"))
    owner = np.full(len(views), -1)
    for name in graph.operations[split.own].reads:
        panels = graph.panels[name]
        if panels.layout.rank > 2 and panels.layout.rows in homes.of_cut:
            some = np.flatnonzero(views["buffer"] == graph.buffers.index(name))
            low, _ = Cells.of(panels.layout).touched(views["offset"][some], views["offset"][some] + 1)
            owner[some] = homes.cells(panels)[low]
    change = np.zeros(homes.ranks)
    for task in np.flatnonzero(graph.tasks["operation"] == split.own).tolist():
        first, count, panel = (int(graph.tasks[name][task]) for name in ("first", "count", "panel"))
        home = int(homes.panels(graph.panels[split.target])[panel])
        _, read = runs(sorts["first_read"][first : first + count], sorts["n_read"][first : first + count])
        ranks = owner[reads["first_view"][read]]
        ranks = np.where(ranks < 0, home, ranks)
        change += seconds[task] * np.bincount(ranks, minlength=homes.ranks) / max(1, len(ranks))
        change[home] -= seconds[task]
    return change


def _band_seconds(graph: TaskGraph, split: Split, seconds: np.ndarray) -> np.ndarray:
    """Seconds of the products with each band of a tensor that is stored by half, by their flops."""
    op = graph.operations[split.copies[0]]
    assert isinstance(op, Contract)
    cells = Cells.of(graph.panels[split.halved].layout)
    mine = np.flatnonzero(graph.tasks["operation"] == split.copies[0])
    g, owner = graph.records["gemm"], graph.owners("gemm")
    some = np.flatnonzero(np.isin(owner, mine))
    flops = 2.0 * g["m"][some] * g["n"][some] * g["k"][some]
    of_task = np.bincount(owner[some], weights=flops, minlength=len(graph))
    rate = np.where(of_task > 0, seconds / np.where(of_task > 0, of_task, 1.0), 0.0)
    low, _ = cells.touched(g["a_offset"][some], g["a_offset"][some] + 1)
    return np.bincount(low, weights=flops * rate[owner[some]], minlength=len(cells))
