"""Records of the elementwise operations: Jacobi steps and dot products."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewise.equations.program import Dot, Update
from tilewise.inspect.panels import Panels
from tilewise.inspect.records import DOT, UPDATE
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Layout


def gap_offsets(layout: Layout) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the row energies and the column energies of each sector lie, and the length of all."""
    lengths = np.stack([layout.nrows, layout.ncols], axis=1).ravel()
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return starts[:-1:2], starts[1::2], int(starts[-1])


def gap_vector(op: Update, layout: Layout, energies: Mapping[str, np.ndarray]) -> np.ndarray:
    """The energies of the states of each sector; `energies` are given by the name of a space."""
    row_start, col_start, length = gap_offsets(layout)
    vector = np.zeros(length)
    for s, pair in enumerate(layout.sector_pairs):
        sides = ((layout.rows, op.row_signs, row_start), (layout.cols, op.col_signs, col_start))
        for sector, (compound, signs, start) in zip(pair, sides, strict=True):
            orbitals, _ = compound.states(sector)
            part = vector[start[s] : start[s] + compound.sizes[sector]]
            for space, sign, which in zip(compound.spaces, signs, orbitals, strict=True):
                part += sign * energies[space.name][which]
    return vector


def gaps_of_states(layout: Layout, vector: np.ndarray) -> np.ndarray:
    """The gap of every stored element, from a vector that `gap_vector` made."""
    row_start, col_start, _ = gap_offsets(layout)
    sides = zip(row_start, layout.nrows, col_start, layout.ncols, strict=True)
    sectors = [np.add.outer(vector[r : r + rows], vector[c : c + cols]).ravel() for r, rows, c, cols in sides]
    return np.concatenate([np.zeros(0), *sectors])


def inspect_update(op: Update, layout: Layout, buffers: dict[str, int], grid: Panels) -> Found:
    t = grid.table
    records = np.zeros(len(grid), UPDATE)
    _rectangles(records, layout, grid)
    row_start, col_start, _ = gap_offsets(layout)
    named = {"amplitude": op.amplitude, "residual": op.residual, "new": op.new, "step": op.step}
    for key, name in (named | {"energies": op.gaps}).items():
        records[key] = buffers[name]
    records["row_energy"] = row_start[t["sector"]] + t["row0"]
    records["col_energy"] = col_start[t["sector"]] + t["col0"]
    every = np.arange(len(grid))
    found = Found("update", every, records, every, False)
    found.touches = [Touch.of(op.amplitude, every, every), Touch.of(op.residual, every, every)]
    found.outputs = [(name, every, every, False) for name in op.outputs]
    return found


def inspect_dot(op: Dot, layout: Layout, buffers: dict[str, int], grid: Panels) -> Found:
    records = np.zeros(len(grid), DOT)
    _rectangles(records, layout, grid)
    records["a"], records["b"] = buffers[op.a], buffers[op.b]
    records["factor"] = np.array(op.factors)[grid.table["parity"] + 1]
    every = np.arange(len(grid))
    found = Found("dot", every, records, every, False)
    found.touches = [Touch.of(op.a, every, every), Touch.of(op.b, every, every)]
    return found


def _rectangles(records: np.ndarray, layout: Layout, grid: Panels) -> None:
    t = grid.table
    records["ld"] = layout.ncols[t["sector"]]
    records["offset"] = layout.offsets[t["sector"]] + t["row0"] * records["ld"] + t["col0"]
    records["rows"], records["cols"] = t["nrows"], t["ncols"]
