"""Other jobs on the processors of this machine, as on one that others use too."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

PERIOD = 0.3
"""Seconds that a competitor which sleeps now and then computes, and sleeps, at a time."""

ON_OFF = "on-off"
"""The load of one competitor that sleeps half of the time."""


@contextmanager
def competing(load: str, where: Sequence[int]) -> Iterator[tuple[float, ...]]:
    """Starts processes that compute beside the workers of some processors; gives the speed of each worker.

    Under load "2-1" there is one on the first processor of `where`, under "3-1" there are two, under "on-off"
    there is one that sleeps half of the time.
    """
    jobs = [1.5, 1.0] if load == ON_OFF else [float(k) for k in load.split("-")]
    jobs += [1.0] * (len(where) - len(jobs))
    count = [1 if load == ON_OFF and w == 0 else int(k) - 1 for w, k in enumerate(jobs)]
    sleeping = PERIOD if load == ON_OFF else 0.0
    others = [
        multiprocessing.Process(target=_compete, args=(where[w], sleeping), daemon=True)
        for w, n in enumerate(count)
        for _ in range(n)
    ]
    for other in others:
        other.start()
    time.sleep(0.2 if others else 0.0)
    try:
        # Half of the time at half of the speed is 3/4 of the speed.
        yield tuple(0.75 if load == ON_OFF and w == 0 else 1.0 / k for w, k in enumerate(jobs))
    finally:
        for other in others:
            other.kill()
            other.join()


def _compete(processor: int, sleeping: float) -> None:
    """Computes on one processor until it is ended; with pauses if `sleeping`."""
    os.sched_setaffinity(0, {processor})
    while True:
        end = time.perf_counter() + PERIOD
        while time.perf_counter() < end:
            pass
        time.sleep(sleeping)
