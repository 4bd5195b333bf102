"""Jacobi steps: new = amplitude + step, step = (residual - gap amplitude) / (gap - shift).

The shift is that of the run; gap(r, c) = energies[row_energy + r] + energies[col_energy + c].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewise.equations.program import Update
from tilewise.inspect.operations.inspector import Inspector, Layouts, Setting
from tilewise.inspect.operations.kind import (
    WORD,
    Kind,
    Spans,
    Work,
    fill_rectangles,
    finite,
    rectangle_sizes,
    rectangle_spans,
)
from tilewise.inspect.records import ASSIGN, I8, READ, Table
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Layout

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph

TENSORS = ("amplitude", "residual", "new_amplitude", "step")
OFFSETS = ("amplitude_offset", "residual_offset", "new_offset", "step_offset")
UPDATE = np.dtype(
    [(name, I8) for name in TENSORS]
    + [(name, I8) for name in OFFSETS]
    + [(name, I8) for name in ("rows", "cols", "ld", "energies", "row_energy", "col_energy")]
)


class UpdateKind(Kind):
    """Jacobi steps."""

    name: ClassVar[str] = "update"
    record: ClassVar[np.dtype] = UPDATE
    buffers: ClassVar[tuple[str, ...]] = (*TENSORS, "energies")
    features: ClassVar[tuple[str, ...]] = ("update", "far")

    def bytes(self, graph: TaskGraph) -> np.ndarray:
        return 4 * WORD * rectangle_sizes(graph, self.name)

    def words(self, graph: TaskGraph) -> np.ndarray:
        return 2 * rectangle_sizes(graph, self.name)

    def moved(self, graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
        """Amplitudes and residuals are read, new amplitudes and steps are written."""
        moved = 2 * WORD * rectangle_sizes(graph, self.name)
        return moved, moved

    def counted(self, graph: TaskGraph, far: float) -> np.ndarray:
        size = rectangle_sizes(graph, self.name)
        return np.stack([size, far * 4 * size], axis=1)

    def spans(self, graph: TaskGraph) -> Iterator[Spans]:
        for key, offset, access in zip(TENSORS, OFFSETS, (READ, READ, ASSIGN, ASSIGN), strict=True):
            yield rectangle_spans(graph, self.name, key, offset, access)
        r = graph.records[self.name]
        every = np.arange(len(r))
        for key, extent in (("row_energy", "rows"), ("col_energy", "cols")):
            last = r[key] + r[extent]
            yield Spans(self.name, key, "energies", every, every, r["energies"], r[key], last, READ)

    def twin(self, work: Work, record: np.void) -> float:
        r, rows, cols = record, int(record["rows"]), int(record["cols"])
        amplitude, residual, new, step = (
            work.matrix(r[x], r[at], rows, cols, r["ld"]) for x, at in zip(TENSORS, OFFSETS, strict=True)
        )
        energies = work.buffers[r["energies"]]
        row, col = int(r["row_energy"]), int(r["col_energy"])
        gap = energies[row : row + rows, None] + energies[col : col + cols]
        rest = residual - gap * amplitude
        step[...] = rest / (gap - work.shift)
        new[...] = amplitude + step
        return float((rest**2).sum()) + finite(new)


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


def inspect_update(op: Update, setting: Setting) -> Found:
    """One task, of one record, for each panel."""
    layout, grid, buffers = setting.layouts[op.amplitude], setting.panels[op.amplitude], setting.buffers
    records: Table = np.zeros(len(grid), UPDATE)
    fill_rectangles(records, layout, grid, OFFSETS)
    named = zip((*TENSORS, "energies"), (op.amplitude, op.residual, op.new, op.step, op.gaps), strict=True)
    for key, name in named:
        records[key] = buffers[name]
    sector, (row_start, col_start, _) = grid.table["sector"], gap_offsets(layout)
    records["row_energy"] = row_start[sector] + grid.table["row0"]
    records["col_energy"] = col_start[sector] + grid.table["col0"]
    every = np.arange(len(grid))
    found = Found("update", every, {"update": records}, every, False)
    found.touches = [Touch.of(op.amplitude, every, every), Touch.of(op.residual, every, every)]
    found.outputs = [(name, every, every, False) for name in op.outputs]
    return found


def _vectors(op: Update, layouts: Layouts) -> dict[str, int]:
    return {op.gaps: gap_offsets(layouts[op.amplitude])[2]}


INSPECTOR = Inspector(inspect_update, vectors=_vectors)
