"""Molecules from PySCF: geometry, basis, point group."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from pyscf import gto, lib, symm
from pyscf.gto import basis as basis_sets
from pyscf.symm import geom
from scipy.linalg import polar

from tilewise.chem.basis_names import check_basis
from tilewise.chem.pyscf_functions import ABELIAN
from tilewise.chem.selection import check_closed_shell
from tilewise.chem.symmetry import group_wish, symmetrize
from tilewise.chem.xyz import looks_like_atoms, parse_atoms, read_xyz
from tilewise.errors import InputError
from tilewise.spaces.groups import group_named

_ROUNDING = 1e-4  # bohr; a geometry nearer than that to a symmetric one is meant to be symmetric
_TOLERANCES = (1e-5, 1e-4, 3e-4, 1e-3)
_FEW_FUNCTIONS = 100


def few_threads(mol: gto.Mole) -> AbstractContextManager[Any]:
    """One-electron integrals of a small molecule take less time than it takes to wake other threads."""
    return lib.with_omp_threads(1 if mol.nao < _FEW_FUNCTIONS else None)


def build_molecule(
    source: str | Path,
    basis: str | dict[str, Any],
    charge: int = 0,
    symmetry: bool | str = True,
    max_memory: int | None = None,
) -> gto.Mole:
    """A closed-shell molecule from an XYZ file, or from text such as "O 0 0 0; H 0 0 0.96; ...", in angstrom.

    `symmetry`: True or "auto" for the largest abelian group found, False or "C1" for none, or the name of
    a group. `max_memory` in bytes is PySCF's budget. Core potentials come with the basis sets that need them.
    """
    if isinstance(source, str) and looks_like_atoms(source):
        atoms, where = parse_atoms(source), "geometry"
    else:
        atoms, where = read_xyz(source)[0], Path(source).name
    potentials = check_basis(atoms, basis, basis_sets)
    group = group_wish(symmetry)
    mol = gto.Mole()
    mol.verbose, mol.charge, mol.spin = 0, charge, None
    mol.atom, mol.basis, mol.unit = atoms, basis, "Angstrom"
    if potentials:
        mol.ecp = potentials
    mol.build(dump_input=False, parse_arg=False)
    check_closed_shell(mol.nelectron, mol.spin, charge, where)
    if group != "C1":
        mol = _with_symmetry(mol, group, where)
    if max_memory is not None:
        mol.max_memory = max_memory / 1e6
    return mol


def _with_symmetry(mol: gto.Mole, wanted: str, where: str) -> gto.Mole:
    """The molecule with positions that obey its point group exactly, and PySCF's symmetry switched on.

    PySCF's own detection expects coordinates good to 1e-5; with the five or six digits of a text file
    it finds less symmetry than was meant, or fails. So looser tolerances are tried too, and the
    largest group is taken that asks for no more than a change in the last digits.
    """
    name, axes, origin, positions = "C1", np.eye(3), np.zeros(3), mol.atom_coords()
    symbols = [mol.atom_symbol(k) for k in range(mol.natm)]
    top, found = "C1", group_named("C1")
    strict = geom.TOLERANCE
    for tolerance, subgroup in ((t, g) for g in (None, wanted) if g != "auto" for t in _TOLERANCES):
        try:
            geom.TOLERANCE = tolerance
            new_top, new_origin, new_axes = symm.detect_symm(mol._atom, mol._basis)
            new_name, new_axes = symm.as_subgroup(new_top, new_axes, subgroup)
        except Exception:  # PointGroupSymmetryError, or a failure over a geometry between two groups
            continue
        finally:
            geom.TOLERANCE = strict
        group = group_named(ABELIAN.get(new_name, new_name))
        new_axes = polar(new_axes)[0]  # PySCF's are orthogonal to ten digits or so
        moved = symmetrize(symbols, mol.atom_coords(), new_origin, new_axes, group)
        better = group.order > found.order or (subgroup and wanted not in found.subgroups)
        if better and np.abs(moved - mol.atom_coords()).max() < _ROUNDING:
            name, axes, origin, positions, top, found = new_name, new_axes, new_origin, moved, new_top, group
    if wanted != "auto" and wanted not in found.subgroups:
        raise InputError(
            f"{where}: the molecule lacks the symmetry {wanted}; valid are {', '.join(found.subgroups)}"
        )
    exact = mol.copy()
    exact.atom, exact.unit = list(zip(symbols, positions.tolist(), strict=True)), "Bohr"
    exact.build(dump_input=False, parse_arg=False)
    # What Mole.build does with symmetry on, except that group and axes are given.
    exact.symmetry, exact.topgroup, exact.groupname = True, top, name
    exact._symm_orig, exact._symm_axes = origin, axes
    exact.symm_orb, exact.irrep_id = symm.symm_adapted_basis(exact, name, origin, axes)
    exact.irrep_name = [symm.irrep_id2name(name, irrep) for irrep in exact.irrep_id]
    return exact
