"""Constants of an equation, filled from the integrals of a reference.

A plain constant [pq|rs] = (pq|rs) has one pair in its rows and one in its columns, plain or packed `+`; all
others are made of such ones (`equations.constants`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Reference
from tilewise.equations.constants import is_plain
from tilewise.equations.program import Program
from tilewise.equations.terms import FOCK, INTEGRAL, VECTORS, Equation
from tilewise.errors import InputError
from tilewise.methods.basis_integrals import closed_shell, fill_from_basis
from tilewise.methods.spin_integrals import SpinPairs, spin_orbital_constants
from tilewise.tensor import Compound, Layout, Tensor


@dataclass(frozen=True)
class Vectors:
    """v(x|pq) with (pq|rs) = sum over x of v(x|pq) v(x|rs): for each irrep of the pairs p >= q a matrix."""

    blocks: list[np.ndarray]
    place: np.ndarray  # of each pair among those of its irrep

    @classmethod
    def of(cls, reference: AnyReference, workers: int) -> Vectors | None:
        """None if the integrals are not decomposed. Of an open shell pairs are those of `SpinPairs`."""
        if not isinstance(reference, Reference):
            values, of_pair = SpinPairs.of(reference).vectors(reference, workers)
        else:
            values = reference.three_index(workers)
            irreps = np.concatenate([reference.occ_irreps, reference.vir_irreps])
            high, low = np.tril_indices(len(irreps))
            of_pair = irreps[high] ^ irreps[low]
        if values is None:
            return None
        order = reference.outline.group.order
        if order == 1:
            return cls([values], np.arange(values.shape[1]))
        place, blocks = np.zeros(len(of_pair), np.int64), []
        for irrep in range(order):
            pairs = np.flatnonzero(of_pair == irrep)
            place[pairs] = np.arange(len(pairs))
            blocks.append(_shortened(values[:, pairs]))
        return cls(blocks, place)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(len(block) for block in self.blocks)


def _shortened(values: np.ndarray) -> np.ndarray:
    """Fewer vectors with the same products: the directions in which these have nothing are left out."""
    if not values.size:
        return values[:0]
    weights, directions = scipy.linalg.eigh(values @ values.T)
    return directions[:, weights > 1e-15 * weights[-1]].T @ values


def constants(
    equation: Equation,
    program: Program,
    reference: AnyReference,
    workers: int,
    vectors: Vectors | None = None,
) -> dict[str, np.ndarray]:
    """Buffers of all constants; from vectors where integrals are decomposed.

    The constants are plain (`equations.constants`), or those of a text over spin orbitals.
    """
    if any(space.spins != (0,) for layout in program.layouts.values() for space in layout.spaces):
        return spin_orbital_constants(equation, program, reference, workers, vectors)
    assert isinstance(reference, Reference)
    declared = {name: d for name, d in equation.declarations.items() if d.kind == "constant"}
    for name, declaration in declared.items():
        if not is_plain(declaration):
            raise InputError(
                f"constant {name} is not plain: make it of plain ones, with_plain_constants does"
            )
    sources = {name: declaration.definition[0].factors[0].name for name, declaration in declared.items()}
    tensors = {name: Tensor(program.layouts[name], name=name) for name in declared}
    starts = {"o": 0, "v": reference.outline.n_occ}
    integrals = [tensor for name, tensor in tensors.items() if sources[name] == INTEGRAL]
    rest = reference.fock_rest(_fill(integrals, reference, starts, workers, vectors))
    for name, tensor in tensors.items():
        if sources[name] == VECTORS:
            assert vectors is not None
            for block, irrep, pairs, scale in _rows(tensor, starts):
                np.multiply(vectors.blocks[irrep][:, vectors.place[pairs]].T, scale[:, None], out=block)
        elif sources[name] == FOCK:
            rows, cols = (slice(starts[s.name], starts[s.name] + s.size) for s in tensor.layout.spaces)
            from_matrix(tensor, rest[rows, cols])
    return {name: tensor.data for name, tensor in tensors.items()}


def _fill(
    tensors: list[Tensor],
    reference: Reference,
    starts: dict[str, int],
    workers: int,
    vectors: Vectors | None,
) -> np.ndarray | None:
    """Integrals into their tensors; the Fock matrix if it was found on the way."""
    if vectors is not None:
        for tensor in tensors:
            _from_vectors(tensor, vectors, starts)
        return None
    basis = reference.basis_integrals()
    unique = [tensor for tensor in tensors if basis and _is_unique(tensor.layout)]
    fock = None
    if basis and unique:
        (fock,) = fill_from_basis(unique, closed_shell(reference, basis), workers)
    left = [tensor for tensor in tensors if all(tensor is not other for other in unique)]
    if left:
        eri = reference.eri()
        for tensor in left:
            _from_orbitals(tensor, eri, starts)
    return fock


def _is_unique(layout: Layout) -> bool:
    """Whether (pq|rs) stands in one place only: pairs of one kind are packed."""
    return all(g.packing or g.spaces[0].name != g.spaces[1].name for g in (layout.rows, layout.cols))


def from_matrix(tensor: Tensor, matrix: np.ndarray) -> None:
    tensor.data[:] = Tensor.from_elements(tensor.layout, lambda p, q: matrix[p, q]).data


def _from_orbitals(tensor: Tensor, eri: np.ndarray, starts: dict[str, int]) -> None:
    """Each sector is a block of the matrix of pairs."""
    for block, rows, cols, scale in _sectors(tensor, starts):
        np.multiply(eri[np.ix_(rows, cols)], scale, out=block)


def _from_vectors(tensor: Tensor, vectors: Vectors, starts: dict[str, int]) -> None:
    """Each sector is a product of three-index integrals."""
    irreps = tensor.layout.rows.labels[tensor.layout.sector_pairs[:, 0], 0]
    for irrep, (block, rows, cols, scale) in zip(irreps, _sectors(tensor, starts), strict=True):
        values = vectors.blocks[irrep]
        np.matmul(values[:, vectors.place[rows]].T, values[:, vectors.place[cols]], out=block)
        block *= scale


def _rows(tensor: Tensor, starts: dict[str, int]) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
    """The matrix of each sector of vectors, its irrep, the pairs of its rows and their scale."""
    layout = tensor.layout
    for s, (row_sector, _) in enumerate(layout.sector_pairs):
        pairs, scale = pairs_of(layout.rows, row_sector, starts)
        block = tensor.data[layout.offsets[s] : layout.offsets[s + 1]].reshape(len(pairs), -1)
        yield block, int(layout.rows.labels[row_sector, 0]), pairs, scale


def _sectors(
    tensor: Tensor, starts: dict[str, int]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """The matrix of each sector, the pairs of its rows and columns, and the scale of its elements."""
    layout = tensor.layout
    for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
        rows, row_scale = pairs_of(layout.rows, row_sector, starts)
        cols, col_scale = pairs_of(layout.cols, col_sector, starts)
        first, last = layout.offsets[s], layout.offsets[s + 1]
        block = tensor.data[first:last].reshape(len(rows), len(cols))
        yield block, rows, cols, row_scale[:, None] * col_scale


def pairs_of(compound: Compound, sector: int, starts: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pair numbers of the states of a sector, and <pq+|pq> / <pq|pq>, which is sqrt 2 unless p = q."""
    (p, q), _ = compound.states(sector)
    p, q = (x + starts[space.name] for x, space in zip((p, q), compound.spaces, strict=True))
    high, low = np.maximum(p, q), np.minimum(p, q)
    scale = np.where(p == q, 1.0, np.sqrt(2.0)) if compound.packing else np.ones(len(p))
    return high * (high + 1) // 2 + low, scale
