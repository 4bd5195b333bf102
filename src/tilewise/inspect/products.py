"""GEMM records of the contractions: Contract, RowContract and RowInner."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.equations.program import Contract, RowContract, RowInner
from tilewise.inspect.panels import Panels, pairs_of_runs, runs
from tilewise.inspect.records import GEMM, concatenated
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Compound, Layout
from tilewise.tensor.compound import changes

LONG_ROW = 4096
"""Columns beyond which a one-index product is done in pieces, to keep its target in cache."""


def sector_map(one: Compound, other: Compound) -> np.ndarray:
    """Sector of `other` that has the same states as each sector of `one`, whose signs may be flipped."""
    if one == other:
        return np.arange(len(one.sizes))
    flip = 1 if one.signs == other.signs else -1
    found = {tuple(label): k for k, label in enumerate(other.labels.tolist())}
    return np.array([found.get((h, flip * s, p), -1) for h, s, p in one.labels.tolist()], dtype=np.int64)


def sector_products(
    op: Contract, layouts: dict[str, Layout]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All products of two sectors, in the order of C: sector of C, size of the sum, sectors of A and of B."""
    c, a, b = (layouts[name] for name in (op.target, op.a, op.b))
    a_rows, a_cols = (a.cols, a.rows) if op.transpose_a else (a.rows, a.cols)
    b_rows, b_cols = (b.cols, b.rows) if op.transpose_b else (b.rows, b.cols)
    a_sector = _with_none(a.sector_of.T if op.transpose_a else a.sector_of)
    b_sector = _with_none(b.sector_of.T if op.transpose_b else b.sector_of)
    row, col = c.sector_pairs.T
    sa = a_sector[sector_map(c.rows, a_rows)[row], :-1]
    sb = b_sector[sector_map(a_cols, b_rows), sector_map(c.cols, b_cols)[col][:, None]]
    s, k = np.nonzero((sa >= 0) & (sb >= 0))
    return s, a_cols.sizes[k], sa[s, k], sb[s, k]


def _with_none(table: np.ndarray) -> np.ndarray:
    """A table whose last row and column, which -1 refers to, say that there is nothing."""
    larger = np.full((table.shape[0] + 1, table.shape[1] + 1), -1)
    larger[:-1, :-1] = table
    return larger


