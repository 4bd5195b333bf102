"""Stores: memory of each rank that the others can read from and add to.

`LocalStore` is for ranks that are threads of one process; `execute/mpi/` has those for processes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tilewise.core import core


class Request(Protocol):
    """Something that was begun and may take a while."""

    def done(self) -> bool:
        """Whether it has come to its end; never waits."""


class Done:
    """What is over when it begins."""

    def done(self) -> bool:
        return True


@dataclass(frozen=True)
class Near:
    """Memory of the ranks of one node, which each of them reads and writes like its own."""

    boxes: list[np.ndarray]
    """Numbers of each rank by which others tell it what is ready."""
    tensors: list[dict[str, np.ndarray]]
    """Of each rank, what it has allocated."""


BOX: int = core.box_start
"""Numbers at the beginning of a box: a cache line, for the bell. Behind it is one for each transfer."""


class Store(Protocol):
    """Tensors by name, on every rank a part of its own; all calls come from one thread of a rank."""

    name: ClassVar[str]

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Memory of this rank, zeros, that others get from. All ranks call it together, once."""

    def near(self, transfers: int) -> Near | None:
        """The memory of all ranks, if they are on one node, with boxes for so many transfers; else None.

        All ranks call it together, once, when they have allocated.
        """

    def offer(self, target: int, channel: int, data: np.ndarray) -> None:
        """Another rank is going to take this, under this number; it must not change before that."""

    def take(self, source: int, channel: int, name: str, offset: int, out: np.ndarray) -> Request:
        """Copies to `out` what its home has offered: elements of its tensor from `offset` on."""

    def get(self, source: int, name: str, offset: int, out: np.ndarray) -> Request:
        """Copies elements of another rank's tensor, from `offset` on, to `out`."""

    def add(self, target: int, name: str, offset: int, data: np.ndarray) -> Request:
        """Adds to elements of another rank's tensor; `data` must not change until it is done."""

    def fetch_add(self, slot: int, amount: int) -> int:
        """Adds to a counter that all share; what it was before."""

    def reset(self, homes: Sequence[int]) -> None:
        """Sets counters to zero, each on the rank that is given. All ranks call it together."""

    def publish(self) -> None:
        """Makes what other threads of this rank have written visible to those who get it from now on."""

    def handle(self, source: int, numbers: np.ndarray) -> None:
        """A message of another rank's store."""

    def progress(self) -> None:
        """Goes on with what others have asked for."""

    def close(self) -> None:
        """Gives the memory back. All ranks call it together."""


class Board:
    """What the stores of all threads of a process share."""

    def __init__(self, ranks: int) -> None:
        self.memory: list[dict[str, np.ndarray]] = [{} for _ in range(ranks)]
        self.boxes: list[np.ndarray] = [np.zeros(0, np.int64)] * ranks
        self.counters: list[int] = []
        self.lock = threading.Lock()
        self.barrier = threading.Barrier(ranks)


class LocalStore:
    """One rank's store, for ranks that are threads of one process."""

    name: ClassVar[str] = "threads"

    def __init__(self, board: Board, rank: int) -> None:
        self.board, self.rank = board, rank

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        own = {name: np.zeros(length) for name, length in lengths.items()}
        self.board.memory[self.rank] = own
        self.board.barrier.wait()
        return own

    def near(self, transfers: int) -> Near | None:
        self.board.boxes[self.rank] = np.zeros(BOX + transfers, np.int64)
        self.board.barrier.wait()
        return Near(list(self.board.boxes), list(self.board.memory))

    def offer(self, target: int, channel: int, data: np.ndarray) -> None:
        pass

    def take(self, source: int, channel: int, name: str, offset: int, out: np.ndarray) -> Request:
        return self.get(source, name, offset, out)

    def get(self, source: int, name: str, offset: int, out: np.ndarray) -> Request:
        out[:] = self.board.memory[source][name][offset : offset + len(out)]
        return Done()

    def add(self, target: int, name: str, offset: int, data: np.ndarray) -> Request:
        with self.board.lock:
            self.board.memory[target][name][offset : offset + len(data)] += data
        return Done()

    def fetch_add(self, slot: int, amount: int) -> int:
        with self.board.lock:
            before = self.board.counters[slot]
            self.board.counters[slot] += amount
        return before

    def reset(self, homes: Sequence[int]) -> None:
        if self.board.barrier.wait() == 0:
            self.board.counters = [0] * len(homes)
        self.board.barrier.wait()

    def publish(self) -> None:
        pass

    def handle(self, source: int, numbers: np.ndarray) -> None:
        raise AssertionError("threads of one process send no messages for their stores")

    def progress(self) -> None:
        pass

    def close(self) -> None:
        self.board.barrier.wait()
        self.board.memory[self.rank] = {}
