"""Whether an object of PySCF will do: a converged mean field, of a Hamiltonian that fits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyscf import scf

from tilewise.chem.selection import BRILLOUIN_TOLERANCE, check_symmetric, kept_subgroup
from tilewise.chem.symmetry import Blocks
from tilewise.config import resolve_threads, thread_limits
from tilewise.core import core
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup

WANTED = "a converged RHF, UHF or ROHF of pyscf.scf is needed"

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


@dataclass(frozen=True, eq=False)
class OrbitalSet:
    """Orbitals of a closed shell, or of one spin: coefficients, and the numbers of those that are filled."""

    coefficients: np.ndarray
    occupied: np.ndarray
    virtual: np.ndarray

    @classmethod
    def filled(cls, coefficients: np.ndarray, is_filled: np.ndarray) -> OrbitalSet:
        return cls(coefficients, np.flatnonzero(is_filled), np.flatnonzero(~is_filled))


def checked(mean_field: Any) -> list[OrbitalSet]:
    """The orbitals of a mean field that has converged: one set, or one for each spin of an open shell."""
    sets = orbitals_of(mean_field)
    if not mean_field.converged:  # orbitals restored from a file may be, though it does not say so
        check_gradient(mean_field, sets)
    return sets


def kind_of(mean_field: Any) -> str:
    """What a mean field is: "rhf", "uhf" or "rohf"."""
    name = type(mean_field).__name__
    if _is_periodic(mean_field) or _is_periodic(getattr(mean_field, "mol", None)):
        raise InputError(f"{name} is periodic: {WANTED}, of a molecule")
    if not isinstance(mean_field, scf.hf.SCF):
        raise InputError(f"{name} is not a PySCF mean field: {WANTED}")
    if isinstance(mean_field, scf.hf.KohnShamDFT):
        raise InputError(f"{name} is a Kohn-Sham mean field: {WANTED}")
    kinds = {"rohf": scf.rohf.ROHF, "uhf": scf.uhf.UHF, "rhf": scf.hf.RHF}  # an ROHF is an RHF to PySCF
    for kind, wanted in kinds.items():
        if isinstance(mean_field, wanted):
            return kind
    raise InputError(f"{name} is neither restricted nor unrestricted: {WANTED}")


def is_canonical(mean_field: Any) -> bool:
    """Whether the orbitals of each spin diagonalise its Fock matrix; of one electron PySCF's do not."""
    return kind_of(mean_field) != "rohf" and mean_field.mol.nelectron != 1


def orbitals_of(mean_field: Any) -> list[OrbitalSet]:
    """The orbitals of a mean field of the right kind: one set, or one for each spin of an open shell."""
    kind = kind_of(mean_field)
    if mean_field.mo_coeff is None or mean_field.mo_occ is None:
        raise InputError("the mean field has no orbitals yet: run mf.kernel() first")
    coefficients, occupations = np.asarray(mean_field.mo_coeff), np.asarray(mean_field.mo_occ)
    if np.iscomplexobj(coefficients):
        raise InputError(f"the orbitals are complex: {WANTED}, with real orbitals")
    spins = (2,) if kind == "uhf" else ()
    n_orbitals = coefficients.shape[-1] if coefficients.ndim == 2 + len(spins) else -1
    if occupations.shape != (*spins, n_orbitals) or coefficients.shape[: len(spins)] != spins:
        raise InputError(
            f"mf.mo_coeff {coefficients.shape} and mf.mo_occ {occupations.shape} do not agree: {WANTED}"
        )
    valid = {"rhf": (0, 2), "uhf": (0, 1), "rohf": (0, 1, 2)}[kind]
    if not np.all(np.min([np.abs(occupations - n) for n in valid], axis=0) < 1e-8):
        shown = " and ".join([", ".join(map(str, valid[:-1])), str(valid[-1])])
        raise InputError(f"orbitals are partly occupied: {WANTED}, with occupations {shown}")
    coefficients = np.asarray(coefficients, dtype=np.float64)
    if kind == "uhf":
        return [OrbitalSet.filled(c, n > 0.5) for c, n in zip(coefficients, occupations, strict=True)]
    least = (1.5,) if kind == "rhf" else (0.5, 1.5)
    return [OrbitalSet.filled(coefficients, occupations > n) for n in least]


def fock_matrices(mean_field: Any) -> list[np.ndarray]:
    """The Fock matrix over basis functions, or that of each spin of an open shell."""
    fock = mean_field.get_fock(dm=mean_field.make_rdm1())
    if kind_of(mean_field) == "rohf":  # beside the effective one
        return [np.asarray(fock.focka), np.asarray(fock.fockb)]
    return [np.asarray(fock)] if np.ndim(fock) == 2 else [np.asarray(own) for own in fock]


