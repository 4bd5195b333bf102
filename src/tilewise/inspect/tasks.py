"""What the inspection of one operation finds, before tasks get their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tilewise.inspect.records import Table


@dataclass(frozen=True)
class Touch:
    """Panels of a tensor that tasks read; a task is named by its first output panel.

    They are looked up only if somebody writes the tensor: on a constant nothing depends.
    """

    name: str
    find: Callable[[], tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, name: str, task: np.ndarray, panel: np.ndarray) -> Touch:
        return cls(name, lambda: (task, panel))


Output = tuple[str, np.ndarray, np.ndarray, bool]
"""A target, the tasks that write to it, the panel that each writes, and whether they accumulate."""


@dataclass
class Found:
    """Records of one operation. A task has the records whose `panel` (ascending) is its own."""

    kind: str
    panel: np.ndarray
    tables: dict[str, Table]
    """Its records by the name of their kind, and the tables that they point into."""
    tasks: Table
    accumulate: bool
    touches: list[Touch] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    """If a task writes other panels than the one that it is named by."""
    scratch: int = 0
    arena: int = 0


def unique_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(2, n): the different pairs of two arrays of natural numbers, sorted."""
    bits = int(second.max(initial=0)).bit_length()
    codes = first << bits
    codes |= second  # in place, as what follows: there may be tens of millions
    codes.sort()
    keep = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=keep[1:])
    pairs = np.empty((2, int(keep.sum())), np.int64)
    np.compress(keep, codes, out=pairs[0])
    np.bitwise_and(pairs[0], (1 << bits) - 1, out=pairs[1])
    pairs[0] >>= bits
    return pairs
