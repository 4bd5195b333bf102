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
from tilewise.chem.pyscf_checks import check_gradient, kind_of, orbitals_of
from tilewise.chem.selection import check_electrons
from tilewise.errors import InputError
from tilewise.hdf5 import reason_of

_ENERGY_TOLERANCE = 1e-6  # hartree; an SCF that is less converged than that is refused by its gradient


def restored_mean_field(path: Path) -> scf.hf.SCF:
    """The RHF, UHF or ROHF of a chkfile with its orbitals; `check_solution` tells whether they solve its
    equations."""
    text, results = chkfile_content(path)
    mol = _molecule(text, path.name)
    check_electrons(mol.nelectron, mol.spin, mol.charge, path.name)
    spins = (2,) if np.ndim(results["mo_occ"]) == 2 else ()
    _check_results(results, mol.nao, spins, path.name)
    mean_field = scf.UHF(mol) if spins else scf.RHF(mol)  # with unpaired electrons that is an ROHF
    mean_field.verbose, mean_field.chkfile = 0, None
    mean_field.__dict__.update(results)
    mean_field.e_tot = float(results["e_tot"])
    return mean_field


def _check_results(results: dict[str, np.ndarray], n_basis: int, spins: tuple[int, ...], name: str) -> None:
    """Refuse arrays that do not belong to orbitals, of two spins or of none, over so many basis functions."""
    n = results["mo_coeff"].shape[-1] if results["mo_coeff"].ndim else 0
    each = {"mo_energy": (n,), "mo_occ": (n,), "mo_coeff": (n_basis, n)}
    shapes = {"e_tot": ()} | {key: (*spins, *shape) for key, shape in each.items()}
    for key, shape in shapes.items():
        array = results[key]
        if array.shape != shape or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise InputError(
                f"{name}: the chkfile is damaged, /scf/{key} is {array.dtype} of shape {array.shape}, "
                f"but finite numbers of shape {shape} are needed"
            )


def check_solution(mean_field: scf.hf.SCF, name: str) -> None:
    """Refuse orbitals of another Hamiltonian than the molecule's own, or of an SCF that has not converged."""
    density, core = mean_field.make_rdm1(), mean_field.get_hcore()
    field, kind = mean_field.get_veff(dm=density), kind_of(mean_field).upper()
    energy = float(mean_field.energy_tot(density, core, field))
    if not abs(energy - mean_field.e_tot) <= _ENERGY_TOLERANCE:
        raise InputError(
            f"{name}: the file says {mean_field.e_tot:.8f} hartree, but the {kind} energy of its orbitals is "
            f"{energy:.8f}; a plain {kind} alone can be taken from a file (no Kohn-Sham, density fitting, "
            "solvent or field): of others pass the mean field in Python"
        )
    try:
        check_gradient(mean_field, orbitals_of(mean_field))
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
