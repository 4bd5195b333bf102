"""The integral transformation shared by ranks: each makes Y for pairs (rs) of its own, and integrals of them.

The steps are those of `chem.transform`. Every rank is told all columns of X in turn (`chem.shared_rows`) and
keeps Y[rs, K] of its own pairs alone, with all K. What it makes of them needs no other rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewise.chem.exchange import add_exchange
from tilewise.chem.function_integrals import BasisIntegrals
from tilewise.chem.orbital_pairs import PAIR_RUN, UP_TO_R, Destination, OrbitalSet, Side
from tilewise.chem.pair_classes import Expansion
from tilewise.chem.shared_rows import Peers, SharedRows
from tilewise.chem.transform import (
    DESTINATION,
    Fields,
    combined_density,
    fields_of,
    native_tables,
)
from tilewise.config import thread_limits
from tilewise.core import core
from tilewise.new_memory import empty


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows (rs) that are wanted of a matrix of integrals, of one set of orbitals.

    (pq|rs) goes to offset[k] + left.offset[pq] of a buffer, times both factors, for all p up to the rank
    `limit`.
    """

    pairs: np.ndarray
    offset: np.ndarray
    factor: np.ndarray
    limit: np.ndarray


class SharedTransformation:
    """Half-transformed integrals of the pairs of this rank, of one `make` at a time."""

    def __init__(
        self,
        integrals: BasisIntegrals,
        sets: Sequence[OrbitalSet],
        peers: Peers,
        workers: int,
        filled: Sequence[int] = (),
        on_one_node: bool = False,
    ) -> None:
        self.integrals, self.sets, self.peers, self.workers = integrals, sets, peers, workers
        self.classes, self.density = integrals.classes, integrals.density
        self.filled = list(filled) if self.density else []
        self.coefficients = [orbitals.in_functions(self.classes) for orbitals in sets]
        self.exchange = [np.zeros((s.n_kinds, len(s), len(s))) for s in sets]
        self.coulomb = np.zeros(0)
        self.scratch = core.Scratch(workers)
        self.source = SharedRows.of(integrals, peers, workers, on_one_node)
        self._half: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        """By irrep and set: the pairs, ascending, and Y[pair, K]."""

    def make(self, pairs: Sequence[Sequence[np.ndarray]], exchanged: Sequence[np.ndarray] = ()) -> None:
        """Y of some pairs of each set, in groups; collective. What was made before is let go.

        A group gets the same bits whatever the others are. Of the pairs `exchanged`, which are some of
        them, exchange integrals are added up.
        """
        self._half.clear()
        with thread_limits(1):
            for irrep in range(self.classes.n_irreps):
                self._make_irrep(self.classes.expansion(irrep), pairs)
            for number, some in enumerate(exchanged):
                self._add_exchange(number, some)

    def _make_irrep(self, expansion: Expansion, pairs: Sequence[Sequence[np.ndarray]]) -> None:
        irrep, nothing = expansion.irrep, np.zeros(0)
        wanted, tables = [], []
        for number, orbitals in enumerate(self.sets):
            first, end = orbitals.first_pair[irrep : irrep + 2]
            groups = [group[(group >= first) & (group < end)] for group in pairs[number]]
            mine = np.unique(np.concatenate([*groups, np.zeros(0, np.int64)]))
            shape = len(mine), expansion.n_classes
            self._half[irrep, number] = mine, empty(shape[0] * shape[1]).reshape(shape)
            wanted.append(rows_of(orbitals, irrep, mine, groups))
            tables.append(self._tables(expansion, number))
        density = nothing
        if self.density and irrep == 0 and not len(self.coulomb):
            density = combined_density(self.classes, self.density)
            self.coulomb = np.zeros(expansion.n_classes)
        for begin, stop in self.source.slabs(irrep):
            columns = self.source.columns(irrep, begin, stop)
            for number in range(len(self.sets)):
                has_density = len(density) > 0 and number == 0
                core.first_half_of_runs(
                    **tables[number],
                    integrals=columns,
                    **wanted[number],
                    out=self._half[irrep, number][1],
                    column=begin,
                    density=density if has_density else nothing,
                    coulomb=self.coulomb[begin:stop] if has_density else nothing,
                    scratch=self.scratch,
                )

    def _tables(self, expansion: Expansion, number: int) -> dict[str, np.ndarray | int]:
        return native_tables(self.classes, expansion, self.sets[number], self.coefficients[number])

    def _add_exchange(self, number: int, some: np.ndarray) -> None:
        for irrep in range(self.classes.n_irreps):
            mine, half = self._half[irrep, number]
            chosen = np.flatnonzero(np.isin(mine, some))
            if len(chosen) and self.filled:
                tables = self._tables(self.classes.expansion(irrep), number)
                exchange = self.exchange[number]
                # Rows are picked by a copy: those of occupied orbitals are few.
                rows, pairs = [half[chosen]], mine[chosen]
                add_exchange(tables, self.sets[number], self.filled, rows, pairs, exchange, self.scratch)

    def integrals_of(self, rows: Rows, right: int, left: Side, left_set: int, buffer: np.ndarray) -> None:
        """(pq|rs) of rows whose pairs have been made, to their places; not collective."""
        orbitals, others = self.sets[right], self.sets[left_set]
        offset, factor = np.full(len(orbitals.p), -1), np.ones(len(orbitals.p))
        limit = np.zeros(len(orbitals.p), np.int64)
        offset[rows.pairs], factor[rows.pairs], limit[rows.pairs] = rows.offset, rows.factor, rows.limit
        sides = Side(offset, factor)
        wanted = Destination(buffer, left, sides).wanted(others)
        for irrep in range(self.classes.n_irreps):
            mine, half = self._half[irrep, right]
            chosen = np.flatnonzero(offset[mine] >= 0)
            if not len(chosen):
                continue
            pairs, column, first_block = _blocks(orbitals, mine, chosen, offset)
            expansion = self.classes.expansion(irrep)
            with thread_limits(1):
                core.second_half(
                    **self._tables(expansion, left_set),
                    half=[half],
                    first_block=first_block,
                    column=column,
                    pair=pairs,
                    rank=limit[pairs],
                    label=orbitals.pair_labels[pairs[first_block[:-1]]],
                    left_label=others.pair_labels,
                    first_pair=int(others.first_pair[irrep]),
                    destinations=np.array([(0, 0, 1, UP_TO_R, 1, wanted)], DESTINATION).view(np.uint8),
                    offsets=[left.offset, sides.offset],
                    factors=[left.factor, sides.factor],
                    buffers=[buffer],
                    scratch=self.scratch,
                )

    def close(self) -> None:
        """Nothing more is made; collective."""
        self.source.close()

    def fields(self) -> list[Fields] | None:
        """The fields of each set, when all exchange has been added; collective."""
        if self.density is None:
            return None
        exchange = [self.peers.allreduce(part) for part in self.exchange]
        return fields_of(self.classes, self.density, self.coulomb, self.sets, exchange)


