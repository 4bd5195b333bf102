"""Arrays whose memory is taken page by page as it is written, and given back before the array ends."""

from __future__ import annotations

import mmap

import numpy as np


class Pages:
    """Numbers in pages of their own. `numbers` begins with zeros, or with anything where a system has no
    such pages: there nothing is given back early."""

    def __init__(self, count: int) -> None:
        self._memory: mmap.mmap | None = None
        self._given_back = 0
        if count and hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MADV_DONTNEED"):
            self._memory = mmap.mmap(-1, 8 * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.numbers = np.frombuffer(self._memory, np.float64) if self._memory else np.empty(count)

    def give_back(self, count: int) -> None:
        """The first `count` numbers, which must not be read again."""
        end = 8 * count // mmap.PAGESIZE * mmap.PAGESIZE
        if self._memory and end > self._given_back:
            self._memory.madvise(mmap.MADV_DONTNEED, self._given_back, end - self._given_back)
            self._given_back = end
