"""Arrays whose memory is taken page by page as it is written, and given back before the array ends."""

from __future__ import annotations

import mmap
from contextlib import suppress

import numpy as np

HUGE = 1 << 21
"""Bytes of a huge page: one of them is taken in far less time than 512 small ones."""


class Pages:
    """Numbers in pages of their own, huge ones where the system has them. `numbers` begins with zeros, or
    with anything where a system has no such pages: there nothing is given back early."""

    def __init__(self, count: int) -> None:
        self._memory: mmap.mmap | None = None
        self._end = 8 * count  # of what has not been given back
        if count and hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MADV_DONTNEED"):
            self._memory = mmap.mmap(-1, 8 * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with suppress(OSError):  # a kernel may be built without them
                    self._memory.madvise(mmap.MADV_HUGEPAGE)
        self.numbers = np.frombuffer(self._memory, np.float64) if self._memory else np.empty(count)

    def give_back(self, first: int) -> None:
        """Numbers from `first` on, which must not be read again; of these, whole huge pages."""
        start = self.numbers.ctypes.data
        begin = -(-(start + 8 * first) // HUGE) * HUGE - start
        if self._memory and begin < self._end:
            self._memory.madvise(mmap.MADV_DONTNEED, begin, self._end - begin)
            self._end = begin
