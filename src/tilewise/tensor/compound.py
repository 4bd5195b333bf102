"""Compound indices: a group of orbital indices whose states are ordered by sector label, then by
tile tuple, then by element.

The label of a state is (irrep, spin, parity): the XOR of the irreps, the signed sum of the spin
projections, and for a pair packed as `+-` its exchange parity. Packed pairs are orthonormal,
|pq+-> = (|pq> +- |qp>) / sqrt(2 (1 + delta_pq)) with p >= q, so that a contraction over packed
pairs needs no factors and norms are kept.

An upper and a lower index, as (pq| of an integral has them, can be a pair of one spin: states whose two spins
differ are not there. Packed `+` such a pair always is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewise.errors import InputError
from tilewise.lazy import cached_property
from tilewise.spaces import Space

PACKINGS = ("", "+", "-", "+-")
"""No packing, symmetric pair, antisymmetric pair, both parities with the parity as a label."""


@dataclass(frozen=True)
class TupleTable:
    """Tile tuples of a compound index in storage order, as parallel arrays."""

    tiles: np.ndarray  # (n, rank) tile of each index
    parity: np.ndarray  # (n,) +1 or -1 for a packed pair, 0 for a plain group
    sector: np.ndarray  # (n,) which sector the tuple lies in
    size: np.ndarray  # (n,) states
    offset: np.ndarray  # (n,) first state, counted within the sector

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True)
class Compound:
    """A group of orbital indices. `signs` (+1 upper, -1 lower) enter the spin label alone.

    `one_spin` keeps the states alone whose two orbitals, one upper and one lower, have the same spin.
    """

    spaces: tuple[Space, ...]
    signs: tuple[int, ...]
    packing: str = ""
    one_spin: bool = False

    def __post_init__(self) -> None:
        if all(space.spins == (0,) for space in self.spaces):  # signs and spins say nothing then
            object.__setattr__(self, "signs", (1,) * len(self.spaces))
            object.__setattr__(self, "one_spin", False)
        if self.packing not in PACKINGS:
            raise InputError(f"packing '{self.packing}': valid are none, '+', '-' and '+-'")
        opposite = len(self.signs) == 2 and self.signs[0] != self.signs[1]
        if self.packing and (
            len(self.spaces) != 2 or self.spaces[0] != self.spaces[1] or (opposite and self.packing != "+")
        ):
            raise InputError(f"packing '{self.packing}' needs a pair of indices of one space")
        if self.one_spin and not opposite:
            raise InputError("a pair of one spin needs an upper and a lower index")
        if opposite and (self.packing or self.one_spin):
            object.__setattr__(self, "one_spin", True)
            object.__setattr__(self, "signs", (1, -1))  # either way round the two spins cancel

    @property
    def rank(self) -> int:
        return len(self.spaces)

    @property
    def parities(self) -> tuple[int, ...]:
        return {"": (0,), "+": (1,), "-": (-1,), "+-": (1, -1)}[self.packing]

    @cached_property
    def _tables(self) -> tuple[TupleTable, np.ndarray, np.ndarray]:
        shape = tuple(len(space.tiles) for space in self.spaces)
        tiles = np.indices(shape).reshape(self.rank, math.prod(shape))
        irrep, spin, size = np.zeros_like(tiles, shape=(3, tiles.shape[1]))
        size += 1
        for space, sign, tile in zip(self.spaces, self.signs, tiles, strict=True):
            irrep ^= space.tiles.irrep[tile]
            spin += sign * space.tiles.spin[tile]
            size *= space.tiles.size[tile]
        if self.one_spin:
            spins = [space.tiles.spin[tile] for space, tile in zip(self.spaces, tiles, strict=True)]
            keep = np.flatnonzero(spins[0] == spins[1])
            tiles, irrep, spin, size = (x[..., keep] for x in (tiles, irrep, spin, size))
        parity = np.repeat(self.parities, len(size))
        if self.packing:
            versions = len(self.parities)
            tiles, irrep, spin, size = (
                np.concatenate([x] * versions, axis=-1) for x in (tiles, irrep, spin, size)
            )
            p, q = tiles
            n = self.spaces[0].tiles.size[p]
            size = np.where(p == q, n * (n + parity) // 2, size)
            keep = np.flatnonzero((p >= q) & (size > 0))
            tiles, irrep, spin, size, parity = (x[..., keep] for x in (tiles, irrep, spin, size, parity))
        # Only an exchange pair carries its parity in the label: for '+' or '-' alone it is fixed.
        shown = parity if self.packing == "+-" else np.zeros_like(parity)
        # Storage order: irrep, spin, parity (+ first), then lexicographic tile tuple, as they are now.
        order = np.lexsort([-shown, spin, irrep])
        size = size[order]
        labels = np.stack([irrep, spin, shown], axis=1)[order]
        new = np.ones(len(labels), bool)
        new[1:] = (labels[1:] != labels[:-1]).any(axis=1)
        sector = new.cumsum() - 1
        before = size.cumsum() - size
        offset = before - before[new][sector]
        sizes = np.bincount(sector, weights=size).astype(np.int64)
        table = TupleTable(tiles.T.take(order, axis=0), parity[order], sector, size, offset)
        return table, labels[new], sizes

    @property
    def tuples(self) -> TupleTable:
        return self._tables[0]

    @property
    def labels(self) -> np.ndarray:
        """(sectors, 3): irrep, spin and parity of each sector."""
        return self._tables[1]

    @property
    def sizes(self) -> np.ndarray:
        """States in each sector."""
        return self._tables[2]

    @cached_property
    def tuple_range(self) -> np.ndarray:
        """(sectors + 1,): the tuples of sector s are tuple_range[s] : tuple_range[s + 1]."""
        return np.searchsorted(self.tuples.sector, np.arange(len(self.sizes) + 1))

    @cached_property
    def _lookup(self) -> np.ndarray:
        shape = tuple(len(s.tiles) for s in self.spaces)
        table = np.full((*shape, 3), -1, np.int64)
        where = tuple(self.tuples.tiles[:, axis] for axis in range(self.rank))
        table[(*where, self.tuples.parity + 1)] = np.arange(len(self.tuples))
        return table

    def find(self, tiles: list[np.ndarray], parity: int | np.ndarray) -> np.ndarray:
        """Tuple of each column of tiles, or -1. Tiles of a packed pair must be given first >= second."""
        found: np.ndarray = self._lookup[(*tiles, np.asarray(parity) + 1)]
        return found

    def pieces(self, wanted: int) -> np.ndarray:
        """Tuples gathered to about `wanted` states (1: none are): of each its piece, numbered in the sector.

        The - sector of an exchange pair is cut where the + sector is, which has all of its tuples.
        """
        table = self.tuples
        number: np.ndarray
        if wanted > 1:
            count = np.maximum(1, np.rint(self.sizes / wanted)).astype(np.int64)[table.sector]
            middle = (table.offset + table.size / 2) * count / self.sizes[table.sector]
            number = np.minimum(middle.astype(np.int64), count - 1)
        else:
            number = np.arange(len(table)) - self.tuple_range[table.sector]
        if self.packing == "+-":
            minus = np.flatnonzero(table.parity < 0)
            number[minus] = number[self.find(list(table.tiles[minus].T), 1)]
        return number

    def states(self, sector: int) -> tuple[list[np.ndarray], np.ndarray]:
        """Orbitals (one array per index) and parity of the states of a sector, in storage order."""
        orbitals, parity, _ = self._states_of(self.tuple_range[sector], self.tuple_range[sector + 1])
        return orbitals, parity

    def all_states(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Orbitals of all states in storage order, the sector of each, and its position there."""
        orbitals, _, which = self._states_of(0, len(self.tuples))
        sector = self.tuples.sector[which]
        return orbitals, sector, np.arange(len(which)) - (self.sizes.cumsum() - self.sizes)[sector]

    def _states_of(self, first: int, last: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Orbitals, parity and tuple of the states of some tuples."""
        table = self.tuples
        size = table.size[first:last]
        which = np.repeat(np.arange(first, last), size)
        local = np.arange(len(which)) - np.repeat(size.cumsum() - size, size)
        tiles = table.tiles[which]
        sizes = [space.tiles.size[tiles[:, axis]] for axis, space in enumerate(self.spaces)]
        orbitals = [local] * self.rank
        rest = local
        for axis in reversed(range(self.rank)):
            rest, orbitals[axis] = np.divmod(rest, sizes[axis])
        if self.packing:
            diagonal = tiles[:, 0] == tiles[:, 1]
            p, q = _untriangle(local, table.parity[which])
            orbitals = [np.where(diagonal, t, o) for t, o in zip((p, q), orbitals, strict=True)]
        starts = [space.tiles.start[tiles[:, axis]] for axis, space in enumerate(self.spaces)]
        return [o + s for o, s in zip(orbitals, starts, strict=True)], table.parity[which], which

    def locate(self, orbitals: list[np.ndarray], parity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sector, position in it, and coefficient <orbitals|state> of each given orbital tuple.

        A pair that the packing leaves out (p = p in an antisymmetric pair) has coefficient 0.
        """
        tiles = [space.tile_of[o] for space, o in zip(self.spaces, orbitals, strict=True)]
        inner = [o - space.tiles.start[t] for space, o, t in zip(self.spaces, orbitals, tiles, strict=True)]
        coefficient = np.ones(np.broadcast(*orbitals).shape if orbitals else ())
        if self.packing:
            (p, q), (tp, tq), (lp, lq) = orbitals, tiles, inner
            swap = p < q
            tiles = [np.where(swap, tq, tp), np.where(swap, tp, tq)]
            inner = [np.where(swap, lq, lp), np.where(swap, lp, lq)]
            coefficient = np.where(p == q, (1 + parity) / 2, np.where(swap, parity, 1) * np.sqrt(0.5))
        which = self.find(tiles, parity)
        present = which >= 0
        coefficient = np.where(present, coefficient, 0.0)
        position = np.zeros_like(which)
        if not len(self.tuples.offset):  # the packing leaves out all that there is
            return position, position, coefficient
        for space, t, o in zip(self.spaces, tiles, inner, strict=True):
            position = position * space.tiles.size[t] + o
        if self.packing:
            triangle = inner[0] * (inner[0] + parity) // 2 + inner[1]
            position = np.where(tiles[0] == tiles[1], triangle, position)
        position = np.where(coefficient != 0, position + self.tuples.offset[which], 0)
        return self.tuples.sector[which], position, coefficient


def changes(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it; the first counts as different."""
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    return new


def _untriangle(position: np.ndarray, parity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(p, q) of a position p (p + parity) / 2 + q of a triangle with (+) or without (-) its diagonal."""
    p = ((np.sqrt(8.0 * position + 1) - parity) / 2).astype(np.int64)
    p += ((p + 1) * (p + 1 + parity) // 2 <= position).astype(np.int64)
    p -= (p * (p + parity) // 2 > position).astype(np.int64)
    return p, position - p * (p + parity) // 2
