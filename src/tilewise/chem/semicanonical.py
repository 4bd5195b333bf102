"""Semicanonical orbitals: those that diagonalise the Fock matrix of their spin among the active occupied
orbitals and among the active virtual ones, within irreps.

The determinant stays the same, and so do all energies that do not depend on turns within the two spaces. What
is left of the Fock matrix stands between occupied and virtual orbitals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewise.chem.reference import Reference
from tilewise.chem.selection import rounded
from tilewise.chem.turn import Turn

_DEGENERATE = 1e-7
"""Hartree. Nearer levels mix freely, so they are turned to be like the orbitals that they are made of."""


def diagonalising(reference: Reference) -> tuple[np.ndarray, Turn]:
    """Levels of the semicanonical orbitals of one spin, in the order of the reference, and how to get there.

    Each space keeps its numbers in the source, which go up with the level.
    """
    fock, order, n_occ = reference.integrals.fock(reference.order), reference.order, reference.outline.n_occ
    levels, after, matrix = np.zeros(len(order)), order.copy(), np.zeros((len(order), len(order)))
    for space, irreps in (
        (np.arange(n_occ), reference.occ_irreps),
        (np.arange(n_occ, len(order)), reference.vir_irreps),
    ):
        for irrep in np.unique(irreps):
            mine = space[irreps == irrep]
            levels[mine], matrix[np.ix_(mine, mine)] = _eigenvectors(fock[np.ix_(mine, mine)])
        after[space[np.lexsort((space, rounded(levels[space], 8)))]] = np.sort(order[space])
    return levels, Turn(order, after, matrix)


def _eigenvectors(fock: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levels, ascending, and their orbitals; degenerate ones are as near to given ones as they can be.

    The largest part of each is positive.
    """
    levels, vectors = np.linalg.eigh(0.5 * (fock + fock.T))
    for same in np.split(np.arange(len(levels)), np.flatnonzero(np.diff(levels) > _DEGENERATE) + 1):
        if len(same) > 1:
            weights = np.linalg.norm(vectors[:, same], axis=1)
            nearest = np.sort(np.argsort(-weights, kind="stable")[: len(same)])
            left, _, right = np.linalg.svd(vectors[np.ix_(nearest, same)])
            vectors[:, same] = vectors[:, same] @ (left @ right).T
    largest = np.abs(vectors).argmax(axis=0)
    return levels, vectors * np.sign(vectors[largest, np.arange(len(levels))])


def turned(reference: Reference, levels: np.ndarray, own: Turn, other: Turn) -> Reference:
    """A reference of one spin over new orbitals; the turn of the other spin is for what has both of them."""
    n_occ, integrals = reference.outline.n_occ, reference.integrals.turned(own, other)
    marks = integrals.marks(own.after, levels)
    identity = replace(
        reference.identity,
        occ=marks[:, :n_occ],
        vir=marks[:, n_occ:],
        occ_numbers=own.after[:n_occ],
        vir_numbers=own.after[n_occ:],
    )
    return replace(
        reference,
        occ_energies=levels[:n_occ],
        vir_energies=levels[n_occ:],
        identity=identity,
        order=own.after,
        integrals=integrals,
    )
