"""Tensors spread over ranks for tasks that may run on any of them: every cell has one home and no copy.

A task that runs somewhere gets what it reads, computes on copies, and what it has made is added where it is
at home. What each task moves is known beforehand, wherever it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewise.equations.program import Program
from tilewise.execute.distribution import Counted, Distribution
from tilewise.execute.moving import moved_tables
from tilewise.inspect.graph import TaskGraph, inspect
from tilewise.inspect.inverting import by_left_operands
from tilewise.inspect.panels import PanelRule
from tilewise.inspect.single_tasks import single_task
from tilewise.inspect.spans import cell_touches
from tilewise.lazy import cached_property
from tilewise.schedule.placement import find_homes, place
from tilewise.tensor.shard import Cells, Shard


@dataclass(frozen=True)
class Move:
    """Neighbouring elements of a tensor on one rank: `there` in its part, `here` in a task's copy."""

    name: str
    rank: int
    there: int
    here: int
    elements: int


@dataclass(frozen=True)
class Errand:
    """A task with all that it takes along: its records on copies of the cells that it touches."""

    task: int
    graph: TaskGraph
    lengths: dict[str, int]
    """Elements of the copy of each tensor that it touches."""
    gets: tuple[Move, ...]
    adds: tuple[Move, ...]

    @property
    def bytes(self) -> int:
        return 8 * sum(move.elements for move in (*self.gets, *self.adds))


@dataclass(frozen=True)
class Spread(Distribution):
    """A program whose tensors, constants too, are spread over ranks, while its tasks are not placed."""

    @cached_property
    def fetched(self) -> tuple[str, ...]:
        """Any rank may get any tensor."""
        return tuple(self.home_of_cell)

    @cached_property
    def home_of_cell(self) -> dict[str, np.ndarray]:
        """Of every tensor that tasks touch; rows without a home are cut into runs of equal length."""
        touched = {name for op in self.graph.operations for name in (*op.reads, *op.outputs)}
        found = {}
        for name in self.graph.panels:
            panels = self.graph.panels[name]
            if name not in touched:
                continue
            if panels.layout.rows in self.homes.of_cut and not panels.layout.half:
                found[name] = self.homes.cells(panels)
            else:
                sizes = Cells.of(panels.layout).sizes
                middle = np.cumsum(sizes) - 0.5 * sizes
                found[name] = np.minimum(middle * self.ranks // max(1, sizes.sum()), self.ranks - 1).astype(
                    np.int64
                )
        return found

    @cached_property
    def constants(self) -> tuple[str, ...]:
        written = {name for op in self.graph.operations for name in op.outputs}
        kinds_of = self.program.kinds
        return tuple(n for n in self.home_of_cell if n not in written and kinds_of.get(n) != "input")

    def shard(self, name: str, rank: int) -> Shard:
        return self.home(name, rank)

    def home(self, name: str, rank: int) -> Shard:
        known: dict[tuple[str, int], Shard] = self.__dict__.setdefault("_homes", {})
        if (name, rank) not in known:
            homes = self.home_of_cell.get(name)
            layout = self.graph.panels[name].layout
            mask = np.zeros(len(Cells.of(layout)), bool) if homes is None else homes == rank
            known[name, rank] = Shard.of_mask(layout, mask)
        return known[name, rank]

    def errand(self, task: int) -> Errand:
        """What a task takes along; kept, since it is the same each time."""
        known: dict[int, Errand] = self.__dict__.setdefault("_errands", {})
        if task not in known:
            known[task] = self._made_errand(task)
        return known[task]

    def _made_errand(self, task: int) -> Errand:
        alone = single_task(self.graph, task)
        read, written = cell_touches(alone)
        shards: dict[str, Shard] = {}
        gets: list[Move] = []
        adds: list[Move] = []
        for number in np.union1d(read.tensor, written.tensor).tolist():
            name = self.graph.buffers[number]
            _, taken = read.of_tensor(number)
            _, made = written.of_tensor(number)
            if len(taken) and len(made):
                raise AssertionError(f"a task reads and writes {name}: {self.graph.describe(task)}")
            shards[name] = Shard(self.graph.panels[name].layout, np.union1d(taken, made))
            (gets if len(taken) else adds).extend(self._moves(name, shards[name]))
        tables = moved_tables(alone, lambda name: shards[name])
        alone.records.update(tables)
        lengths = {name: shard.size for name, shard in shards.items()}
        return Errand(task, alone, lengths, tuple(gets), tuple(adds))

    def _moves(self, name: str, shard: Shard) -> list[Move]:
        """Runs of cells that are neighbours at their home and in the copy."""
        home = self.home_of_cell[name][shard.cells]
        new = np.append(True, (np.diff(shard.cells) != 1) | (np.diff(home) != 0))[: len(home)]
        first = np.flatnonzero(new)
        found = []
        for low, high in zip(first.tolist(), [*first[1:].tolist(), len(home)], strict=True):
            rank, cell = int(home[low]), int(shard.cells[low])
            there = int(self.home(name, rank).offset_of(cell))
            here, end = int(shard.starts[low]), int(shard.starts[high])
            if end > here:
                found.append(Move(name, rank, there, here, end - here))
        return found

    def counted(self, rank: int) -> Counted:
        """Of all ranks together, told as those of rank 0: who will run what is not known."""
        gets, adds, total = self.counted_moves
        return Counted(gets + adds, total) if rank == 0 else Counted(0, 0)

    @cached_property
    def counted_moves(self) -> tuple[int, int, int]:
        """Gets, additions and bytes of a run of all tasks, whoever runs them."""
        errands = [self.errand(task) for task in range(len(self.graph))]
        return (
            sum(len(e.gets) for e in errands),
            sum(len(e.adds) for e in errands),
            sum(e.bytes for e in errands),
        )


def spread(
    program: Program,
    ranks: int,
    seconds_of: Callable[[TaskGraph], np.ndarray],
    rule: PanelRule | None = None,
    inverted: bool = False,
) -> Spread:
    """Spreads a program's tensors: a pure function, so that every rank finds the same.

    `inverted`: products with the same block of their left operand are one task.
    """
    graph = inspect(program, rule or PanelRule())
    if inverted:
        graph = by_left_operands(graph)
    seconds = seconds_of(graph)
    homes = find_homes(graph, [], {}, seconds, ranks)
    return Spread(ranks, program, graph, place(graph, [], {}, homes), homes, [], seconds)
