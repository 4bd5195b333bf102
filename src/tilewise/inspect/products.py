"""GEMM records of the contractions: Contract, RowContract and RowInner."""

from __future__ import annotations

import numpy as np

from tilewise.equations.program import Contract, RowContract, RowInner
from tilewise.inspect.panels import Panels
from tilewise.inspect.records import GEMM, concatenated
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Compound, Layout

LONG_ROW = 4096
"""Columns beyond which a one-index product is done in pieces, to keep its target in cache."""


def sector_map(one: Compound, other: Compound) -> np.ndarray:
    """Sector of `other` that has the same states as each sector of `one`, whose signs may be flipped."""
    flip = 1 if one.signs == other.signs else -1
    found = {tuple(label): k for k, label in enumerate(other.labels.tolist())}
    return np.array([found.get((h, flip * s, p), -1) for h, s, p in one.labels.tolist()], dtype=np.int64)


def inspect_contract(
    op: Contract, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """One task per panel of C; its chain has a link for each sector of the summed group."""
    if layouts[op.a].half:
        return _inspect_half_stored(op, layouts, buffers, panels)
    c = layouts[op.target]
    a = layouts[op.a].transposed if op.transpose_a else layouts[op.a]
    b = layouts[op.b].transposed if op.transpose_b else layouts[op.b]
    a_sector, b_sector = layouts[op.a].sector_of, layouts[op.b].sector_of
    a_sector = a_sector.T if op.transpose_a else a_sector
    b_sector = b_sector.T if op.transpose_b else b_sector
    to_a_rows, to_b_cols = sector_map(c.rows, a.rows), sector_map(c.cols, b.cols)
    to_b_rows = sector_map(a.cols, b.rows)
    grid, t = panels[op.target], panels[op.target].table
    chunks, tasks = [], []
    for s, (rs, cs) in enumerate(c.sector_pairs.tolist()):
        mine = np.flatnonzero(t["sector"] == s)
        links = []
        for ks in range(len(a.cols.sizes)):
            sa = a_sector[to_a_rows[rs], ks] if to_a_rows[rs] >= 0 else -1
            sb = b_sector[to_b_rows[ks], to_b_cols[cs]] if min(to_b_rows[ks], to_b_cols[cs]) >= 0 else -1
            if sa >= 0 and sb >= 0:
                links.append((ks, sa, sb))
        if not links and op.accumulate:
            continue
        for position, (ks, sa, sb) in enumerate(links or [(-1, 0, 0)]):
            g = np.zeros(len(mine), GEMM)
            row0, nrows, col0, ncols = (t[x][mine] for x in ("row0", "nrows", "col0", "ncols"))
            g["c"], g["m"], g["n"], g["ldc"] = buffers[op.target], nrows, ncols, c.ncols[s]
            g["c_offset"] = c.offsets[s] + row0 * c.ncols[s] + col0
            g["alpha"], g["beta"] = op.alpha, float(op.accumulate or position > 0)
            if ks >= 0:
                lda, ldb = layouts[op.a].ncols[sa], layouts[op.b].ncols[sb]
                g["a"], g["b"], g["k"] = buffers[op.a], buffers[op.b], a.cols.sizes[ks]
                g["transpose_a"], g["transpose_b"], g["lda"], g["ldb"] = (
                    op.transpose_a,
                    op.transpose_b,
                    lda,
                    ldb,
                )
                g["a_offset"] = layouts[op.a].offsets[sa] + row0 * (1 if op.transpose_a else lda)
                g["b_offset"] = layouts[op.b].offsets[sb] + col0 * (ldb if op.transpose_b else 1)
            chunks.append(g)
            tasks.append(mine)
    found = Found("gemm", *_in_task_order(tasks, chunks, op.accumulate, grid))
    found.touches = [
        Touch(op.a, lambda: _touched(panels[op.a], found, "a", op.transpose_a)),
        Touch(op.b, lambda: _touched(panels[op.b], found, "b", op.transpose_b)),
    ]
    return found


def _inspect_half_stored(
    op: Contract, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """A chain has a link for each band that is summed: blocks above the diagonal are read transposed."""
    c, a, b = layouts[op.target], layouts[op.a], layouts[op.b]
    b_sector = b.sector_of.T if op.transpose_b else b.sector_of
    b_rows, b_cols = (b.cols, b.rows) if op.transpose_b else (b.rows, b.cols)
    to_a, to_b_rows, to_b_cols = (
        sector_map(c.rows, a.rows),
        sector_map(a.cols, b_rows),
        sector_map(c.cols, b_cols),
    )
    grid, t, bands = panels[op.target], panels[op.target].table, a.bands
    chunks, tasks = [np.zeros(0, GEMM)], [np.zeros(0, np.int64)]
    for s, (rs, cs) in enumerate(c.sector_pairs.tolist()):
        sa = a.sector_of[to_a[rs], to_a[rs]]
        sb = b_sector[to_b_rows[to_a[rs]], to_b_cols[cs]]
        mine = np.flatnonzero(t["sector"] == s)
        own = np.flatnonzero(bands.sector == sa)
        # Every part of a panel that lies in one band, with every band that is summed.
        panel, band, other = (x.ravel() for x in np.meshgrid(mine, own, own, indexing="ij"))
        row0 = np.maximum(t["row0"][panel], bands.first[band])
        row1 = np.minimum((t["row0"] + t["nrows"])[panel], bands.end[band])
        keep = np.flatnonzero(row0 < row1)
        panel, band, other, row0, row1 = (x[keep] for x in (panel, band, other, row0, row1))
        direct = other <= band
        g = np.zeros(len(keep), GEMM)
        g["c"], g["a"], g["b"] = buffers[op.target], buffers[op.a], buffers[op.b]
        g["m"], g["n"], g["ldc"], g["k"] = row1 - row0, t["ncols"][panel], c.ncols[s], bands.height[other]
        g["c_offset"] = c.offsets[s] + row0 * c.ncols[s] + t["col0"][panel]
        g["transpose_a"], g["lda"] = ~direct, bands.height[np.minimum(band, other)]
        inside = (row0 - bands.first[band]) * np.where(direct, g["lda"], 1)
        g["a_offset"] = bands.block(np.maximum(band, other), np.minimum(band, other)) + inside
        g["transpose_b"], g["ldb"] = op.transpose_b, b.ncols[sb]
        row_step, col_step = (1, b.ncols[sb]) if op.transpose_b else (b.ncols[sb], 1)
        g["b_offset"] = b.offsets[sb] + bands.first[other] * row_step + t["col0"][panel] * col_step
        g["alpha"], g["beta"] = op.alpha, np.where(other == own[0], float(op.accumulate), 1.0)
        chunks.append(g)
        tasks.append(panel)
    found = Found("gemm", *_in_task_order(tasks, chunks, op.accumulate, grid))
    found.touches = [
        Touch(op.a, lambda: _all_touched(panels[op.a], found)),
        Touch(op.b, lambda: _touched(panels[op.b], found, "b", op.transpose_b)),
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
    ranges = [grid.tuples(k) for k in range(len(grid))]
    panel = np.repeat(np.arange(len(grid)), [r[1] - r[0] for r in ranges])
    row = np.concatenate([np.zeros(0, np.int64), *(np.arange(r[0], r[1]) for r in ranges)])
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
    which = np.repeat(np.arange(len(keep)), count)
    element = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
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
    new = np.ones(len(which), bool)
    new[1:] = (np.diff(task) != 0) | (np.diff(row[which]) != 0) | (np.diff(element) != 0)
    g["beta"] = np.where(new, float(op.accumulate), 1.0)
    g["k"] = np.where(is_link[which], p_size[which], 0)
    g["a"], g["b"], g["transpose_a"] = buffers[op.matrix], buffers[op.operand], op.transpose
    m_ld = m.ncols[m_sector[which]]
    g["lda"], g["ldb"] = m_ld, b_stride * nb
    m_place = m.rows.tuples.offset[m_row[which]] * m_ld + m.cols.tuples.offset[m_col[which]]
    g["a_offset"] = m.offsets[m_sector[which]] + m_place
    b_row = b.rows.tuples.offset[operand_row[which]] + element * b_step
    g["b_offset"] = b.offsets[b_sector[which]] + b_row * nb + col0
    found = Found("gemm", *_in_task_order([task], [g], op.accumulate, grid))
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
    blocks = []
    for k in range(len(grid)):
        r0, r1, c0, c1 = grid.tuples(k)
        blocks += [(k, r, col) for r in range(r0, r1) for col in range(c0, c1)]
    panel, c_row, c_col = np.array(blocks, np.int64).reshape(-1, 3).T
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
    # Where q stands behind x and y, all q of a tile and their columns are one long sum.
    merged = op.position_a == 0 and op.position_b == 0
    count = np.where(is_link & (not merged), q_space.tiles.size[q], 1)
    which = np.repeat(np.arange(len(keep)), count)
    element = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
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
    new = np.append(True, np.diff(block) != 0)[: len(block)]
    g["beta"] = np.where(new, float(op.accumulate), 1.0)
    g["a"], g["b"], g["transpose_b"] = buffers[op.a], buffers[op.b], 1
    for tensor, sector, tuple_, size, position, key in (
        (a, sa, a_row, m, op.position_a, "a"),
        (b, sb, b_row, n, op.position_b, "b"),
    ):
        width = tensor.ncols[sector]
        inner = element if position == 0 else element * size
        g[f"{key}_offset"] = tensor.offsets[sector] + (tensor.rows.tuples.offset[tuple_] + inner) * width
        g[f"ld{key}"] = width * (nq if position == 0 else 1)
    found = Found("gemm", *_in_task_order([panel[block]], [g], op.accumulate, grid))
    links = np.flatnonzero(is_link[which])
    tasks = panel[block[links]]
    found.touches = [
        Touch(op.a, lambda: _rows_touched(panels[op.a], tasks, a_row[links], sa[links])),
        Touch(op.b, lambda: _rows_touched(panels[op.b], tasks, b_row[links], sb[links])),
    ]
    return found


def _nothing_to_add(
    target: str, accumulate: bool, layout: Layout, buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    """An operand is empty: a target that is not accumulated becomes zero."""
    grid, t = panels[target], panels[target].table
    every = np.arange(0 if accumulate else len(grid))
    g = np.zeros(len(every), GEMM)
    g["c"], g["m"], g["n"] = buffers[target], t["nrows"][every], t["ncols"][every]
    g["ldc"] = layout.ncols[t["sector"][every]]
    g["c_offset"] = layout.offsets[t["sector"][every]] + t["row0"][every] * g["ldc"] + t["col0"][every]
    return Found("gemm", *_in_task_order([every], [g], accumulate, grid))


def _any_in_group(valid: np.ndarray, group: int) -> np.ndarray:
    if not len(valid):
        return valid
    return np.repeat(valid.reshape(-1, group).any(axis=1), group)


def _in_task_order(
    tasks: list[np.ndarray], chunks: list[np.ndarray], accumulate: bool, grid: Panels
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Records sorted by output panel; (panel of each record, records, panels with a task, accumulate)."""
    panel = np.concatenate([np.zeros(0, np.int64), *tasks])
    records = concatenated(GEMM, chunks)
    order = np.argsort(panel, kind="stable")
    return panel[order], records[order], np.unique(panel), accumulate


def _all_touched(panels: Panels, found: Found) -> tuple[np.ndarray, np.ndarray]:
    """Each task may read any panel of a tensor: so it is for one that is stored by half."""
    task, panel = (x.ravel() for x in np.meshgrid(found.tasks, np.arange(len(panels)), indexing="ij"))
    return task, panel


def _touched(panels: Panels, found: Found, key: str, transposed: bool) -> tuple[np.ndarray, np.ndarray]:
    """The panels of an operand that each record of a plain contraction reads."""
    g = found.records
    used = np.flatnonzero(g["k"] > 0)
    g, task = g[used], found.panel[used]
    layout = panels.layout
    sector = np.searchsorted(layout.offsets, g[f"{key}_offset"], side="right") - 1
    inside = g[f"{key}_offset"] - layout.offsets[sector]
    row0, col0 = np.divmod(inside, layout.ncols[sector])
    rows, cols = (g["m"], g["k"]) if key == "a" else (g["k"], g["n"])
    if transposed:
        rows, cols = cols, rows
    which, panel = panels.overlapping(sector, row0, row0 + rows, col0, col0 + cols)
    return task[which], panel


def _rows_touched(
    panels: Panels, task: np.ndarray, row_tuple: np.ndarray, sector: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The panels of an operand that are read by whole row tuples."""
    layout = panels.layout
    codes = (
        np.unique(np.stack([task, row_tuple, sector], axis=1), axis=0) if len(task) else np.zeros((0, 3), int)
    )
    task, row_tuple, sector = codes.T
    row0 = layout.rows.tuples.offset[row_tuple]
    row1 = row0 + layout.rows.tuples.size[row_tuple]
    which, panel = panels.overlapping(sector, row0, row1, np.zeros_like(row0), layout.ncols[sector])
    return task[which], panel
