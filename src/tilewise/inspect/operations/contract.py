"""Contractions: C(I|J) (+)= alpha A(I|K) B(K|J), a product of matrices for each pair of sectors."""

from __future__ import annotations

import numpy as np

from tilewise.equations.program import Contract
from tilewise.inspect.operations.gemm import GEMM
from tilewise.inspect.operations.inspector import Inspector, Layouts, Setting
from tilewise.inspect.operations.panel_products import in_order, panels_read, sector_map, zeroed
from tilewise.inspect.panels import Panels, pairs_of_runs, runs
from tilewise.inspect.records import I8, Table, concatenated
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Layout
from tilewise.tensor.compound import changes

# A product of two sectors: the sector of C, those of A and B, and the length of the sum.
SECTORS = np.dtype([(name, I8) for name in ("c", "a", "b", "depth")])

# A link of a panel's chain: the panel, the sectors of A and B, and the length of the sum.
LINK = np.dtype([(name, I8) for name in ("panel", "a", "b", "depth")])

# A link where A is stored by half: rows row0:row1 of C lie in `band`, `other` is the band that is summed.
BAND_LINK = np.dtype([(name, I8) for name in ("panel", "band", "other", "row0", "row1", "b")])


def sector_products(op: Contract, layouts: Layouts) -> np.ndarray:
    """All products of two sectors, in the order of C; records of type SECTORS."""
    c, a, b = (layouts[name] for name in (op.target, op.a, op.b))
    a_rows, a_cols = (a.cols, a.rows) if op.transpose_a else (a.rows, a.cols)
    b_rows, b_cols = (b.cols, b.rows) if op.transpose_b else (b.rows, b.cols)
    a_sector = _with_none(a.sector_of.T if op.transpose_a else a.sector_of)
    b_sector = _with_none(b.sector_of.T if op.transpose_b else b.sector_of)
    row, col = c.sector_pairs.T
    sa = a_sector[sector_map(c.rows, a_rows)[row], :-1]
    sb = b_sector[sector_map(a_cols, b_rows), sector_map(c.cols, b_cols)[col][:, None]]
    s, k = np.nonzero((sa >= 0) & (sb >= 0))
    products: Table = np.empty(len(s), SECTORS)
    products["c"], products["a"], products["b"], products["depth"] = s, sa[s, k], sb[s, k], a_cols.sizes[k]
    return products


def _with_none(table: Table) -> np.ndarray:
    """A table whose last row and column, which -1 refers to, say that there is nothing."""
    larger = np.full((table.shape[0] + 1, table.shape[1] + 1), -1)
    larger[:-1, :-1] = table
    return larger


def inspect_contract(op: Contract, setting: Setting) -> Found:
    """One task per panel of C; its chain has a link for each sector of the summed group."""
    if setting.layouts[op.a].half:
        return _inspect_half_stored(op, setting)
    grid = setting.panels[op.target]
    links, alone = _links(sector_products(op, setting.layouts), grid)
    records, panel = _records(op, setting, links), links["panel"]
    if len(alone) and not op.accumulate:
        panel = np.append(panel, alone)
        order = np.argsort(panel, kind="stable")
        panel = panel[order]
        records = concatenated(GEMM, [records, zeroed(op.target, alone, setting)]).take(order)
    records["alpha"] = op.alpha
    found = in_order(panel, records, op.accumulate)
    found.touches = [
        Touch(op.a, lambda: _read_of_a(op, setting, links)),
        Touch(op.b, lambda: _read_of_b(op, setting, links)),
    ]
    return found


def _links(products: np.ndarray, grid: Panels) -> tuple[np.ndarray, np.ndarray]:
    """The links of all panels, in their order, and the panels that have none."""
    sector = grid.table["sector"]
    count = np.bincount(products["c"], minlength=len(grid.layout.nrows))
    panel, product = runs((count.cumsum() - count)[sector], count[sector])
    links: Table = np.empty(len(panel), LINK)
    links["panel"] = panel
    for key in ("a", "b", "depth"):
        links[key] = products[key][product]
    return links, np.flatnonzero(count[sector] == 0)


def _records(op: Contract, setting: Setting, links: Table) -> np.ndarray:
    a, b, t = setting.layouts[op.a], setting.layouts[op.b], setting.panels[op.target].table
    panel = links["panel"]
    g = zeroed(op.target, panel, setting)
    g["a"], g["b"], g["k"] = setting.buffers[op.a], setting.buffers[op.b], links["depth"]
    g["lda"], g["ldb"] = a.ncols[links["a"]], b.ncols[links["b"]]
    g["transpose_a"], g["transpose_b"] = op.transpose_a, op.transpose_b
    g["a_offset"] = a.offsets[links["a"]] + t["row0"][panel] * (1 if op.transpose_a else g["lda"])
    g["b_offset"] = b.offsets[links["b"]] + t["col0"][panel] * (g["ldb"] if op.transpose_b else 1)
    g["beta"] = np.where(changes(panel), float(op.accumulate), 1.0)
    return g


