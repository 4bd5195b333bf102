"""FCIDUMP files: integrals over orbitals of another program, and a way to hand ours over.

ORBSYM is read in Molpro's numbering (from 1). The file does not name the point group; its order is
the smallest power of two that holds the largest ORBSYM, and C1, Cs, C2v, D2h stand for it: for 2 and
4 irreps the name is a convention, the products of irreps are the same in all groups of that order.
PySCF writes its own irrep ids, from 0; a file with a 0 in ORBSYM is read so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.arguments import file_path
from tilewise.chem.fcidump_text import Dump, parse
from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.chem.reference import Outline, Reference
from tilewise.chem.selection import (
    BRILLOUIN_TOLERANCE,
    Frozen,
    Selection,
    check_canonical,
    select,
    select_by_spin,
    spins_of,
)
from tilewise.chem.symmetry import subgroup_wish
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup, group_named

# Molpro's number of each irrep, in the order of our bit patterns.
MOLPRO_NUMBERS: dict[str, tuple[int, ...]] = {
    "C1": (1,),
    "Ci": (1, 2),
    "C2": (1, 2),
    "Cs": (1, 2),
    "D2": (1, 4, 3, 2),
    "C2v": (1, 4, 2, 3),
    "C2h": (1, 4, 2, 3),
    "D2h": (1, 4, 6, 7, 8, 5, 3, 2),
}
_GROUP_OF_ORDER = {1: "C1", 2: "Cs", 4: "C2v", 8: "D2h"}
_SYMMETRY_TOLERANCE = 1e-6

BySpin = tuple[np.ndarray, np.ndarray]
"""Orbitals of two spins."""


@dataclass(frozen=True, eq=False)
class DumpIntegrals:
    """Integrals of a file, packed to the unique (pq|rs), with `core` orbitals folded into the Hamiltonian.

    In an open shell they are for the electrons of one spin, and `core` and `occupied` have the orbitals of
    that spin, then those of the other one.
    """

    hamiltonian: np.ndarray
    packed: np.ndarray
    core: BySpin
    occupied: BySpin

    def one_electron(self, order: np.ndarray) -> np.ndarray:
        elements: np.ndarray = _field(self.hamiltonian, self.packed, *self.core)[np.ix_(order, order)]
        return elements

    def eri(self, order: np.ndarray) -> np.ndarray:
        rows, columns = np.tril_indices(len(order))
        pairs = _pair(order[rows], order[columns])
        values = np.empty((len(pairs), len(pairs)))
        for k, pair in enumerate(pairs):
            values[k, : k + 1] = self.packed[_pair(pair, pairs[: k + 1])]
            values[: k + 1, k] = values[k, : k + 1]
        return values

    def eri_with(self, order: np.ndarray, other: DumpIntegrals, other_order: np.ndarray) -> np.ndarray:
        raise InputError("a FCIDUMP has one set of orbitals for both spins")

    def three_index(self, order: np.ndarray, workers: int) -> None:
        """The integrals of a file are what they are."""

    def basis_pairs(self, group: PointGroup) -> int:
        return 0

    def decomposed(self) -> DumpIntegrals:
        raise InputError("the integrals of a FCIDUMP are not decomposed")

    def basis_integrals(self, group: PointGroup) -> None:
        """A file has no basis functions: its integrals are over orbitals already."""

    def orbitals(self, order: np.ndarray) -> np.ndarray:
        raise InputError("the orbitals of a FCIDUMP are not known over basis functions")

    @property
    def filled(self) -> np.ndarray:
        return self.occupied[0]

    def fock(self, order: np.ndarray) -> np.ndarray:
        elements: np.ndarray = _field(self.hamiltonian, self.packed, *self.occupied)[np.ix_(order, order)]
        return elements


def read_fcidump(path: str | Path, frozen: Frozen = None, symmetry: str = "auto") -> AnyReference:
    """The Reference that a FCIDUMP of a closed-shell mean field with canonical orbitals describes.

    A file with unpaired electrons (MS2) is that of an ROHF, whose orbitals need not be canonical.
    `frozen` as for a mean field, orbitals counted from 0 as in the file; "auto" cannot be had, for the
    file names no atoms.
    """
    path = file_path("path", path)
    dump = parse(path)
    full, irreps = _orbital_irreps(dump, path.name)
    _check_symmetry(dump, irreps, path.name)
    core_energy = dump.checked_core_energy()
    hamiltonian, packed = _packed(dump, path.name)
    if dump.spin:
        return _open_shell(dump, hamiltonian, packed, core_energy, (full, irreps), frozen, symmetry)
    occupied, fock = _occupied(hamiltonian, packed, dump.n_electrons // 2)
    energies = np.diag(fock).copy()
    others = np.setdiff1d(np.arange(dump.n_orbitals), occupied)

    group, image = full.restrict(subgroup_wish(full, symmetry))
    irreps = image[irreps]
    active = select(frozen, occupied, others, energies, None).sorted_by(irreps, energies)
    order = active.order
    remedy = f"write {path.name} over canonical closed-shell SCF orbitals"
    check_canonical(fock[np.ix_(order, order)], len(active.occ), remedy)
    h_diagonal = np.diag(hamiltonian)
    return Reference(
        outline=_outline(dump, group, irreps, active),
        occ_energies=energies[active.occ],
        vir_energies=energies[active.vir],
        e_hf=core_energy + float((h_diagonal + energies)[occupied].sum()),
        identity=OrbitalIdentity.of_file(energies, h_diagonal, active),
        order=order,
        integrals=DumpIntegrals(hamiltonian, packed, (active.core,) * 2, (occupied,) * 2),
        remedy=remedy,
    )


def _outline(dump: Dump, group: PointGroup, irreps: np.ndarray, active: Selection) -> Outline:
    """The active orbitals of a closed shell, or of one spin, counted."""
    occ, vir = active.counts(irreps, group.order)
    return Outline(
        title=dump.path.name,
        formula="",
        group=group,
        basis="FCIDUMP",
        occ=occ,
        vir=vir,
        frozen_core=len(active.core),
        frozen_virtual=active.frozen_virtual,
        n_electrons=dump.n_electrons,
        source="orbitals of a FCIDUMP file",
    )


def _open_shell(
    dump: Dump,
    hamiltonian: np.ndarray,
    packed: np.ndarray,
    core_energy: float,
    labelled: tuple[PointGroup, np.ndarray],
    frozen: Frozen,
    symmetry: str,
) -> OpenReference:
    """The ROHF of a file with unpaired electrons."""
    (full, irreps), name = labelled, dump.path.name
    occupied = _shells(hamiltonian, packed, *spins_of(dump.n_electrons, dump.spin), name)
    every = np.arange(dump.n_orbitals)
    virtual = [np.setdiff1d(every, own) for own in occupied]
    focks = [_field(hamiltonian, packed, *pair) for pair in (occupied, occupied[::-1])]
    levels, h_diagonal = [np.diag(fock).copy() for fock in focks], np.diag(hamiltonian)
    group, image = full.restrict(subgroup_wish(full, symmetry))
    irreps = image[irreps]
    chosen = select_by_spin(frozen, occupied, virtual, [levels[0] + levels[1]] * 2, None)
    energy = core_energy + 0.5 * sum(
        float((h_diagonal + e)[own].sum()) for own, e in zip(occupied, levels, strict=True)
    )
    references = []
    for spin, (energies, selected) in enumerate(zip(levels, chosen, strict=True)):
        active = selected.sorted_by(irreps, energies)
        core = (chosen[spin].core, chosen[1 - spin].core)
        filled = (occupied[spin], occupied[1 - spin])
        references.append(
            Reference(
                outline=_outline(dump, group, irreps, active),
                occ_energies=energies[active.occ],
                vir_energies=energies[active.vir],
                e_hf=energy,
                identity=OrbitalIdentity.of_file(energies, h_diagonal, active),
                order=active.order,
                integrals=DumpIntegrals(hamiltonian, packed, core, filled),
                is_canonical=False,
            )
        )
    return OpenReference("rohf", references[0], references[1], np.eye(dump.n_orbitals), occupied)


def _shells(hamiltonian: np.ndarray, packed: np.ndarray, n_alpha: int, n_beta: int, name: str) -> BySpin:
    """The occupied orbitals of alpha and of beta spin: those nearest to solving the equations of ROHF.

    Files list orbitals by energy or by irrep, so two orders are tried at first; from each, doubly and then
    singly occupied orbitals are filled by the mean of the two Fock matrices until they stay.
    """
    n = len(hamiltonian)
    orders = [np.arange(n), np.argsort(np.diag(hamiltonian), kind="stable")]
    best: tuple[float, float, BySpin] | None = None
    seen: set[tuple[int, ...]] = set()
    for order in orders:
        while len(seen) < 40:
            alpha, beta = np.sort(order[:n_alpha]), np.sort(order[:n_beta])
            if (key := (*alpha.tolist(), -1, *beta.tolist())) in seen:
                break
            seen.add(key)
            focks = _field(hamiltonian, packed, alpha, beta), _field(hamiltonian, packed, beta, alpha)
            mean = 0.5 * (focks[0] + focks[1])
            single, empty = np.setdiff1d(alpha, beta), np.setdiff1d(np.arange(n), alpha)
            # Doubly with singly occupied, singly occupied with empty, doubly occupied with empty ones.
            couplings = (
                focks[1][np.ix_(beta, single)],
                focks[0][np.ix_(single, empty)],
                mean[np.ix_(beta, empty)],
            )
            broken = max(float(np.abs(x).max(initial=0.0)) for x in couplings)
            diagonals = [np.diag(fock) + np.diag(hamiltonian) for fock in focks]
            energy = float(diagonals[0][alpha].sum() + diagonals[1][beta].sum()) / 2
            rank = (round(math.log10(max(broken, 1e-5))), energy)
            if best is None or rank < best[:2]:
                best = (*rank, (alpha, beta))
            order = np.argsort(np.diag(mean), kind="stable")
    assert best is not None
    if best[0] > math.log10(BRILLOUIN_TOLERANCE):
        raise InputError(
            f"{name}: no determinant of its orbitals solves the ROHF equations (the Fock matrices have "
            f"1e{best[0]} between occupied and virtual orbitals); write it over converged ROHF orbitals"
        )
    return best[2]


def write_fcidump(path: str | Path, reference: Reference, tol: float = 1e-15) -> None:
    """Write a Reference's active orbitals, in its order, leaving out integrals of at most `tol`."""
    irreps = np.concatenate([reference.occ_irreps, reference.vir_irreps])
    numbers = np.array(MOLPRO_NUMBERS[reference.outline.group.name])[irreps]
    write_integrals(
        path,
        reference.one_electron(),
        reference.eri(),
        e_core=reference.e_core,
        n_electrons=2 * reference.outline.n_occ,
        orbsym=numbers,
        tol=tol,
    )


