"""One-sided communication: a window for the tensors of all ranks, and one for counters.

Memory comes from the library (Win.Allocate): in one node others read it without the help of its rank.
Nobody puts: who needs something gets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI

from tilewise.execute.mpi.shared_memory import check_shared_memory, numbers_of, shared_window
from tilewise.execute.mpi.world import World
from tilewise.execute.store import BOX, Near, Request

PIECE = 1 << 25
"""Elements that are moved in one call at most: 256 MB."""

ADDED = 1 << 17
"""The same where they are added, 1 MB."""

ALIGNED = 8
"""Elements to which the tensors of a rank are aligned: a cache line."""

COUNTERS = 4096
"""Counters that there are."""


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

    def __init__(self, world: World, is_near: bool = False) -> None:
        """`is_near`: all ranks are on one node, and can read each other's memory."""
        self.world, self.is_near = world, is_near
        self._window: MPI.Win | None = None
        self._counters: MPI.Win | None = None
        self._boxes: MPI.Win | None = None
        self._starts: list[dict[str, int]] = []
        self._lengths: list[dict[str, int]] = []
        self._places: list[tuple[int, int]] = []

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        starts, total = {}, 0
        for name, length in lengths.items():
            starts[name] = total
            total += -(-length // ALIGNED) * ALIGNED
        everyone = self.world.allgather((starts, dict(lengths)))
        self._starts, self._lengths = [one[0] for one in everyone], [one[1] for one in everyone]
        check_shared_memory(self.world, 8 * total)
        self._window = _window(self.world.communicator, max(total, 1), self.is_near)
        memory = _memory(self._window)
        self._window.Lock_all()
        return self._named(self.world.rank, memory)

    def _named(self, rank: int, memory: np.ndarray) -> dict[str, np.ndarray]:
        starts, lengths = self._starts[rank], self._lengths[rank]
        return {name: memory[starts[name] : starts[name] + length] for name, length in lengths.items()}

    def near(self, transfers: int) -> Near | None:
        if not self.is_near:
            return None
        assert self._window is not None
        ranks = range(self.world.size)
        self._boxes = _window(self.world.communicator, BOX + transfers, True)
        self.world.barrier()  # nobody tells anything before all boxes are zero
        boxes = [numbers_of(self._boxes, rank).view(np.int64) for rank in ranks]
        tensors = [self._named(rank, numbers_of(self._window, rank)) for rank in ranks]
        return Near(boxes, tensors)

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
        if self._boxes is not None:
            self._boxes.Free()
        self._window = self._counters = self._boxes = None


def _window(communicator: Any, elements: int, is_near: bool = False) -> MPI.Win:
    info = MPI.Info.Create()
    info.Set("accumulate_ops", "same_op")
    if is_near:
        info.Set("alloc_shared_noncontig", "true")  # of each rank in memory that is near it
        window = shared_window(communicator, elements, info)
    else:
        window = MPI.Win.Allocate(8 * elements, 8, info, communicator)
    info.Free()
    _memory(window)[:] = 0.0
    return window


def _memory(window: MPI.Win) -> np.ndarray:
    memory: Any = window.tomemory()
    return np.frombuffer(memory, np.float64)
