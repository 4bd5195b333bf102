"""What the operations share whose tasks are products for one panel of a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.inspect.operations.gemm import GEMM
from tilewise.inspect.operations.inspector import Setting
from tilewise.inspect.panels import Panels
from tilewise.inspect.records import Table
from tilewise.inspect.tasks import Found
from tilewise.tensor import Compound
from tilewise.tensor.compound import changes

Range = tuple[Any, Any]
"""The first, and the one behind the last."""


def sector_map(one: Compound, other: Compound) -> np.ndarray:
    """Sector of `other` that has the same states as each sector of `one`, whose signs may be flipped."""
    if one == other:
        return np.arange(len(one.sizes))
    flip = 1 if one.signs == other.signs else -1
    found = {tuple(label): k for k, label in enumerate(other.labels.tolist())}
    return np.array([found.get((h, flip * s, p), -1) for h, s, p in one.labels.tolist()], dtype=np.int64)


def zeroed(target: str, panel: np.ndarray, setting: Setting) -> Table:
    """Records that make panels zero, for want of a product."""
    t, layout = setting.panels[target].table, setting.layouts[target]
    sector = t["sector"][panel]
    g: Table = np.zeros(len(panel), GEMM)
    g["c"], g["m"], g["n"] = setting.buffers[target], t["nrows"][panel], t["ncols"][panel]
    g["ldc"] = layout.ncols[sector]
    g["c_offset"] = layout.offsets[sector] + t["row0"][panel] * g["ldc"] + t["col0"][panel]
    return g


def in_order(panel: np.ndarray, records: Table, accumulate: bool) -> Found:
    """Records in the order of the panels that they write."""
    return Found("gemm", panel, {"gemm": records}, panel[changes(panel)], accumulate)


def nothing_to_add(target: str, accumulate: bool, setting: Setting) -> Found:
    """An operand is empty: a target that is not accumulated becomes zero."""
    every = np.arange(0 if accumulate else len(setting.panels[target]))
    return in_order(every, zeroed(target, every, setting), accumulate)


def panels_read(
    panels: Panels, task: np.ndarray, sector: np.ndarray, rows: Range, cols: Range, transposed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The panels of an operand that hold rows and columns of sectors, with the tasks that read them."""
    if transposed:
        rows, cols = cols, rows
    which, panel = panels.overlapping(sector, *rows, *cols)
    return task[which], panel


def row_tuples_read(
    panels: Panels, task: np.ndarray, row_tuple: np.ndarray, sector: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The panels of an operand that are read by whole row tuples."""
    first = panels.layout.rows.tuples.offset[row_tuple]
    rows = first, first + panels.layout.rows.tuples.size[row_tuple]
    return panels_read(panels, task, sector, rows, (0, panels.layout.ncols[sector]))
