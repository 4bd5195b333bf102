"""Arrays whose memory is taken page by page as it is written, and given back or used again early."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator

import numpy as np

from tilewise.core import core

HUGE = 1 << 21
"""Bytes of a huge page."""

WAVE, LAST_WAVE = 512, 128
"""Most and fewest columns of half-transformed integrals that are made before memory is used again."""


class Pages:
    """Numbers in pages of their own, of the size that the system gives soonest.

    `numbers` begins with zeros, or with anything where a system has no such pages; there, nothing is given
    back early.
    """

    def __init__(self, count: int) -> None:
        self._memory: mmap.mmap | None = None
        self._end = 8 * count  # of what has not been given back
        if count and hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MADV_DONTNEED"):
            self._memory = mmap.mmap(-1, 8 * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.numbers = np.frombuffer(self._memory, np.float64) if self._memory else np.empty(count)
        core.choose_pages(self.numbers)

    def give_back(self, first: int) -> None:
        """Numbers from `first` on, which must not be read again; of these, whole huge pages."""
        start = self.numbers.ctypes.data
        begin = -(-(start + 8 * first) // HUGE) * HUGE - start
        if self._memory and begin < self._end:
            self._memory.madvise(mmap.MADV_DONTNEED, begin, self._end - begin)
            self._end = begin


def cut(ranges: Iterable[tuple[int, int]], at: int) -> list[tuple[int, int]]:
    """The same ranges, the one that goes over `at` in two."""
    both = [part for first, last in ranges for part in ((first, min(last, at)), (max(first, at), last))]
    return [(first, last) for first, last in both if last > first]


def waves_of(n: int) -> Iterator[tuple[int, int]]:
    """Ranges of n columns. The last ones are short: what they are made of serves for nothing after them."""
    begin = 0
    while begin < n:
        half_of_rest = -(-(n - begin) // (2 * core.slab_width)) * core.slab_width
        end = min(begin + min(WAVE, max(LAST_WAVE, half_of_rest)), n)
        yield begin, end
        begin = end


def places_of(
    rows: list[int], waves: list[tuple[int, int]]
) -> tuple[list[list[tuple[bool, int]]], list[int], list[int]]:
    """Where half-transformed integrals go: for each part a place for each wave, and where parts begin and end
    in memory that has served, and in memory of their own.

    A place tells whether it is in memory that has served, that of rows of a packed triangle in earlier waves,
    and where it begins.
    """
    found, again, own = [], [0], [0]
    for count in rows:
        places, taken, new = [], again[-1], own[-1]
        for begin, end in waves:
            size = count * (end - begin)
            has_served = taken + size <= begin * (begin + 1) // 2
            places.append((has_served, taken if has_served else new))
            taken, new = (taken + size, new) if has_served else (taken, new + size)
        found.append(places)
        again.append(taken)
        own.append(new)
    return found, again, own
