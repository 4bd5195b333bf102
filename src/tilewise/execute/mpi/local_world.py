"""Ranks that are threads of one process: the interface of a world, without MPI, for tests."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import numpy as np

from tilewise.config import processors
from tilewise.errors import TilewiseError
from tilewise.execute.mpi.world import REDUCTIONS, Request, World

POSTED = -1
"""Tag of numbers that are posted."""


class RankFailed(TilewiseError):
    """Another rank has ended the calculation; the message is its reason."""


class _Board:
    """What the threads share: a place for each rank's value, and messages that nobody has taken yet."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.values: list[Any] = [None] * size
        self.mail: dict[tuple[int, int, int], deque[np.ndarray]] = defaultdict(deque)
        self.shared = np.zeros(0)
        self.lock = threading.Lock()
        self.reason = ""

    def check(self) -> None:
        if self.reason:
            raise RankFailed(self.reason)


class _Received:
    """A message that is looked for."""

    def __init__(self, world: LocalWorld, out: np.ndarray, key: tuple[int, int, int]) -> None:
        self._world, self._out, self._key, self._done = world, out, key, False

    def done(self) -> bool:
        board = self._world.board
        if not self._done:
            with board.lock:
                board.check()
                if board.mail[self._key]:
                    found = board.mail[self._key].popleft()
                    self._out.reshape(-1).view(np.uint8)[:] = found
                    self._done = True
        return self._done


class _Sent:
    def done(self) -> bool:
        return True


class LocalWorld(World):
    """One of the ranks that `LocalWorld.run` starts."""

    library = "threads of one process"

    def __init__(self, board: _Board, rank: int, size: int) -> None:
        self.board, self.rank, self.size = board, rank, size
        self.places = [("", tuple(processors()))] * size

    def bcast(self, value: Any = None, root: int = 0) -> Any:
        return self._exchanged(value)[root]

    def allgather(self, value: Any) -> list[Any]:
        return self._exchanged(value)

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        found = self._exchanged(value)
        return found if self.rank == root else None

    def allreduce(self, values: np.ndarray, op: str = "sum") -> np.ndarray:
        return np.asarray(reduce(REDUCTIONS[op], self._exchanged(values)))

    def alltoallv(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [row[self.rank] for row in self._exchanged(list(parts))]

    def barrier(self) -> None:
        try:
            self.board.barrier.wait()
        except threading.BrokenBarrierError:
            raise RankFailed(self.board.reason) from None

    def shared(self, length: int) -> np.ndarray | None:
        if self.rank == 0:
            self.board.shared = np.empty(length)
        self.barrier()
        found = self.board.shared
        self.barrier()
        return found

    def give_back(self, shared: np.ndarray) -> None:
        self.barrier()

    def post(self, to: int, numbers: np.ndarray) -> None:
        self._put((self.rank, to, POSTED), np.array(numbers, np.int64))

    def arrived(self) -> list[tuple[int, np.ndarray]]:
        with self.board.lock:
            self.board.check()
            mail = [(source, self.board.mail[source, self.rank, POSTED]) for source in range(self.size)]
            found = [(source, box.popleft().view(np.int64)) for source, box in mail for _ in range(len(box))]
        return found

    def send_panel(self, to: int, tag: int, data: np.ndarray) -> Request:
        self._put((self.rank, to, tag), data)
        return _Sent()

    def receive_panel(self, source: int, tag: int, out: np.ndarray) -> Request:
        return _Received(self, out, (source, self.rank, tag))

    def _put(self, key: tuple[int, int, int], data: np.ndarray) -> None:
        with self.board.lock:
            self.board.mail[key].append(data.reshape(-1).view(np.uint8).copy())

    def abort(self, reason: str, code: int = 1) -> None:
        with self.board.lock:
            self.board.reason = self.board.reason or f"rank {self.rank}: {reason}"
        self.board.barrier.abort()
        raise RankFailed(self.board.reason)

    def _exchanged(self, value: Any) -> list[Any]:
        """A copy of each rank's value, as if it had come by a message."""
        self.board.values[self.rank] = value
        self.barrier()
        found = copy.deepcopy(self.board.values)
        self.barrier()
        return found

    @staticmethod
    def run(size: int, work: Callable[[World], Any]) -> list[Any]:
        """What `work` returns on each rank. The error of the rank that failed first is raised."""
        board = _Board(size)
        errors: list[BaseException] = []

        def run(rank: int) -> Any:
            try:
                return work(LocalWorld(board, rank, size))
            except BaseException as error:
                with board.lock:
                    errors.append(error)
                    board.reason = board.reason or f"rank {rank}: {error}"
                board.barrier.abort()
                return None

        with ThreadPoolExecutor(size) as pool:
            found = list(pool.map(run, range(size)))
        if errors:
            raise errors[0]
        return found
