"""Rows of plain constants by a transformation that all ranks share.

Each rank half-transforms the pairs of the rows that it makes, in as many passes as its memory asks for, and
finishes them batch by batch. For the same bits with any number of ranks rows are made tile by tile, whoever
makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewise.chem.function_integrals import BasisIntegrals
from tilewise.chem.open_shell import AnyReference
from tilewise.chem.orbital_pairs import OrbitalSet, Side
from tilewise.chem.reference import Reference
from tilewise.chem.shared_transform import SharedTransformation
from tilewise.chem.transform import allowed_half
from tilewise.lazy import cached_property
from tilewise.methods.basis_integrals import Places, SpinSets, closed_shell, spin_sets
from tilewise.methods.row_makers import Makers, PairStates, batches
from tilewise.new_memory import zeros
from tilewise.tensor import Compound, Layout
from tilewise.tensor.shard import Cells, Shard

if TYPE_CHECKING:
    from tilewise.methods.rank_constants import RankConstants

BATCH = 1 << 25
"""Bytes of rows of a large tensor that all ranks together make at a time, about."""

HALF_SHARE = 0.25
"""Half-transformed integrals of one pass take at most this part of what a rank holds of the constants."""


@dataclass(frozen=True, eq=False)
class SharedSource:
    """Integrals over the orbitals of a reference, from those over basis functions."""

    reference: AnyReference
    basis: BasisIntegrals
    ordered: bool

    def fill(self, target: RankConstants, names: Sequence[str]) -> list[np.ndarray | None]:
        own = self.reference
        has_spins = any(s.spins != (0,) for name in names for s in target.program.layouts[name].spaces)
        if isinstance(own, Reference) and not has_spins:
            sets = closed_shell(own, self.basis)
        else:
            sets = spin_sets(own, self.basis)
        found = _Work(target, sets, list(names), self.ordered).run()
        return found[:1] if isinstance(own, Reference) else found


@dataclass(eq=False)
class _Work:
    """One call of `fill`: passes, rounds, and what is made in each."""

    target: RankConstants
    sets: SpinSets
    names: list[str]
    ordered: bool
    n_passes: int = 1

    def run(self) -> list[np.ndarray | None]:
        world, sets = self.target.world, self.sets
        self.n_passes = self._count_passes()
        filled = sorted({kind for spin in sets.spins for kind in spin.filled or ()})
        shared = SharedTransformation(
            sets.basis, sets.sets, world, self.target.workers, filled, self.target.on_one_node
        )
        small = [name for name in self.names if not self.target.is_large(name)]
        for name in small:
            self.target.whole[name] = zeros(self.layout(name).size, self.target.workers)
        for number in range(self.n_passes):
            shared.make(self._groups(number), self._exchanged(filled, number))
            for name in small:
                self._make_small(shared, name, number)
            for name in self.names:
                if self.target.is_large(name):
                    self._make_large(shared, name, number)
        for name in small:  # every element was made by one rank
            self.target.whole[name] = world.allreduce(self.target.whole[name])
        fields = shared.fields()
        shared.close()
        if fields is None:
            return [None] * len(sets.spins)
        return [
            None
            if spin.filled is None
            else fields[spin.which].fock(spin.filled)[np.ix_(spin.active, spin.active)]
            for spin in sets.spins
        ]

    def layout(self, name: str) -> Layout:
        return self.target.program.layouts[name]

    @cached_property
    def states(self) -> dict[Compound, PairStates]:
        """Of all compound indices that are rows or columns."""
        both = [c for name in self.names for c in (self.layout(name).rows, self.layout(name).cols)]
        return {compound: PairStates(compound, self.sets) for compound in both}

    @cached_property
    def limits(self) -> dict[str, list[np.ndarray]]:
        """By constant and spin of the columns: of each cell the highest rank of p that is made, or -1."""
        found = {}
        for name in self.names:
            layout = self.layout(name)
            states, cells = self.states[layout.cols], Cells.of(layout)
            limits = []
            for spin, own in enumerate(self.sets.spins):
                top = len(self.sets.sets[own.which])
                limit = np.full(len(cells), -1 if self.target.is_large(name) else top)
                limits.append(limit)
                highest = states.highest(spin)
                for stream in self.target.streams_of(name):
                    cell, offset = stream.blocks_read
                    column = _column_tuple(layout, cells, cell, offset)
                    np.maximum.at(limit, cell, highest[column])
                held = [self.target.held(name, rank).cells for rank in range(self.target.world.size)]
                if self.target.is_large(name):
                    limit[np.unique(np.concatenate(held))] = top
            found[name] = limits
        return found

    @cached_property
    def makers(self) -> Makers:
        widths = {}
        for name in self.names:
            layout = self.layout(name)
            states, count = self.states[layout.cols], np.zeros(len(Cells.of(layout)))
            for spin, limit in enumerate(self.limits[name]):
                highest = np.repeat(states.highest(spin), layout.cols.tuples.size)
                highest = np.sort(highest[highest >= 0])
                count += np.searchsorted(highest, limit, side="right")
            widths[name] = count
        layouts = {name: self.layout(name) for name in self.names}
        return Makers.of(layouts, widths, self.target.world.size, self.ordered)

    # Passes

    @cached_property
    def _order(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Of each compound index of rows: how many rows its rank makes before each tile tuple; and all that
        each rank makes."""
        begin = np.zeros(self.target.world.size)
        found = []
        for compound, ranks, units in zip(
            self.makers.rows, self.makers.ranks, self.makers.units, strict=True
        ):
            place = np.zeros(len(ranks))
            for rank in range(len(begin)):
                mine = np.flatnonzero(ranks == rank)
                sizes = np.bincount(units[mine], weights=compound.tuples.size[mine], minlength=1)
                before = begin[rank] + np.cumsum(sizes) - sizes
                place[mine] = before[units[mine]]
                begin[rank] += sizes.sum()
            found.append(place)
        return found, begin

    def _count_passes(self) -> int:
        """As many as the memory for half-transformed integrals asks for, on any rank; collective."""
        rows = self._order[1][self.target.world.rank]
        half = 8.0 * rows * float(self.sets.basis.classes.n_classes.max(initial=0))
        held = sum(self.target.held(name).size for name in self.target.holdings.constants)
        needed = np.array([np.ceil(half / allowed_half(8 * held, HALF_SHARE))])
        return max(1, int(self.target.world.allreduce(needed, "max")[0]))

    @cached_property
    def passes(self) -> list[np.ndarray]:
        """Of each compound index of rows: the pass in which each tile tuple is made."""
        places, made = self._order
        rows = np.maximum(1.0, made)
        return [
            np.minimum((place / rows[ranks] * self.n_passes).astype(np.int64), self.n_passes - 1)
            for place, ranks in zip(places, self.makers.ranks, strict=True)
        ]

    def _tuples(self, rank: int, number: int) -> list[tuple[int, np.ndarray]]:
        """(compound, tile tuples) of the units that a rank makes in a pass."""
        return [
            (which, tuples)
            for which, tuples in self.makers.tuples(rank)
            if self.passes[which][tuples[0]] == number
        ]

    def _groups(self, number: int) -> list[list[np.ndarray]]:
        """Pairs of each set that this rank half-transforms in a pass; in units, for the same bits."""
        groups: list[list[np.ndarray]] = [[] for _ in self.sets.sets]
        for which, tuples in self._tuples(self.target.world.rank, number):
            states = self.states[self.makers.rows[which]]
            for spin, own in enumerate(self.sets.spins):
                groups[own.which].append(states.pairs(spin, tuples))
        filled = sorted({kind for spin in self.sets.spins for kind in spin.filled or ()})
        for group, more in zip(groups, self._exchanged(filled, number), strict=True):
            known = np.unique(np.concatenate([*group, np.zeros(0, np.int64)]))
            group.append(np.setdiff1d(more, known))
        if self.ordered:
            return groups
        return [[np.unique(np.concatenate(group))] for group in groups]

    # Exchange

    @cached_property
    def _exchange_owner(self) -> list[np.ndarray]:
        """Of each pair of each set: rank * passes + pass of those who make it first, or -1."""
        found = [np.full(len(orbitals.p), -1) for orbitals in self.sets.sets]
        for compound, ranks, passes in zip(self.makers.rows, self.makers.ranks, self.passes, strict=True):
            code = ranks * self.n_passes + passes
            for spin, own in enumerate(self.sets.spins):
                for value in np.unique(code).tolist():
                    pairs = self.states[compound].pairs(spin, np.flatnonzero(code == value))
                    new = pairs[found[own.which][pairs] < 0]
                    found[own.which][new] = value
        return found

    def _exchanged(self, filled: list[int], number: int) -> list[np.ndarray]:
        """Pairs (q, i), i of a filled kind, whose exchange integrals this rank adds up in a pass."""
        world, found = self.target.world, []
        for orbitals, owner in zip(self.sets.sets, self._exchange_owner, strict=True):
            wanted = _exchange_pairs(orbitals, filled)
            mine = owner[wanted] == world.rank * self.n_passes + number
            rest = np.flatnonzero(owner[wanted] < 0)  # with frozen orbitals: rows of no constant
            if number == 0:
                mine[np.array_split(rest, world.size)[world.rank]] = True
            found.append(wanted[mine])
        return found

    # Rows

    def _make_small(self, shared: SharedTransformation, name: str, number: int) -> None:
        """This rank's rows of a pass, to their places in the whole."""
        layout, rank = self.layout(name), self.target.world.rank
        cells = self._cells(layout, rank, number)
        self._make(shared, name, Shard.whole(layout), cells, self.target.whole[name])

    def _make_large(self, shared: SharedTransformation, name: str, number: int) -> None:
        layout, world = self.layout(name), self.target.world
        most = BATCH / 8 / world.size
        rounds = [
            batches(self._cells(layout, rank, number), Cells.of(layout).sizes, most)
            for rank in range(world.size)
        ]
        for k in range(max(map(len, rounds))):
            made = [each[k] if k < len(each) else np.zeros(0, np.int64) for each in rounds]
            batch = Shard(layout, made[world.rank])
            values = zeros(batch.size, self.target.workers)
            self._make(shared, name, batch, batch.cells, values)
            self.target.share(name, made, values)

    def _cells(self, layout: Layout, rank: int, number: int) -> np.ndarray:
        """Cells that a rank makes in a pass, in the order of storage."""
        which = self.makers.rows.index(layout.rows)
        tuples = Cells.of(layout).of_tuple
        mine = (self.makers.ranks[which][tuples] == rank) & (self.passes[which][tuples] == number)
        return np.flatnonzero(mine)

    def _make(
        self, shared: SharedTransformation, name: str, held: Shard, cells: np.ndarray, buffer: np.ndarray
    ) -> None:
        """Rows of some cells of a constant, in one go or, for the same bits, cell by cell."""
        layout = self.layout(name)
        states = self.states[layout.rows]
        groups = [cells[k : k + 1] for k in range(len(cells))] if self.ordered else [cells]
        for col_spin, col in enumerate(self.sets.spins):
            left = self._left(name, col_spin)
            for row_spin, row in enumerate(self.sets.spins):
                for group in groups:
                    limit = np.full(len(held.table), -1)
                    limit[group] = self.limits[name][col_spin][group]
                    rows = states.rows(row_spin, held, limit)
                    if len(rows.pairs):
                        shared.integrals_of(rows, row.which, left, col.which, buffer)

    def _left(self, name: str, spin: int) -> Side:
        known: dict[tuple[str, int], Side] = self.__dict__.setdefault("_sides", {})
        if (name, spin) not in known:
            known[name, spin] = Places(self.sets).side(self.layout(name), 1, spin)
        return known[name, spin]


def _column_tuple(layout: Layout, cells: Cells, cell: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The tile tuple of the columns of blocks that begin at an offset in the first row of a cell."""
    sector = layout.sector_pairs[cells.sector[cell], 1]
    column = offset - cells.bounds[cell]
    table = layout.cols.tuples
    before = np.append(0, np.cumsum(layout.cols.sizes))
    found: np.ndarray = (
        np.searchsorted(before[table.sector] + table.offset, before[sector] + column, side="right") - 1
    )
    return found


def _exchange_pairs(orbitals: OrbitalSet, filled: list[int]) -> np.ndarray:
    """Pairs of an orbital of a filled kind with one that is not frozen."""
    kinds = orbitals.kinds[orbitals.by_rank]
    one, other = kinds[orbitals.p], kinds[orbitals.q]
    frozen = orbitals.frozen
    wanted = (np.isin(one, filled) & (other != frozen)) | (np.isin(other, filled) & (one != frozen))
    return np.flatnonzero(wanted)
