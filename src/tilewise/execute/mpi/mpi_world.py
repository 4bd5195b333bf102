"""The ranks that a launcher has started, by mpi4py."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mpi4py
import numpy as np

mpi4py.rc.thread_level = "funneled"  # the main thread alone calls MPI: nothing need be locked
from mpi4py import MPI  # noqa: E402

from tilewise.config import processors  # noqa: E402
from tilewise.execute.mpi.failure import code_of, reason_of  # noqa: E402
from tilewise.execute.mpi.posts import Posts  # noqa: E402
from tilewise.execute.mpi.shared_memory import least_room, numbers_of, shared_window  # noqa: E402
from tilewise.execute.mpi.world import World  # noqa: E402
from tilewise.witness import call_witness  # noqa: E402

PIECE = 1 << 28
"""Bytes of a message at most: counts stay far below the 2^31 of the library's integers."""
EAGER_TESTS = 200
"""Looks in a row, of about a microsecond each, before the first sleep."""
TESTS = 20
"""Looks in a row after each sleep: most calls for all ranks have steps, and each look takes one at most."""
SHORTEST, LONGEST = 5e-5, 1e-3
"""Seconds of a sleep: twice as long each time, from the first to the second."""

LAST_WORDS = 0.3
"""Seconds that the launcher has to pass on what a rank said before it ended all: it throws away the rest."""
MOMENT = 2.0
"""Seconds in which all ranks fail if they do so for the same reason."""
VALUES = 32767
"""Tag of the parts of gathered values: the largest that every library has; panels have others."""

_OPERATIONS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}


def wait(is_done: Callable[[], bool]) -> None:
    """Looks until it is done, and sleeps in between."""
    tests, pause = EAGER_TESTS, SHORTEST
    while not any(is_done() for _ in range(tests)):
        time.sleep(pause)
        tests, pause = TESTS, min(2 * pause, LONGEST)


class MpiRequest:
    """One message in pieces."""

    def __init__(self, pieces: list[MPI.Request]) -> None:
        self._pieces = pieces

    def done(self) -> bool:
        if self._pieces and MPI.Request.Testall(self._pieces):
            self._pieces = []
        return not self._pieces


