"""Molecules from PySCF: geometry, basis, point group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyscf import gto, lib, symm
from pyscf.gto import basis as basis_sets
from pyscf.symm import geom
from scipy.linalg import polar

from tilewise.chem.axes import abelian_frames
from tilewise.chem.basis_names import check_basis
from tilewise.chem.pyscf_functions import ABELIAN
from tilewise.chem.selection import check_charge, check_electrons
from tilewise.chem.symmetry import group_wish, symmetrize
from tilewise.chem.xyz import ANGSTROM, ELEMENTS, Atom, looks_like_atoms, parse_atoms, read_xyz
from tilewise.errors import InputError
from tilewise.symmetry.groups import GROUPS, PointGroup, group_named

_ROUNDING = 1e-4  # bohr; a geometry nearer than that to a symmetric one is meant to be symmetric
_TOLERANCES = (1e-5, 1e-4, 3e-4, 1e-3)
_FEW_FUNCTIONS = 100
_LARGEST = 8  # operations of D2h


def few_threads(mol: gto.Mole) -> AbstractContextManager[Any]:
    """One-electron integrals of a small molecule take less time than it takes to wake other threads."""
    return lib.with_omp_threads(1 if mol.nao < _FEW_FUNCTIONS else None)


def build_molecule(
    source: str | Path,
    basis: str | dict[str, Any],
    charge: int = 0,
    symmetry: bool | str = True,
    max_memory: int | None = None,
    unit: str = ANGSTROM,
    frame: int | None = None,
    spin: int = 0,
) -> gto.Mole:
    """A molecule from an XYZ file, or from text such as "O 0 0 0; H 0 0 0.96; ...".

    `spin` is the number of unpaired electrons, 2S.
    `unit` is "angstrom" or "bohr", `frame` the number of a geometry in a file that holds several.
    `symmetry`: True or "auto" for the largest abelian group found, False or "C1" for none, or the name of
    a group. `max_memory` in bytes is PySCF's budget. Core potentials come with the basis sets that need them.
    """
    if isinstance(source, str) and looks_like_atoms(source):
        atoms, where = parse_atoms(source), "geometry"
    else:
        atoms, where = read_xyz(source, frame)[0], Path(source).name
    check_charge(charge, _nuclear_charge(atoms), where)
    potentials = check_basis(atoms, basis, basis_sets)
    group = group_wish(symmetry)
    mol = gto.Mole()
    mol.verbose, mol.charge, mol.spin = 0, charge, None
    mol.atom, mol.basis, mol.unit = atoms, basis, unit
    if potentials:
        mol.ecp = potentials
    mol.build(dump_input=False, parse_arg=False)
    check_electrons(mol.nelectron, spin, charge, where, mol.nao)
    mol.spin = spin
    if group != "C1":
        mol = _with_symmetry(mol, group, where)
    if max_memory is not None:
        mol.max_memory = max_memory / 1e6
    return mol


def _nuclear_charge(atoms: list[Atom]) -> int:
    """Of all atoms but ghosts."""
    return sum(ELEMENTS.index(symbol) + 1 for symbol, _ in atoms if symbol in ELEMENTS)


@dataclass(frozen=True)
class _Symmetry:
    """A point group (PySCF's name for it, and for the one that it is a part of), its axes and origin."""

    name: str
    top: str
    axes: np.ndarray
    origin: np.ndarray

    @property
    def group(self) -> PointGroup:
        return group_named(ABELIAN.get(self.name, self.name))

    def merit(self, wanted: str) -> tuple[bool, int]:
        """A group that has the wanted one is better than a larger one."""
        return wanted in self.group.subgroups, self.group.order


def _with_symmetry(mol: gto.Mole, wanted: str, where: str) -> gto.Mole:
    """The molecule with positions that obey its point group exactly, and PySCF's symmetry switched on.

    The largest group is taken that asks for no more than a change in the last digits.
    """
    symbols, positions = [mol.atom_symbol(k) for k in range(mol.natm)], mol.atom_coords()
    found, exactly = _Symmetry("C1", "C1", np.eye(3), np.zeros(3)), positions
    for proposed in _proposals(mol, symbols, wanted):
        if proposed.merit(wanted) > found.merit(wanted):
            moved = symmetrize(symbols, positions, proposed.origin, proposed.axes, proposed.group)
            if np.abs(moved - positions).max() < _ROUNDING:
                found, exactly = proposed, moved
    if wanted != "auto" and wanted not in found.group.subgroups:
        raise InputError(
            f"{where}: the molecule lacks the symmetry {wanted}; valid are {', '.join(found.group.subgroups)}"
        )
    if mol.spin:  # open shells fill one of two degenerate orbitals, which PySCF's linear groups keep equal
        found = replace(found, name=found.group.name)
    return _built_in(found, mol, symbols, exactly)


def _proposals(mol: gto.Mole, symbols: list[str], wanted: str) -> Iterator[_Symmetry]:
    """Groups that the molecule may have: what PySCF finds, then what the atoms tell.

    PySCF's own detection expects coordinates good to 1e-5; with the five or six digits of a text file
    it finds less symmetry than was meant, or fails. So looser tolerances are tried too. Of groups that are
    not abelian it knows one subgroup, which need not be the largest.
    """
    top, largest = "C1", 1
    strict = geom.TOLERANCE
    for tolerance, subgroup in ((t, g) for g in (None, wanted) if g != "auto" for t in _TOLERANCES):
        try:
            geom.TOLERANCE = tolerance
            found, origin, axes = symm.detect_symm(mol._atom, mol._basis)
            name, axes = symm.as_subgroup(found, axes, subgroup)
        except Exception:  # PointGroupSymmetryError, or a failure over a geometry between two groups
            continue
        finally:
            geom.TOLERANCE = strict
        if ABELIAN.get(name, name) in GROUPS:
            proposed = _Symmetry(name, found, polar(axes)[0], origin)  # orthogonal to ten digits or so
            top, largest = found, max(largest, proposed.group.order)
            yield proposed
    if largest < _LARGEST:
        charges = mol.atom_charges()
        centre = charges @ mol.atom_coords() / charges.sum() if charges.any() else np.zeros(3)
        for group, axes in abelian_frames(symbols, mol.atom_coords() - centre):
            yield _Symmetry(group.name, top if top != "C1" else group.name, axes, centre)


def _built_in(found: _Symmetry, mol: gto.Mole, symbols: list[str], positions: np.ndarray) -> gto.Mole:
    exact = mol.copy()
    exact.atom, exact.unit = list(zip(symbols, positions.tolist(), strict=True)), "Bohr"
    exact.build(dump_input=False, parse_arg=False)
    # What Mole.build does with symmetry on, except that group and axes are given.
    exact.symmetry, exact.topgroup, exact.groupname = True, found.top, found.name
    exact._symm_orig, exact._symm_axes = found.origin, found.axes
    exact.symm_orb, exact.irrep_id = symm.symm_adapted_basis(exact, found.name, found.origin, found.axes)
    exact.irrep_name = [symm.irrep_id2name(found.name, irrep) for irrep in exact.irrep_id]
    return exact
