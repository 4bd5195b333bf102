"""One-index contractions on row blocks: C(x q|J) (+)= alpha sum_p m(x, p) B(p q|J).

1. For every row tuple (x q) of a panel of C, and every tile p, the blocks of m and B are looked up.
2. Links are those whose blocks are there. A row tuple without any becomes zero, unless it is accumulated.
3. For each q of its tile, a link is a small product whose rows lie size(q) rows apart. Where q stands behind
   x and p, all q of a tile and their columns are one long row: one record, if it is not too long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.equations.program import RowContract
from tilewise.inspect.operations.contract import dense_flops
from tilewise.inspect.operations.gemm import GEMM
from tilewise.inspect.operations.inspector import Inspector, Layouts, Setting
from tilewise.inspect.operations.panel_products import in_order, nothing_to_add, row_tuples_read, sector_map
from tilewise.inspect.panels import runs
from tilewise.inspect.records import I8, Table
from tilewise.inspect.tasks import Found, Touch
from tilewise.lazy import cached_property
from tilewise.tensor import Compound, Layout
from tilewise.tensor.compound import changes

LONG_ROW = 4096
"""Columns beyond which a one-index product is done in pieces, to keep its target in cache."""

# Tiles x, p and q, the tuples of rows of C and B, of rows and columns of m, and sectors; `there`: all exist.
LINK = np.dtype(
    [(name, I8) for name in ("panel", "x", "p", "q", "c_row", "b_row", "m_row", "m_col")]
    + [(name, I8) for name in ("c", "b", "m", "there")]
)


@dataclass(frozen=True)
class _Search:
    """Steps 1 to 3 for one operation."""

    op: RowContract
    setting: Setting

    @property
    def c(self) -> Layout:
        return self.setting.layouts[self.op.target]

    @property
    def b(self) -> Layout:
        return self.setting.layouts[self.op.operand]

    @property
    def m(self) -> Layout:
        return self.setting.layouts[self.op.matrix]

    @cached_property
    def summed(self) -> Compound:
        return self.m.rows if self.op.transpose else self.m.cols

    @property
    def n_tiles(self) -> int:
        """Tiles p."""
        return len(self.summed.spaces[0].tiles)

    def candidates(self) -> np.ndarray:
        """Step 1: a group of `n_tiles` records of type LINK for each row tuple."""
        grid, c, at = self.setting.panels[self.op.target], self.c, self.op.target_position
        first, end, _, _ = grid.tuples(np.arange(len(grid)))
        panel, row = runs(first, end - first)
        tiles = c.rows.tuples.tiles[row]
        links: Table = np.empty(len(row) * self.n_tiles, LINK)
        groups = links.reshape(len(row), self.n_tiles)
        groups["p"] = np.arange(self.n_tiles)
        own = {"panel": panel, "c_row": row, "x": tiles[:, at], "q": tiles[:, 1 - at]}
        for key, values in (own | {"c": grid.table["sector"][panel]}).items():
            groups[key] = values[:, None]
        self.look_up(links)
        return links

    def look_up(self, links: Table) -> None:
        """The blocks of m and B."""
        c, b, m = self.c, self.b, self.m
        x, p, q = (links[key] for key in "xpq")
        links["b_row"] = b.rows.find([p, q] if self.op.operand_position == 0 else [q, p], 0)
        kept = self.m.cols if self.op.transpose else self.m.rows
        x_tuple, p_tuple = kept.find([x], 0), self.summed.find([p], 0)
        links["m_row"], links["m_col"] = (p_tuple, x_tuple) if self.op.transpose else (x_tuple, p_tuple)
        links["m"] = m.sector_of[m.rows.tuples.sector[links["m_row"]], m.cols.tuples.sector[links["m_col"]]]
        b_cols = sector_map(c.cols, b.cols)[c.sector_pairs[links["c"], 1]]
        links["b"] = b.sector_of[b.rows.tuples.sector[links["b_row"]], b_cols]
        links["there"] = (links["b_row"] >= 0) & (b_cols >= 0) & (links["m"] >= 0) & (links["b"] >= 0)

    def links(self) -> np.ndarray:
        """Step 2."""
        links = self.candidates()
        keep = links["there"] != 0
        if not self.op.accumulate and len(links):
            first = np.arange(0, len(links), self.n_tiles)
            keep[first] |= ~np.logical_or.reduceat(keep, first)
        return links.take(np.flatnonzero(keep))

    def elements(self, links: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Step 3: a link for each record, the element q, and whether the record has all of them.

        Links of one q follow each other, so that C stays in cache.
        """
        op, c, width = self.op, self.c, self.setting.panels[self.op.target].table["ncols"]
        q_size, ncols = self.q_sizes(links), width[links["panel"]]
        merged = (ncols == c.ncols[links["c"]]) & (q_size * ncols <= LONG_ROW)
        merged &= op.target_position == op.operand_position == 0
        which, element = runs(0, np.where(merged, 1, q_size))
        order = np.lexsort([np.arange(len(which)), element, links["c_row"][which], links["panel"][which]])
        which = which[order]
        return links.take(which), element[order], merged[which]

    def q_sizes(self, links: Table) -> np.ndarray:
        return self.c.rows.spaces[1 - self.op.target_position].tiles.size[links["q"]]

    def records(self, links: Table, element: np.ndarray, merged: np.ndarray) -> np.ndarray:
        op, c, b, m, buffers = self.op, self.c, self.b, self.m, self.setting.buffers
        t = self.setting.panels[op.target].table
        col0, ncols = t["col0"][links["panel"]], t["ncols"][links["panel"]]
        c_width, b_width, m_width = c.ncols[links["c"]], b.ncols[links["b"]], m.ncols[links["m"]]
        q_size = self.q_sizes(links)
        x_size = c.rows.spaces[op.target_position].tiles.size[links["x"]]
        p_size = self.summed.spaces[0].tiles.size[links["p"]]
        c_step, c_stride = (1, q_size) if op.target_position == 0 else (x_size, 1)
        b_step, b_stride = (1, q_size) if op.operand_position == 0 else (p_size, 1)
        g: Table = np.zeros(len(links), GEMM)
        g["a"], g["b"], g["c"] = buffers[op.matrix], buffers[op.operand], buffers[op.target]
        g["m"], g["n"] = x_size, np.where(merged, q_size, 1) * ncols
        g["k"] = np.where(links["there"], p_size, 0)
        g["transpose_a"] = op.transpose
        g["lda"], g["ldb"], g["ldc"] = m_width, b_stride * b_width, c_stride * c_width
        m_place = m.rows.tuples.offset[links["m_row"]] * m_width + m.cols.tuples.offset[links["m_col"]]
        g["a_offset"] = m.offsets[links["m"]] + m_place
        b_row = b.rows.tuples.offset[links["b_row"]] + element * b_step
        g["b_offset"] = b.offsets[links["b"]] + b_row * b_width + col0
        c_row = c.rows.tuples.offset[links["c_row"]] + element * c_step
        g["c_offset"] = c.offsets[links["c"]] + c_row * c_width + col0
        first = changes(links["panel"]) | changes(links["c_row"]) | changes(element)
        g["alpha"], g["beta"] = op.alpha, np.where(first, float(op.accumulate), 1.0)
        return g


