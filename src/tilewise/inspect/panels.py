"""Panels: runs of consecutive tile tuples. A task's output is one row panel by one column panel.

Panel boundaries follow the tiles and not the parity: the + and the - sector of an exchange pair are
cut at the same tile tuples, so that one sort task can fill both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.core import core
from tilewise.lazy import cached_property
from tilewise.tensor import Compound, Layout
from tilewise.tensor.compound import changes

DEFAULT_HEIGHT = 192
"""Rows per panel: fewer make dgemm pack its right-hand side too often, more leave too few tasks."""

DEFAULT_WIDTH = 4096
"""Columns per panel: only very wide matrices are cut."""


@dataclass(frozen=True)
class PanelRule:
    """States wanted per row panel and per column panel; 1 makes every tile tuple a panel.

    Matrices of two indices are cut at every tile: they are small, and what is summed into them is not.
    """

    height: int = DEFAULT_HEIGHT
    width: int = DEFAULT_WIDTH


@dataclass(frozen=True)
class _Cut:
    """The panels of a compound index, as parallel arrays, and the panel of each tile tuple."""

    of_tuple: np.ndarray
    of_sector: np.ndarray  # (sectors + 1,): the panels of sector s are of_sector[s] : of_sector[s + 1]
    sector: np.ndarray
    number: np.ndarray  # within the sector; equal for both parities
    first: np.ndarray  # state, within the sector
    size: np.ndarray
    bounds: np.ndarray  # (panels + 1,): states before each panel, those of all sectors
    tuple_first: np.ndarray
    tuple_last: np.ndarray


@lru_cache(maxsize=256)
def _cut(compound: Compound, wanted: int) -> _Cut:
    table, number = compound.tuples, compound.pieces(wanted)
    begin = np.flatnonzero(changes(table.sector) | changes(number))
    end = np.append(begin[1:], len(table))
    sector, bounds = table.sector[begin], np.append(0, table.size.cumsum())[np.append(begin, len(table))]
    return _Cut(
        np.arange(len(begin)).repeat(end - begin),
        np.searchsorted(sector, np.arange(len(compound.sizes) + 1)),
        sector,
        number[begin],
        table.offset[begin],
        np.diff(bounds),
        bounds,
        begin,
        end,
    )


@dataclass(frozen=True)
class Panels:
    """The panels of a tensor as parallel arrays."""

    layout: Layout
    rule: PanelRule

    @cached_property
    def _cuts(self) -> tuple[_Cut, _Cut]:
        height, width = self.rule.height, self.rule.width
        if self.layout.rows.rank <= 1 and self.layout.cols.rank <= 1:
            height = width = 1
        return _cut(self.layout.rows, height), _cut(self.layout.cols, width)

    @cached_property
    def table(self) -> dict[str, np.ndarray]:
        """sector, row0, nrows, col0, ncols, row_cut, col_cut (numbers of the cuts' panels), parity."""
        rows, cols = self._cuts
        rs, cs = self.layout.sector_pairs.T
        sector, r, c = pairs_of_runs(
            rows.of_sector[rs], np.diff(rows.of_sector)[rs], cols.of_sector[cs], np.diff(cols.of_sector)[cs]
        )
        return {
            "sector": sector,
            "row0": rows.first[r],
            "nrows": rows.size[r],
            "col0": cols.first[c],
            "ncols": cols.size[c],
            "row_cut": r,
            "col_cut": c,
            "parity": np.array([label[2] for label in self.layout.labels], dtype=np.int64)[sector],
        }

    def __len__(self) -> int:
        return len(self.table["sector"])

    @property
    def shape(self) -> tuple[int, int]:
        """Row panels and column panels, of all sectors."""
        rows, cols = self._cuts
        return len(rows.first), len(cols.first)

    @cached_property
    def places(self) -> core.Places:
        """Where blocks lie, for the inspection of sorts."""
        layout, table, groups = self.layout, self.table, []
        for compound, cut in zip((layout.rows, layout.cols), self._cuts, strict=True):
            t, sizes = compound.tuples, [space.tiles.size for space in compound.spaces]
            tuples = (t.tiles, t.parity, t.sector, t.size, t.offset)
            groups.append(core.Group(compound.packing, sizes, *tuples, cut.of_tuple, cut.tuple_first))
        rows, cols = groups
        sectors = (layout.sector_of, layout.ncols, layout.offsets)
        panels = (self._by_cut, table["row_cut"], table["col_cut"], table["parity"])
        b = layout.bands if layout.half else None
        bands = [b.of_tuple, b.first, b.height, b.offset] if b else []
        return core.Places(rows, cols, *sectors, *panels, bands)

    @cached_property
    def _by_cut(self) -> np.ndarray:
        rows, cols = self._cuts
        table = np.full((len(rows.first), len(cols.first)), -1, np.int64)
        table[self.table["row_cut"], self.table["col_cut"]] = np.arange(len(self))
        return table

    @property
    def row_cut_of_tuple(self) -> np.ndarray:
        """The number of the row panel that holds each tile tuple of the rows."""
        return self._cuts[0].of_tuple

    def of_tuples(self, row_tuple: np.ndarray, col_tuple: np.ndarray) -> np.ndarray:
        """The panel that holds each block."""
        rows, cols = self._cuts
        return self._by_cut[rows.of_tuple[row_tuple], cols.of_tuple[col_tuple]]

    def tuples(self, panel: int | np.ndarray) -> tuple[Any, Any, Any, Any]:
        """First and last row tuple, first and last column tuple of panels."""
        rows, cols = self._cuts
        r, c = self.table["row_cut"][panel], self.table["col_cut"][panel]
        return rows.tuple_first[r], rows.tuple_last[r], cols.tuple_first[c], cols.tuple_last[c]

    @cached_property
    def mates(self) -> np.ndarray:
        """Of each panel the one of the other parity with the same tile tuples, or -1."""
        rows, cols = self._cuts
        t = self.table
        labels = np.array(self.layout.labels, dtype=np.int64).reshape(-1, 3)[t["sector"]]
        keys: dict[tuple[int, ...], int] = {}
        names = np.stack(
            [labels[:, 0], labels[:, 1], rows.number[t["row_cut"]], cols.number[t["col_cut"]], labels[:, 2]],
            axis=1,
        )
        for k, name in enumerate(names.tolist()):
            keys[tuple(name)] = k
        return np.array([keys.get((*n[:4], -n[4]), -1) if n[4] else -1 for n in names.tolist()], np.int64)

    def overlapping(
        self, sector: np.ndarray, row0: np.ndarray, row1: np.ndarray, col0: np.ndarray, col1: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """For rectangles of sectors: (which rectangle, panel) for each panel that one touches."""
        both: list[np.ndarray] = []
        for cut, side, first, end in zip(self._cuts, (0, 1), (row0, col0), (row1, col1), strict=True):
            group = self.layout.sector_pairs[sector, side]
            start = cut.bounds[cut.of_sector[group]]
            low = cut.bounds.searchsorted(start + first, side="right") - 1
            both += [low, cut.bounds.searchsorted(start + end) - low]
        which, r, c = pairs_of_runs(*both)
        return which, self._by_cut[r, c]


def runs(first: np.ndarray | int, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, i) for count[k] numbers i from first[k] on (or from the same for all k), in this order."""
    k = np.arange(len(count)).repeat(count)
    return k, np.arange(len(k)) - (count.cumsum() - count - first)[k]


def pairs_of_runs(
    first: np.ndarray, count: np.ndarray, other_first: np.ndarray, other_count: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(k, i, j) for all i of run k and all j of the other run k, in this order."""
    k, place = runs(0, count * other_count)
    i, j = np.divmod(place, other_count[k])
    return k, first[k] + i, other_first[k] + j
