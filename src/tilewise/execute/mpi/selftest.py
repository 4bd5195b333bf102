"""Does one-sided communication work here? Libraries and networks differ, and some of them are wrong.

Under a second, before the first calculation: values that are got, added and counted, and whether a Get ends
while its target computes. What fails, or does not end, is not used: messages take its place, with a note.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from tilewise.execute.mpi.world import SelfTest, World

LENGTH, ADDS, DRAWS = 8192, 64, 16
"""Elements of the panel that is got; additions and draws of each rank."""
PATIENCE = 0.25
"""Seconds that one step may take before it counts as failed."""
ASLEEP, LOOK = 0.03, 0.002
"""Seconds that a target does not call MPI at all, and between two looks of one that does."""

ALONE, BY_LOOKS, NONE = "without the target", "when the target looks", "none"
"""Whether a Get ends: while its target computes, only if the target calls MPI now and then, or not."""


def run_selftest(ranks: World, window: Callable[..., Any] = MPI.Win.Allocate) -> SelfTest:
    """Collective; the same answer on every rank. `window` makes a window as `MPI.Win.Allocate` does."""
    began = time.perf_counter()
    steps = _Steps(ranks, window)
    failed = ""
    for name, step in (("Get", steps.get), ("Accumulate", steps.add), ("Fetch_and_op", steps.draw)):
        if not failed and not _on_all(ranks, step):
            failed = f"{name} gives wrong values or does not end"
    progress = NONE
    if not failed:
        progress = next((kind for kind in (ALONE, BY_LOOKS) if steps.progresses(kind)), NONE)
        if progress == NONE:
            failed = "a Get does not end while its target computes"
    steps.close()
    seconds = ranks.total(time.perf_counter() - began, "max")
    return SelfTest(failed, progress, seconds, not failed and progress == ALONE)


def _on_all(ranks: World, step: Callable[[], bool]) -> bool:
    """Whether a step is right on every rank; an error of the library is wrong too."""
    try:
        is_right = step()
    except MPI.Exception:
        is_right = False
    return ranks.total(float(is_right), "min") > 0


class _Steps:
    """A small window: a panel to get, a sum and a counter."""

    def __init__(self, ranks: World, window: Callable[..., Any]) -> None:
        self.ranks, self.is_stuck = ranks, False
        self.right = (ranks.rank + 1) % ranks.size
        self.window = window(8 * (LENGTH + 2), 8, comm=ranks.communicator)
        self.memory = np.frombuffer(self.window.tomemory(), np.float64)
        self.memory[:LENGTH] = np.arange(LENGTH) + 1000.0 * ranks.rank
        self.memory[LENGTH] = 0.0
        self.memory[LENGTH + 1 :].view(np.int64)[:] = 0
        self.window.Lock_all()
        self.window.Sync()
        ranks.barrier()

    def get(self) -> bool:
        """The neighbour's panel."""
        return self._got(PATIENCE) is not None

    def add(self) -> bool:
        """Many ranks add to one number, and none is lost."""
        one = np.ones(1)
        for _ in range(ADDS):
            self.window.Accumulate(one, 0, target=LENGTH)
        self.window.Flush(0)
        self.ranks.barrier()
        self.window.Sync()
        return self.ranks.rank != 0 or float(self.memory[LENGTH]) == ADDS * self.ranks.size

    def draw(self) -> bool:
        """Each number of a counter is drawn by one rank."""
        own = np.zeros(DRAWS, np.int64)
        for number in range(DRAWS):
            drawn = own[number : number + 1]
            self.window.Fetch_and_op(np.ones(1, np.int64), drawn, 0, LENGTH + 1, MPI.SUM)
            self.window.Flush(0)
        every = sorted(np.concatenate(self.ranks.allgather(own)).tolist())
        return every == list(range(DRAWS * self.ranks.size))

    def progresses(self, kind: str) -> bool:
        """Whether Gets end while their targets call MPI not at all, or rarely; each rank is target once."""
        both = [self._target_is_idle(phase, kind) for phase in range(2)]
        return self.ranks.total(float(all(both)), "min") > 0

    def _target_is_idle(self, phase: int, kind: str) -> bool:
        """Every other rank is a target, and is away for a while; the rank before it gets in that time."""
        self.ranks.barrier()
        if self.ranks.rank % 2 == phase:
            span = ASLEEP if kind == ALONE else PATIENCE / 2
            until = time.perf_counter() + span
            while time.perf_counter() < until:
                time.sleep(ASLEEP if kind == ALONE else LOOK)
                if kind == BY_LOOKS:
                    self.ranks.communicator.Iprobe(self.right)
            return True
        seconds = self._got(PATIENCE)
        return seconds is not None and seconds < (ASLEEP / 2 if kind == ALONE else PATIENCE / 2)

    def _got(self, patience: float) -> float | None:
        """Seconds of a Get of the neighbour's panel, or None if it does not end or is wrong."""
        panel = np.full(LENGTH, np.nan)
        began = time.perf_counter()
        request = self.window.Rget(panel, self.right)
        while not request.Test():
            if time.perf_counter() > began + patience:
                self.is_stuck = True
                return None
            time.sleep(1e-4)
        seconds = time.perf_counter() - began
        return seconds if np.array_equal(panel, np.arange(LENGTH) + 1000.0 * self.right) else None

    def close(self) -> None:
        """Frees the window, unless a Get is still under way somewhere: then it is left alone."""
        if self.ranks.total(float(self.is_stuck), "max") == 0:
            self.window.Unlock_all()
            self.ranks.barrier()
            self.window.Free()
