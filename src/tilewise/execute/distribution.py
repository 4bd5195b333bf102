"""A calculation on several ranks: who does what, and who holds what. A value, the same on every rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tilewise.equations.program import Program
from tilewise.execute.transfers import Strips, Transfers
from tilewise.inspect.graph import TaskGraph, inspect
from tilewise.inspect.panels import PanelRule
from tilewise.inspect.repeating import repeat, with_own_copies
from tilewise.inspect.spans import CellTouches, cell_touches
from tilewise.inspect.splitting import Split, share_out, split_program
from tilewise.lazy import cached_property
from tilewise.schedule.placement import Homes, Placement, find_homes, place
from tilewise.tensor.shard import Cells, Shard

WAY = 0.05
"""The part of a rank's work that the way from one rank to another counts for, where tasks are ranked."""


@dataclass(frozen=True)
class Counted:
    """What one rank moves in a run: strips that it gets, their bytes, and messages that it sends."""

    gets: int
    bytes: int


@dataclass(frozen=True)
class Distribution:
    """A program whose tasks and tensors are shared out between ranks."""

    ranks: int
    program: Program
    """With operations that were split between ranks, and the tensors that hold their parts."""
    graph: TaskGraph
    placement: Placement
    homes: Homes
    splits: list[Split]
    seconds: np.ndarray
    """Of each task, as estimated."""
    own: Mapping[str, int] = field(default_factory=dict)
    """Tensors that a rank makes for itself, and that rank: of these it has what its tasks make."""

    @cached_property
    def urgency(self) -> np.ndarray:
        """Seconds of the longest path from each task to the end of the run, with the way between ranks.

        What others wait for is worth doing first: the way counts as a part of what each rank has to do.
        """
        way = WAY * float(self.seconds.sum()) / self.ranks
        rank = self.placement.task_rank
        return self.graph.longest_path(self.seconds, lambda s, t: way * (rank[s] != rank[t]))

    @cached_property
    def touches(self) -> tuple[CellTouches, CellTouches]:
        """The cells that tasks read, and those that they write."""
        return cell_touches(self.graph)

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Tensors that tasks read and nobody changes."""
        read = {name for op in self.graph.operations for name in op.reads}
        return tuple(name for name in self.graph.buffers if name in read and name not in self.home_of_cell)

    @cached_property
    def home_of_cell(self) -> dict[str, np.ndarray]:
        """The rank of each cell of the tensors that are made or changed: those of tasks, and the inputs."""
        found = dict(self.placement.homes)
        for name, kind in self.program.kinds.items():
            if kind == "input" and name in self.graph.panels:
                found[name] = self.homes.cells(self.graph.panels[name])
        return found

    @cached_property
    def fetched(self) -> tuple[str, ...]:
        """Tensors of which other ranks get something in a run: they lie in memory that others can read."""
        numbers = np.unique(self.transfers.table["tensor"]).tolist()
        return tuple(self.graph.buffers[number] for number in numbers)

    @cached_property
    def strips(self) -> Strips:
        return Strips.of(self.graph, self.home_of_cell)

    @cached_property
    def transfers(self) -> Transfers:
        """Of a run of all tasks."""
        return Transfers.of(self.placement, self.strips, *self.touches)

    @cached_property
    def _kept(self) -> dict[str, np.ndarray]:
        """(ranks, cells) of each tensor: which rank holds which."""
        read, written = self.touches
        kept = {}
        for number, name in enumerate(self.graph.buffers):
            if name not in self.graph.panels:
                continue
            cells = len(Cells.of(self.graph.panels[name].layout))
            mask = np.zeros((self.ranks, cells), bool)
            task, cell = read.of_tensor(number)
            mask[self.placement.task_rank[task], cell] = True
            if name in self.own:
                mask[self.own[name], written.of_tensor(number)[1]] = True
            elif name in self.home_of_cell:
                _, strip = np.unique(self.strips.of_cell[number], return_inverse=True)
                wanted = np.zeros((self.ranks, cells), bool)
                rank, cell = np.nonzero(mask)
                wanted[rank, strip[cell]] = True
                mask = wanted[:, strip]  # whole strips are moved
                mask[self.home_of_cell[name], np.arange(cells)] = True
            kept[name] = mask
        return kept

    def shard(self, name: str, rank: int) -> Shard:
        """What a rank holds of a tensor: what is at home there, and what its tasks read."""
        return self._shards(name)[rank]

    def _shards(self, name: str) -> list[Shard]:
        known: dict[str, list[Shard]] = self.__dict__.setdefault("_made", {})
        if name not in known:
            layout = self.graph.panels[name].layout
            known[name] = [Shard.of_mask(layout, mask) for mask in self._kept[name]]
        return known[name]

    def home(self, name: str, rank: int) -> Shard:
        """The cells whose home a rank is; of a constant those that no rank before it reads."""
        layout, kept = self.graph.panels[name].layout, self._kept[name]
        if name in self.home_of_cell:
            return Shard.of_mask(layout, self.home_of_cell[name] == rank)
        first = np.where(kept.any(axis=0), np.argmax(kept, axis=0), 0)
        return Shard.of_mask(layout, first == rank)

    def bytes(self, rank: int) -> int:
        """Of all tensors that a rank holds."""
        return 8 * int(sum(held[rank] for held in self.elements.values()))

    @cached_property
    def elements(self) -> dict[str, np.ndarray]:
        """(ranks,) of each tensor: how many elements each rank holds."""
        return {name: kept @ self._sizes(name) for name, kept in self._kept.items()}

    def elements_at_home(self, name: str) -> np.ndarray:
        """(ranks,) of a tensor that is made or changed: elements whose home each rank is."""
        found = np.zeros(self.ranks, np.int64)
        np.add.at(found, self.home_of_cell[name], self._sizes(name))
        return found

    def _sizes(self, name: str) -> np.ndarray:
        return Cells.of(self.graph.panels[name].layout).sizes

    def counted(self, rank: int) -> Counted:
        """What a rank gets in a run of all tasks."""
        mine = self.transfers.table[self.transfers.table["target"] == rank]
        return Counted(len(mine), 8 * int(mine["elements"].sum()))

    def tasks_for(self, scalar: str) -> np.ndarray:
        """The tasks that a scalar needs."""
        graph = self.graph
        summed = np.array([op.scalar == scalar for op in graph.operations])
        needed, count = summed[graph.tasks["operation"]], -1
        while count < needed.sum():
            count = int(needed.sum())
            needed[graph.sources[needed[graph.targets]]] = True
        return np.flatnonzero(needed)

    def check(self) -> None:
        """Raises unless everybody writes at home and holds what it reads."""
        self.placement.check(self.graph)
        for name in self.graph.panels:
            for rank in range(self.ranks):
                self.shard(name, rank).check()


def distribute(
    program: Program,
    ranks: int,
    seconds_of: Callable[[TaskGraph], np.ndarray],
    rule: PanelRule | None = None,
    ordered: bool = False,
    manner: str = "block",
    repeats: bool = True,
) -> Distribution:
    """Shares a program out: a pure function, so that every rank finds the same.

    With `repeats` each rank makes for itself what would be more to move than what it is made of. No more
    ranks get something to do than the largest number of cells that a tensor has.
    """
    busy = max(1, min(ranks, max(len(Cells.of(layout)) for layout in program.layouts.values())))
    split, repeated = repeat(program, busy if repeats else 1)
    split, splits = split_program(split, busy, ordered)
    own = {name: rank for one in repeated for name, rank in one.owners.items()}
    graph = inspect(split, rule or PanelRule(), ordered)
    homes = replace(find_homes(graph, splits, own, seconds_of(graph), busy, manner), ranks=ranks)
    written = {name for op in graph.operations for name in op.outputs}
    owners = {name: homes.cells(graph.panels[name]) for name in written} | homes.of_band
    panels = {s.target: homes.panels(graph.panels[s.target]) for s in splits}
    graph, _ = share_out(graph, splits, owners, panels, ordered)
    if repeated:
        rank = place(graph, splits, own, homes).task_rank
        graph = with_own_copies(graph, repeated, rank, ordered)
    placement = place(graph, splits, own, homes)
    return Distribution(ranks, split, graph, placement, homes, splits, seconds_of(graph), own)


def shards_of_whole(
    distribution: Distribution, rank: int, whole: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The constants of a rank, taken from whole ones."""
    return {name: distribution.shard(name, rank).take(whole[name]) for name in distribution.constants}
