"""Constants of texts over spin orbitals, filled from integrals over spatial orbitals of each spin.

A plain constant has pairs of one spin, so that its elements are (aa|aa), (aa|bb) and (bb|bb). Orbitals of one
spin are numbered as in its Reference: occupied ones first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.equations.constants import is_plain
from tilewise.equations.program import Program
from tilewise.equations.terms import FOCK, INTEGRAL, Equation
from tilewise.errors import InputError
from tilewise.spaces import Space
from tilewise.tensor import Compound, Tensor


def spin_orbital_constants(
    equation: Equation, program: Program, reference: AnyReference, workers: int
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
    fill_spin_constants([t for name, t in tensors.items() if sources[name] == INTEGRAL], reference, workers)
    rest = [own.fock_rest() for own in reference.by_spin]
    for name, tensor in tensors.items():
        if sources[name] == FOCK:
            _from_matrices(tensor, rest, reference)
    return {name: tensor.data for name, tensor in tensors.items()}


def fill_spin_constants(tensors: list[Tensor], reference: AnyReference, workers: int) -> None:
    """Integrals into plain constants, sector by sector; those over all orbitals are in memory meanwhile."""
    integrals = _SpinIntegrals.of(reference)
    for tensor in tensors:
        layout = tensor.layout
        for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
            rows = _Pairs.of(layout.rows, row_sector, reference)
            cols = _Pairs.of(layout.cols, col_sector, reference)
            block = tensor.data[layout.offsets[s] : layout.offsets[s + 1]].reshape(len(rows.spin), -1)
            for one in (0, 1):
                for other in (0, 1):
                    mine = np.flatnonzero(rows.spin == one), np.flatnonzero(cols.spin == other)
                    numbers = integrals.pairs(rows, mine[0], one), integrals.pairs(cols, mine[1], other)
                    scale = rows.scale[mine[0], None] * cols.scale[mine[1]]
                    block[np.ix_(*mine)] = integrals.values(one, other)[np.ix_(*numbers)] * scale


@dataclass(frozen=True)
class _Pairs:
    """States of a sector of pairs: orbitals p and q of one spin, and <pq+|pq> / <pq|pq>."""

    spin: np.ndarray
    p: np.ndarray
    q: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, group: Compound, sector: int, reference: AnyReference) -> _Pairs:
        (p, q), _ = group.states(sector)
        scale = np.where(p == q, 1.0, np.sqrt(2.0)) if group.packing else np.ones(len(p))
        (spin, p), (_, q) = (
            _orbitals(space, x, reference) for space, x in zip(group.spaces, (p, q), strict=True)
        )
        return cls(spin, p, q, scale)


@dataclass(frozen=True)
class _SpinIntegrals:
    """(pq|rs) for two spins, over orbitals that `numbers` translates those of each spin to."""

    sets: Mapping[tuple[int, int], np.ndarray]
    numbers: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, reference: AnyReference) -> _SpinIntegrals:
        alpha, beta = reference.by_spin
        if reference.is_restricted:  # one set of spatial orbitals, of which each spin may leave out some
            every = np.union1d(alpha.order, beta.order)
            numbers = np.searchsorted(every, alpha.order), np.searchsorted(every, beta.order)
            return cls(dict.fromkeys(((0, 0), (0, 1), (1, 1)), alpha.integrals.eri(every)), numbers)
        sets = {(0, 0): alpha.eri(), (0, 1): alpha.eri_with(beta), (1, 1): beta.eri()}
        return cls(sets, (np.arange(alpha.n_orbitals), np.arange(beta.n_orbitals)))

    def values(self, one: int, other: int) -> np.ndarray:
        """A matrix of pairs of the two spins."""
        return self.sets[one, other] if one <= other else self.sets[other, one].T

    def pairs(self, pairs: _Pairs, which: np.ndarray, spin: int) -> np.ndarray:
        """The numbers of some pairs of a spin."""
        p, q = self.numbers[spin][pairs.p[which]], self.numbers[spin][pairs.q[which]]
        high, low = np.maximum(p, q), np.minimum(p, q)
        return high * (high + 1) // 2 + low


def _orbitals(space: Space, index: np.ndarray, reference: AnyReference) -> tuple[np.ndarray, np.ndarray]:
    """Spin (0 for alpha) and number of the orbitals of a space of spin orbitals."""
    first = sum(space.counts[0])
    spin = (index >= first).astype(np.int64)
    starts = np.array([0 if space.name == "o" else own.outline.n_occ for own in reference.by_spin])
    return spin, index - first * spin + starts[spin]


def _from_matrices(tensor: Tensor, matrices: list[np.ndarray], reference: AnyReference) -> None:
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
