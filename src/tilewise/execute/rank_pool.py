"""Runs a Python function on the items of a loop on the ranks of a world: each rank is a worker.

Rank 0 decides who gets what, beside its own items; the others ask it. All ranks have all results in the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.execute.mpi.world import World
from tilewise.execute.pool import Done, Function, apply, sendable
from tilewise.execute.source import Source

LOOK = 5e-4
"""Seconds between two looks for messages."""


def on_ranks(
    function: Function,
    items: Sequence[Any],
    source: Source,
    ranks: World,
    shown: Callable[[int], None] = lambda done: None,
) -> list[Done]:
    """What all ranks have done, on every rank; all of them call this together. Times begin with the loop's.

    After the first error no more items are handed out. `shown` is called on rank 0 with the number of items
    that are done.
    """
    ranks.barrier()
    began = time.monotonic()
    host = _Host(function, items, source, ranks, shown)
    mine = host.run() if ranks.rank == 0 else _ask(function, items, ranks)
    sent = [sendable(done._replace(start=done.start - began, end=done.end - began)) for done in mine]
    found = [done for part in ranks.allgather(sent) for done in part]
    return sorted(found, key=lambda done: (done.error is None, done.end))


def _chunk(function: Function, items: Sequence[Any], chunk: list[int], rank: int) -> tuple[list[Done], float]:
    """What a rank does with its items, up to the first error, and the seconds of it."""
    began, done = time.monotonic(), list[Done]()
    for item in chunk:
        done.append(apply(function, items, item, rank))
        if done[-1].error is not None:
            break
    return done, time.monotonic() - began


def _ask(function: Function, items: Sequence[Any], ranks: World) -> list[Done]:
    """The life of a rank that does not decide: it tells what its last items took, and gets the next ones."""
    done, seconds, failed, new = list[Done](), 0.0, False, 0
    while True:
        ranks.post(0, np.array([round(1e9 * seconds), failed, new], np.int64))
        while not (answers := ranks.arrived()):
            time.sleep(LOOK)
        chunk = answers[0][1].tolist()
        if not chunk:
            return done
        found, seconds = _chunk(function, items, chunk, ranks.rank)
        failed, new = found[-1].error is not None, len(found)
        done += found


@dataclass
class _Host:
    """Rank 0: a thread does its own items, the calling one answers the others."""

    function: Function
    items: Sequence[Any]
    source: Source
    ranks: World
    shown: Callable[[int], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: list[Done] = field(default_factory=list)

    def run(self) -> list[Done]:
        own = threading.Thread(target=self._work, daemon=True)
        own.start()
        asking, elsewhere, told = set(range(1, self.ranks.size)), 0, 0
        while asking or own.is_alive():
            for rank, (nanoseconds, failed, new) in self.ranks.arrived():
                elsewhere += int(new)
                if failed:
                    self._stop.set()
                chunk = self._take(rank, 1e-9 * float(nanoseconds))
                self.ranks.post(rank, chunk)
                if not len(chunk):
                    asking.discard(rank)
            if elsewhere + len(self._done) > told:
                told = elsewhere + len(self._done)
                self.shown(told)
            time.sleep(LOOK)
        return self._done

    def _take(self, rank: int, seconds: float) -> np.ndarray:
        with self._lock:
            return np.zeros(0, np.int64) if self._stop.is_set() else self.source.take(rank, seconds)

    def _work(self) -> None:
        seconds = 0.0
        while len(chunk := self._take(0, seconds)):
            began = time.monotonic()
            for item in chunk.tolist():
                self._done.append(apply(self.function, self.items, item, 0))
                if self._done[-1].error is not None:
                    self._stop.set()
                if self._stop.is_set():
                    return
            seconds = time.monotonic() - began
