"""Whether an object of PySCF will do: a converged closed-shell mean field, of a Hamiltonian that fits it."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyscf import scf

from tilewise.chem.selection import BRILLOUIN_TOLERANCE, check_symmetric, kept_subgroup
from tilewise.chem.symmetry import Blocks
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup

WANTED = "a converged closed-shell RHF (pyscf.scf.RHF) is needed"

_SYMMETRIC = 1e-4
"""How far two-electron integrals may break the symmetry, in parts of the largest of them, about."""


def check_molecule(mol: Any) -> None:
    """Refuse cells of a crystal, and what has no atoms."""
    if _is_periodic(mol):
        raise InputError(
            f"{type(mol).__name__} is periodic: only molecules are treated, so pass a pyscf.gto.Mole"
        )
    if not mol.natm:
        raise InputError("the molecule has no atoms: for a model, pass its converged mean field instead")


def checked(mean_field: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coefficients, the occupied and the virtual orbitals of a mean field that has converged."""
    coefficients, occupied, virtual = orbitals_of(mean_field)
    if (
        not mean_field.converged
    ):  # orbitals restored from a file may be, though the mean field does not say so
        fock = np.asarray(mean_field.get_fock(dm=mean_field.make_rdm1()))
        check_stationary(fock, coefficients[:, occupied], coefficients[:, virtual])
    return coefficients, occupied, virtual


