"""Memory that the ranks of one node share: whether there is enough of it, and windows in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from tilewise.config import format_bytes
from tilewise.errors import InputError
from tilewise.execute.mpi.world import World

PLACE = Path("/dev/shm")
"""Where libraries have it."""


def check_shared_memory(ranks: World, size: int, place: Path = PLACE) -> None:
    """Refuses windows, `size` bytes on this rank, that the shared memory of a node has no room for.

    The library does not: a process that writes to memory which is not there is ended by the system.
    Collective.
    """
    needed, free, rank = least_room(ranks, size, place)
    if needed > free:
        raise InputError(
            f"the ranks on the node of rank {rank} need {format_bytes(needed)} of shared memory, but {place} "
            f"has {format_bytes(free)} left: enlarge it, start fewer ranks per node, or use messages"
        )


def least_room(ranks: World, size: int, place: Path = PLACE) -> tuple[int, int, int]:
    """Of the node that has the least room for windows: bytes needed, bytes free, a rank there; collective."""
    sizes = ranks.allgather(size)
    if len(ranks.local_ranks) == 1 or not place.is_dir():
        needed, free = 0, 0  # windows of a rank alone on its node are private memory
    else:
        there = os.statvfs(place)
        needed, free = sum(sizes[rank] for rank in ranks.local_ranks), there.f_bavail * there.f_frsize
    _, *worst = max(ranks.allgather((needed - free, needed, free, ranks.rank)))
    return worst[0], worst[1], worst[2]


def shared_window(communicator: Any, elements: int, info: MPI.Info = MPI.INFO_NULL) -> MPI.Win:
    """So many numbers on this rank, all of whose ranks are on one node; collective."""
    return MPI.Win.Allocate_shared(8 * elements, 8, info, communicator)


def numbers_of(window: MPI.Win, rank: int) -> np.ndarray:
    """What a rank has in a window that is shared."""
    memory: Any = window.Shared_query(rank)[0]
    return np.frombuffer(memory, np.float64)
