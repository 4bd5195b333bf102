"""A world is all that ranks need of each other: who they are, and collective calls that do not spin.

`world()` gives the one that this process belongs to: `Alone`, or the ranks that mpiexec started
(`mpi_world.py`). `local_world.py` has ranks that are threads of one process, for tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilewise.config import Launcher, available_cpus, default_memory, launcher, processors, resolve_threads
from tilewise.errors import InputError
from tilewise.new_memory import settle
from tilewise.wording import counted

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""What `allreduce` can do, and the function that does it with two arrays."""

_found: dict[bool, World] = {}


class Request(Protocol):
    """A message under way."""

    def done(self) -> bool:
        """Whether it has come to its end; from then on its array may be used again."""


@dataclass(frozen=True)
class SelfTest:
    """What was found; `failed` names the step, or is empty."""

    failed: str
    progress: str
    seconds: float
    is_passive: bool = False
    """Whether data moves without the help of the rank that it comes from or goes to."""

    @property
    def has_rma(self) -> bool:
        """Whether one-sided communication can be used."""
        return not self.failed

    @property
    def text(self) -> str:
        """For the header."""
        if self.failed:
            return f"one-sided communication fails here ({self.failed}): panels go by messages"
        return f"one-sided communication is right, progress {self.progress}"

    @property
    def note(self) -> str:
        """What to say to the user if something is not as it should be."""
        return self.text if self.failed else ""


