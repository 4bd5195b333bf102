"""Which rank makes which rows of the integrals, and the pairs of orbitals that these rows are.

Plain constants with the same rows are made together, for they need the same half-transformed integrals. The
unit is the rows of one tile tuple (A, C) or, for the same bits with any number of ranks, all rows of one tile
A.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewise.chem.shared_transform import Rows
from tilewise.lazy import cached_property
from tilewise.methods.basis_integrals import SpinSets, of_spin
from tilewise.tensor import Compound, Layout
from tilewise.tensor.shard import Cells, Shard


@dataclass(frozen=True, eq=False)
class PairStates:
    """The states of a compound index of two orbitals, in the order of storage."""

    compound: Compound
    sets: SpinSets

    @cached_property
    def _states(self) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """The tile tuple and the place in its sector of each state, and its two orbitals in their spaces."""
        table = self.compound.tuples
        found = [self.compound.states(sector)[0] for sector in range(len(self.compound.sizes))]
        which = np.repeat(np.arange(len(table)), table.size)
        begin = np.cumsum(table.size) - table.size
        place = np.arange(len(which)) - begin[which] + table.offset[which]
        empty = np.zeros(0, np.int64)
        return which, place, [np.concatenate([empty, *(own[k] for own in found)]) for k in (0, 1)]

    @cached_property
    def _by_spin(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each spin the numbers of its states, their pairs in the set of that spin, and their factors."""
        compound, (_, _, orbitals) = self.compound, self._states
        found = []
        for number, spin in enumerate(self.sets.spins):
            index = [of_spin(space, x, number) for space, x in zip(compound.spaces, orbitals, strict=True)]
            mine = np.flatnonzero((index[0] >= 0) & (index[1] >= 0))
            p, q = (
                spin.numbers[space.name][own[mine]] for space, own in zip(compound.spaces, index, strict=True)
            )
            factor = np.where(p == q, 1.0, np.sqrt(2.0)) if compound.packing else np.ones(len(mine))
            found.append((mine, self.sets.sets[spin.which].pairs(p, q), factor))
        return found

    def pairs(self, spin: int, tuples: np.ndarray) -> np.ndarray:
        """The pairs of one spin in some tile tuples."""
        mine, pairs, _ = self._by_spin[spin]
        return pairs[np.isin(self._states[0][mine], tuples)]

    def highest(self, spin: int) -> np.ndarray:
        """Of each tile tuple the highest rank of an orbital of this spin, -1 if it has none."""
        mine, pairs, _ = self._by_spin[spin]
        orbitals = self.sets.sets[self.sets.spins[spin].which]
        found = np.full(len(self.compound.tuples), -1)
        np.maximum.at(found, self._states[0][mine], orbitals.p[pairs])
        return found

    def rows(self, spin: int, held: Shard, limit: np.ndarray) -> Rows:
        """Rows of the states of one spin in a shard; `limit` is that of each cell of its layout.

        Rows of cells whose limit is negative are left out.
        """
        mine, pairs, factor = self._by_spin[spin]
        which, place, _ = (x if isinstance(x, list) else x[mine] for x in self._states)
        layout, cells = held.layout, held.table
        cell = np.full(len(self.compound.tuples), -1)
        cell[cells.of_tuple[held.cells]] = held.cells
        chosen = np.flatnonzero((cell[which] >= 0) & (limit[cell[which]] >= 0))
        cell = cell[which[chosen]]
        row = place[chosen] - cells.row0[cell]
        offset = held.offset_of(cell) + row * layout.ncols[cells.sector[cell]]
        return Rows(pairs[chosen], offset, factor[chosen], limit[cell])


@dataclass(frozen=True, eq=False)
class Makers:
    """For each compound index that is the rows of a constant: the rank that makes each tile tuple."""

    rows: tuple[Compound, ...]
    ranks: tuple[np.ndarray, ...]
    """Of each tile tuple."""
    units: tuple[np.ndarray, ...]
    """The unit that each tile tuple belongs to, numbered in the order in which they are made."""

    @classmethod
    def of(
        cls, layouts: Mapping[str, Layout], widths: Mapping[str, np.ndarray], n_ranks: int, whole_tiles: bool
    ) -> Makers:
        """Ranks get about as many integrals; `widths` are columns that are made, by cell of a constant."""
        rows = tuple(dict.fromkeys(layout.rows for layout in layouts.values()))
        ranks, units = [], []
        for compound in rows:
            work = np.zeros(len(compound.tuples))
            for name, layout in layouts.items():
                if layout.rows == compound:
                    cells = Cells.of(layout)
                    np.add.at(work, cells.of_tuple, (cells.row1 - cells.row0) * widths[name])
            tiles = compound.tuples.tiles
            unit = _numbered(tiles[:, :1] if whole_tiles else tiles)
            by_unit = np.bincount(unit, weights=work, minlength=1)
            middle = (np.cumsum(by_unit) - by_unit / 2) / max(1.0, by_unit.sum())
            ranks.append(np.minimum((middle * n_ranks).astype(np.int64), n_ranks - 1)[unit])
            units.append(unit)
        return cls(rows, tuple(ranks), tuple(units))

    def cells(self, layout: Layout, rank: int) -> np.ndarray:
        """Cells of a constant that a rank makes, in the order of storage."""
        which = self.rows.index(layout.rows)
        return np.flatnonzero(self.ranks[which][Cells.of(layout).of_tuple] == rank)

    def tuples(self, rank: int) -> list[tuple[int, np.ndarray]]:
        """(compound, tile tuples) of each unit that a rank makes, in their order."""
        found = []
        for which, (ranks, units) in enumerate(zip(self.ranks, self.units, strict=True)):
            for unit in np.unique(units[ranks == rank]).tolist():
                found.append((which, np.flatnonzero(units == unit)))
        return found


def _numbered(tiles: np.ndarray) -> np.ndarray:
    """The place of each row among the different rows in order."""
    if not len(tiles):
        return np.zeros(0, np.int64)
    return np.unique(tiles, axis=0, return_inverse=True)[1].ravel()


def batches(cells: np.ndarray, sizes: np.ndarray, most: float) -> list[np.ndarray]:
    """Cells one after the other, in batches of not more than so many elements, or of one cell."""
    found: list[list[int]] = []
    held = 0.0
    for cell in cells.tolist():
        if not found or held + sizes[cell] > most:
            found.append([])
            held = 0.0
        found[-1].append(cell)
        held += float(sizes[cell])
    return [np.sort(np.array(batch, np.int64)) for batch in found]
