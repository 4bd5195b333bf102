"""Columns shared between ranks: blocks of them are handed out while they are made, and stay where they are.

Rank 0 decides which rank gets which blocks, by the same policy that shares out columns between threads. In a
product each rank multiplies what it has, and the parts are added up. Rank 0 alone runs what needs products;
the others serve it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tilewise.ci.columns import Built, Columns
from tilewise.ci.operators import Operator
from tilewise.execute.mpi.world import Alone, World
from tilewise.execute.rank_pool import on_ranks
from tilewise.execute.source import Source
from tilewise.inspect.loop import LoopGraph
from tilewise.inspect.records import TRACE
from tilewise.schedule import Team

BLOCK_SECONDS = 4e-3
"""Predicted seconds of a block on each thread of a rank: some ten times what handing it out takes."""

LEAST_BLOCKS = 16
"""For each rank, however short the loop is."""


def cut(seconds: np.ndarray, count: int) -> np.ndarray:
    """Bounds (blocks + 1) of at most `count` runs of columns, each of about the same predicted seconds."""
    total = np.concatenate([[0.0], np.cumsum(seconds)])
    bounds = np.searchsorted(total, np.linspace(0.0, total[-1], count + 1))
    bounds[0], bounds[-1] = 0, len(seconds)
    return np.unique(bounds)


@dataclass
class RankColumns(Columns):
    """What `Columns` is to one process, for all ranks of a world together.

    All ranks call `use` and `build`. Then rank 0 multiplies, and the others are in `serve` until it calls
    `dismiss`.
    """

    world: World = field(default_factory=Alone)
    _elements: np.ndarray = field(init=False, repr=False)
    _bytes: int = field(init=False, default=0)
    _n_direct: int = field(init=False, default=0)

    def build(self, room: np.ndarray, seconds: np.ndarray, budget: int) -> Built:
        """The columns of all ranks, in the same words on each of them; a rank has `budget` bytes.

        Columns that no rank has room for are dealt out by predicted seconds.
        """
        self.forget()
        bounds = self._blocks(seconds)
        graph = LoopGraph(len(bounds) - 1, "block of columns")
        work = np.add.reduceat(seconds, bounds[:-1])
        schedule = self.policy(graph, work, Team(self.world.size))
        schedule.check(graph)
        made: dict[int, Built] = {}

        def make(block: int) -> None:
            part = slice(int(bounds[block]), int(bounds[block + 1]))
            left = max(0, budget - super(RankColumns, self).bytes)
            made[block] = self.make(np.arange(part.start, part.stop), room[part], seconds[part], left)

        done = on_ranks(make, range(len(graph)), Source(schedule), self.world)
        for first in done[:1]:
            if first.error is not None:
                raise first.error
        began = {found.item: round(1e9 * found.start) for found in done}
        own = [(block, built.trace, built.stored) for block, built in made.items()]
        counts = sum((built.counts for built in made.values()), np.zeros((self.workers, 5), np.int64))
        by_rank = self.world.allgather((own, counts, super().elements, super().bytes))
        trace, stored = np.zeros(len(seconds), TRACE), np.zeros(len(seconds), bool)
        first_worker, mine = 0, np.zeros(len(seconds), bool)
        for rank, (parts, its_counts, _, _) in enumerate(by_rank):
            for block, its_trace, its_stored in parts:
                place = slice(int(bounds[block]), int(bounds[block + 1]))
                trace[place] = its_trace
                trace["worker"][place] += first_worker
                for name in ("ready", "start", "end"):
                    trace[name][place] += began[block]
                stored[place] = its_stored
                mine[place] = its_stored & (rank == self.world.rank)
            first_worker += len(its_counts)
        self._elements = np.concatenate([elements for _, _, elements, _ in by_rank])
        self._bytes = sum(size for _, _, _, size in by_rank)
        direct = self._dealt(np.flatnonzero(~stored), seconds)
        self.own(np.union1d(np.flatnonzero(mine), direct), direct, seconds)
        self._n_direct = int((~stored).sum())
        all_counts = np.concatenate([its_counts for _, its_counts, _, _ in by_rank])
        took = max((found.end for found in done), default=0.0)
        return Built(trace, all_counts, took, stored, schedule, seconds)

    def _blocks(self, seconds: np.ndarray) -> np.ndarray:
        """Bounds of the blocks that are handed out."""
        wanted = int(seconds.sum() / (BLOCK_SECONDS * self.workers))
        agreed = int(self.world.bcast(max(LEAST_BLOCKS * self.world.size, wanted)))
        return cut(seconds, min(len(seconds), agreed))

    def _dealt(self, columns: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """This rank's part of columns that each product makes again, block by block in turn."""
        if not len(columns):
            return columns
        size = self.world.size
        bounds = cut(seconds[columns], min(len(columns), LEAST_BLOCKS * size))
        blocks = [columns[a:b] for a, b in pairwise(bounds)]
        return np.concatenate([columns[:0], *blocks[self.world.rank :: size]])

    # Products: rank 0 asks, the others answer

    def multiply(self, x: np.ndarray, *, with_diagonal: bool = True) -> np.ndarray:
        """On rank 0, while the others serve."""
        self.world.bcast((None, x))
        return self._answer(None, x)

    def multiply_by(self, operator: Operator, x: np.ndarray, *, with_diagonal: bool = True) -> np.ndarray:
        """On rank 0, while the others serve."""
        self.world.bcast((operator, x))
        return self._answer(operator, x)

    def serve(self) -> None:
        """The life of all ranks but the first, until that one dismisses them."""
        while (asked := self.world.bcast()) is not None:
            self._answer(*asked)

    def dismiss(self) -> None:
        """Rank 0 needs no more products."""
        self.world.bcast(None)

    def _answer(self, operator: Operator | None, x: np.ndarray) -> np.ndarray:
        """The sum over all ranks of what each has; the diagonal is the first one's."""
        is_first = self.world.rank == 0
        if operator is None:
            part = super().multiply(x, with_diagonal=is_first)
        else:
            part = super().multiply_by(operator, x, with_diagonal=is_first)
        return self.world.allreduce(part)

    # What all ranks have stored

    @property
    def elements(self) -> np.ndarray:
        """Stored by each worker of each rank."""
        return self._elements

    @property
    def bytes(self) -> int:
        """Allocated for stored columns on all ranks."""
        return self._bytes

    @property
    def n_direct(self) -> int:
        """Columns that some rank makes again in each product."""
        return self._n_direct