def orbitals_of(mean_field: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coefficients, the occupied and the virtual orbitals of a mean field of the right kind."""
    name = type(mean_field).__name__
    if _is_periodic(mean_field) or _is_periodic(getattr(mean_field, "mol", None)):
        raise InputError(f"{name} is periodic: {WANTED}, of a molecule")
    if not isinstance(mean_field, scf.hf.SCF):
        raise InputError(f"{name} is not a PySCF mean field: {WANTED}")
    if isinstance(mean_field, scf.hf.KohnShamDFT):
        raise InputError(f"{name} is a Kohn-Sham mean field: {WANTED}")
    if isinstance(mean_field, scf.rohf.ROHF) or not isinstance(mean_field, scf.hf.RHF):
        raise InputError(f"{name} is not closed-shell restricted: {WANTED}")
    if mean_field.mo_coeff is None or mean_field.mo_occ is None:
        raise InputError("the mean field has no orbitals yet: run mf.kernel() first")
    coefficients, occupations = np.asarray(mean_field.mo_coeff), np.asarray(mean_field.mo_occ)
    if np.iscomplexobj(coefficients):
        raise InputError(f"the orbitals are complex: {WANTED}, with real orbitals")
    if coefficients.ndim != 2 or occupations.shape != coefficients.shape[1:]:
        raise InputError(
            f"mf.mo_coeff {coefficients.shape} and mf.mo_occ {occupations.shape} do not agree: {WANTED}"
        )
    if not np.all((np.abs(occupations) < 1e-8) | (np.abs(occupations - 2) < 1e-8)):
        raise InputError(f"orbitals are partly occupied: {WANTED}, with occupations 0 and 2")
    coefficients = np.asarray(coefficients, dtype=np.float64)
    return coefficients, np.flatnonzero(occupations > 1), np.flatnonzero(occupations <= 1)


def _is_periodic(given: Any) -> bool:
    return any(base.__module__.startswith("pyscf.pbc") for base in type(given).__mro__)


def check_stationary(fock: np.ndarray, occupied: np.ndarray, virtual: np.ndarray) -> None:
    """Refuse orbitals with a gradient."""
    gradient = float(np.abs(occupied.T @ fock @ virtual).max(initial=0.0))
    if not gradient <= BRILLOUIN_TOLERANCE:
        raise InputError(
            "SCF not converged: raise mf.max_cycle, try another guess or mf.newton(), run mf.kernel() again "
            f"(the Fock matrix has {gradient:.1e} between occupied and virtual orbitals, "
            f"at most {BRILLOUIN_TOLERANCE:.0e} is allowed)"
        )


def check_core_symmetry(
    mean_field: Any, core: np.ndarray, orbitals: np.ndarray, n_occ: int, irreps: np.ndarray, group: PointGroup
) -> None:
    """Refuse a Hamiltonian that mixes irreps: a field along x, charges beside the molecule.

    The field of a symmetric density is symmetric, so the core Hamiltonian tells. Coordinates that are
    symmetric to a few digits alone change it too; whether by too much is seen in the Fock matrix, where
    electrons screen the nuclei.
    """
    if kept_subgroup(orbitals.T @ core @ orbitals, n_occ, irreps, group) == group.name:
        return
    fock = np.asarray(mean_field.get_fock(dm=mean_field.make_rdm1()))
    check_symmetric(orbitals.T @ fock @ orbitals, n_occ, irreps, group)


def check_stored_symmetry(stored: np.ndarray, blocks: Blocks, group: PointGroup) -> None:
    """Refuse two-electron integrals of the user's own (mf._eri) that mix irreps.

    A random density has a part of each irrep. If each part is multiplied by a number of its own, so is
    the part of that irrep of its Coulomb matrix.
    """
    functions = np.hstack([block for _, block in blocks])
    irreps = np.concatenate([np.full(block.shape[1], irrep) for irrep, block in blocks])
    factor = 1.0 + (irreps[:, None] ^ irreps)
    values = np.random.default_rng(0).standard_normal(factor.shape)
    densities = np.array([functions @ (x + x.T) @ functions.T for x in (values, factor * values)])
    coulomb, _ = scf.hf.dot_eri_dm(stored, densities, hermi=1, with_k=False)
    plain, scaled = (functions.T @ matrix @ functions for matrix in coulomb)
    broken = float(np.abs(scaled - factor * plain).max() / np.abs(plain).max())
    if not broken <= _SYMMETRIC:
        raise InputError(
            f"the Hamiltonian breaks the symmetry {group.name}: the two-electron integrals mf._eri mix "
            f"irreps by {broken:.1e} of their size, at most {_SYMMETRIC:.0e} is allowed; build mol with "
            "symmetry=False and run the SCF again"
        )


def packed_integrals(mean_field: Any, count: int) -> np.ndarray | None:
    """The integrals that the SCF kept, over `count` functions, packed 8-fold (a vector) or 4-fold (a matrix).

    PySCF takes them in either packing, and without any.
    """
    stored = getattr(mean_field, "_eri", None)
    if stored is None:
        return None
    values = np.asarray(stored)
    if np.iscomplexobj(values):
        raise InputError("mf._eri is complex: only real integrals are treated")
    pairs = count * (count + 1) // 2
    values = np.asarray(values, dtype=np.float64)
    if values.size == pairs * (pairs + 1) // 2:
        return values.reshape(-1)
    if values.size == pairs**2:
        values = values.reshape(pairs, pairs)
    elif values.size == count**4:
        whole = values.reshape((count,) * 4)
        high, low = np.tril_indices(count)
        values = whole[high, low][:, high, low]
        _check_permutations(np.abs(whole - whole.transpose(1, 0, 2, 3)).max(initial=0.0))
        _check_permutations(np.abs(whole - whole.transpose(0, 1, 3, 2)).max(initial=0.0))
    else:
        raise InputError(
            f"mf._eri has {values.size} elements: for {count} functions {pairs * (pairs + 1) // 2} (8-fold "
            f"symmetry), {pairs**2} (4-fold) or {count**4} (none used) are expected"
        )
    _check_permutations(np.abs(values - values.T).max(initial=0.0))
    return np.ascontiguousarray(values)


def _check_permutations(difference: float) -> None:
    if not difference <= 1e-8:
        raise InputError(
            f"mf._eri lacks the symmetry (pq|rs) = (qp|rs) = (rs|pq) of real orbitals: equal elements "
            f"differ by {difference:.1e}, at most 1e-08 is allowed"
        )
