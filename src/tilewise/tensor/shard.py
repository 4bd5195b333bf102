"""Shards: the part of a tensor that one rank holds.

The rows of a tensor are cut into *cells*: all rows of one tile tuple in one sector, or one band of a tensor
that is stored by half. Cells lie one after the other in the flat buffer. A shard keeps some of them, in the
same order and with the same leading dimensions, so a record that touches kept cells alone is moved by
changing its offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tilewise.lazy import cached_property
from tilewise.tensor.compound import changes
from tilewise.tensor.layout import Layout


class Piece(NamedTuple):
    """Rows row0:row1 of a sector, which begin at `offset` of a shard's buffer and have `ncols` columns each.

    Of a tensor that is stored by half these are the rows of one band, whose blocks follow each other as in
    the whole.
    """

    sector: int
    row0: int
    row1: int
    ncols: int
    offset: int


@dataclass(frozen=True)
class Cells:
    """The cells of a layout, as parallel arrays in the order of storage."""

    bounds: np.ndarray  # (cells + 1,): where each begins in the flat buffer, and the buffer's length
    sector: np.ndarray
    row0: np.ndarray  # in the sector
    row1: np.ndarray
    of_tuple: np.ndarray  # the tile tuple of the rows; of a band its first one

    @classmethod
    def of(cls, layout: Layout) -> Cells:
        return _cells(layout)

    def __len__(self) -> int:
        return len(self.sector)

    @property
    def sizes(self) -> np.ndarray:
        """Elements of each cell."""
        return np.diff(self.bounds)

    def touched(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first cell, and the one behind the last, of elements first:last of the flat buffer."""
        low = np.searchsorted(self.bounds, first, side="right") - 1
        return low, np.maximum(np.searchsorted(self.bounds, last), low)


@lru_cache(maxsize=256)
def _cells(layout: Layout) -> Cells:
    if layout.half:
        b = layout.bands
        first_tuple = np.flatnonzero(changes(b.of_tuple))
        return Cells(np.append(b.offset, layout.size), b.sector, b.first, b.end, first_tuple)
    table, ranges = layout.rows.tuples, layout.rows.tuple_range
    row_sector = layout.sector_pairs[:, 0]
    count = np.diff(ranges)[row_sector]
    sector = np.repeat(np.arange(len(row_sector)), count)
    tuples = np.arange(len(sector)) - np.repeat(np.cumsum(count) - count - ranges[:-1][row_sector], count)
    row0 = table.offset[tuples]
    begin = layout.offsets[:-1][sector] + row0 * layout.ncols[sector]
    return Cells(np.append(begin, layout.size), sector, row0, row0 + table.size[tuples], tuples)


@dataclass(frozen=True)
class Shard:
    """Some cells of a layout, in the order of storage: what one rank holds of a tensor."""

    layout: Layout
    cells: np.ndarray
    """Numbers of the kept cells, ascending."""

    @classmethod
    def whole(cls, layout: Layout) -> Shard:
        """All cells."""
        return cls(layout, np.arange(len(Cells.of(layout))))

    @classmethod
    def of_mask(cls, layout: Layout, kept: np.ndarray) -> Shard:
        """Those cells for which `kept` is true."""
        return cls(layout, np.flatnonzero(kept))

    @property
    def table(self) -> Cells:
        return Cells.of(self.layout)

    @cached_property
    def starts(self) -> np.ndarray:
        """(kept cells + 1,): where each begins in this shard's buffer, and the buffer's length."""
        return np.append(0, np.cumsum(self.table.sizes[self.cells]))

    @property
    def size(self) -> int:
        """Elements held."""
        return int(self.starts[-1])

    @property
    def is_whole(self) -> bool:
        return self.size == self.layout.size

    @cached_property
    def runs(self) -> np.ndarray:
        """(runs, 3): first element and the one behind the last in the whole, first in the shard.

        Neighbouring cells make one run, which is contiguous in both.
        """
        if not len(self.cells):
            return np.zeros((0, 3), np.int64)
        begin, end = self.table.bounds[self.cells], self.table.bounds[self.cells + 1]
        new = np.append(True, begin[1:] != end[:-1])
        last = np.append(np.flatnonzero(new)[1:], len(begin)) - 1
        return np.stack([begin[new], end[last], self.starts[:-1][new]], axis=1).astype(np.int64)

    def local(self, offset: np.ndarray) -> np.ndarray:
        """Where elements of the whole lie in the shard; -1 for those that it does not hold."""
        runs = self.runs
        offset = np.asarray(offset, np.int64)
        if not len(runs):
            return np.full(offset.shape, -1, np.int64)
        k = np.searchsorted(runs[:, 0], offset, side="right") - 1
        inside = (k >= 0) & (offset < runs[k, 1])
        moved: np.ndarray = np.where(inside, offset - runs[k, 0] + runs[k, 2], -1)
        return moved

    def offset_of(self, cell: int | np.ndarray) -> np.ndarray:
        """Where kept cells begin in the shard; -1 for those that it does not hold."""
        return self.local(self.table.bounds[cell])

    def take(self, whole: np.ndarray) -> np.ndarray:
        """The shard of a whole buffer, as a copy."""
        parts = [whole[first:last] for first, last, _ in self.runs.tolist()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def put(self, data: np.ndarray, whole: np.ndarray) -> None:
        """Copies the shard to its place in a whole buffer."""
        for first, last, start in self.runs.tolist():
            whole[first:last] = data[start : start + last - first]

    def part(self, data: np.ndarray, other: Shard) -> np.ndarray:
        """The elements of another shard of the same layout, all of whose cells this one holds, as a copy."""
        places = self.local(other.runs[:, 0])
        lengths = other.runs[:, 1] - other.runs[:, 0]
        parts = [data[p : p + n] for p, n in zip(places.tolist(), lengths.tolist(), strict=True)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def put_part(self, data: np.ndarray, other: Shard, values: np.ndarray) -> None:
        """Sets the elements of another shard of the same layout, all of whose cells this one holds."""
        places = self.local(other.runs[:, 0])
        for place, (first, last, start) in zip(places.tolist(), other.runs.tolist(), strict=True):
            data[place : place + last - first] = values[start : start + last - first]

    def pieces(self) -> Iterator[Piece]:
        """Runs of neighbouring rows of one sector; of a tensor that is stored by half, each band."""
        t, mine = self.table, self.cells
        if not len(mine):
            return
        new = np.append(True, (np.diff(mine) != 1) | (np.diff(t.sector[mine]) != 0))
        if self.layout.half:
            new[:] = True
        first = np.flatnonzero(new)
        for low, high in zip(first.tolist(), [*first[1:].tolist(), len(mine)], strict=True):
            a, b = mine[low], mine[high - 1]
            s, row0, row1 = int(t.sector[a]), int(t.row0[a]), int(t.row1[b])
            ncols = row1 if self.layout.half else int(self.layout.ncols[s])
            yield Piece(s, row0, row1, ncols, int(self.starts[low]))

    def check(self) -> None:
        """Raises unless the cells are some of the layout's, in order."""
        cells = self.cells
        if len(cells) and not (cells[0] >= 0 and cells[-1] < len(self.table) and (np.diff(cells) > 0).all()):
            raise AssertionError(f"a shard with cells {cells} of {len(self.table)}")
