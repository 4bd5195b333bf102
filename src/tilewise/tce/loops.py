"""Loops over tuples of tiles: which there are, which of them symmetry makes zero, which blocks they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from tilewise.equations.permutations import Group
from tilewise.lazy import cached_property
from tilewise.spaces import TileSpace
from tilewise.tce.routines import Indexed

_SPINS = 16
"""More than twice the indices of any tensor: labels hold an irrep and a sum of spins in one number."""

NULL_LABEL = _SPINS // 2
"""Of a tuple whose irreps multiply to the totally symmetric one and whose spins add up to nothing."""

Joined = Callable[[np.ndarray, np.ndarray], np.ndarray]


def canonical_tuples(n: int, rank: int) -> np.ndarray:
    """(tuples, rank): tiles that do not fall, the last one running fastest."""
    every = np.indices((n,) * rank).reshape(rank, -1).T
    return every[(np.diff(every, axis=1) >= 0).all(axis=1)]


@dataclass(frozen=True)
class Loops:
    """Loops one inside the other, each over the ordered tuples of a group of indices."""

    groups: tuple[Group, ...]
    space: TileSpace

    @cached_property
    def tables(self) -> list[np.ndarray]:
        return [canonical_tuples(len(self.space.of(group[0][0])), len(group)) for group in self.groups]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(table) for table in self.tables)

    def __len__(self) -> int:
        """All tuples, those that symmetry makes zero included."""
        return int(np.prod(self.shape, dtype=np.int64))

    def tiles(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The tile of each index in tuples given by their numbers."""
        found = {}
        places = np.unravel_index(numbers, self.shape) if self.groups else ()
        for group, table, place in zip(self.groups, self.tables, places, strict=True):
            for k, index in enumerate(group):
                found[index] = table[place, k]
        return found

    def labels(self, signs: Mapping[str, int]) -> np.ndarray:
        """The label of each tuple; spins count with the sign of their index."""
        return self._over_all(lambda index, tile: label_of({index: tile}, signs, self.space), _added)

    def non_null(self, signs: Mapping[str, int]) -> np.ndarray:
        """Numbers of the tuples that symmetry leaves, except for those that have beta spins alone."""
        beta = self._over_all(lambda index, tile: self.space.of(index[0]).spin[tile] < 0, np.logical_and)
        return np.flatnonzero((self.labels(signs) == NULL_LABEL) & ~beta)

    def _over_all(self, value: Callable[[str, np.ndarray], np.ndarray], joined: Joined) -> np.ndarray:
        """A value of each tuple, joined from values of its indices."""
        parts = [
            reduce(joined, [value(index, table[:, k]) for k, index in enumerate(group)])
            for group, table in zip(self.groups, self.tables, strict=True)
        ]
        return reduce(lambda total, part: joined(total[:, None], part).ravel(), parts)


def _added(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The label of both together: irreps multiply, spins add."""
    irrep = (one // _SPINS) ^ (other // _SPINS)
    label: np.ndarray = irrep * _SPINS + one % _SPINS + other % _SPINS - NULL_LABEL
    return label


def label_of(tiles: Mapping[str, np.ndarray], signs: Mapping[str, int], space: TileSpace) -> np.ndarray:
    """Labels of tuples given by the tile of each index."""
    total: np.ndarray | None = None
    for index, tile in tiles.items():
        kind = space.of(index[0])
        own = kind.irrep[tile] * _SPINS + signs[index] * kind.spin[tile] + NULL_LABEL
        total = own if total is None else _added(total, own)
    return np.array(NULL_LABEL) if total is None else total


def opposite(label: np.ndarray) -> np.ndarray:
    """The label that makes a null label of this one."""
    other: np.ndarray = (label // _SPINS) * _SPINS + 2 * NULL_LABEL - label % _SPINS
    return other


def signs_of(part: Indexed) -> dict[str, int]:
    return {**dict.fromkeys(part.upper, 1), **dict.fromkeys(part.lower, -1)}


def sizes(tiles: Mapping[str, np.ndarray], space: TileSpace, count: int) -> np.ndarray:
    """Elements of the block that the indices span, for `count` tuples."""
    total = np.ones(count, np.int64)
    for index, tile in tiles.items():
        total *= space.of(index[0]).size[tile]
    return total


@dataclass
class BlockNumbers:
    """Numbers of the stored blocks of all tensors.

    Groups of antisymmetric indices are stored in order. All-beta blocks equal those of alpha spin, which
    stand for them.
    """

    space: TileSpace
    _first: dict[tuple[str, str], int] = field(default_factory=dict)
    _next: int = 0

    def __call__(self, part: Indexed, tiles: Mapping[str, np.ndarray]) -> np.ndarray:
        """The block that each tuple of tiles belongs to."""
        beta = all_beta(part, tiles, self.space)
        number: np.ndarray | int = 0
        size = 1
        for group in part.groups:
            kind = self.space.of(group[0][0])
            moved = np.sort([tiles[i] - np.where(beta, len(kind) // 2, 0) for i in group], axis=0)
            for tile in moved:
                number = number * len(kind) + tile
                size *= len(kind)
        key = (part.name, part.kinds)
        if key not in self._first:
            self._first[key], self._next = self._next, self._next + size
        return self._first[key] + np.asarray(number, np.int64)


def all_beta(part: Indexed, tiles: Mapping[str, np.ndarray], space: TileSpace) -> np.ndarray:
    spins = [space.of(i[0]).spin[tiles[i]] < 0 for i in part.indices]
    beta: np.ndarray = np.logical_and.reduce(spins)
    return beta


def one_spin(part: Indexed, tiles: Mapping[str, np.ndarray], space: TileSpace) -> np.ndarray:
    """Whether all indices of a block have the same spin."""
    spins = np.array([space.of(i[0]).spin[tiles[i]] for i in part.indices])
    alike: np.ndarray = (spins == spins[0]).all(axis=0)
    return alike
