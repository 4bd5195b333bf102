"""Stores: memory of each rank that the others can read from and add to.

`LocalStore` is for ranks that are threads of one process; `execute/mpi/` has those for processes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np


class Request(Protocol):
    """Something that was begun and may take a while."""

    def done(self) -> bool:
        """Whether it has come to its end; never waits."""


class Done:
    """What is over when it begins."""

    def done(self) -> bool:
        return True


@dataclass
class Bell:
    """Numbers in the memory of a rank that wake it: who posts something to it rings, and it need not ask."""

    place: np.ndarray
    """How often others have rung, what the waiting thread sleeps on, and on how many ranks workers wait."""
    others: tuple[np.ndarray, ...] = ()
    """The same of the other ranks, which are told when workers here wait."""
    heard: int = 0
    """How often they have when all that was posted has arrived."""


class Store(Protocol):
    """Tensors by name, on every rank a part of its own; all calls come from one thread of a rank."""

    name: ClassVar[str]
    bell: Bell | None
    """This rank's, where others can ring it without its help and data moves without it as well."""

    def ring(self, target: int) -> None:
        """Tells a rank that something was posted to it; only where there are bells."""

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Memory of this rank, zeros, that others get from. All ranks call it together, once."""

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

    def compare_and_swap(self, slot: int, expected: int, new: int) -> int:
        """Sets a counter if it is as expected; what it was before."""

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
        self.counters: list[int] = []
        self.lock = threading.Lock()
        self.barrier = threading.Barrier(ranks)


class LocalStore:
    """One rank's store, for ranks that are threads of one process."""

    name: ClassVar[str] = "threads"
    bell: Bell | None = None

    def __init__(self, board: Board, rank: int) -> None:
        self.board, self.rank = board, rank

    def ring(self, target: int) -> None:
        raise AssertionError("threads of one process have no bells")

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        own = {name: np.zeros(length) for name, length in lengths.items()}
        self.board.memory[self.rank] = own
        self.board.barrier.wait()
        return own

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

    def compare_and_swap(self, slot: int, expected: int, new: int) -> int:
        with self.board.lock:
            before = self.board.counters[slot]
            if before == expected:
                self.board.counters[slot] = new
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
