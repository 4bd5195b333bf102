"""Integrals over the orbitals of a PySCF mean field: exact, density-fitted or Cholesky-decomposed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import numpy as np
from pyscf import ao2mo, df, gto, lib, scf

from tilewise.chem.basis_names import auxiliary_name
from tilewise.chem.cholesky import AoRows, cholesky_vectors
from tilewise.chem.function_integrals import BasisIntegrals, Density
from tilewise.chem.pair_classes import pair_number
from tilewise.chem.pyscf_checks import fock_matrices, kind_of, orbitals_of, packed_integrals
from tilewise.chem.pyscf_functions import BasisFunctions
from tilewise.chem.pyscf_libcint import diagonal, libcint_of
from tilewise.chem.pyscf_molecule import few_threads
from tilewise.chem.transform import transformed
from tilewise.chem.turn import Turn
from tilewise.errors import InputError
from tilewise.lazy import cached_property
from tilewise.symmetry.groups import PointGroup

_SAME = 1e-9
"""Two-electron integrals of a molecule may differ by this part of the largest one."""

TIGHT_THRESHOLD = 1e-10
"""Of a Cholesky decomposition that changes energies by less than 1e-9 hartree, those of benzene too."""


@dataclass(frozen=True, eq=False)
class MeanFieldIntegrals:
    """Integrals over a mean field's orbitals, from the AO integrals that the mean field itself used."""

    mean_field: Any
    functions: BasisFunctions
    coefficients: np.ndarray
    occupied: np.ndarray  # active occupied orbitals
    fitting: df.DF | float | None = None  # density fitting, or a Cholesky threshold
    spin: int = 0  # of an open shell: 0 for alpha, 1 for beta
    known_fock: np.ndarray | None = None  # over basis functions

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
        return fock_matrices(self.mean_field)[self.spin] if self.known_fock is None else self.known_fock

    def fock(self, order: np.ndarray) -> np.ndarray:
        orbitals = self.coefficients[:, order]
        return orbitals.T @ self.basis_fock @ orbitals

    def decomposed(self) -> MeanFieldIntegrals:
        return replace(self, fitting=self.fitting or TIGHT_THRESHOLD)

    def turned(self, own: Turn, other: Turn) -> MeanFieldIntegrals:
        return replace(self, coefficients=own.columns(self.coefficients), known_fock=self.basis_fock)

    def marks(self, order: np.ndarray, energies: np.ndarray) -> np.ndarray:
        """Their coefficients."""
        return self.coefficients[:, order]

    def basis_pairs(self, group: PointGroup) -> int:
        return self.functions.count_pairs(group)

    def basis_integrals(self, group: PointGroup) -> BasisIntegrals | None:
        """Integrals over basis functions, with operations of a group; None for fitted integrals."""
        if self.fitting is not None:
            return None
        aligned, turn = self._aligned
        operations, irreps = aligned.operations(group)
        kept = self.stored if turn is None else None
        source = libcint_of(aligned.mol) if kept is None else kept
        density = None
        if _is_plain(self.mean_field):
            total = np.asarray(self.mean_field.make_rdm1())
            parts = (total if total.ndim == 2 else total.sum(axis=0), self.core_hamiltonian)
            density = Density(*(parts if turn is None else (turn @ part @ turn.T for part in parts)))
        return BasisIntegrals(operations, source, irreps, density)

    def orbitals(self, order: np.ndarray) -> np.ndarray:
        """Their coefficients over the functions of `basis_integrals`."""
        _, turn = self._aligned
        chosen = self.coefficients[:, order]
        return chosen if turn is None else turn @ chosen

    @cached_property
    def filled(self) -> np.ndarray:
        """All occupied orbitals of this spin, frozen ones among them."""
        return orbitals_of(self.mean_field)[self.spin].occupied

    @cached_property
    def _aligned(self) -> tuple[BasisFunctions, np.ndarray | None]:
        """The functions, and how they are turned if the symmetry asks for other axes than the molecule has.

        Integrals over turned functions are computed anew, which is done only if those that the mean field
        has are the molecule's own. Cartesian functions are never turned.
        """
        functions = self.functions
        if functions.operations(functions.group)[0].count == functions.group.order or functions.mol.cart:
            return functions, None
        if self.stored is not None:
            own = diagonal(functions.mol, 1)
            if np.abs(self._diagonal(1) - own).max() > _SAME * own.max():
                return functions, None
        return functions.turned()

    def _rows(self) -> AoRows:
        if self.stored is None:
            return _direct_rows(self.mean_field.mol)
        return _stored_rows(self.stored, self.functions.first)

    def _diagonal(self, workers: int) -> np.ndarray:
        """(mu nu|mu nu) for mu >= nu."""
        if self.stored is None:
            return diagonal(self.mean_field.mol, workers)
        if self.stored.ndim == 2:
            return np.diag(self.stored).copy()
        pairs = np.arange(self.functions.count * (self.functions.count + 1) // 2)
        return self.stored[pairs * (pairs + 3) // 2]

    def three_index(self, order: np.ndarray, workers: int) -> np.ndarray | None:
        return self._three_index([self.coefficients[:, order]], workers)

    def three_index_with(
        self, order: np.ndarray, other: MeanFieldIntegrals, other_order: np.ndarray, workers: int
    ) -> np.ndarray | None:
        """The vectors are made once for both spins."""
        return self._three_index([self.coefficients[:, order], other.coefficients[:, other_order]], workers)

    def _three_index(self, sets: list[np.ndarray], workers: int) -> np.ndarray | None:
        """Over the pairs of each set of orbitals, given by their coefficients, one set after the other."""
        if self.fitting is None:
            return None
        if isinstance(self.fitting, float):
            rows, threshold = self._rows(), self.fitting
            vectors = cholesky_vectors(self._diagonal(workers), self.functions.first, rows, threshold)
            count = sum(map(len, vectors))
        else:
            vectors, count = self.fitting.loop(), self.fitting.get_naoaux()
        pairs = [n * (n + 1) // 2 for n in (own.shape[1] for own in sets)]
        out, at = np.empty((sum(pairs), count)), 0
        parts = np.split(out, np.cumsum(pairs)[:-1])
        for block in map(np.asarray, _used_up(vectors)):
            for coefficients, part in zip(sets, parts, strict=True):
                transformed(coefficients, block, part, at, workers)
            at += len(block)
        return out.T

    def eri(self, order: np.ndarray) -> np.ndarray:
        return self.eri_with(order, self, order)

    def eri_with(self, order: np.ndarray, other: MeanFieldIntegrals, other_order: np.ndarray) -> np.ndarray:
        """(pq|rs), where r and s are orbitals of another spin; packed in p >= q and in r >= s."""
        sets = ((self, order), (other, other_order))
        vectors = self.three_index_with(order, other, other_order, 1)
        if vectors is not None:
            n_pairs = len(order) * (len(order) + 1) // 2
            return np.asarray(vectors[:, :n_pairs].T @ vectors[:, n_pairs:])
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


def _stored_rows(values: np.ndarray, first: np.ndarray) -> AoRows:
    """Rows of the integrals that the SCF kept, in either packing."""

    def rows(m: int, n: int) -> np.ndarray:
        mu, nu = np.meshgrid(
            np.arange(first[m], first[m + 1]), np.arange(first[n], first[n + 1]), indexing="ij"
        )
        which = pair_number(mu.ravel(), nu.ravel())
        if values.ndim == 2:
            return values[which]
        n = int(first[-1])
        return values[pair_number(which[:, None], np.arange(n * (n + 1) // 2))]

    return rows


def _direct_rows(mol: gto.Mole) -> AoRows:
    """Rows of integrals computed when they are needed."""
    pairs = mol.nao * (mol.nao + 1) // 2

    def rows(m: int, n: int) -> np.ndarray:
        # PySCF runs in parallel over the first pair: the pair wanted here is the second one.
        slices = (0, mol.nbas, 0, mol.nbas, m, m + 1, n, n + 1)
        return mol.intor("int2e", aosym="s2ij", shls_slice=slices).reshape(pairs, -1).T

    return rows


def _is_plain(mean_field: Any) -> bool:
    """Whether the Fock matrix is the core Hamiltonian and the field of the electrons, nothing else."""
    own, kinds = vars(mean_field), {"rhf": scf.hf.RHF, "uhf": scf.uhf.UHF, "rohf": scf.rohf.ROHF}
    plain = kinds[kind_of(mean_field)]
    return all(
        getattr(type(mean_field), name) is getattr(plain, name) and name not in own
        for name in ("get_fock", "get_veff", "get_jk")
    )


def count_vectors(functions: BasisFunctions, fitting: df.DF | bool | str | float | None) -> int:
    """Vectors of decomposed integrals; as many as a tight decomposition would take if they are exact."""
    if isinstance(fitting, df.DF):
        return int(fitting.get_naoaux())
    if isinstance(fitting, str) or fitting is True:
        mol = functions.mol
        return int(df.addons.make_auxmol(mol, auxiliary_basis(mol, fitting)).nao)
    digits = -np.log10(fitting if isinstance(fitting, float) else TIGHT_THRESHOLD)
    n = functions.count
    vectors = max(1.0, (0.9 + 0.08 * digits) * digits) * n  # a rule of thumb, for planning
    return min(int(vectors), n * (n + 1) // 2)