def write_integrals(
    path: str | Path,
    hamiltonian: np.ndarray,
    eri: np.ndarray,
    *,
    e_core: float,
    n_electrons: int,
    orbsym: np.ndarray | None = None,
    tol: float = 1e-15,
) -> None:
    """Write arrays as a FCIDUMP: h (n, n), (pq|rs) packed in both pairs, ORBSYM in Molpro's numbering."""
    n = len(hamiltonian)
    rows, columns = np.tril_indices(n)
    labels = np.ones(n, dtype=int) if orbsym is None else orbsym
    form = "%24.16e %4d %4d %4d %4d"
    with open(path, "w", encoding="ascii") as file:
        file.write(f" &FCI NORB={n},NELEC={n_electrons},MS2=0,\n")
        file.write(f"  ORBSYM={','.join(map(str, labels))},\n  ISYM=1,\n &END\n")
        for k in range(len(rows)):
            kept = np.flatnonzero(np.abs(eri[k, : k + 1]) > tol)
            ones = np.ones(len(kept), dtype=int)
            indices = [rows[k] * ones + 1, columns[k] * ones + 1, rows[kept] + 1, columns[kept] + 1]
            _write_rows(file, form, eri[k, kept], indices)
        kept = np.flatnonzero(np.abs(hamiltonian[rows, columns]) > tol)
        zeros = np.zeros(len(kept), dtype=int)
        _write_rows(
            file, form, hamiltonian[rows, columns][kept], [rows[kept] + 1, columns[kept] + 1, zeros, zeros]
        )
        file.write(form % (e_core, 0, 0, 0, 0) + "\n")


