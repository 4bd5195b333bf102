"""Chkfiles of PySCF: a molecule, and the orbitals of an SCF that has been run already.

PySCF evaluates some texts of such a file as Python. Here they are data, and the molecule is built anew: a
file that somebody sent cannot run anything.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
from pyscf import gto, scf

from tilewise.chem.chkfile_content import chkfile_content
from tilewise.chem.pyscf_checks import check_stationary, orbitals_of
from tilewise.chem.selection import check_closed_shell
from tilewise.errors import InputError
from tilewise.hdf5 import reason_of

_ENERGY_TOLERANCE = 1e-6  # hartree; an SCF that is less converged than that is refused by its gradient


def restored_mean_field(path: Path) -> scf.hf.RHF:
    """The RHF of a chkfile with its orbitals; `check_solution` tells whether they solve its equations."""
    text, results = chkfile_content(path)
    mol = _molecule(text, path.name)
    check_closed_shell(mol.nelectron, mol.spin, mol.charge, path.name)
    if np.ndim(results["mo_occ"]) != 1 or np.ndim(results["mo_coeff"]) != 2:
        raise InputError(
            f"{path.name} holds orbitals of an unrestricted SCF: those of a closed-shell RHF are needed"
        )
    _check_results(results, mol.nao, path.name)
    mean_field = scf.RHF(mol)
    mean_field.verbose, mean_field.chkfile = 0, None
    mean_field.__dict__.update(results)
    mean_field.e_tot = float(results["e_tot"])
    return mean_field


def _check_results(results: dict[str, np.ndarray], n_basis: int, name: str) -> None:
    """Refuse arrays that do not belong to orbitals over so many basis functions."""
    n = results["mo_coeff"].shape[1]
    shapes = {"e_tot": (), "mo_energy": (n,), "mo_occ": (n,), "mo_coeff": (n_basis, n)}
    for key, shape in shapes.items():
        array = results[key]
        if array.shape != shape or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise InputError(
                f"{name}: the chkfile is damaged, /scf/{key} is {array.dtype} of shape {array.shape}, "
                f"but finite numbers of shape {shape} are needed"
            )


def check_solution(mean_field: scf.hf.RHF, name: str) -> None:
    """Refuse orbitals of another Hamiltonian than the molecule's own, or of an SCF that has not converged."""
    density, core = mean_field.make_rdm1(), mean_field.get_hcore()
    field = mean_field.get_veff(dm=density)
    energy = float(mean_field.energy_tot(density, core, field))
    if not abs(energy - mean_field.e_tot) <= _ENERGY_TOLERANCE:
        raise InputError(
            f"{name}: the file says {mean_field.e_tot:.8f} hartree, but the RHF energy of its orbitals is "
            f"{energy:.8f}; a plain RHF alone can be taken from a file (no Kohn-Sham, density fitting, "
            "solvent or field): of others pass the mean field in Python"
        )
    coefficients, occupied, virtual = orbitals_of(mean_field)
    try:
        check_stationary(core + field, coefficients[:, occupied], coefficients[:, virtual])
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    mean_field.converged = True


def _molecule(text: str, name: str) -> gto.Mole:
    """The molecule of PySCF's JSON, built anew."""
    try:
        content: dict[str, Any] = json.loads(text)
        is_periodic = "a" in content  # lattice vectors
        mol = None if is_periodic else _built(content)
    except Exception as error:  # whatever a damaged text leads to
        raise InputError(f"{name}: the molecule of the chkfile cannot be read ({reason_of(error)})") from None
    if mol is None:
        raise InputError(f"{name} is of a periodic system: only molecules are treated")
    return mol


def _built(content: dict[str, Any]) -> gto.Mole:
    mol = gto.Mole()
    mol.verbose, mol.unit = 0, "Bohr"
    mol.atom = [(str(symbol), tuple(float(x) for x in position)) for symbol, position in content["_atom"]]
    mol.basis, mol.ecp = content["_basis"], content.get("_ecp") or {}
    for key in ("charge", "spin", "cart", "symmetry", "symmetry_subgroup"):
        setattr(mol, key, content.get(key, getattr(mol, key)))
    mol.build(dump_input=False, parse_arg=False)
    mol.basis = _literal(content["basis"], mol.basis)  # its name
    return mol


def _literal(text: str, otherwise: Any) -> Any:
    """The value of a text, unless it is more than numbers, texts and lists of them."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return otherwise
