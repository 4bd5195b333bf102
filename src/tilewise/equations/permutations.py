"""Permutation operators P(i/j), P(i/jk), P(ij/k): signed sums over the ways to deal indices to groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

Group = tuple[str, ...]
"""Indices that keep their order among themselves."""


def shuffles(groups: Sequence[Group]) -> list[tuple[int, dict[str, str]]]:
    """All ways to deal the indices to the groups, each group staying in order, with their signs.

    P(i/j) x = x - x(i<->j) has the ways {i: i, j: j} with sign +1 and {i: j, j: i} with sign -1.
    """
    indices = [index for group in groups for index in group]
    found = []
    for order in permutations(range(len(indices))):
        start, in_order = 0, True
        for group in groups:
            part = order[start : start + len(group)]
            in_order &= list(part) == sorted(part)
            start += len(group)
        if in_order:
            mapping = {index: indices[k] for index, k in zip(indices, order, strict=True)}
            found.append((_parity(order), mapping))
    return found


def _parity(order: Sequence[int]) -> int:
    swaps = sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
    return -1 if swaps % 2 else 1