def inspect_contract(
    op: Contract, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """One task per panel of C; its chain has a link for each sector of the summed group."""
    if layouts[op.a].half:
        return _inspect_half_stored(op, layouts, buffers, panels)
    c, a, b = (layouts[name] for name in (op.target, op.a, op.b))
    t = panels[op.target].table
    sector, k, sa, sb = sector_products(op, layouts)
    links = np.bincount(sector, minlength=len(c.nrows))
    panel, link = runs((links.cumsum() - links)[t["sector"]], links[t["sector"]])
    k, sa, sb, lda, ldb = k[link], sa[link], sb[link], a.ncols[sa[link]], b.ncols[sb[link]]
    row0, col0 = t["row0"][panel], t["col0"][panel]
    row1, col1 = row0 + t["nrows"][panel], col0 + t["ncols"][panel]
    g = _zeroed(op.target, panel, c, buffers, panels)
    g["a"], g["b"], g["k"], g["lda"], g["ldb"] = buffers[op.a], buffers[op.b], k, lda, ldb
    g["transpose_a"], g["transpose_b"] = op.transpose_a, op.transpose_b
    g["a_offset"] = a.offsets[sa] + row0 * (1 if op.transpose_a else lda)
    g["b_offset"] = b.offsets[sb] + col0 * (ldb if op.transpose_b else 1)
    g["beta"] = np.where(changes(panel), float(op.accumulate), 1.0)
    if not op.accumulate and not links.all():
        none = np.flatnonzero(links[t["sector"]] == 0)
        every = np.append(panel, none)
        order = np.argsort(every, kind="stable")
        g = concatenated(GEMM, [g, _zeroed(op.target, none, c, buffers, panels)]).take(order)
        found = _in_order(every[order], g, op.accumulate)
    else:
        found = _in_order(panel, g, op.accumulate)
    found.records["alpha"] = op.alpha
    found.touches = [
        Touch(op.a, lambda: _touched(panels[op.a], panel, sa, (row0, row1), (0, k), op.transpose_a)),
        Touch(op.b, lambda: _touched(panels[op.b], panel, sb, (0, k), (col0, col1), op.transpose_b)),
    ]
    return found


def _inspect_half_stored(
    op: Contract, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """A chain has a link for each band that is summed: blocks above the diagonal are read transposed."""
    c, a, b = layouts[op.target], layouts[op.a], layouts[op.b]
    t, bands = panels[op.target].table, a.bands
    parts = []
    for s, _, sa, sb in zip(*sector_products(op, layouts), strict=True):
        mine, own = np.flatnonzero(t["sector"] == s), np.flatnonzero(bands.sector == sa)
        # Every part of a panel that lies in one band, with every band that is summed.
        top, bottom = t["row0"][mine], (t["row0"] + t["nrows"])[mine]
        first = np.searchsorted(bands.end[own], top, side="right")
        count = np.searchsorted(bands.first[own], bottom) - first
        every = np.full(len(mine), len(own))
        which, band, other = pairs_of_runs(first, count, np.zeros_like(first), every)
        panel, band, other = mine[which], own[band], own[other]
        row0, row1 = np.maximum(top[which], bands.first[band]), np.minimum(bottom[which], bands.end[band])
        parts.append(np.stack([panel, band, other, row0, row1, np.full(len(panel), sb)]))
    panel, band, other, row0, row1, sb = np.concatenate([np.zeros((6, 0), np.int64), *parts], axis=1)
    direct, ldb, col0 = other <= band, b.ncols[sb], t["col0"][panel]
    later, earlier = np.maximum(band, other), np.minimum(band, other)
    g = _zeroed(op.target, panel, c, buffers, panels)
    g["a"], g["b"], g["lda"], g["ldb"] = buffers[op.a], buffers[op.b], bands.height[earlier], ldb
    g["m"], g["k"] = row1 - row0, bands.height[other]
    g["c_offset"] += (row0 - t["row0"][panel]) * g["ldc"]
    g["transpose_a"], g["transpose_b"] = ~direct, op.transpose_b
    g["a_offset"] = bands.block(later, earlier) + (row0 - bands.first[band]) * np.where(direct, g["lda"], 1)
    row_step, col_step = (1, ldb) if op.transpose_b else (ldb, 1)
    g["b_offset"] = b.offsets[sb] + bands.first[other] * row_step + col0 * col_step
    g["alpha"], g["beta"] = op.alpha, np.where(bands.first[other] == 0, float(op.accumulate), 1.0)
    found = _in_order(panel, g, op.accumulate)
    rows, cols = (bands.first[other], bands.end[other]), (col0, col0 + t["ncols"][panel])
    found.touches = [
        Touch(op.a, lambda: _all_touched(panels[op.a], found)),
        Touch(op.b, lambda: _touched(panels[op.b], panel, sb, rows, cols, op.transpose_b)),
    ]
    return found


def inspect_row_contract(
    op: RowContract, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """C(x q|J) += m(x, p) B(p q|J): for each q a small product whose rows lie size(q) rows apart."""
    c, b, m = layouts[op.target], layouts[op.operand], layouts[op.matrix]
    if not b.size or not m.size:
        return _nothing_to_add(op.target, op.accumulate, c, buffers, panels)
    at, of = op.target_position, op.operand_position
    summed, kept = (m.rows, m.cols) if op.transpose else (m.cols, m.rows)
    grid, t = panels[op.target], panels[op.target].table
    to_cols = sector_map(c.cols, b.cols)
    # Every (panel, row tuple) of C, and for each of them every tile p that may follow.
    row0, row1, _, _ = grid.tuples(np.arange(len(grid)))
    panel, row = runs(row0, row1 - row0)
    n_tiles = len(summed.spaces[0].tiles)
    panel, row = np.repeat(panel, n_tiles), np.repeat(row, n_tiles)
    p = np.tile(np.arange(n_tiles), len(row) // max(1, n_tiles))
    x, q = c.rows.tuples.tiles[row, at], c.rows.tuples.tiles[row, 1 - at]
    operand_tiles = [p, q] if of == 0 else [q, p]
    operand_row = b.rows.find(operand_tiles, 0)
    x_tuple, p_tuple = kept.find([x], 0), summed.find([p], 0)
    m_row, m_col = (p_tuple, x_tuple) if op.transpose else (x_tuple, p_tuple)
    m_sector = m.sector_of[m.rows.tuples.sector[m_row], m.cols.tuples.sector[m_col]]
    c_sector = t["sector"][panel]
    b_sector = b.sector_of[b.rows.tuples.sector[operand_row], to_cols[c.sector_pairs[c_sector, 1]]]
    valid = (operand_row >= 0) & (m_sector >= 0) & (b_sector >= 0)
    valid &= to_cols[c.sector_pairs[c_sector, 1]] >= 0
    first_of_group = np.arange(len(row)) % max(1, n_tiles) == 0
    lonely = first_of_group & ~_any_in_group(valid, n_tiles)  # no p at all: the block is zero
    keep = np.flatnonzero(valid | (lonely & (not op.accumulate)))
    panel, row, p, x, q = panel[keep], row[keep], p[keep], x[keep], q[keep]
    operand_row, m_row, m_col = operand_row[keep], m_row[keep], m_col[keep]
    m_sector, b_sector, c_sector = m_sector[keep], b_sector[keep], c_sector[keep]
    is_link = valid[keep]
    q_size = c.rows.spaces[1 - at].tiles.size[q]
    x_size = c.rows.spaces[at].tiles.size[x]
    p_size = summed.spaces[0].tiles.size[p]
    # One record per element q; links of one q follow each other, so that C stays in cache. Where q stands
    # behind x and p, all q of a tile and their columns are one long row: one record, if it is not too long.
    whole = (t["ncols"][panel] == c.ncols[c_sector]) & (q_size * t["ncols"][panel] <= LONG_ROW)
    merged = whole & (at == 0) & (of == 0)
    count = np.where(merged, 1, q_size)
    which, element = runs(0, count)
    order = np.lexsort([np.arange(len(which)), element, row[which], panel[which]])
    which, element = which[order], element[order]
    g = np.zeros(len(which), GEMM)
    task = panel[which]
    nb, nc = b.ncols[b_sector[which]], c.ncols[c_sector[which]]
    col0 = t["col0"][task]
    c_step, c_stride = (1, q_size[which]) if at == 0 else (x_size[which], 1)
    b_step, b_stride = (1, q_size[which]) if of == 0 else (p_size[which], 1)
    g["c"], g["m"], g["ldc"] = buffers[op.target], x_size[which], c_stride * nc
    g["n"] = np.where(merged[which], q_size[which], 1) * t["ncols"][task]
    c_row = c.rows.tuples.offset[row[which]] + element * c_step
    g["c_offset"] = c.offsets[c_sector[which]] + c_row * nc + col0
    g["alpha"] = op.alpha
    new = changes(task) | changes(row[which]) | changes(element)
    g["beta"] = np.where(new, float(op.accumulate), 1.0)
    g["k"] = np.where(is_link[which], p_size[which], 0)
    g["a"], g["b"], g["transpose_a"] = buffers[op.matrix], buffers[op.operand], op.transpose
    m_ld = m.ncols[m_sector[which]]
    g["lda"], g["ldb"] = m_ld, b_stride * nb
    m_place = m.rows.tuples.offset[m_row[which]] * m_ld + m.cols.tuples.offset[m_col[which]]
    g["a_offset"] = m.offsets[m_sector[which]] + m_place
    b_row = b.rows.tuples.offset[operand_row[which]] + element * b_step
    g["b_offset"] = b.offsets[b_sector[which]] + b_row * nb + col0
    found = _in_order(task, g, op.accumulate)
    links = np.flatnonzero(is_link)
    found.touches = [
        Touch(
            op.matrix,
            lambda: (panel[links], panels[op.matrix].of_tuples(m_row[links], m_col[links])),
        ),
        Touch(
            op.operand,
            lambda: _rows_touched(panels[op.operand], panel[links], operand_row[links], b_sector[links]),
        ),
    ]
    return found


def inspect_row_inner(
    op: RowInner, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """C(x|y) += sum over q and J of A(x q|J) B(q y|J): for each q a product over the columns."""
    c, a, b = layouts[op.target], layouts[op.a], layouts[op.b]
    if not a.size or not b.size:
        return _nothing_to_add(op.target, op.accumulate, c, buffers, panels)
    grid, t = panels[op.target], panels[op.target].table
    q_space = a.rows.spaces[1 - op.position_a]
    row0, row1, col0, col1 = grid.tuples(np.arange(len(grid)))
    panel, c_row, c_col = pairs_of_runs(row0, row1 - row0, col0, col1 - col0)
    n_tiles = len(q_space.tiles)
    col_sectors = len(a.cols.sizes)
    to_b = sector_map(a.cols, b.cols)
    shape = (len(panel), n_tiles, col_sectors)
    block, q, js = (i.ravel() for i in np.indices(shape))
    x, y = c.rows.tuples.tiles[c_row[block], 0], c.cols.tuples.tiles[c_col[block], 0]
    a_row = a.rows.find([x, q] if op.position_a == 0 else [q, x], 0)
    b_row = b.rows.find([y, q] if op.position_b == 0 else [q, y], 0)
    sa = a.sector_of[a.rows.tuples.sector[a_row], js]
    sb = b.sector_of[b.rows.tuples.sector[b_row], to_b[js]]
    valid = (sa >= 0) & (sb >= 0) & (a_row >= 0) & (b_row >= 0) & (to_b[js] >= 0)
    per_block = n_tiles * col_sectors
    first = np.arange(len(block)) % max(1, per_block) == 0
    lonely = first & ~_any_in_group(valid, per_block)
    keep = np.flatnonzero(valid | (lonely & (not op.accumulate)))
    block, q, x, y, a_row, b_row, sa, sb = (v[keep] for v in (block, q, x, y, a_row, b_row, sa, sb))
    is_link = valid[keep]
    reads = (panel[block[is_link]], a_row[is_link], sa[is_link], b_row[is_link], sb[is_link])
    # Where q stands behind x and y, all q of a tile and their columns are one long sum.
    merged = op.position_a == 0 and op.position_b == 0
    count = np.where(is_link & (not merged), q_space.tiles.size[q], 1)
    which, element = runs(0, count)
    block, q, x, y = block[which], q[which], x[which], y[which]
    a_row, b_row, sa, sb = a_row[which], b_row[which], sa[which], sb[which]
    g = np.zeros(len(which), GEMM)
    sc = t["sector"][panel[block]]
    m, n, nq = (s.tiles.size[i] for s, i in ((c.rows.spaces[0], x), (c.cols.spaces[0], y), (q_space, q)))
    g["c"], g["m"], g["n"], g["ldc"] = buffers[op.target], m, n, c.ncols[sc]
    c_place = c.rows.tuples.offset[c_row[block]] * c.ncols[sc] + c.cols.tuples.offset[c_col[block]]
    g["c_offset"] = c.offsets[sc] + c_place
    g["k"] = np.where(is_link[which], a.ncols[sa] * (nq if merged else 1), 0)
    g["alpha"] = op.alpha
    g["beta"] = np.where(changes(block), float(op.accumulate), 1.0)
    g["a"], g["b"], g["transpose_b"] = buffers[op.a], buffers[op.b], 1
    for tensor, sector, tuple_, size, position, key in (
        (a, sa, a_row, m, op.position_a, "a"),
        (b, sb, b_row, n, op.position_b, "b"),
    ):
        width = tensor.ncols[sector]
        inner = element if position == 0 else element * size
        g[f"{key}_offset"] = tensor.offsets[sector] + (tensor.rows.tuples.offset[tuple_] + inner) * width
        g[f"ld{key}"] = width * (nq if position == 0 else 1)
    found = _in_order(panel[block], g, op.accumulate)
    found.touches = [
        Touch(op.a, lambda: _rows_touched(panels[op.a], *reads[:3])),
        Touch(op.b, lambda: _rows_touched(panels[op.b], reads[0], *reads[3:])),
    ]
    return found


def _nothing_to_add(
    target: str, accumulate: bool, layout: Layout, buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """An operand is empty: a target that is not accumulated becomes zero."""
    every = np.arange(0 if accumulate else len(panels[target]))
    return _in_order(every, _zeroed(target, every, layout, buffers, panels), accumulate)


def _zeroed(
    target: str, panel: np.ndarray, layout: Layout, buffers: dict[str, int], panels: dict[str, Panels]
) -> np.ndarray:
    """Records that make panels zero, for want of a product."""
    t = panels[target].table
    sector = t["sector"][panel]
    g = np.zeros(len(panel), GEMM)
    g["c"], g["m"], g["n"] = buffers[target], t["nrows"][panel], t["ncols"][panel]
    g["ldc"] = layout.ncols[sector]
    g["c_offset"] = layout.offsets[sector] + t["row0"][panel] * g["ldc"] + t["col0"][panel]
    return g


def _any_in_group(valid: np.ndarray, group: int) -> np.ndarray:
    if not len(valid):
        return valid
    return np.repeat(valid.reshape(-1, group).any(axis=1), group)


def _in_order(panel: np.ndarray, records: np.ndarray, accumulate: bool) -> Found:
    """Records in the order of the panels that they write."""
    return Found("gemm", panel, records, panel[changes(panel)], accumulate)


def _all_touched(panels: Panels, found: Found) -> tuple[np.ndarray, np.ndarray]:
    """Each task may read any panel of a tensor: so it is for one that is stored by half."""
    task, panel = (x.ravel() for x in np.meshgrid(found.tasks, np.arange(len(panels)), indexing="ij"))
    return task, panel


Range = tuple[Any, Any]


def _touched(
    panels: Panels, task: np.ndarray, sector: np.ndarray, rows: Range, cols: Range, transposed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The panels of an operand that hold rows and columns of sectors, from the first to before the last."""
    if transposed:
        rows, cols = cols, rows
    which, panel = panels.overlapping(sector, *rows, *cols)
    return task[which], panel


def _rows_touched(
    panels: Panels, task: np.ndarray, row_tuple: np.ndarray, sector: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The panels of an operand that are read by whole row tuples."""
    first = panels.layout.rows.tuples.offset[row_tuple]
    rows = first, first + panels.layout.rows.tuples.size[row_tuple]
    return _touched(panels, task, sector, rows, (0, panels.layout.ncols[sector]), False)
