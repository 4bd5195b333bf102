"""Constants of texts over spin orbitals, filled from integrals over spatial orbitals of each spin.

A plain constant has pairs of one spin, so that its elements are (aa|aa), (aa|bb) and (bb|bb). Orbitals of one
spin are numbered as in its Reference: occupied ones first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.equations.constants import is_plain
from tilewise.equations.program import Program
from tilewise.equations.terms import FOCK, INTEGRAL, VECTORS, Equation
from tilewise.errors import InputError
from tilewise.methods.basis_integrals import fill_from_basis, spin_sets
from tilewise.spaces import Space
from tilewise.tensor import Compound, Tensor


class PairVectors(Protocol):
    """v(x|pq) by irrep of the pairs, and the place of each pair among those of its irrep."""

    @property
    def blocks(self) -> list[np.ndarray]: ...

    @property
    def place(self) -> np.ndarray: ...


def spin_orbital_constants(
    equation: Equation,
    program: Program,
    reference: AnyReference,
    workers: int,
    vectors: PairVectors | None = None,
) -> dict[str, np.ndarray]:
    """Buffers of all constants of an equation over spin orbitals; all of them are plain."""
    declared = {name: d for name, d in equation.declarations.items() if d.kind == "constant"}
    for name, declaration in declared.items():
        if not is_plain(declaration):
            raise InputError(
                f"constant {name} is not plain: make it of plain ones, with_plain_constants does"
            )
    tensors = {name: Tensor(program.layouts[name], name=name) for name in declared}
    sources = {name: declaration.definition[0].factors[0].name for name, declaration in declared.items()}
    integrals = [tensor for name, tensor in tensors.items() if sources[name] == INTEGRAL]
    fock: list[np.ndarray | None] = [None, None]
    if vectors is None:
        fock = fill_spin_constants(integrals, reference, workers)
    else:
        _fill_from_vectors(integrals, reference, vectors)
    rest = [own.fock_rest(found) for own, found in zip(reference.by_spin, fock, strict=True)]
    for name, tensor in tensors.items():
        if sources[name] == FOCK:
            from_matrices(tensor, rest, reference)
        elif sources[name] == VECTORS:
            assert vectors is not None
            _copy_vectors(tensor, reference, vectors)
    return {name: tensor.data for name, tensor in tensors.items()}


def fill_spin_constants(
    tensors: list[Tensor], reference: AnyReference, workers: int
) -> list[np.ndarray | None]:
    """Integrals into plain constants; the Fock matrix of each spin if it was found on the way."""
    basis = reference.by_spin[0].basis_integrals()
    if basis is not None:
        return fill_from_basis(tensors, spin_sets(reference, basis), workers)
    _fill_from_orbitals(tensors, reference)
    return [None, None]


def _fill_from_orbitals(tensors: list[Tensor], reference: AnyReference) -> None:
    """Sector by sector; the integrals over all orbitals are in memory meanwhile."""
    pairs = SpinPairs.of(reference)
    values = pairs.integrals(reference)
    for tensor in tensors:
        for block, rows, cols, _ in _sectors(tensor, reference, pairs):
            for one in (0, 1):
                for other in (0, 1):
                    mine = np.flatnonzero(rows.spin == one), np.flatnonzero(cols.spin == other)
                    numbers = rows.number[mine[0]], cols.number[mine[1]]
                    scale = rows.scale[mine[0], None] * cols.scale[mine[1]]
                    block[np.ix_(*mine)] = values[one, other][np.ix_(*numbers)] * scale


def _fill_from_vectors(tensors: list[Tensor], reference: AnyReference, vectors: PairVectors) -> None:
    """Each sector is a product of three-index integrals."""
    pairs = SpinPairs.of(reference)
    for tensor in tensors:
        for block, rows, cols, irrep in _sectors(tensor, reference, pairs):
            each = vectors.blocks[irrep]
            factors = (each[:, vectors.place[pairs.joint(own)]] for own in (rows, cols))
            left, right = factors
            np.matmul(left.T, right, out=block)
            block *= rows.scale[:, None] * cols.scale


def _copy_vectors(tensor: Tensor, reference: AnyReference, vectors: PairVectors) -> None:
    """v(pq|x), the vectors of each irrep in the columns."""
    pairs, layout = SpinPairs.of(reference), tensor.layout
    for s, (row_sector, _) in enumerate(layout.sector_pairs):
        rows = PairsOfSpin.of(layout.rows, row_sector, reference, pairs)
        block = tensor.data[layout.offsets[s] : layout.offsets[s + 1]].reshape(len(rows.spin), -1)
        each = vectors.blocks[int(layout.rows.labels[row_sector, 0])]
        np.multiply(each[:, vectors.place[pairs.joint(rows)]].T, rows.scale[:, None], out=block)


def _sectors(
    tensor: Tensor, reference: AnyReference, pairs: SpinPairs
) -> Iterator[tuple[np.ndarray, PairsOfSpin, PairsOfSpin, int]]:
    """The matrix of each sector, its rows and columns, and the irrep of its pairs."""
    layout = tensor.layout
    for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
        rows = PairsOfSpin.of(layout.rows, row_sector, reference, pairs)
        cols = PairsOfSpin.of(layout.cols, col_sector, reference, pairs)
        block = tensor.data[layout.offsets[s] : layout.offsets[s + 1]].reshape(len(rows.spin), -1)
        yield block, rows, cols, int(layout.rows.labels[row_sector, 0])


@dataclass(frozen=True)
class SpinPairs:
    """Pairs p >= q of orbitals of each spin, in one set of orbitals or in two.

    `numbers` translates the orbitals of a spin to those of its set; `before` are the pairs of sets before it.
    """

    numbers: tuple[np.ndarray, np.ndarray]
    before: tuple[int, int]
    every: np.ndarray | None  # one set: its orbitals in the source's numbering

    @classmethod
    def of(cls, reference: AnyReference) -> SpinPairs:
        alpha, beta = reference.by_spin
        if alpha is beta:
            return cls((np.arange(alpha.n_orbitals),) * 2, (0, 0), alpha.order)
        if reference.is_restricted:  # of one set of spatial orbitals each spin may leave out some
            every = np.union1d(alpha.order, beta.order)
            numbers = np.searchsorted(every, alpha.order), np.searchsorted(every, beta.order)
            return cls(numbers, (0, 0), every)
        n = alpha.n_orbitals
        return cls((np.arange(n), np.arange(beta.n_orbitals)), (0, n * (n + 1) // 2), None)

    def integrals(self, reference: AnyReference) -> dict[tuple[int, int], np.ndarray]:
        """(pq|rs) for each two spins, as matrices of pairs."""
        alpha, beta = reference.by_spin
        if self.every is not None:
            same = alpha.integrals.eri(self.every)
            return {(one, other): same for one in (0, 1) for other in (0, 1)}
        mixed = alpha.eri_with(beta)
        return {(0, 0): alpha.eri(), (0, 1): mixed, (1, 0): mixed.T, (1, 1): beta.eri()}

    def vectors(self, reference: AnyReference, workers: int) -> tuple[np.ndarray | None, np.ndarray]:
        """v(x|pq) over the pairs of all sets, None unless integrals are decomposed; and their irreps."""
        alpha, beta = reference.by_spin
        irreps = [np.concatenate([own.occ_irreps, own.vir_irreps]) for own in (alpha, beta)]
        if self.every is None:
            values = alpha.three_index_with(beta, workers)
        else:
            values = alpha.integrals.three_index(self.every, workers)
            joined = np.zeros(len(self.every), np.int64)
            for own, numbers in zip(irreps, self.numbers, strict=True):
                joined[numbers] = own
            irreps = [joined]
        of_pair = [own[np.tril_indices(len(own))[0]] ^ own[np.tril_indices(len(own))[1]] for own in irreps]
        return values, np.concatenate(of_pair)

    def joint(self, pairs: PairsOfSpin) -> np.ndarray:
        """Numbers of pairs among those of all sets."""
        return pairs.number + np.array(self.before)[pairs.spin]


@dataclass(frozen=True)
class PairsOfSpin:
    """States of a sector of pairs: the spin, the number in the set of that spin, and <pq+|pq> / <pq|pq>."""

    spin: np.ndarray
    number: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, group: Compound, sector: int, reference: AnyReference, pairs: SpinPairs) -> PairsOfSpin:
        (p, q), _ = group.states(sector)
        scale = np.where(p == q, 1.0, np.sqrt(2.0)) if group.packing else np.ones(len(p))
        (spin, p), (_, q) = (
            _orbitals(space, x, reference) for space, x in zip(group.spaces, (p, q), strict=True)
        )
        number = np.zeros(len(spin), np.int64)
        for s in (0, 1):
            mine = spin == s
            one, other = pairs.numbers[s][p[mine]], pairs.numbers[s][q[mine]]
            high, low = np.maximum(one, other), np.minimum(one, other)
            number[mine] = high * (high + 1) // 2 + low
        return cls(spin, number, scale)


def _orbitals(space: Space, index: np.ndarray, reference: AnyReference) -> tuple[np.ndarray, np.ndarray]:
    """Spin (0 for alpha) and number of the orbitals of a space of spin orbitals."""
    first = sum(space.counts[0])
    spin = (index >= first).astype(np.int64)
    starts = np.array([0 if space.name == "o" else own.outline.n_occ for own in reference.by_spin])
    return spin, index - first * spin + starts[spin]


def from_matrices(tensor: Tensor, matrices: list[np.ndarray], reference: AnyReference) -> None:
    """Elements between orbitals of one spin, from the matrix of that spin."""

    def elements(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        (spin, p), (other, q) = (
            _orbitals(space, x, reference) for space, x in zip(tensor.layout.spaces, (p, q), strict=True)
        )
        values = [
            matrix[np.where(spin == s, p, 0), np.where(other == s, q, 0)] for s, matrix in enumerate(matrices)
        ]
        return np.where(spin != other, 0.0, np.where(spin == 0, values[0], values[1]))

    tensor.data[:] = Tensor.from_elements(tensor.layout, elements).data
