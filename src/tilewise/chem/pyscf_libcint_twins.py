"""Twins of the native access to libcint: PySCF computes the same integrals.

They take the same arguments and write to the same places; the tests hold the native ones against them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyscf import gto


@dataclass(frozen=True, eq=False)
class Libcint:
    """The shells of a molecule."""

    mol: gto.Mole

    @property
    def n_shells(self) -> int:
        return int(self.mol.nbas)

    @property
    def n_functions(self) -> int:
        return int(self.mol.nao)


def quartet(libcint: Libcint, i: int, j: int, k: int, l: int, out: np.ndarray) -> None:  # noqa: E741
    """Integrals (ij|kl) over the functions of four shells, those of the first shell closest together."""
    slices = (i, i + 1, j, j + 1, k, k + 1, l, l + 1)
    out[:] = libcint.mol.intor("int2e", shls_slice=slices).ravel(order="F")


def diagonal(libcint: Libcint, out: np.ndarray, n_workers: int) -> None:
    """(mu nu|mu nu) for mu >= nu, packed."""
    pairs = np.einsum("ijij->ij", libcint.mol.intor("int2e"))
    out[:] = pairs[np.tril_indices(libcint.n_functions)]


def schwarz(libcint: Libcint, out: np.ndarray, n_workers: int) -> None:
    """Of each pair of shells the square root of its largest integral (mu nu|mu nu)."""
    pairs, first = np.abs(np.einsum("ijij->ij", libcint.mol.intor("int2e"))), libcint.mol.ao_loc_nr()
    for i in range(libcint.n_shells):
        for j in range(libcint.n_shells):
            out[i, j] = np.sqrt(pairs[first[i] : first[i + 1], first[j] : first[j + 1]].max())