def _write_rows(file: Any, form: str, values: np.ndarray, indices: list[np.ndarray]) -> None:
    lines = [
        form % row for row in zip(values.tolist(), *(column.tolist() for column in indices), strict=True)
    ]
    if lines:
        file.write("\n".join(lines) + "\n")


def _pair(p: Any, q: Any) -> Any:
    """The index of an unordered pair."""
    high, low = np.maximum(p, q), np.minimum(p, q)
    return high * (high + 1) // 2 + low


def _orbital_irreps(dump: Dump, name: str) -> tuple[PointGroup, np.ndarray]:
    """The group that stands for the file's symmetry, and each orbital's irrep in our numbering."""
    numbers = dump.orbsym
    from_zero = bool((numbers == 0).any())
    largest = int(numbers.max()) + (1 if from_zero else 0)
    if numbers.min() < 0 or largest > 8:
        raise InputError(
            f"{name}: ORBSYM has {numbers.min()} to {numbers.max()}, but irreps are numbered 1 to 8"
        )
    group = group_named(_GROUP_OF_ORDER[1 << math.ceil(math.log2(largest))])
    if from_zero:
        return group, numbers
    ours = np.argsort(MOLPRO_NUMBERS[group.name])
    return group, ours[numbers - 1]


def _check_symmetry(dump: Dump, irreps: np.ndarray, name: str) -> None:
    padded = np.concatenate([[0], irreps])  # index 0 stands for "no orbital"
    product = np.bitwise_xor.reduce(padded[dump.indices], axis=1)
    # A line with one index is an orbital energy, which belongs to no product.
    wrong = (product != 0) & (np.abs(dump.values) > _SYMMETRY_TOLERANCE) & (dump.indices[:, 1] > 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        indices = " ".join(map(str, dump.indices[row]))
        raise InputError(
            f"{name}, line {dump.line_number(row)}: integral {indices} is {dump.values[row]:.3e}, "
            f"but ORBSYM says that it vanishes; correct ORBSYM, or set all of it to 1"
        )


def _packed(dump: Dump, name: str) -> tuple[np.ndarray, np.ndarray]:
    """h as a matrix and (pq|rs) packed to its unique elements."""
    n = dump.n_orbitals
    n_pairs = n * (n + 1) // 2
    p, q, r, s = (dump.indices - 1).T
    two = r >= 0
    one = (q >= 0) & ~two
    hamiltonian, packed = np.zeros((n, n)), np.zeros(n_pairs * (n_pairs + 1) // 2)
    hamiltonian[p[one], q[one]] = dump.values[one]
    hamiltonian[q[one], p[one]] = dump.values[one]
    positions = _pair(_pair(p[two], q[two]), _pair(r[two], s[two]))
    packed[positions] = dump.values[two]
    clash = np.zeros(len(dump.values))
    clash[one] = np.abs(hamiltonian[p[one], q[one]] - dump.values[one])
    clash[two] = np.abs(packed[positions] - dump.values[two])
    if clash.max(initial=0.0) > _SYMMETRY_TOLERANCE:
        row = int(clash.argmax())
        indices = " ".join(map(str, dump.indices[row]))
        raise InputError(
            f"{name}, line {dump.line_number(row)}: integral {indices} is given again further on "
            f"with another value (they differ by {clash[row]:.1e}); real orbitals have 8 equal permutations"
        )
    return hamiltonian, packed


def _field(hamiltonian: np.ndarray, packed: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """h + the field of occupied orbitals of the same and of the other spin, over all orbitals of the file."""
    n = len(hamiltonian)
    p, q = np.arange(n)[:, None], np.arange(n)[None, :]
    field = hamiltonian.copy()
    for i in (*own, *other):
        field += packed[_pair(_pair(p, q), _pair(i, i))]
    for i in own:
        field -= packed[_pair(_pair(p, i), _pair(q, i))]
    return field


def _occupied(hamiltonian: np.ndarray, packed: np.ndarray, n_occ: int) -> tuple[np.ndarray, np.ndarray]:
    """The occupied orbitals, ascending, and their Fock matrix.

    Files list orbitals by energy or by irrep, so two starts are tried: the first orbitals, and
    those lowest in h. From each, fill the lowest Fock levels until they stay; of the determinants met,
    the one nearest to fulfilling Brillouin's theorem is the mean field.
    """
    starts = [np.arange(n_occ), np.sort(np.argsort(np.diag(hamiltonian), kind="stable")[:n_occ])]
    best: tuple[float, float, np.ndarray, np.ndarray] | None = None
    seen: set[tuple[int, ...]] = set()
    for occupied in starts:
        while tuple(occupied) not in seen and len(seen) < 40:
            seen.add(tuple(occupied))
            fock = _field(hamiltonian, packed, occupied, occupied)
            levels = np.diag(fock)
            others = np.setdiff1d(np.arange(len(fock)), occupied)
            lowest = np.sort(np.argsort(levels, kind="stable")[:n_occ])
            broken = float(np.abs(fock[np.ix_(occupied, others)]).max(initial=0.0))
            energy = float((np.diag(hamiltonian) + levels)[occupied].sum())
            # Excited determinants can be stationary too: then the lowest energy counts.
            rank = (round(math.log10(max(broken, 1e-5))), energy)
            if best is None or rank < best[:2]:
                best = (*rank, occupied, fock)
            occupied = lowest
    assert best is not None
    return best[2], best[3]