class MpiWorld(World):
    """COMM_WORLD, on a communicator of its own, so that nobody's messages meet ours."""

    def __init__(self) -> None:
        self.rank, self.size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        self.library = _library_name()
        self._failing: MPI.Request | None = None
        self._windows: dict[int, MPI.Win] = {}
        """Those that are shared, by the place where they begin."""
        self._witness = call_witness(self.rank)
        try:
            self.communicator: MPI.Intracomm = MPI.COMM_WORLD.Dup()
            self._posts = Posts(MPI.COMM_WORLD.Dup())
            self._failures: MPI.Intracomm = MPI.COMM_WORLD.Dup()
            self.places = self.allgather((socket.gethostname(), tuple(processors())))
        except BaseException as error:  # the others wait in calls that a second try would make out of order
            self.abort(reason_of(error), code_of(error))
            raise

    def bcast(self, value: Any = None, root: int = 0) -> Any:
        parts = _packed(value) if self.rank == root else []
        lengths = self._bcast_lengths(parts, root)
        if self.rank != root:
            parts = [np.empty(length, np.uint8) for length in lengths]
        for part in parts:
            for piece in _pieces(part):
                wait(self.communicator.Ibcast([piece, MPI.BYTE], root).Test)
        return value if self.rank == root else _unpacked(parts)

    def _bcast_lengths(self, parts: list[np.ndarray], root: int) -> np.ndarray:
        count = np.array([len(parts)], np.int64)
        wait(self.communicator.Ibcast(count, root).Test)
        lengths = np.array([len(part) for part in parts] if parts else np.zeros(count[0]), np.int64)
        wait(self.communicator.Ibcast(lengths, root).Test)
        return lengths

    def allgather(self, value: Any) -> list[Any]:
        own = np.frombuffer(pickle.dumps(value, protocol=5), np.uint8)
        counts = self._allgather_counts(len(own))
        everyone = np.empty(counts.sum(), np.uint8)
        starts = np.cumsum(counts) - counts
        wait(self.communicator.Iallgatherv([own, MPI.BYTE], [everyone, counts, starts, MPI.BYTE]).Test)
        return [pickle.loads(everyone[s : s + n].data) for s, n in zip(starts, counts, strict=True)]

    def _allgather_counts(self, own: int) -> np.ndarray:
        counts = np.empty(self.size, np.int64)
        wait(self.communicator.Iallgather(np.array([own], np.int64), counts).Test)
        return counts

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        own = [] if self.rank == root else _packed(value)
        lengths = self.allgather([len(part) for part in own])
        if self.rank != root:
            self._finish([self.send_panel(root, VALUES, part) for part in own])
            return None
        found = [[np.empty(n, np.uint8) for n in of_rank] for of_rank in lengths]
        self._finish(
            [self.receive_panel(source, VALUES, part) for source, parts in enumerate(found) for part in parts]
        )
        return [value if r == root else _unpacked(parts) for r, parts in enumerate(found)]

    def allreduce(self, values: np.ndarray, op: str = "sum") -> np.ndarray:
        own = np.ascontiguousarray(values)
        result = np.empty_like(own)
        for source, target in zip(_flat_pieces(own), _flat_pieces(result), strict=True):
            wait(self.communicator.Iallreduce(source, target, _OPERATIONS[op]).Test)
        return result

    def alltoallv(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        dtype = parts[0].dtype
        counts, own = np.empty(self.size, np.int64), np.array([len(part) for part in parts], np.int64)
        wait(self.communicator.Ialltoall(own, counts).Test)
        found = [np.empty(count, dtype) for count in counts]
        found[self.rank][:] = parts[self.rank]
        others = [r for r in range(self.size) if r != self.rank]
        requests = [self.receive_panel(r, VALUES, found[r]) for r in others]
        requests += [self.send_panel(r, VALUES, np.ascontiguousarray(parts[r])) for r in others]
        self._finish(requests)
        return found

    def barrier(self) -> None:
        wait(self.communicator.Ibarrier().Test)

    def shared(self, length: int) -> np.ndarray | None:
        if len(self.nodes) > 1:
            return None
        size = length if self.rank == 0 else 0
        needed, free, _ = least_room(self, 8 * size)
        if needed > free:
            return None
        window = shared_window(self.communicator, size)
        found = numbers_of(window, 0)[:length]
        self._windows[found.ctypes.data] = window
        return found

    def give_back(self, shared: np.ndarray) -> None:
        self.barrier()  # nobody reads it any more
        self._windows.pop(shared.ctypes.data).Free()

    def post(self, to: int, numbers: np.ndarray) -> None:
        self._posts.post(to, numbers)

    def arrived(self) -> list[tuple[int, np.ndarray]]:
        found = self._posts.arrived()
        if silent := self._posts.silent():
            self.abort(silent)
        return found

    def all_failed(self) -> bool:
        if self._failing is None:
            self._failing = self._failures.Ibarrier()
        until = time.monotonic() + MOMENT
        while not self._failing.Test():
            if time.monotonic() > until:
                return False
            time.sleep(LONGEST)
        self._failing = None
        return True

    @contextmanager
    def watched(self) -> Iterator[None]:
        self._posts.watch()
        yield
        self._posts.unwatch()

    def send_panel(self, to: int, tag: int, data: np.ndarray) -> MpiRequest:
        pieces = _pieces(data.reshape(-1).view(np.uint8))
        return MpiRequest([self.communicator.Isend([piece, MPI.BYTE], to, tag) for piece in pieces])

    def receive_panel(self, source: int, tag: int, out: np.ndarray) -> MpiRequest:
        pieces = _pieces(out.reshape(-1).view(np.uint8))
        return MpiRequest([self.communicator.Irecv([piece, MPI.BYTE], source, tag) for piece in pieces])

    def abort(self, reason: str, code: int = 1) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        with contextlib.suppress(OSError):  # in one piece, also where standard error is redirected in Python
            os.write(2, f"rank {self.rank}: {reason}\n".encode(errors="replace"))
        self._witness.hush()
        time.sleep(LAST_WORDS)
        MPI.COMM_WORLD.Abort(code)
        os._exit(code)  # the library may leave that to its launcher, which must not hear more of this rank

    def _finish(self, requests: list[MpiRequest]) -> None:
        wait(lambda: all(request.done() for request in requests))


def _library_name() -> str:
    """Such as MPICH 5.0.2."""
    vendor, version = MPI.get_vendor()
    return f"{vendor} {'.'.join(map(str, version))}"


def _packed(value: Any) -> list[np.ndarray]:
    """A pickle and the memory of the arrays in it, as bytes."""
    memory: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=memory.append)
    return [np.frombuffer(text, np.uint8), *(np.frombuffer(part.raw(), np.uint8) for part in memory)]


def _unpacked(parts: list[np.ndarray]) -> Any:
    return pickle.loads(parts[0].data, buffers=parts[1:])


def _pieces(data: np.ndarray) -> list[np.ndarray]:
    """Bytes in messages of bearable length; at least one, also of none."""
    return [data[first : first + PIECE] for first in range(0, max(1, len(data)), PIECE)]


def _flat_pieces(values: np.ndarray) -> list[np.ndarray]:
    flat, step = values.reshape(-1), PIECE // values.itemsize
    return [flat[first : first + step] for first in range(0, flat.size, step)]
