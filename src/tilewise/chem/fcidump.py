"""FCIDUMP files: integrals over orbitals of another program, and a way to hand ours over.

ORBSYM is read in Molpro's numbering (from 1). The file does not name the point group; its order is
the smallest power of two that holds the largest ORBSYM, and C1, Cs, C2v, D2h stand for it: for 2 and
4 irreps the name is a convention, the products of irreps are the same in all groups of that order.
PySCF writes its own irrep ids, from 0; a file with a 0 in ORBSYM is read so.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.arguments import file_path
from tilewise.chem.fcidump_integrals import (
    SYMMETRY_TOLERANCE,
    DumpIntegrals,
    field_of,
    packed_integrals,
    spin_integrals,
)
from tilewise.chem.fcidump_open_shell import open_shell, outline_of_file
from tilewise.chem.fcidump_text import Dump, parse
from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Reference
from tilewise.chem.selection import Frozen, check_canonical, select
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


def read_fcidump(path: str | Path, frozen: Frozen = None, symmetry: str = "auto") -> AnyReference:
    """The Reference that a FCIDUMP of a closed-shell mean field with canonical orbitals describes.

    A file with unpaired electrons (MS2) is that of an ROHF, whose orbitals need not be canonical; one with
    integrals for each spin (IUHF=1) is that of a UHF.
    `frozen` as for a mean field, orbitals counted from 0 as in the file; "auto" cannot be had, for the
    file names no atoms.
    """
    path = file_path("path", path)
    dump = parse(path)
    full, irreps = _orbital_irreps(dump, path.name)
    _check_symmetry(dump, irreps, path.name)
    core_energy = dump.checked_core_energy()
    group, image = full.restrict(subgroup_wish(full, symmetry))
    irreps = image[irreps]
    if dump.spin or dump.sections is not None:
        return open_shell(dump, spin_integrals(dump), core_energy, (group, irreps), frozen)
    hamiltonian, packed = packed_integrals(dump)
    occupied, fock = _occupied(hamiltonian, packed, dump.n_electrons // 2)
    energies = np.diag(fock).copy()
    others = np.setdiff1d(np.arange(dump.n_orbitals), occupied)
    active = select(frozen, occupied, others, energies, None).sorted_by(irreps, energies)
    order = active.order
    remedy = f"write {path.name} over canonical closed-shell SCF orbitals"
    check_canonical(fock[np.ix_(order, order)], len(active.occ), remedy)
    h_diagonal = np.diag(hamiltonian)
    return Reference(
        outline=outline_of_file(dump, group, irreps, active),
        occ_energies=energies[active.occ],
        vir_energies=energies[active.vir],
        e_hf=core_energy + float((h_diagonal + energies)[occupied].sum()),
        identity=OrbitalIdentity.of_file(energies, h_diagonal, active),
        order=order,
        integrals=DumpIntegrals(hamiltonian, packed, (active.core,) * 2, (occupied,) * 2),
        remedy=remedy,
    )


def write_fcidump(path: str | Path, reference: Reference, tol: float = 1e-15) -> None:
    """Write a Reference's active orbitals, in its order, leaving out integrals of at most `tol`."""
    if not isinstance(reference, Reference):
        raise InputError(
            "the reference of a closed shell is expected; open shells are written by pyscf.tools.fcidump"
        )
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
    wrong = (product != 0) & (np.abs(dump.values) > SYMMETRY_TOLERANCE) & (dump.indices[:, 1] > 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        indices = " ".join(map(str, dump.indices[row]))
        raise InputError(
            f"{name}, line {dump.line_number(row)}: integral {indices} is {dump.values[row]:.3e}, "
            f"but ORBSYM says that it vanishes; correct ORBSYM, or set all of it to 1"
        )


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
            fock = field_of(hamiltonian, packed, occupied, occupied)
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
