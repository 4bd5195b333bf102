"""Constants of an equation, filled from the integrals of a reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewise.equations.program import Program
from tilewise.equations.terms import DELTA, Declaration, Equation
from tilewise.tensor import Compound, Layout, Tensor


def constants(
    equation: Equation, program: Program, eri: np.ndarray, starts: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Buffers of all constants. `eri` is (pq|rs) packed as pairs p >= q, `starts` says at which
    orbital each space begins."""
    filled = {}
    for name, declaration in equation.declarations.items():
        if declaration.kind == "constant":
            layout = program.layouts[name]
            is_unit = declaration.definition[0].factors[0].name == DELTA
            filled[name] = _unit(layout) if is_unit else _integrals(declaration, layout, eri, starts)
    return filled


def _unit(layout: Layout) -> np.ndarray:
    tensor = Tensor(layout)
    for label in layout.labels:
        np.fill_diagonal(tensor.sector(label), 1.0)
    return tensor.data


def _integrals(
    declaration: Declaration, layout: Layout, eri: np.ndarray, starts: Mapping[str, int]
) -> np.ndarray:
    """A constant [pq|rs] = (pq|rs): each sector is a block of the matrix of pairs."""
    tensor = Tensor(layout)
    for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
        rows, row_scale = _pairs(layout.rows, row_sector, starts)
        cols, col_scale = _pairs(layout.cols, col_sector, starts)
        first, last = layout.offsets[s], layout.offsets[s + 1]
        block = tensor.data[first:last].reshape(len(rows), len(cols))
        np.multiply(eri[np.ix_(rows, cols)], row_scale[:, None] * col_scale, out=block)
    return tensor.data


def _pairs(compound: Compound, sector: int, starts: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pair numbers of the states of a sector, and <pq+|pq> / <pq|pq>, which is sqrt 2 unless p = q."""
    (p, q), _ = compound.states(sector)
    p, q = (x + starts[space.name] for x, space in zip((p, q), compound.spaces, strict=True))
    high, low = np.maximum(p, q), np.minimum(p, q)
    scale = np.where(p == q, 1.0, np.sqrt(2.0)) if compound.packing else np.ones(len(p))
    return high * (high + 1) // 2 + low, scale
