"""Memory for large arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tilewise.core import core

LARGE = 1 << 22
"""Bytes from which on an array has pages of its own."""


def zeros(count: int, workers: int = 1) -> np.ndarray:
    """Zeros, in pages of the size that the system gives soonest; the workers clear what was in use before.

    NumPy asks for huge pages always. That takes a tenth of some calculations where a virtual machine has to
    get each of them from its host.
    """
    return core.numbers(count, 1, workers) if 8 * count >= LARGE else np.zeros(count)


def written_zeros(count: int, workers: int) -> np.ndarray:
    """Zeros that the workers write, for numbers that are added to.

    Where a small page is read before it is written, the system shows one page of zeros to all who read and
    has to tell every processor when it is replaced: that takes five times as long.
    """
    return core.numbers(count, 2, workers) if 8 * count >= LARGE else np.full(count, 0.0)


def empty(count: int) -> np.ndarray:
    """Numbers of any value, in such pages."""
    return core.numbers(count, 0, 1) if 8 * count >= LARGE else np.empty(count)


@contextmanager
def pages_kept() -> Iterator[None]:
    """In here the pages of arrays that are gone serve arrays that are made later.

    The system needs some 0.3 s to find and to clear the small pages of a gigabyte, and 0.3 ms to move them to
    another address. In the end all are given back while the program goes on; `settle` waits for that.
    """
    core.keep_pages()
    try:
        yield
    finally:
        core.give_pages_back()


def settle() -> None:
    """Waits until all that was given back is free for others."""
    core.settle_memory()
