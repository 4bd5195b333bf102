"""Blocks that the ranks share, to be got and added to by each of them, and a counter that gives out tasks.

As Global Arrays has it for the TCE. Every message is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

from tilewise.execute.mpi.mpi_world import MpiRequest
from tilewise.execute.mpi.world import World


class Blocks:
    """`count` blocks of `words` numbers, all zero at first; block b lives on rank b modulo the ranks."""

    def __init__(self, ranks: World, count: int, words: int) -> None:
        self._ranks, self._words = ranks, words
        rows = -(-count // ranks.size)
        self._window = MPI.Win.Allocate(8 * max(1, rows * words), 8, comm=ranks.communicator)
        memory: Any = self._window.tomemory()
        self._memory: np.ndarray = np.frombuffer(memory, np.float64)
        self._memory[:] = 0.0
        self.own = range(ranks.rank, count, ranks.size)
        """Numbers of the blocks that live here."""
        self.gets = self.adds = 0
        self._window.Lock_all()
        ranks.barrier()

    def local(self, block: int) -> np.ndarray:
        """A block that lives here, to be filled or read between barriers."""
        first = self._place(block)[1]
        return self._memory[first : first + self._words]

    def get(self, block: int, out: np.ndarray) -> None:
        """Brings a block, and waits for it."""
        rank, first = self._place(block)
        self._window.Get(out, rank, (first, self._words))
        self._window.Flush(rank)
        self.gets += 1

    def start_get(self, block: int, out: np.ndarray) -> MpiRequest:
        """Asks for a block."""
        rank, first = self._place(block)
        self.gets += 1
        return MpiRequest([self._window.Rget(out, rank, (first, self._words))])

    def add(self, block: int, data: np.ndarray) -> None:
        """Adds to a block; `data` may be used again at once."""
        rank, first = self._place(block)
        self._window.Accumulate(data, rank, (first, self._words))
        self._window.Flush_local(rank)
        self.adds += 1

    def start_add(self, block: int, data: np.ndarray) -> MpiRequest:
        """Adds to a block; `data` must stay as it is until that is done."""
        rank, first = self._place(block)
        self.adds += 1
        return MpiRequest([self._window.Raccumulate(data, rank, (first, self._words))])

    def complete(self) -> None:
        """All ranks: what was added is there."""
        self._window.Flush_all()
        self._ranks.barrier()
        self._window.Sync()

    def close(self) -> None:
        self._window.Unlock_all()
        self._ranks.barrier()
        self._window.Free()

    def _place(self, block: int) -> tuple[int, int]:
        return block % self._ranks.size, (block // self._ranks.size) * self._words


class Counter:
    """Numbers from 0 up, each given to one rank; it lives on rank 0."""

    def __init__(self, ranks: World) -> None:
        self._ranks = ranks
        self._window = MPI.Win.Allocate(8, 8, comm=ranks.communicator)
        memory: Any = self._window.tomemory()
        self._memory: np.ndarray = np.frombuffer(memory, np.int64)
        self._one, self._found = np.ones(1, np.int64), np.zeros(1, np.int64)
        self._window.Lock_all()
        self.reset()

    def draw(self) -> int:
        self._window.Fetch_and_op(self._one, self._found, 0, 0, MPI.SUM)
        self._window.Flush(0)
        return int(self._found[0])

    def reset(self) -> int:
        """All ranks: begins again with 0, and tells how many numbers were drawn."""
        self._ranks.barrier()
        self._window.Sync()
        drawn = int(self._ranks.bcast(int(self._memory[0])))
        self._ranks.barrier()
        self._memory[0] = 0
        self._window.Sync()
        self._ranks.barrier()
        return drawn

    def close(self) -> None:
        self._window.Unlock_all()
        self._ranks.barrier()
        self._window.Free()
