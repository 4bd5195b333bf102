"""Integrals over the orbitals of a PySCF mean field: exact, density-fitted or Cholesky-decomposed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from typing import Any

import numpy as np
from pyscf import ao2mo, df, gto, lib, scf

from tilewise.chem.basis_names import auxiliary_name
from tilewise.chem.cholesky import cholesky_vectors
from tilewise.chem.pyscf_checks import fock_matrices, packed_integrals
from tilewise.chem.pyscf_functions import BasisFunctions
from tilewise.chem.pyscf_molecule import few_threads
from tilewise.chem.transform import (
    AoRows,
    Field,
    HalfTransformed,
    Kets,
    Orbitals,
    Shells,
    half_transformed,
    transformed,
)
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup, group_named

TIGHT_THRESHOLD = 1e-8
"""Of a Cholesky decomposition that changes energies by about 1e-9 hartree."""


@dataclass(frozen=True, eq=False)
class MeanFieldIntegrals:
    """Integrals over a mean field's orbitals, from the AO integrals that the mean field itself used."""

    mean_field: Any
    functions: BasisFunctions
    coefficients: np.ndarray
    occupied: np.ndarray  # active occupied orbitals
    fitting: df.DF | float | None = None  # density fitting, or a Cholesky threshold
    spin: int = 0  # of an open shell: 0 for alpha, 1 for beta

    def one_electron(self, order: np.ndarray) -> np.ndarray:
        """What acts on the active electrons and is not of their making: nuclei, core, solvent."""
        filled, orbitals = self.coefficients[:, self.occupied], self.coefficients[:, order]
        coulomb, exchange = self.mean_field.get_jk(self.mean_field.mol, 2.0 * filled @ filled.T, hermi=1)
        return orbitals.T @ (self.basis_fock - (coulomb - 0.5 * exchange)) @ orbitals

    @cached_property
    def core_hamiltonian(self) -> np.ndarray:
        """Over basis functions."""
        with few_threads(self.mean_field.mol):
            return np.asarray(self.mean_field.get_hcore())

    @cached_property
    def stored(self) -> np.ndarray | None:
        """Two-electron integrals over basis functions, if the mean field has them."""
        return packed_integrals(self.mean_field, self.functions.count)

    @cached_property
    def basis_fock(self) -> np.ndarray:
        """The Fock matrix over basis functions."""
        return fock_matrices(self.mean_field)[self.spin]

    def fock(self, order: np.ndarray) -> np.ndarray:
        orbitals = self.coefficients[:, order]
        return orbitals.T @ self.basis_fock @ orbitals

    def decomposed(self) -> MeanFieldIntegrals:
        return replace(self, fitting=self.fitting or TIGHT_THRESHOLD)

    def basis_pairs(self, group: PointGroup) -> int:
        return self.functions.shells(group).count_pairs()

    def half_transformed(
        self, order: np.ndarray, irreps: np.ndarray, group: PointGroup, pairs: list[np.ndarray], workers: int
    ) -> HalfTransformed | None:
        """(mu nu|rs) over the active orbitals, for symmetry-unique pairs; None for fitted integrals."""
        if self.fitting is not None:
            return None
        image = self.functions.group.restrict(group.name)[1]
        adapted: list[list[np.ndarray]] = [[] for _ in range(group.order)]
        for irrep, block in self.functions.blocks:
            adapted[int(image[irrep])].append(block)
        functions = [np.hstack(b) if b else np.zeros((self.functions.count, 0)) for b in adapted]
        orbitals = Orbitals(np.ascontiguousarray(self.coefficients[:, order]), irreps, functions)
        shells = self.functions.shells(group)
        mean_field = self.mean_field
        field = Field(mean_field.make_rdm1(), self.core_hamiltonian) if _is_plain(mean_field) else None
        return half_transformed(orbitals, shells, self._rows(shells), pairs, workers, field)

    def _rows(self, shells: Shells) -> AoRows:
        if self.stored is None:
            return _direct_rows(self.mean_field.mol)
        return _stored_rows(self.stored, shells.first)

    def _diagonal(self) -> np.ndarray:
        """(mu nu|mu nu) for mu >= nu."""
        if self.stored is None:
            return _computed_diagonal(self.mean_field.mol)
        if self.stored.ndim == 2:
            return np.diag(self.stored).copy()
        pairs = np.arange(self.functions.count * (self.functions.count + 1) // 2)
        return self.stored[pairs * (pairs + 3) // 2]

    def three_index(self, order: np.ndarray, workers: int) -> np.ndarray | None:
        if self.fitting is None:
            return None
        orbitals = Orbitals(
            np.ascontiguousarray(self.coefficients[:, order]),
            np.zeros(len(order), np.int64),
            [np.eye(len(self.coefficients))],
        )
        if isinstance(self.fitting, float):
            shells = self.functions.shells(group_named("C1"))
            vectors = cholesky_vectors(self._diagonal(), shells.first, self._rows(shells), self.fitting)
            count = sum(map(len, vectors))
        else:
            vectors, count = self.fitting.loop(), self.fitting.get_naoaux()
        out, at = np.empty((count, len(order) * (len(order) + 1) // 2)), 0
        for block in _used_up(vectors):
            out[at : at + len(block)] = transformed(orbitals, np.asarray(block), workers)
            at += len(block)
        return out

    def eri(self, order: np.ndarray) -> np.ndarray:
        return self.eri_with(order, self, order)

    def eri_with(self, order: np.ndarray, other: MeanFieldIntegrals, other_order: np.ndarray) -> np.ndarray:
        """(pq|rs), where r and s are orbitals of another spin; packed in p >= q and in r >= s."""
        sets = ((self, order), (other, other_order))
        vectors = [own.three_index(numbers, 1) for own, numbers in sets]
        if vectors[0] is not None and vectors[1] is not None:
            return vectors[0].T @ vectors[1]
        orbitals = [np.ascontiguousarray(own.coefficients[:, numbers]) for own, numbers in sets]
        four = (orbitals[0], orbitals[0], orbitals[1], orbitals[1])
        if self.stored is not None:
            values = ao2mo.incore.general(self.stored, four, verbose=0, compact=True)
        else:
            budget = max(500.0, self.mean_field.max_memory - lib.current_memory()[0])
            values = ao2mo.outcore.general_iofree(self.mean_field.mol, four, max_memory=budget, verbose=0)
        n_pairs, n_others = (n * (n + 1) // 2 for n in (len(order), len(other_order)))
        return np.ascontiguousarray(values, dtype=np.float64).reshape(n_pairs, n_others)


def _used_up(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Those of a list are let go one by one."""
    if not isinstance(blocks, list):
        yield from blocks
        return
    while blocks:
        yield blocks.pop(0)


def fitting_of(
    mean_field: Any, functions: BasisFunctions, wanted: bool | str | float | None
) -> df.DF | float | None:
    """How the integrals are to be decomposed, if at all."""
    own = vars(mean_field).get("with_df")  # getattr would have PySCF import all of itself
    if isinstance(wanted, float):
        return wanted
    if isinstance(own, df.DF) and not isinstance(wanted, str):
        return own
    if not wanted:
        if functions.is_model and getattr(mean_field, "_eri", None) is None:
            raise InputError(f"the {functions.title} has no two-electron integrals: set mf._eri")
        return None
    if functions.is_model:
        raise InputError(
            f"density fitting needs atoms, and the {functions.title} has none: try cholesky=1e-8"
        )
    fitted = df.DF(mean_field.mol, auxbasis=auxiliary_basis(mean_field.mol, wanted))
    fitted.verbose = 0
    try:
        fitted.build()
    except Exception as error:
        raise _auxiliary_error(mean_field.mol, wanted, error) from None
    return fitted


def auxiliary_basis(mol: gto.Mole, wanted: bool | str | float) -> str | dict[str, Any]:
    """The auxiliary basis for density fitting that has this name, or PySCF's default one.

    Of elements for which it has no fitting basis, PySCF's default is even-tempered functions. A name that
    PySCF lacks is refused; no integral is computed.
    """
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # PySCF prints advice
            warnings.simplefilter("ignore")
            auxiliary = wanted if isinstance(wanted, str) else df.make_auxbasis(mol, mp2fit=True)
            df.make_auxmol(mol, auxiliary)
    except Exception as error:  # PySCF raises all sorts for a basis that it lacks
        raise _auxiliary_error(mol, wanted, error) from None
    return auxiliary


def _auxiliary_error(mol: gto.Mole, wanted: bool | str | float, error: Exception) -> InputError:
    """What is wrong with an auxiliary basis, and which one would do."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    if not isinstance(wanted, str):
        return InputError(
            f"auxiliary basis by default: PySCF makes none for these atoms ({reason}); name one that covers "
            "them, such as def2-universal-jkfit, or decompose the integrals: cholesky=1e-6, --cholesky 1e-6"
        )
    right = auxiliary_name(auxiliary_basis(mol, True)).replace("even-tempered", "even-tempered functions")
    return InputError(
        f"auxiliary basis '{' '.join(wanted.split())}': PySCF has none such for these atoms ({reason}); "
        f"{right} would do, which density fitting without a name (df=True, --df) takes"
    )


def _computed_diagonal(mol: gto.Mole) -> np.ndarray:
    """(mu nu|mu nu) for mu >= nu."""
    first, n = mol.ao_loc_nr(), mol.nao
    square = np.zeros((n, n))
    for m in range(mol.nbas):
        for k in range(m + 1):
            values = mol.intor("int2e", shls_slice=(m, m + 1, k, k + 1, m, m + 1, k, k + 1))
            part = np.einsum("ijij->ij", values)
            square[first[m] : first[m + 1], first[k] : first[k + 1]] = part
            square[first[k] : first[k + 1], first[m] : first[m + 1]] = part.T
    return square[np.tril_indices(n)]


def _stored_rows(values: np.ndarray, first: np.ndarray) -> AoRows:
    """Rows of the integrals that the SCF kept, in either packing."""

    def rows(m: int, n0: int, n1: int) -> Kets:
        mu, nu = np.meshgrid(
            np.arange(first[m], first[m + 1]), np.arange(first[n0], first[n1]), indexing="ij"
        )
        high, low = np.maximum(mu, nu).ravel(), np.minimum(mu, nu).ravel()
        which = (high * (high + 1) // 2 + low).astype(np.int64)
        return Kets(values[which]) if values.ndim == 2 else Kets(values[None, :], which)

    return rows


def _direct_rows(mol: gto.Mole) -> AoRows:
    """Rows of integrals computed when they are needed, always into the same memory."""
    first = mol.ao_loc_nr()
    pairs = mol.nao * (mol.nao + 1) // 2
    memory = np.empty(0)

    def rows(m: int, n0: int, n1: int) -> Kets:
        nonlocal memory
        count = int((first[m + 1] - first[m]) * (first[n1] - first[n0]))
        if len(memory) < count * pairs:
            memory = np.empty(count * pairs)
        # PySCF runs in parallel over the first pair: the pair wanted here is the second one.
        slices = (0, mol.nbas, 0, mol.nbas, m, m + 1, n0, n1)
        values = mol.intor("int2e", aosym="s2ij", shls_slice=slices, out=memory[: count * pairs])
        return Kets(values.reshape(pairs, count).T)

    return rows


def _is_plain(mean_field: Any) -> bool:
    """Whether the Fock matrix is the core Hamiltonian and the field of the electrons, nothing else."""
    own = vars(mean_field)
    return all(
        getattr(type(mean_field), name) is getattr(scf.hf.RHF, name) and name not in own
        for name in ("get_fock", "get_veff", "get_jk")
    )


def count_vectors(functions: BasisFunctions, fitting: df.DF | bool | str | float | None) -> int:
    """Vectors of decomposed integrals; as many as a tight decomposition would take if they are exact."""
    if isinstance(fitting, df.DF):
        return int(fitting.get_naoaux())
    if isinstance(fitting, str) or fitting is True:
        mol = functions.mol
        return int(df.addons.make_auxmol(mol, auxiliary_basis(mol, fitting)).nao)
    threshold = fitting if isinstance(fitting, float) else TIGHT_THRESHOLD
    n = functions.count
    vectors = max(1.0, -1.8 * np.log10(threshold) - 2.5) * n  # a rule of thumb, for planning
    return min(int(vectors), n * (n + 1) // 2)
