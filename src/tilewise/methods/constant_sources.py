"""Where ranks get the rows of plain constants from: their own memory, or a transformation that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Reference
from tilewise.methods.integrals import Vectors, from_matrix, pairs_of
from tilewise.methods.row_makers import batches
from tilewise.methods.spin_integrals import PairsOfSpin, SpinPairs, from_matrices
from tilewise.new_memory import empty
from tilewise.tensor import Layout, Tensor
from tilewise.tensor.shard import Cells, Shard

if TYPE_CHECKING:
    from tilewise.methods.rank_constants import RankConstants

BATCH = 1 << 25
"""Bytes of rows that a rank makes for itself at a time, about."""


class Source(Protocol):
    """Fills plain constants of a rank; the Fock matrix of each set of orbitals if it is found on the way."""

    def fill(self, target: RankConstants, names: Sequence[str]) -> list[np.ndarray | None]: ...


def source_of(reference: AnyReference, vectors: Vectors | None, ordered: bool) -> Source:
    """Three-index integrals or a file's are in every rank's memory; all others are transformed."""
    from tilewise.methods.shared_rows import SharedSource

    if vectors is not None:
        return OwnRows(reference, vectors)
    basis = reference.by_spin[0].basis_integrals()
    return OwnRows(reference, None) if basis is None else SharedSource(reference, basis, ordered)


@dataclass
class OwnRows:
    """Rows that every rank makes for itself, of vectors or of integrals over orbitals."""

    reference: AnyReference
    given: Vectors | None

    def fill(self, target: RankConstants, names: Sequence[str]) -> list[np.ndarray | None]:
        self._integrals = {} if self.given else _integrals(self.reference)
        rank = target.world.rank
        for name in names:
            layout = target.program.layouts[name]
            if not target.is_large(name):
                target.whole[name] = self._rows(Shard.whole(layout))
                continue
            for cells in batches(target.needed(name, rank), Cells.of(layout).sizes, BATCH / 8):
                batch = Shard(layout, cells)
                target.take(name, batch, self._rows(batch))
        return [None] * (1 if isinstance(self.reference, Reference) else 2)

    def _rows(self, shard: Shard) -> np.ndarray:
        """All elements of some cells."""
        out, layout, cells = empty(shard.size), shard.layout, shard.table
        known: dict[int, tuple[_States, _States]] = {}
        for cell, start in zip(shard.cells.tolist(), shard.starts.tolist(), strict=False):
            s = int(cells.sector[cell])
            if s not in known:
                row_sector, col_sector = layout.sector_pairs[s]
                known = {
                    s: (
                        _States.of(layout, 0, row_sector, self.reference),
                        _States.of(layout, 1, col_sector, self.reference),
                    )
                }
            rows, cols = known[s]
            some = rows.cut(int(cells.row0[cell]), int(cells.row1[cell]))
            block = out[start:][: len(some.number) * len(cols.number)].reshape(len(some.number), -1)
            self._product(some, cols, int(layout.rows.labels[layout.sector_pairs[s, 0], 0]), block)
            block *= some.scale[:, None] * cols.scale
        return out

    def _product(self, rows: _States, cols: _States, irrep: int, out: np.ndarray) -> None:
        if self.given:
            values, place = self.given.blocks[irrep], self.given.place
            np.matmul(values[:, place[rows.joint]].T, values[:, place[cols.joint]], out=out)
            return
        for one in np.unique(rows.spin):
            for other in np.unique(cols.spin):
                mine = np.flatnonzero(rows.spin == one), np.flatnonzero(cols.spin == other)
                numbers = rows.number[mine[0]], cols.number[mine[1]]
                out[np.ix_(*mine)] = self._integrals[int(one), int(other)][np.ix_(*numbers)]


@dataclass(frozen=True)
class _States:
    """Pairs of the rows or columns of a sector: their spin, their number in the set of that spin and among
    those of all sets, and <pq+|pq> / <pq|pq>."""

    spin: np.ndarray
    number: np.ndarray
    joint: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, layout: Layout, side: int, sector: int, reference: AnyReference) -> _States:
        compound = (layout.rows, layout.cols)[side]
        if isinstance(reference, Reference) and all(space.spins == (0,) for space in compound.spaces):
            number, scale = pairs_of(compound, sector, {"o": 0, "v": reference.outline.n_occ})
            return cls(np.zeros(len(number), np.int64), number, number, scale)
        every = SpinPairs.of(reference)
        pairs = PairsOfSpin.of(compound, sector, reference, every)
        return cls(pairs.spin, pairs.number, every.joint(pairs), pairs.scale)

    def cut(self, first: int, last: int) -> _States:
        some = slice(first, last)
        return _States(self.spin[some], self.number[some], self.joint[some], self.scale[some])


def _integrals(reference: AnyReference) -> dict[tuple[int, int], np.ndarray]:
    """(pq|rs) for each two spins."""
    if isinstance(reference, Reference):
        same = reference.eri()
        return {(one, other): same for one in (0, 1) for other in (0, 1)}
    return SpinPairs.of(reference).integrals(reference)


def fock_constant(layout: Layout, reference: AnyReference, rests: Sequence[np.ndarray]) -> np.ndarray:
    """The part of the Fock matrix that a constant holds, from the matrix of both spins or of each."""
    tensor = Tensor(layout)
    if all(space.spins == (0,) for space in layout.spaces):
        n_occ = reference.outline.n_occ
        part = {"o": slice(0, n_occ), "v": slice(n_occ, None)}
        rows, cols = (part[space.name] for space in layout.spaces)
        from_matrix(tensor, rests[0][rows, cols])
    else:
        from_matrices(tensor, list(rests) * (3 - len(rests)), reference)
    return tensor.data


def vector_rows(shard: Shard, reference: AnyReference, vectors: Vectors) -> np.ndarray:
    """v(pq|x) of the cells of a shard, the vectors of each irrep in the columns."""
    out, layout, cells = empty(shard.size), shard.layout, shard.table
    for cell, start in zip(shard.cells.tolist(), shard.starts.tolist(), strict=False):
        sector = int(layout.sector_pairs[cells.sector[cell], 0])
        rows = _States.of(layout, 0, sector, reference).cut(int(cells.row0[cell]), int(cells.row1[cell]))
        values = vectors.blocks[int(layout.rows.labels[sector, 0])]
        block = out[start:][: len(rows.joint) * len(values)].reshape(len(rows.joint), -1)
        np.multiply(values[:, vectors.place[rows.joint]].T, rows.scale[:, None], out=block)
    return out
