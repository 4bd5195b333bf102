"""One-sided communication: a window for the tensors of all ranks, and one for counters.

Memory comes from the library (Win.Allocate): in one node others read it without the help of its rank.
Nobody puts: who needs something gets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI

from tilewise.core import core
from tilewise.execute.mpi.selftest import check_shared_memory
from tilewise.execute.mpi.world import World
from tilewise.execute.store import Bell, Request

PIECE = 1 << 25
"""Elements that are moved in one call at most: 256 MB."""

ADDED = 1 << 17
"""The same where they are added, 1 MB."""

ALIGNED = 8
"""Elements to which the tensors of a rank are aligned: a cache line."""

COUNTERS = 4096
"""Counters that there are."""

BELL = 64
"""Bytes of a bell: a cache line."""


class _Pieces:
    def __init__(self, requests: list[MPI.Request]) -> None:
        self._requests = requests

    def done(self) -> bool:
        if self._requests and MPI.Request.Testall(self._requests):
            self._requests = []
        return not self._requests


class _Added:
    """Additions that are complete where they go to."""

    def __init__(self, window: MPI.Win, target: int, pieces: _Pieces) -> None:
        self._window, self._target, self._pieces, self._flushed = window, target, pieces, False

    def done(self) -> bool:
        if not self._flushed and self._pieces.done():
            self._window.Flush(self._target)
            self._flushed = True
        return self._flushed


class RmaStore:
    """A rank's part of the windows."""

    name: ClassVar[str] = "one-sided"

    def __init__(self, world: World, has_bells: bool = False) -> None:
        """`has_bells`: all ranks are on one node, where what they move needs nobody else's help."""
        self.world, self.has_bells = world, has_bells
        self.bell: Bell | None = None
        self._window: MPI.Win | None = None
        self._counters: MPI.Win | None = None
        self._bells: MPI.Win | None = None
        self._places_of_bells: list[np.ndarray] = []
        self._starts: list[dict[str, int]] = []
        self._places: list[tuple[int, int]] = []

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        starts, total = {}, 0
        for name, length in lengths.items():
            starts[name] = total
            total += -(-length // ALIGNED) * ALIGNED
        self._starts = self.world.allgather(starts)
        check_shared_memory(self.world, 8 * total)
        self._window = _window(self.world.communicator, max(total, 1))
        memory = _memory(self._window)
        self._window.Lock_all()
        if self.has_bells:
            self._hang_bells()
        return {name: memory[starts[name] : starts[name] + length] for name, length in lengths.items()}

    def _hang_bells(self) -> None:
        """In memory that all ranks of the node share."""
        self._bells = window = MPI.Win.Allocate_shared(BELL, 8, MPI.INFO_NULL, self.world.communicator)
        memory: list[Any] = [window.Shared_query(rank)[0] for rank in range(self.world.size)]
        self._places_of_bells = [np.frombuffer(place, np.int64, 3) for place in memory]
        own = self._places_of_bells[self.world.rank]
        own[:] = 0
        self.bell = Bell(own, others=tuple(place for place in self._places_of_bells if place is not own))
        self.world.barrier()  # nobody rings before it is zero

    def ring(self, target: int) -> None:
        core.ring(self._places_of_bells[target])

    def offer(self, target: int, channel: int, data: np.ndarray) -> None:
        """It lies where the other rank gets it."""

    def take(self, source: int, channel: int, name: str, offset: int, out: np.ndarray) -> Request:
        return self.get(source, name, offset, out)

    def get(self, source: int, name: str, offset: int, out: np.ndarray) -> Request:
        assert self._window is not None
        first, requests = self._starts[source][name] + offset, []
        for low in range(0, len(out), PIECE):
            part = out[low : low + PIECE]
            requests.append(self._window.Rget(part, source, [first + low, len(part), MPI.DOUBLE]))
        return _Pieces(requests)

    def add(self, target: int, name: str, offset: int, data: np.ndarray) -> Request:
        assert self._window is not None
        first, requests = self._starts[target][name] + offset, []
        for low in range(0, len(data), ADDED):
            part = data[low : low + ADDED]
            place = [first + low, len(part), MPI.DOUBLE]
            requests.append(self._window.Raccumulate(part, target, place, MPI.SUM))
        return _Added(self._window, target, _Pieces(requests))

    def fetch_add(self, slot: int, amount: int) -> int:
        own, before = np.array([amount], np.int64), np.zeros(1, np.int64)
        home, place = self._places[slot]
        window = self._counter_window()
        window.Fetch_and_op(own, before, home, place, MPI.SUM)
        window.Flush(home)
        return int(before[0])

    def compare_and_swap(self, slot: int, expected: int, new: int) -> int:
        old, own, before = np.array([expected], np.int64), np.array([new], np.int64), np.zeros(1, np.int64)
        home, place = self._places[slot]
        window = self._counter_window()
        window.Compare_and_swap(own, old, before, home, place)
        window.Flush(home)
        return int(before[0])

    def _counter_window(self) -> MPI.Win:
        if self._counters is None:
            raise AssertionError("counters are reset before they are used")
        return self._counters

    def reset(self, homes: Sequence[int]) -> None:
        used = [0] * self.world.size
        self._places = []
        for home in homes:
            self._places.append((home, used[home]))
            used[home] += 1
        if max(used) > COUNTERS:
            raise AssertionError(f"{max(used)} counters on a rank: there are {COUNTERS}")
        if self._counters is None:
            self._counters = _window(self.world.communicator, COUNTERS)
            self._counters.Lock_all()
        self.world.barrier()
        _memory(self._counters).view(np.int64)[: used[self.world.rank]] = 0
        self._counters.Sync()
        self.world.barrier()

    def publish(self) -> None:
        if self._window is not None:
            self._window.Sync()

    def handle(self, source: int, numbers: np.ndarray) -> None:
        raise AssertionError("one-sided communication needs no messages")

    def progress(self) -> None:
        pass

    def close(self) -> None:
        self.world.barrier()
        for window in (self._window, self._counters):
            if window is not None:
                window.Unlock_all()
                window.Free()
        if self._bells is not None:
            self.bell, self._places_of_bells = None, []
            self._bells.Free()
        self._window = self._counters = self._bells = None


def _window(communicator: Any, elements: int) -> MPI.Win:
    info = MPI.Info.Create()
    info.Set("accumulate_ops", "same_op")
    window = MPI.Win.Allocate(8 * elements, 8, info, communicator)
    info.Free()
    _memory(window)[:] = 0.0
    return window


def _memory(window: MPI.Win) -> np.ndarray:
    memory: Any = window.tomemory()
    return np.frombuffer(memory, np.float64)
