"""Inner products of rows: C(x|y) (+)= alpha sum over q and J of A(x q|J) B(q y|J).

1. For every block (x|y) of C, every tile q and every sector J of columns, the rows of A and B are looked up.
2. Links are those whose rows are there. A block of C without any becomes zero, unless it is accumulated.
3. A link is a product over the columns for each q of its tile. Where q stands behind x and y, all q of a tile
   and their columns are one long sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.equations.program import RowInner
from tilewise.inspect.operations.contract import dense_flops
from tilewise.inspect.operations.gemm import GEMM
from tilewise.inspect.operations.inspector import Inspector, Layouts, Setting
from tilewise.inspect.operations.panel_products import in_order, nothing_to_add, row_tuples_read, sector_map
from tilewise.inspect.operations.row_contract import flops_of_rows, orbitals_met
from tilewise.inspect.panels import pairs_of_runs, runs
from tilewise.inspect.records import I8, Table
from tilewise.inspect.tasks import Found, Touch
from tilewise.spaces import Space
from tilewise.tensor import Layout
from tilewise.tensor.compound import changes

# The block of C, tiles x, y and q, tuples of rows and columns, and sectors of all three; `there`: they exist.
LINK = np.dtype(
    [(name, I8) for name in ("block", "panel", "x", "y", "q", "c_row", "c_col", "a_row", "b_row")]
    + [(name, I8) for name in ("c", "a", "b", "there")]
)


@dataclass(frozen=True)
class _Search:
    """Steps 1 to 3 for one operation."""

    op: RowInner
    setting: Setting

    @property
    def c(self) -> Layout:
        return self.setting.layouts[self.op.target]

    @property
    def a(self) -> Layout:
        return self.setting.layouts[self.op.a]

    @property
    def b(self) -> Layout:
        return self.setting.layouts[self.op.b]

    @property
    def q_space(self) -> Space:
        return self.a.rows.spaces[1 - self.op.position_a]

    @property
    def per_block(self) -> int:
        """Tiles q times sectors of columns."""
        return len(self.q_space.tiles) * len(self.a.cols.sizes)

    def candidates(self) -> np.ndarray:
        """Step 1: a group of `per_block` records of type LINK for each block of C."""
        grid, c = self.setting.panels[self.op.target], self.c
        row0, row1, col0, col1 = grid.tuples(np.arange(len(grid)))
        panel, row, col = pairs_of_runs(row0, row1 - row0, col0, col1 - col0)
        links: Table = np.empty(len(panel) * self.per_block, LINK)
        groups = links.reshape(len(panel), self.per_block)
        own = {"block": np.arange(len(panel)), "panel": panel, "c_row": row, "c_col": col}
        own |= {"x": c.rows.tuples.tiles[row, 0], "y": c.cols.tuples.tiles[col, 0]}
        for key, values in (own | {"c": grid.table["sector"][panel]}).items():
            groups[key] = values[:, None]
        groups["q"], column_sector = np.divmod(np.arange(self.per_block), max(1, len(self.a.cols.sizes)))
        self.look_up(links, np.tile(column_sector, len(panel)))
        return links

    def look_up(self, links: Table, a_col: np.ndarray) -> None:
        """The rows of A and B, in a sector of the columns of A each."""
        op, a, b = self.op, self.a, self.b
        x, y, q = (links[key] for key in "xyq")
        links["a_row"] = a.rows.find([x, q] if op.position_a == 0 else [q, x], 0)
        links["b_row"] = b.rows.find([y, q] if op.position_b == 0 else [q, y], 0)
        b_col = sector_map(a.cols, b.cols)[a_col]
        links["a"] = a.sector_of[a.rows.tuples.sector[links["a_row"]], a_col]
        links["b"] = b.sector_of[b.rows.tuples.sector[links["b_row"]], b_col]
        links["there"] = (links["a"] >= 0) & (links["b"] >= 0) & (b_col >= 0)
        links["there"] &= (links["a_row"] >= 0) & (links["b_row"] >= 0)

    def links(self) -> np.ndarray:
        """Step 2."""
        links = self.candidates()
        keep = links["there"] != 0
        if not self.op.accumulate and len(links):
            first = np.arange(0, len(links), self.per_block)
            keep[first] |= ~np.logical_or.reduceat(keep, first)
        return links.take(np.flatnonzero(keep))

    @property
    def merged(self) -> bool:
        """All q of a tile are one sum."""
        return self.op.position_a == 0 and self.op.position_b == 0

    def elements(self, links: Table) -> tuple[np.ndarray, np.ndarray]:
        """Step 3: a link for each record, and the element q."""
        each = (links["there"] != 0) & (not self.merged)
        which, element = runs(0, np.where(each, self.q_space.tiles.size[links["q"]], 1))
        return links.take(which), element

    def records(self, links: Table, element: np.ndarray) -> np.ndarray:
        op, c, a, b, buffers = self.op, self.c, self.a, self.b, self.setting.buffers
        width = c.ncols[links["c"]]
        q_size = self.q_space.tiles.size[links["q"]]
        g: Table = np.zeros(len(links), GEMM)
        g["a"], g["b"], g["c"], g["transpose_b"] = buffers[op.a], buffers[op.b], buffers[op.target], 1
        g["m"], g["n"] = c.rows.spaces[0].tiles.size[links["x"]], c.cols.spaces[0].tiles.size[links["y"]]
        g["k"] = np.where(links["there"], a.ncols[links["a"]] * (q_size if self.merged else 1), 0)
        place = c.rows.tuples.offset[links["c_row"]] * width + c.cols.tuples.offset[links["c_col"]]
        g["c_offset"], g["ldc"] = c.offsets[links["c"]] + place, width
        g["alpha"], g["beta"] = op.alpha, np.where(changes(links["block"]), float(op.accumulate), 1.0)
        for key, tensor, position, size in (("a", a, op.position_a, "m"), ("b", b, op.position_b, "n")):
            sector, inner = links[key], element if position == 0 else element * g[size]
            row = tensor.rows.tuples.offset[links[f"{key}_row"]] + inner
            g[f"{key}_offset"] = tensor.offsets[sector] + row * tensor.ncols[sector]
            g[f"ld{key}"] = tensor.ncols[sector] * (q_size if position == 0 else 1)
        return g


def inspect_row_inner(op: RowInner, setting: Setting) -> Found:
    search = _Search(op, setting)
    if not search.a.size or not search.b.size:
        return nothing_to_add(op.target, op.accumulate, setting)
    links = search.links()
    rows, element = search.elements(links)
    found = in_order(rows["panel"], search.records(rows, element), op.accumulate)
    read = links.take(np.flatnonzero(links["there"]))
    a, b = setting.panels[op.a], setting.panels[op.b]
    found.touches = [
        Touch(op.a, lambda: row_tuples_read(a, read["panel"], read["a_row"], read["a"])),
        Touch(op.b, lambda: row_tuples_read(b, read["panel"], read["b_row"], read["b"])),
    ]
    return found


def _flops(op: RowInner, layouts: Layouts) -> float:
    """Each stored element of A meets all orbitals y that the target pairs with its x."""
    c = layouts[op.target]
    return flops_of_rows(layouts[op.a], op.position_a, orbitals_met(c.rows, c.cols, c.sector_of))


INSPECTOR = Inspector(
    inspect_row_inner, _flops, lambda op, layouts: dense_flops((op.a, op.b, op.target), layouts)
)
