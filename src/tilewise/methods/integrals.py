"""Constants of an equation, filled from the integrals of a reference.

A constant [pq|rs] = (pq|rs) has one pair in its rows and one in its columns, plain or packed `+`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tilewise.chem.reference import Reference
from tilewise.chem.transform import HalfTransformed
from tilewise.config import thread_limits
from tilewise.equations.program import Program
from tilewise.equations.terms import DELTA, FOCK, Equation
from tilewise.tensor import Compound, Layout, Tensor


def constants(
    equation: Equation, program: Program, reference: Reference, workers: int
) -> dict[str, np.ndarray]:
    """Buffers of all constants."""
    tensors, filled = {}, {}
    for name, declaration in equation.declarations.items():
        if declaration.kind != "constant":
            continue
        layout = program.layouts[name]
        source = declaration.definition[0].factors[0].name
        if source == DELTA:
            filled[name] = _unit(layout)
        elif source == FOCK:
            filled[name] = Tensor.from_elements(layout, lambda i, a: reference.fock_ov[i, a]).data
        else:
            tensors[name] = Tensor(layout, name=name)
            filled[name] = tensors[name].data
    starts = {"o": 0, "v": reference.outline.n_occ}
    vectors = reference.three_index(workers)
    if vectors is not None:
        for tensor in tensors.values():
            _from_vectors(tensor, vectors, starts)
        return filled
    half = reference.half_transformed(workers)
    if half is None:
        eri = reference.eri()
        for tensor in tensors.values():
            _from_orbitals(tensor, eri, starts)
        return filled
    by_columns: dict[Compound, list[Tensor]] = {}
    for tensor in tensors.values():
        by_columns.setdefault(tensor.layout.cols, []).append(tensor)
    units = [
        _Unit(group, cols, sector, slice(first, min(first + half.width, size)), half, starts)
        for cols, group in by_columns.items()
        for sector, size in enumerate(cols.sizes.tolist())
        for first in range(0, size, half.width)
    ]
    with thread_limits(1), ThreadPoolExecutor(workers) as pool:  # NumPy leaves the GIL alone in here
        for _ in pool.map(_Unit.fill, units):
            pass
    return filled


def _unit(layout: Layout) -> np.ndarray:
    tensor = Tensor(layout)
    for label in layout.labels:
        np.fill_diagonal(tensor.sector(label), 1.0)
    return tensor.data


def _from_orbitals(tensor: Tensor, eri: np.ndarray, starts: dict[str, int]) -> None:
    """Each sector is a block of the matrix of pairs."""
    for block, rows, cols, scale in _sectors(tensor, starts):
        np.multiply(eri[np.ix_(rows, cols)], scale, out=block)


def _from_vectors(tensor: Tensor, vectors: np.ndarray, starts: dict[str, int]) -> None:
    """Each sector is a product of three-index integrals."""
    for block, rows, cols, scale in _sectors(tensor, starts):
        np.matmul(vectors[:, rows].T, vectors[:, cols], out=block)
        block *= scale


def _sectors(
    tensor: Tensor, starts: dict[str, int]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """The matrix of each sector, the pairs of its rows and columns, and the scale of its elements."""
    layout = tensor.layout
    for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
        rows, row_scale = _pairs(layout.rows, row_sector, starts)
        cols, col_scale = _pairs(layout.cols, col_sector, starts)
        first, last = layout.offsets[s], layout.offsets[s + 1]
        block = tensor.data[first:last].reshape(len(rows), len(cols))
        yield block, rows, cols, row_scale[:, None] * col_scale


@dataclass(frozen=True)
class _Unit:
    """Some columns of one sector, for all tensors that have these columns."""

    tensors: list[Tensor]
    cols: Compound
    sector: int
    columns: slice
    half: HalfTransformed
    starts: dict[str, int]

    def fill(self) -> None:
        pairs, col_scale = _pairs(self.cols, self.sector, self.starts)
        targets = self.targets()
        spaces = {space.name: space for tensor in self.tensors for space in tensor.layout.rows.spaces}
        orders = sorted({order for names in targets for order in (names, names[::-1])})
        runs = {
            (name, h): np.flatnonzero(space.irreps == h) + self.starts[name]
            for name, space in spaces.items()
            for h in range(space.order)
        }

        def wanted(h_p: int, h_q: int) -> list[tuple[np.ndarray, np.ndarray]]:
            return [(runs[a, h_p], runs[b, h_q]) for a, b in orders]

        irrep = int(self.cols.labels[self.sector, 0])
        for p, q, values in self.half.blocks(pairs[self.columns], irrep, wanted):
            kinds = tuple("v" if x[0] >= self.starts["v"] else "o" for x in (p, q))
            if kinds not in targets:
                kinds, p, q, values = kinds[::-1], q, p, values.transpose(1, 0, 2)
            rows, matrix = targets[kinds]
            p, q = p - self.starts[kinds[0]], q - self.starts[kinds[1]]
            _add_rows(rows, matrix[:, self.columns], p, q, values * col_scale[self.columns])

    def targets(self) -> dict[tuple[str, ...], tuple[Compound, np.ndarray]]:
        """By the kinds of their rows: the rows, and the matrix of the sector."""
        found = {}
        for tensor in self.tensors:
            layout = tensor.layout
            for s in np.flatnonzero(layout.sector_pairs[:, 1] == self.sector):
                first, last = layout.offsets[s], layout.offsets[s + 1]
                matrix = tensor.data[first:last].reshape(layout.nrows[s], layout.ncols[s])
                found[tuple(space.name for space in layout.rows.spaces)] = (layout.rows, matrix)
        return found


def _add_rows(rows: Compound, target: np.ndarray, p: np.ndarray, q: np.ndarray, values: np.ndarray) -> None:
    """target(pq) += Z_pq, and for a packed pair of one irrep += Z_qp too, which no other block brings."""
    grid_p, grid_q = (g.ravel() for g in np.meshgrid(p, q, indexing="ij"))
    flat = values.reshape(len(grid_p), -1)
    if not rows.packing:
        _, position, _ = rows.locate([grid_p, grid_q], 0)
        target[position] += flat
        return
    if np.array_equal(p, q):
        keep = np.flatnonzero(grid_p >= grid_q)
        flat = (values + values.transpose(1, 0, 2)).reshape(len(grid_p), -1)[keep]
        grid_p, grid_q = grid_p[keep], grid_q[keep]
    _, position, _ = rows.locate([grid_p, grid_q], 1)
    target[position] += flat * np.where(grid_p == grid_q, 1.0, np.sqrt(2.0))[:, None]


def _pairs(compound: Compound, sector: int, starts: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pair numbers of the states of a sector, and <pq+|pq> / <pq|pq>, which is sqrt 2 unless p = q."""
    (p, q), _ = compound.states(sector)
    p, q = (x + starts[space.name] for x, space in zip((p, q), compound.spaces, strict=True))
    high, low = np.maximum(p, q), np.minimum(p, q)
    scale = np.where(p == q, 1.0, np.sqrt(2.0)) if compound.packing else np.ones(len(p))
    return high * (high + 1) // 2 + low, scale