def check_gradient(mean_field: Any, sets: list[OrbitalSet]) -> None:
    """Refuse orbitals with a gradient. ROHF's own one leaves out what its shells do to each other."""
    if kind_of(mean_field) == "rohf":
        fock = mean_field.get_fock(dm=mean_field.make_rdm1())
        gradient = mean_field.get_grad(mean_field.mo_coeff, mean_field.mo_occ, fock)
        _refuse_gradient(0.5 * float(np.abs(gradient).max(initial=0.0)))
        return
    for fock, own in zip(fock_matrices(mean_field), sets, strict=True):
        check_stationary(fock, own.coefficients[:, own.occupied], own.coefficients[:, own.virtual])


def _is_periodic(given: Any) -> bool:
    return any(base.__module__.startswith("pyscf.pbc") for base in type(given).__mro__)


def check_stationary(fock: np.ndarray, occupied: np.ndarray, virtual: np.ndarray) -> None:
    """Refuse orbitals with a gradient."""
    _refuse_gradient(float(np.abs(occupied.T @ fock @ virtual).max(initial=0.0)))


def _refuse_gradient(gradient: float) -> None:
    if not gradient <= BRILLOUIN_TOLERANCE:
        raise InputError(
            "SCF not converged: raise mf.max_cycle, try another guess or mf.newton(), run mf.kernel() again "
            f"(the Fock matrix has {gradient:.1e} between occupied and virtual orbitals, "
            f"at most {BRILLOUIN_TOLERANCE:.0e} is allowed)"
        )


def check_core_symmetry(
    fock: Callable[[], np.ndarray],
    core: np.ndarray,
    orbitals: np.ndarray,
    n_occ: int,
    irreps: np.ndarray,
    group: PointGroup,
) -> None:
    """Refuse a Hamiltonian that mixes irreps: a field along x, charges beside the molecule.

    The field of a symmetric density is symmetric, so the core Hamiltonian tells. Coordinates that are
    symmetric to a few digits alone change it too; whether by too much is seen in the Fock matrix, where
    electrons screen the nuclei. `fock` computes it, over basis functions.
    """
    with thread_limits(1):  # those of BLAS would go on spinning beside ours
        of_orbitals = orbitals.T @ core @ orbitals
    if kept_subgroup(of_orbitals, n_occ, irreps, group) == group.name:
        return
    check_symmetric(orbitals.T @ fock() @ orbitals, n_occ, irreps, group)


def check_stored_symmetry(stored: np.ndarray, blocks: Blocks, group: PointGroup) -> None:
    """Refuse two-electron integrals of the user's own (mf._eri) that mix irreps.

    A random density has a part of each irrep. If each part is multiplied by a number of its own, so is
    the part of that irrep of its Coulomb matrix.
    """
    functions = np.hstack([block for _, block in blocks])
    irreps = np.concatenate([np.full(block.shape[1], irrep) for irrep, block in blocks])
    factor = 1.0 + (irreps[:, None] ^ irreps)
    values = np.random.default_rng(0).standard_normal(factor.shape)
    with thread_limits(1):  # those of BLAS would spin beside ours
        densities = [functions @ (x + x.T) @ functions.T for x in (values, factor * values)]
        plain, scaled = (functions.T @ matrix @ functions for matrix in _coulomb(stored, densities))
    broken = float(np.abs(scaled - factor * plain).max() / np.abs(plain).max())
    if not broken <= _SYMMETRIC:
        raise InputError(
            f"the Hamiltonian breaks the symmetry {group.name}: the two-electron integrals mf._eri mix "
            f"irreps by {broken:.1e} of their size, at most {_SYMMETRIC:.0e} is allowed; build mol with "
            "symmetry=False and run the SCF again"
        )


def _coulomb(stored: np.ndarray, densities: list[np.ndarray]) -> list[np.ndarray]:
    """The Coulomb matrices of some densities, from integrals that are packed 8-fold or 4-fold."""
    n = len(densities[0])
    high, low = np.tril_indices(n)
    both = np.where(high == low, 1.0, 2.0)  # a pair stands for (pq) and (qp)
    packed = np.array([both * density[high, low] for density in densities])
    found = np.empty_like(packed)
    if stored.ndim == 1:
        core.triangle_products(stored, packed, found, resolve_threads(None))
    else:
        np.matmul(packed, stored, out=found)
    place = np.empty((n, n), np.int64)
    place[high, low] = place[low, high] = np.arange(len(high))
    return [row[place] for row in found]


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