def rows_of(
    orbitals: OrbitalSet, irrep: int, pairs: np.ndarray, groups: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """What the first half is told of the pairs of an irrep that it makes, in groups: they get rows in the
    order of `pairs`."""
    first, end = orbitals.first_pair[irrep : irrep + 2]
    row = np.full(end - first, -1)
    row[pairs - first] = np.arange(len(pairs))
    made = [orbitals.runs(irrep, group) for group in groups]
    runs = np.concatenate([*made, np.zeros(0, PAIR_RUN)])
    runs = runs[np.argsort(runs["right"], kind="stable")]
    return {"runs": runs.view(np.uint8), "row": row}


def _blocks(
    orbitals: OrbitalSet, mine: np.ndarray, chosen: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs in blocks of one label and neighbouring places, their rows in Y, and where blocks begin."""
    pairs = mine[chosen]
    labels = orbitals.pair_labels[pairs]
    order = np.lexsort([offset[pairs], labels])
    begins = np.flatnonzero(np.diff(labels[order], prepend=-1))
    ends = np.append(begins[1:], len(order))
    starts = [np.arange(b, e, core.slab_width) for b, e in zip(begins, ends, strict=True)]
    first_block = np.concatenate([*starts, [len(order)]]).astype(np.int64)
    return pairs[order], chosen[order], first_block