class World(ABC):
    """Ranks 0 to `size` - 1. Every collective call is made by all of them, in the same order.

    Values are any objects that pickle takes; arrays in them are not copied on the way out. No call blocks in
    the library: each asks again and again whether it is done and sleeps in between, so that threads that
    compute beside it have the core.
    """

    rank: int
    size: int
    library: str
    """Name and version of the MPI library; empty without one."""
    communicator: Any = None
    """mpi4py's, for windows; None where there is none."""
    self_test: SelfTest | None = None
    """Of one-sided communication, once it was made."""
    places: list[tuple[str, tuple[int, ...]]]
    """(name of its node, processors it may use) of each rank."""

    @abstractmethod
    def bcast(self, value: Any = None, root: int = 0) -> Any:
        """The value of `root`, on every rank."""

    @abstractmethod
    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order, on every rank."""

    @abstractmethod
    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """The values of all ranks, in their order, on `root`; None elsewhere."""

    @abstractmethod
    def allreduce(self, values: np.ndarray, op: str = "sum") -> np.ndarray:
        """Sum, maximum or minimum over the ranks, element by element: the same bits on every rank."""

    @abstractmethod
    def alltoallv(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """`parts[k]` goes to rank k; what rank k sent here stands at place k. One dtype, one axis."""

    @abstractmethod
    def barrier(self) -> None:
        """Returns when all ranks have called it."""

    @abstractmethod
    def post(self, to: int, numbers: np.ndarray) -> None:
        """Sends a few int64 numbers. Those for one rank arrive in their order."""

    @abstractmethod
    def arrived(self) -> list[tuple[int, np.ndarray]]:
        """(source, numbers) of all that was posted to this rank and has come by now."""

    @abstractmethod
    def send_panel(self, to: int, tag: int, data: np.ndarray) -> Request:
        """Starts a message with the bytes of a contiguous array, which must not change until it is done."""

    @abstractmethod
    def receive_panel(self, source: int, tag: int, out: np.ndarray) -> Request:
        """Starts to receive a message of exactly the bytes of a contiguous array."""

    @abstractmethod
    def abort(self, reason: str, code: int = 1) -> None:
        """Says `rank k: reason` and ends all ranks; does not return where they are processes."""

    def all_failed(self) -> bool:
        """Called by a rank that has failed: whether all others have too, within a moment."""
        return True

    @contextmanager
    def watched(self) -> Iterator[None]:
        """In this block all ranks call `arrived` all the time: one of whom nothing is heard has died."""
        yield

    def total(self, value: float, op: str = "sum") -> float:
        """`allreduce` of one number."""
        return float(self.allreduce(np.array([value], np.float64), op)[0])

    # Where the ranks are

    @property
    def nodes(self) -> list[list[int]]:
        """The ranks of each node, in the order in which ranks meet them."""
        ranks: dict[str, list[int]] = {}
        for rank, (name, _) in enumerate(self.places):
            ranks.setdefault(name, []).append(rank)
        return list(ranks.values())

    def shared(self, length: int) -> np.ndarray | None:
        """Numbers that all ranks read and write alike, if they are on one node that has room for them.

        Collective; `give_back` ends it.
        """
        return None

    def give_back(self, shared: np.ndarray) -> None:
        """What was `shared` is needed no longer; collective."""
        raise ValueError("nothing was shared")

    @property
    def local_ranks(self) -> list[int]:
        """Ranks on the node of this one."""
        return next(ranks for ranks in self.nodes if self.rank in ranks)

    def default_budget(self) -> int:
        """This rank's part of the memory that is free on its node."""
        settle()
        return default_memory() // len(self.local_ranks)

    def is_local(self, rank: int) -> bool:
        """Whether a rank is on the node of this one."""
        return rank in self.local_ranks

    def default_threads(self) -> int:
        """This rank's part of the processors it may use: each is shared by all ranks that may use it too."""
        own = set(self.places[self.rank][1])
        available, neighbours = available_cpus(), len(self.local_ranks)
        if not own or available < len(own):  # the system does not tell, or a quota cuts them
            return max(1, available // neighbours)
        masks = [set(self.places[rank][1]) for rank in self.local_ranks]
        share = sum(1.0 / sum(cpu in mask for mask in masks) for cpu in own)
        return max(1, int(share + 1e-9))

    def threads(self, asked: int | None) -> int:
        """As many as were asked for, or else this rank's part; refused if it has fewer processors."""
        if self.size == 1:
            return resolve_threads(asked)
        threads = self.default_threads() if asked is None else resolve_threads(asked)
        self.check_threads(threads)
        return threads

    def check_threads(self, threads: int) -> None:
        """Refuses more threads than this rank has processors for."""
        allowed = available_cpus()
        if threads > allowed:
            raise InputError(
                f"{threads} threads on rank {self.rank}, which may use {counted(allowed, 'CPU')}: "
                f"ask for {allowed} or fewer, or give each rank more CPUs"
            )


class Alone(World):
    """One process without an MPI library."""

    rank, size, library = 0, 1, ""

    def __init__(self) -> None:
        self.places = [("", tuple(processors()))]

    def bcast(self, value: Any = None, root: int = 0) -> Any:
        return value

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        return [value]

    def allreduce(self, values: np.ndarray, op: str = "sum") -> np.ndarray:
        return values.copy()

    def alltoallv(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [parts[0].copy()]

    def barrier(self) -> None:
        pass

    def post(self, to: int, numbers: np.ndarray) -> None:
        raise ValueError("a rank that is alone sends no messages")

    def arrived(self) -> list[tuple[int, np.ndarray]]:
        return []

    def send_panel(self, to: int, tag: int, data: np.ndarray) -> Request:
        raise ValueError("a rank that is alone sends no messages")

    def receive_panel(self, source: int, tag: int, out: np.ndarray) -> Request:
        raise ValueError("a rank that is alone receives no messages")

    def abort(self, reason: str, code: int = 1) -> None:
        raise SystemExit(code)


def world(mpi: bool | str = "auto") -> World:
    """The world of this process; mpi4py is imported only if there is a launcher, or if `mpi` is True.

    mpi   "auto": ranks if a launcher has started more than one; True: MPI also for one; False: alone
    """
    if not (isinstance(mpi, bool) or (isinstance(mpi, str) and mpi == "auto")):
        raise InputError(f"mpi={mpi!r}: mpi must be True, False or 'auto'")
    launched = launcher()
    wanted = launched is not None if mpi == "auto" else bool(mpi)
    if wanted not in _found:
        _found[wanted] = _mpi_world(launched) if wanted else Alone()
    return _found[wanted]


def _mpi_world(launched: Launcher | None) -> World:
    who = "MPI was asked for"
    if launched:
        who = f"this is rank {launched.rank} of {launched.size or 'several'} that a launcher has started"
    try:
        from tilewise.execute.mpi.mpi_world import MpiWorld
    except ImportError as error:
        raise InputError(
            f"{who}, but mpi4py is not installed: pip install 'tilewise[mpi]', or run it without mpiexec"
        ) from error
    except RuntimeError as error:
        if "MPI" not in str(error):
            raise
        # mpi4py is there, and no library
        raise InputError(
            f"{who}, but mpi4py finds no MPI library: pip install mpich, or load the module of your cluster"
        ) from error
    made = MpiWorld()
    if launched and launched.size and made.size != launched.size:
        raise InputError(
            f"{who}, but mpi4py's library, {made.library}, sees {counted(made.size, 'rank')}: "
            f"start it with the mpiexec of that library"
        )
    return made
