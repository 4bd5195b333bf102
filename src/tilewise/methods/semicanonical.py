"""Amplitudes over semicanonical orbitals: those of an ROHF, turned as its orbitals are.

CCSD's energy does not depend on turns among the occupied and among the virtual orbitals, (T)'s does: it is
defined by orbitals that diagonalise the Fock matrix of their spin.
"""

from __future__ import annotations

import numpy as np

from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.chem.semicanonical import diagonalising
from tilewise.tensor import Tensor


def semicanonical(
    reference: AnyReference, amplitudes: tuple[Tensor, Tensor]
) -> tuple[AnyReference, tuple[Tensor, Tensor]]:
    """The reference, and t[i|a] and T[ab|ij], over semicanonical orbitals; as they are if they have such."""
    turned = reference.semicanonical()
    if turned is reference or not isinstance(reference, OpenReference):
        return reference, amplitudes
    turns = [diagonalising(own)[1].matrix for own in reference.by_spin]
    n_occ = [own.outline.n_occ for own in reference.by_spin]
    occ = [turn[:n, :n] for turn, n in zip(turns, n_occ, strict=True)]
    vir = [turn[n:, n:] for turn, n in zip(turns, n_occ, strict=True)]
    return turned, (_turned_singles(amplitudes[0], occ, vir), _turned_doubles(amplitudes[1], occ, vir))


Turns = list[np.ndarray]
"""Of each spin a matrix, whose columns are the new orbitals."""


def _ranges(turns: Turns) -> list[np.ndarray]:
    """The orbitals of each spin among those of both."""
    first = len(turns[0])
    return [np.arange(first), np.arange(first, first + len(turns[1]))]


def _turned_singles(t1: Tensor, occ: Turns, vir: Turns) -> Tensor:
    dense = t1.to_dense()
    for rows, cols, left, right in zip(_ranges(occ), _ranges(vir), occ, vir, strict=True):
        dense[np.ix_(rows, cols)] = left.T @ dense[np.ix_(rows, cols)] @ right
    return Tensor.from_elements(t1.layout, lambda i, a: dense[i, a], t1.name)


def _turned_doubles(t2: Tensor, occ: Turns, vir: Turns) -> Tensor:
    """Spin case by spin case: a and i of one spin, b and j of the same or of the other one."""
    o, v = _ranges(occ), _ranges(vir)
    dense = np.zeros(t2.layout.shape)
    for s, r in ((0, 0), (0, 1), (1, 1)):
        part = t2.at(*np.ix_(v[s], v[r], o[s], o[r]))
        part = np.einsum("abij,ac,bd,ik,jl->cdkl", part, vir[s], vir[r], occ[s], occ[r], optimize=True)
        dense[np.ix_(v[s], v[r], o[s], o[r])] = part
        if s != r:
            dense[np.ix_(v[r], v[s], o[s], o[r])] = -part.transpose(1, 0, 2, 3)
            dense[np.ix_(v[s], v[r], o[r], o[s])] = -part.transpose(0, 1, 3, 2)
            dense[np.ix_(v[r], v[s], o[r], o[s])] = part.transpose(1, 0, 3, 2)
    return Tensor.from_elements(t2.layout, lambda a, b, i, j: dense[a, b, i, j], t2.name)