def _read_of_a(op: Contract, setting: Setting, links: Table) -> tuple[np.ndarray, np.ndarray]:
    t, panel = setting.panels[op.target].table, links["panel"]
    rows = t["row0"][panel], (t["row0"] + t["nrows"])[panel]
    return panels_read(setting.panels[op.a], panel, links["a"], rows, (0, links["depth"]), op.transpose_a)


def _read_of_b(op: Contract, setting: Setting, links: Table) -> tuple[np.ndarray, np.ndarray]:
    t, panel = setting.panels[op.target].table, links["panel"]
    cols = t["col0"][panel], (t["col0"] + t["ncols"])[panel]
    return panels_read(setting.panels[op.b], panel, links["b"], (0, links["depth"]), cols, op.transpose_b)


# A stored by half


def _inspect_half_stored(op: Contract, setting: Setting) -> Found:
    """A chain has a link for each band that is summed: blocks above the diagonal are read transposed."""
    grid, a = setting.panels[op.target], setting.layouts[op.a]
    products = sector_products(op, setting.layouts)
    parts = [_band_links(product, grid, a) for product in products]
    links = concatenated(BAND_LINK, parts)
    found = in_order(links["panel"], _half_records(op, setting, links), op.accumulate)
    found.touches = [
        Touch(op.a, lambda: _all_panels(setting.panels[op.a], found.tasks)),
        Touch(op.b, lambda: _bands_of_b(op, setting, links)),
    ]
    return found


def _band_links(product: np.void, grid: Panels, a: Layout) -> np.ndarray:
    """Every part of a panel that lies in one band, with every band that is summed."""
    t, bands = grid.table, a.bands
    mine, own = np.flatnonzero(t["sector"] == product["c"]), np.flatnonzero(bands.sector == product["a"])
    top, bottom = t["row0"][mine], (t["row0"] + t["nrows"])[mine]
    first = np.searchsorted(bands.end[own], top, side="right")
    count = np.searchsorted(bands.first[own], bottom) - first
    which, band, other = pairs_of_runs(first, count, np.zeros_like(first), np.full(len(mine), len(own)))
    links: Table = np.empty(len(which), BAND_LINK)
    links["panel"], links["band"], links["other"] = mine[which], own[band], own[other]
    links["row0"] = np.maximum(top[which], bands.first[links["band"]])
    links["row1"] = np.minimum(bottom[which], bands.end[links["band"]])
    links["b"] = product["b"]
    return links


def _half_records(op: Contract, setting: Setting, links: Table) -> np.ndarray:
    a, b, t = setting.layouts[op.a], setting.layouts[op.b], setting.panels[op.target].table
    bands, panel, band, other = a.bands, links["panel"], links["band"], links["other"]
    direct, later, earlier = other <= band, np.maximum(band, other), np.minimum(band, other)
    ldb = b.ncols[links["b"]]
    g = zeroed(op.target, panel, setting)
    g["a"], g["b"] = setting.buffers[op.a], setting.buffers[op.b]
    g["lda"], g["ldb"] = bands.height[earlier], ldb
    g["m"], g["k"] = links["row1"] - links["row0"], bands.height[other]
    g["c_offset"] += (links["row0"] - t["row0"][panel]) * g["ldc"]
    g["transpose_a"], g["transpose_b"] = ~direct, op.transpose_b
    row_in_band = links["row0"] - bands.first[band]
    g["a_offset"] = bands.block(later, earlier) + row_in_band * np.where(direct, g["lda"], 1)
    row_step, col_step = (1, ldb) if op.transpose_b else (ldb, 1)
    g["b_offset"] = b.offsets[links["b"]] + bands.first[other] * row_step + t["col0"][panel] * col_step
    g["alpha"], g["beta"] = op.alpha, np.where(bands.first[other] == 0, float(op.accumulate), 1.0)
    return g


def _bands_of_b(op: Contract, setting: Setting, links: Table) -> tuple[np.ndarray, np.ndarray]:
    t, panel, bands = setting.panels[op.target].table, links["panel"], setting.layouts[op.a].bands
    rows = bands.first[links["other"]], bands.end[links["other"]]
    cols = t["col0"][panel], (t["col0"] + t["ncols"])[panel]
    return panels_read(setting.panels[op.b], panel, links["b"], rows, cols, op.transpose_b)


def _all_panels(panels: Panels, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each task may read any panel of a tensor: so it is for one that is stored by half."""
    task, panel = (x.ravel() for x in np.meshgrid(tasks, np.arange(len(panels)), indexing="ij"))
    return task, panel


# Flops


def contract_flops(op: Contract, layouts: Layouts) -> float:
    products, c = sector_products(op, layouts), layouts[op.target]
    sector = products["c"]
    return 2.0 * float((c.nrows[sector].astype(float) * c.ncols[sector] * products["depth"]).sum())


def dense_flops(names: tuple[str, str, str], layouts: Layouts) -> float:
    """Of a product of two dense tensors; names of these and of the result."""
    a, b, c = (np.prod([float(n) for n in layouts[name].shape]) for name in names)
    return 2.0 * float(np.sqrt(a * b * c))


INSPECTOR = Inspector(
    inspect_contract, contract_flops, lambda op, layouts: dense_flops((op.a, op.b, op.target), layouts)
)
