"""Elements of tensors of two pairs, gathered in any order: into blocks that a kernel reads.

An element (pq|rs) of a stored sector lies where its row begins plus the place of its column. Both are looked
up in tables over all pairs, so a block of elements is a job: which part of either table, and where to put it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewise.core import core
from tilewise.tensor.compound import Compound
from tilewise.tensor.tensor import Tensor

JOB = 15
"""Numbers of a job: three extents; the place and three strides in the result, in the table of rows and in
that of columns."""


def gather(
    jobs: np.ndarray,
    source: np.ndarray,
    one: np.ndarray,
    one_factor: np.ndarray,
    other: np.ndarray,
    other_factor: np.ndarray,
    scale: float,
    out: np.ndarray,
    workers: int = 1,
) -> None:
    """The twin of the native function: adds elements of a source, each found by the sum of two addresses."""
    for job in np.asarray(jobs, np.int64).reshape(-1, JOB):
        shape = tuple(job[:3])

        def part(
            array: np.ndarray, at: int, job: np.ndarray = job, shape: tuple[int, ...] = shape
        ) -> np.ndarray:
            return as_strided(array[job[at] :], shape, tuple(8 * job[at + 1 : at + 4]))

        values = source[part(one, 7) + part(other, 11)]
        target = part(out, 3)
        target += scale * part(one_factor, 7) * part(other_factor, 11) * values


@dataclass(frozen=True)
class _Tables:
    """Addresses and factors of all pairs of rows and of columns, for one parity."""

    rows: np.ndarray
    row_factors: np.ndarray
    cols: np.ndarray
    col_factors: np.ndarray


class PairElements:
    """A tensor over two pairs of indices, by the plain elements that it stands for."""

    def __init__(self, tensor: Tensor) -> None:
        layout = tensor.layout
        self.data = tensor.data
        self.strides = tuple(group.spaces[1].size for group in (layout.rows, layout.cols))
        self.tables = []
        for row_parity, col_parity in product(layout.rows.parities, layout.cols.parities):
            if row_parity and col_parity and row_parity != col_parity:
                continue
            row_sector, place, row_factor = _located(layout.rows, row_parity)
            col_sector, col, col_factor = _located(layout.cols, col_parity)
            is_mine = np.isin(np.arange(len(layout.cols.sizes)), col_sector[col_factor != 0])
            sector = np.where(is_mine, layout.sector_of, -1).max(axis=1, initial=-1)[row_sector]
            row_factor = np.where(sector >= 0, row_factor, 0.0)
            rows = np.where(row_factor != 0, layout.offsets[sector] + place * layout.ncols[sector], 0)
            cols = np.where(col_factor != 0, col, 0)
            self.tables.append(_Tables(rows, row_factor, cols, col_factor))

    def add(
        self, jobs: Sequence[tuple[int, ...]], out: np.ndarray, scale: float = 1.0, workers: int = 1
    ) -> None:
        """Adds `scale` times the elements of all jobs to the result."""
        if not jobs or not self.data.size:
            return
        listed = np.array(jobs, np.int64)
        listed = np.ascontiguousarray(listed[(listed[:, :3] > 0).all(axis=1)])
        for t in self.tables:
            core.gather(listed, self.data, t.rows, t.row_factors, t.cols, t.col_factors, scale, out, workers)


def _located(group: Compound, parity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sector, place and factor of all pairs, one after the other."""
    p, q = np.indices([space.size for space in group.spaces]).reshape(2, -1)
    sector, place, factor = group.locate([p, q], parity)
    return sector, place, factor
