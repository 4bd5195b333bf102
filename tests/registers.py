"""Kernels of our own as on processors with narrower registers."""

from collections.abc import Iterator
from contextlib import contextmanager

from tilewise.core import core

LANES = (1, 4, 8)
"""Numbers in a register: no kernels of our own, AVX2, AVX-512; at most what this processor has."""


@contextmanager
def at_most(lanes: int) -> Iterator[int]:
    """Registers of so many numbers, or as many as there are."""
    core.use_register_lanes(lanes)
    try:
        yield core.register_lanes()
    finally:
        core.use_register_lanes(max(LANES))
