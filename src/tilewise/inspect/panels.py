"""Panels: runs of consecutive tile tuples. A task's output is one row panel by one column panel.

Panel boundaries follow the tiles and not the parity: the + and the - sector of an exchange pair are
cut at the same tile tuples, so that one sort task can fill both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tilewise.core import core
from tilewise.tensor import Compound, Layout

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
    """The panels of a compound index: of each tuple its panel, counted within the sector."""

    of_tuple: np.ndarray
    first: np.ndarray  # (all panels,) first state, within the sector
    size: np.ndarray
    sector: np.ndarray
    number: np.ndarray  # the panel's number within the sector; equal for both parities
    tuple_first: np.ndarray
    tuple_last: np.ndarray


@lru_cache(maxsize=256)
def _cut(compound: Compound, wanted: int) -> _Cut:
    table, number = compound.tuples, compound.runs(wanted)
    start = np.ones(len(table), bool)
    start[1:] = (np.diff(table.sector) != 0) | (np.diff(number) != 0)
    begin = np.flatnonzero(start)
    end = np.append(begin[1:], len(table))
    of_tuple = np.cumsum(start) - 1
    size = np.bincount(of_tuple, weights=table.size, minlength=len(begin)).astype(np.int64)
    return _Cut(of_tuple, table.offset[begin], size, table.sector[begin], number[begin], begin, end)


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
        """sector, row0, nrows, col0, ncols, row_cut, col_cut (numbers of the cuts' panels), mate."""
        rows, cols = self._cuts
        by_sector = [
            (s, r, c)
            for s, (rs, cs) in enumerate(self.layout.sector_pairs.tolist())
            for r in range(*np.searchsorted(rows.sector, [rs, rs + 1]).tolist())
            for c in range(*np.searchsorted(cols.sector, [cs, cs + 1]).tolist())
        ]
        sector, r, c = np.array(by_sector, dtype=np.int64).reshape(-1, 3).T
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

    def of_tuples(self, row_tuple: np.ndarray, col_tuple: np.ndarray) -> np.ndarray:
        """The panel that holds each block."""
        rows, cols = self._cuts
        return self._by_cut[rows.of_tuple[row_tuple], cols.of_tuple[col_tuple]]

    def tuples(self, panel: int | np.integer) -> tuple[int, int, int, int]:
        """First and last row tuple, first and last column tuple of a panel."""
        rows, cols = self._cuts
        r, c = self.table["row_cut"][panel], self.table["col_cut"][panel]
        return (
            int(rows.tuple_first[r]),
            int(rows.tuple_last[r]),
            int(cols.tuple_first[c]),
            int(cols.tuple_last[c]),
        )

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
        which, panels = [], []
        t = self.table
        first = np.searchsorted(t["sector"], np.arange(len(self.layout.nrows) + 1))
        for s in np.unique(sector):
            mine = np.flatnonzero(sector == s)
            part = slice(first[s], first[s + 1])
            r0, c0 = t["row0"][part], t["col0"][part]
            r1, c1 = r0 + t["nrows"][part], c0 + t["ncols"][part]
            hit = (r0 < row1[mine, None]) & (r1 > row0[mine, None])
            hit &= (c0 < col1[mine, None]) & (c1 > col0[mine, None])
            i, j = np.nonzero(hit)
            which.append(mine[i])
            panels.append(first[s] + j)
        empty = np.zeros(0, np.int64)
        return np.concatenate([empty, *which]), np.concatenate([empty, *panels])