def inspect_row_contract(op: RowContract, setting: Setting) -> Found:
    search = _Search(op, setting)
    if not search.b.size or not search.m.size:
        return nothing_to_add(op.target, op.accumulate, setting)
    links = search.links()
    rows, element, merged = search.elements(links)
    found = in_order(rows["panel"], search.records(rows, element, merged), op.accumulate)
    read = links.take(np.flatnonzero(links["there"]))
    matrix, operand = setting.panels[op.matrix], setting.panels[op.operand]
    found.touches = [
        Touch(op.matrix, lambda: (read["panel"], matrix.of_tuples(read["m_row"], read["m_col"]))),
        Touch(op.operand, lambda: row_tuples_read(operand, read["panel"], read["b_row"], read["b"])),
    ]
    return found


# Flops


def orbitals_met(kept: Compound, summed: Compound, sector_of: np.ndarray) -> np.ndarray:
    """For each tile of a one-index group, how many orbitals of the other group it meets."""
    meets = (sector_of >= 0).astype(float) @ summed.sizes
    return meets[kept.tuples.sector][np.argsort(kept.tuples.tiles[:, 0])]


def flops_of_rows(layout: Layout, position: int, met: np.ndarray) -> float:
    """Each element of a tensor meets so many orbitals, by the tile at a position of its rows."""
    tuples = layout.rows.tuples
    states = np.concatenate([[0.0], np.cumsum(tuples.size * met[tuples.tiles[:, position]])])
    per_sector = np.diff(states[layout.rows.tuple_range])
    return 2.0 * float((per_sector[layout.sector_pairs[:, 0]] * layout.ncols).sum())


def _flops(op: RowContract, layouts: Layouts) -> float:
    """Each element of the target is a sum over the summed orbitals of one spin and irrep."""
    m = layouts[op.matrix]
    summed, kept = (m.rows, m.cols) if op.transpose else (m.cols, m.rows)
    met = orbitals_met(kept, summed, m.sector_of.T if op.transpose else m.sector_of)
    return flops_of_rows(layouts[op.target], op.target_position, met)


INSPECTOR = Inspector(
    inspect_row_contract,
    _flops,
    lambda op, layouts: dense_flops((op.matrix, op.operand, op.target), layouts),
)
