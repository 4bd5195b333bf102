"""Choosing the active orbitals of a mean field, and checking that they are fit for use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.arguments import digits
from tilewise.errors import InputError, one_of
from tilewise.symmetry.groups import PointGroup
from tilewise.wording import counted

Frozen = int | str | Sequence[int] | np.ndarray | None

REFERENCES = ("rhf", "uhf", "rohf")
"""Mean fields, as users name them."""

DEGENERATE = 1e-3  # hartree
SAME_SPACE_TOLERANCE = 1e-5  # Fock elements between two occupied or two virtual orbitals
BRILLOUIN_TOLERANCE = 1e-4  # between occupied and virtual: an SCF's own gradient threshold


@dataclass(frozen=True)
class Selection:
    """Active orbitals in the source's numbering, and how many of each kind were left out."""

    occ: np.ndarray
    vir: np.ndarray
    core: np.ndarray
    frozen_virtual: int

    @property
    def order(self) -> np.ndarray:
        return np.concatenate([self.occ, self.vir])

    def sorted_by(self, irreps: np.ndarray, energies: np.ndarray) -> Selection:
        """The same orbitals, each space by irrep, then energy."""
        occ = self.occ[by_irrep_and_energy(irreps[self.occ], energies[self.occ], self.occ)]
        vir = self.vir[by_irrep_and_energy(irreps[self.vir], energies[self.vir], self.vir)]
        return Selection(occ, vir, self.core, self.frozen_virtual)

    def counts(self, irreps: np.ndarray, n_irreps: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Active occupied and virtual orbitals per irrep."""
        occ = np.bincount(irreps[self.occ], minlength=n_irreps)
        vir = np.bincount(irreps[self.vir], minlength=n_irreps)
        return tuple(map(int, occ)), tuple(map(int, vir))


def by_irrep_and_energy(irreps: np.ndarray, energies: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The order of orbitals; degenerate ones keep their numbers' order, so that noise cannot swap them."""
    return np.lexsort((numbers, rounded(energies, 8), irreps))


def rounded(values: np.ndarray, places: int) -> np.ndarray:
    """Values to some digits after the point; numbers too large to have such digits stay as they are."""
    with np.errstate(over="ignore"):
        found = np.round(values, places)
    return np.where(np.isfinite(found), found, values)


def select(
    frozen: Frozen, occ: np.ndarray, vir: np.ndarray, energies: np.ndarray, auto: int | None
) -> Selection:
    """Leave the frozen orbitals out.

    `frozen`: None or 0 for none, a number of lowest occupied orbitals, a list of orbital numbers
    (from 0, virtual ones too), or "auto" for the `auto` core orbitals that the source counted.
    """
    left_out = _frozen_orbitals(frozen, occ, len(occ) + len(vir), energies, auto, len(occ) - 1)
    chosen = _without(left_out, occ, vir)
    _check_anything_left(frozen, [chosen])
    return chosen


def select_by_spin(
    frozen: Any,
    occ: Sequence[np.ndarray],
    vir: Sequence[np.ndarray],
    energies: Sequence[np.ndarray],
    auto: int | None,
) -> list[Selection]:
    """The same for alpha and beta orbitals, of which one spin may have none.

    `frozen` is meant for both spins, unless it is a pair of lists.
    """
    pair = isinstance(frozen, tuple | list) and len(frozen) == 2 and all(np.ndim(x) == 1 for x in frozen)
    by_spin = frozen if pair else (frozen, frozen)
    chosen = [
        _without(_frozen_orbitals(own, o, len(o) + len(v), e, auto, len(o)), o, v)
        for own, o, v, e in zip(by_spin, occ, vir, energies, strict=True)
    ]
    _check_anything_left(frozen, chosen)
    return chosen


def _without(left_out: np.ndarray, occ: np.ndarray, vir: np.ndarray) -> Selection:
    keep_occ, keep_vir = ~np.isin(occ, left_out), ~np.isin(vir, left_out)
    return Selection(occ[keep_occ], vir[keep_vir], occ[~keep_occ], int((~keep_vir).sum()))


def _check_anything_left(frozen: Any, chosen: Sequence[Selection]) -> None:
    """Refuse a calculation without occupied or without virtual orbitals."""
    is_frozen = any(len(own.core) or own.frozen_virtual for own in chosen)
    for kind, left in (("occupied", [own.occ for own in chosen]), ("virtual", [own.vir for own in chosen])):
        if not any(map(len, left)):
            why = f"frozen={_shown(frozen)} leaves" if is_frozen else "the mean field has"
            raise InputError(
                f"{why} no {kind} orbital to correlate: "
                f"{'freeze fewer' if is_frozen else 'choose a larger basis or another molecule'}"
            )


def freezes(frozen: Frozen) -> bool:
    """Whether orbitals are to be left out; what cannot be understood counts as such a wish."""
    if isinstance(frozen, str):
        return frozen.strip().lower() not in ("none", "0")
    return frozen.size > 0 if isinstance(frozen, np.ndarray) else bool(frozen)


def check_charge(charge: int, nuclear_charge: int, where: str) -> None:
    """Refuse a charge that no molecule of these nuclei has, however many digits it has."""
    if charge > nuclear_charge:
        check_electrons(nuclear_charge - charge, 0, charge, where)
    if charge < -nuclear_charge:
        raise InputError(
            f"{where}: charge {charge:+d} is more than {counted(nuclear_charge, 'proton')} can bind: "
            f"a number from {-nuclear_charge:+d} up is expected"
        )


def check_electrons(
    n_electrons: int, spin: int, charge: int, where: str, n_functions: int | None = None
) -> None:
    """Refuse a molecule without electrons, a number of unpaired ones (`spin`, 2S) that does not fit, and, if
    `n_functions` is given, more electrons of one spin than basis functions."""
    if n_electrons < 1:
        raise InputError(
            f"{where}: charge {charge:+d} leaves {counted(n_electrons, 'electron')}, at least 1 is needed"
        )
    electrons = counted(n_electrons, "electron")
    if not 0 <= spin <= n_electrons:
        raise InputError(
            f"{where}: charge {charge:+d} leaves {electrons}, of which {spin} cannot be unpaired: spin is a "
            f"number from 0 to {n_electrons}"
        )
    if (n_electrons - spin) % 2 and spin == 0:
        raise InputError(
            f"{where}: charge {charge:+d} leaves {electrons}, which cannot all be paired: spin 1 makes an "
            f"open shell, charge {charge - 1:+d} or {charge + 1:+d} would give an even number"
        )
    if (n_electrons - spin) % 2:
        raise InputError(
            f"{where}: charge {charge:+d} leaves {electrons}, of which {spin} cannot be unpaired: "
            f"spin {spin - 1} or {spin + 1} would fit"
        )
    most = spins_of(n_electrons, spin)[0]
    if n_functions is not None and most > n_functions:
        raise InputError(
            f"{where}: charge {charge:+d} leaves {counted(most, 'electron')} of one spin for "
            f"{counted(n_functions, 'basis function')}: check charge and spin, or take a larger basis set"
        )


def spins_of(n_electrons: int, spin: int) -> tuple[int, int]:
    """Alpha and beta electrons."""
    return (n_electrons + spin) // 2, (n_electrons - spin) // 2


def reference_kind(wanted: str | None, spin: int, where: str) -> str:
    """The mean field for so many unpaired electrons: "rhf", "uhf" or "rohf"; PySCF's choice if none is named.

    PySCF's `scf.HF` is an RHF where all electrons are paired and a UHF elsewhere.
    """
    if wanted is None:
        return "uhf" if spin else "rhf"
    if wanted.lower() not in REFERENCES:
        raise one_of("reference", wanted, REFERENCES)
    if wanted.lower() == "rhf" and spin:
        raise InputError(
            f"reference rhf: {where} has {counted(spin, 'unpaired electron')}, so uhf or rohf is expected"
        )
    return wanted.lower()


def check_canonical(fock: np.ndarray, n_occ: int, remedy: str) -> None:
    """Refuse orbitals that do not diagonalise the Fock matrix (given over the active orbitals)."""
    off = np.abs(fock - np.diag(np.diag(fock)))
    for kind, block, tolerance in (
        ("occupied and virtual", off[:n_occ, n_occ:], BRILLOUIN_TOLERANCE),
        ("occupied", off[:n_occ, :n_occ], SAME_SPACE_TOLERANCE),
        ("virtual", off[n_occ:, n_occ:], SAME_SPACE_TOLERANCE),
    ):
        worst = float(block.max(initial=0.0))
        if not worst <= tolerance:
            raise InputError(
                f"the orbitals are not canonical: the Fock matrix has {worst:.1e} between {kind} orbitals, "
                f"at most {tolerance:.0e} is allowed; {remedy}"
            )


def kept_subgroup(fock: np.ndarray, n_occ: int, irreps: np.ndarray, group: PointGroup) -> str:
    """The largest subgroup whose irreps an operator over orbitals, occupied ones first, does not mix."""
    mixed = np.abs(fock) > _tolerances(len(fock), n_occ)
    for name in group.subgroups:
        of_orbital = group.restrict(name)[1][irreps]
        if not mixed[of_orbital[:, None] != of_orbital].any():
            return name
    raise AssertionError("nothing is mixed in C1")


def check_symmetric(fock: np.ndarray, n_occ: int, irreps: np.ndarray, group: PointGroup) -> None:
    """Refuse a Fock matrix (over orbitals, occupied ones first) with elements between irreps."""
    kept = kept_subgroup(fock, n_occ, irreps, group)
    if kept == group.name:
        return
    allowed = _tolerances(len(fock), n_occ)
    between = np.where(irreps[:, None] != irreps, np.abs(fock), 0.0)
    p, q = np.unravel_index(int((between / allowed).argmax()), between.shape)
    one, other = sorted((group.irreps[irreps[p]], group.irreps[irreps[q]]))
    remedy = "symmetry=False" if kept == "C1" else f'symmetry="{kept}", which it keeps, or symmetry=False,'
    raise InputError(
        f"the Hamiltonian breaks the symmetry {group.name}: the Fock matrix has {between[p, q]:.1e} between "
        f"orbitals of irreps {one} and {other}, at most {allowed[p, q]:.0e} is allowed; "
        f"build mol with {remedy} and run the SCF again"
    )


def _tolerances(n: int, n_occ: int) -> np.ndarray:
    """What an element of the Fock matrix may be where it should be zero."""
    is_occupied = np.arange(n) < n_occ
    return np.where(is_occupied[:, None] == is_occupied, SAME_SPACE_TOLERANCE, BRILLOUIN_TOLERANCE)


def _frozen_orbitals(
    frozen: Frozen, occ: np.ndarray, n_orbitals: int, energies: np.ndarray, auto: int | None, most: int
) -> np.ndarray:
    if frozen is None:
        return np.zeros(0, dtype=np.int64)
    if isinstance(frozen, str):
        if frozen.strip().lower() == "none":
            frozen = 0
        elif frozen.strip().lower() == "auto" and auto is not None:
            frozen = min(auto, most) if most == len(occ) else auto
        elif frozen.strip().lower() == "auto":
            raise InputError(
                'frozen="auto" needs the atoms, which this input does not name: give a number or a list'
            )
        elif (number := digits(frozen.strip())) is not None:
            frozen = number
        else:
            raise InputError(
                f'frozen="{frozen}": expected "auto", a number of orbitals or a list of orbital numbers'
            )
    try:
        indices = np.asarray(frozen)
    except ValueError:  # lists of unequal length
        indices = np.array(None)
    if isinstance(frozen, bool) or (indices.ndim == 0 and not isinstance(frozen, int | np.integer)):
        raise InputError(
            f'frozen={frozen!r}: expected "auto", a number of orbitals or a list of orbital numbers'
        )
    if indices.ndim == 0:
        count = int(indices)
        if not 0 <= count <= most:
            raise InputError(
                f"frozen={count}: there are {len(occ)} occupied orbitals"
                f"{' of one spin' if most == len(occ) else ''}, so a number from 0 to {most} is expected"
            )
        return occ[np.argsort(energies[occ], kind="stable")[:count]]
    if indices.size == 0:
        return np.zeros(0, dtype=np.int64)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise InputError(
            f"frozen={_shown(frozen)}: a list of orbital numbers (whole numbers from 0) is expected"
        )
    wrong = indices[(indices < 0) | (indices >= n_orbitals)]
    if wrong.size:
        raise InputError(f"frozen orbital {wrong[0]} does not exist: numbers run from 0 to {n_orbitals - 1}")
    return np.unique(indices)


def _shown(frozen: Frozen) -> str:
    if isinstance(frozen, str) or np.ndim(frozen) == 0:  # type: ignore[arg-type]
        return repr(frozen)
    text = str(np.asarray(frozen).tolist())
    return text if len(text) <= 40 else text[:36] + "...]"
