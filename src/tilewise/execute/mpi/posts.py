"""Small messages between ranks, and the heartbeat in them.

Sources are always named: a receive from any source loses messages on some networks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

POST, BEAT = 1, 2
"""Tags: numbers for the caller, and signs of life."""
HERE, GONE = 1, 0
"""What a sign of life says: its rank is in a watched block, or has left it."""

SILENCE = 10.0
"""Seconds of looks without a sign of life after which a rank counts as dead."""
INTERVAL = 1.0
"""Seconds between two signs of life."""
LONGEST_LOOK = 0.25
"""Seconds that the time between two looks counts at most: a job that was stopped as a whole is not dead."""


@dataclass
class Heartbeat:
    """Who has been silent for how long, in seconds of our own looks; only those count who are here."""

    silent: dict[int, float] = field(default_factory=dict)
    last_look: float = 0.0
    last_beat: float = 0.0

    def heard(self, rank: int, is_here: bool) -> None:
        """A sign of life."""
        if is_here:
            self.silent[rank] = 0.0
        else:
            self.silent.pop(rank, None)

    def look(self, now: float) -> int | None:
        """A rank that has been silent for too long, if there is one."""
        passed = min(now - self.last_look, LONGEST_LOOK)
        self.last_look = now
        for rank in self.silent:
            self.silent[rank] += passed
        return next((rank for rank, seconds in self.silent.items() if seconds > SILENCE), None)

    def is_due(self, now: float) -> bool:
        """Whether it is time for a sign of life of our own."""
        if now - self.last_beat < INTERVAL:
            return False
        self.last_beat = now
        return True


class Posts:
    """Posts of one rank to and from all others, on a communicator of their own."""

    def __init__(self, communicator: MPI.Intracomm) -> None:
        self._communicator = communicator
        self._others = [rank for rank in range(communicator.size) if rank != communicator.rank]
        self._sent: list[tuple[MPI.Request, np.ndarray]] = []
        self._heartbeat = Heartbeat()
        self._is_watched = False

    def post(self, to: int, numbers: np.ndarray, tag: int = POST) -> None:
        data = np.array(numbers, np.int64)
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        self._sent.append((self._communicator.Isend([data, MPI.INT64_T], to, tag), data))

    def arrived(self) -> list[tuple[int, np.ndarray]]:
        found, status = [], MPI.Status()
        for source in self._others:
            while (message := self._communicator.Improbe(source, status=status)) is not None:
                numbers = np.empty(status.Get_count(MPI.INT64_T), np.int64)
                message.Recv([numbers, MPI.INT64_T])
                if status.tag == POST:
                    found.append((source, numbers))
                    if source in self._heartbeat.silent:
                        self._heartbeat.heard(source, True)
                else:
                    self._heartbeat.heard(source, bool(numbers[0] == HERE))
        return found

    def silent(self) -> str:
        """In a watched block: sends signs of life, and says who has given none for too long."""
        if not self._is_watched:
            return ""
        now = time.monotonic()
        if self._heartbeat.is_due(now):
            self._beat(HERE)
        rank = self._heartbeat.look(now)
        return "" if rank is None else f"nothing has been heard of rank {rank} for {SILENCE:.0f} s"

    def watch(self) -> None:
        self._is_watched = True
        self._heartbeat.last_look = self._heartbeat.last_beat = time.monotonic()
        self._beat(HERE)

    def unwatch(self) -> None:
        self._is_watched = False
        self._beat(GONE)

    def _beat(self, what: int) -> None:
        for rank in self._others:
            self.post(rank, np.array([what]), BEAT)
