"""Molecules known by their orbitals: the counts are those of PySCF."""

from __future__ import annotations

import numpy as np
import pytest
from pyscf import gto

from command_line import GEOMETRIES
from tilewise.chem.orbital_source import orbital_outline
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import outline
from tilewise.errors import InputError
from tilewise.spaces import Space, TileSpace, orbitals_named

ATOMS = {
    "water-1": {"O": 1, "H": 2},
    "water-10": {"O": 10, "H": 20},
    "benzene-aug-cc-pvtz": {"C": 6, "H": 6},
    "benzene-aug-cc-pvqz": {"C": 6, "H": 6},
    "water-aug-cc-pvdz": {"O": 1, "H": 2},
    "n2-aug-cc-pvtz": {"N": 2},
    "n2-aug-cc-pvqz": {"N": 2},
    "beta-carotene": {"C": 40, "H": 56},
    "uracil": {"C": 4, "H": 4, "N": 2, "O": 2},
}


@pytest.mark.parametrize("name", ATOMS)
def test_functions_and_electrons_are_those_of_the_atoms(name: str) -> None:
    counts = orbitals_named(name)
    functions = electrons = heavy = 0
    for element, number in ATOMS[name].items():
        atom = gto.M(atom=f"{element} 0 0 0", basis=counts.basis, spin=None)
        functions += number * atom.nao
        electrons += number * atom.nelectron
        heavy += number * (element != "H")
    assert counts.n_basis == functions
    assert counts.n_electrons == electrons
    assert sum(counts.core) == heavy
    frozen = orbitals_named(name, frozen=True)
    assert sum(frozen.occupied) == electrons // 2 - heavy
    assert (frozen.n_basis, frozen.n_electrons) == (functions, electrons)


@pytest.mark.parametrize(
    ("file", "basis"),
    [
        ("benzene", "aug-cc-pvtz"),
        ("water", "aug-cc-pvdz"),
        ("n2", "aug-cc-pvtz"),
        ("n2", "aug-cc-pvqz"),
    ],
)
def test_orbitals_per_irrep_are_those_of_the_molecule(file: str, basis: str) -> None:
    molecule = build_molecule(GEOMETRIES / f"{file}.xyz", basis, 0)
    for frozen in (False, True):
        found = outline(molecule, "auto" if frozen else 0)
        counts = orbitals_named(f"{file}-{basis}", frozen=frozen)
        assert (found.group, found.occ, found.vir) == (counts.group, counts.occupied, counts.virtual)


def test_a_planar_molecule_has_few_orbitals_that_change_sign() -> None:
    """Of uracil in its plane z = 0, functions with odd l + m change sign."""
    counts = orbitals_named("uracil")
    odd = 0
    for element, number in ATOMS["uracil"].items():
        atom = gto.M(atom=f"{element} 0 0 0", basis=counts.basis, spin=None)
        for shell in range(atom.nbas):
            momentum = atom.bas_angular(shell)
            states = np.arange(-momentum, momentum + 1)
            odd += number * atom.bas_nctr(shell) * int(((momentum + states) % 2 == 1).sum())
    assert counts.occupied[1] + counts.virtual[1] == odd


def test_tiles_are_ordered_by_spin_and_irrep() -> None:
    space = TileSpace((3, 2), (5, 4), 2)
    for tiles, counts in ((space.holes, (3, 2)), (space.particles, (5, 4))):
        assert tiles.spin.tolist() == sorted(tiles.spin.tolist(), reverse=True)
        half = len(tiles) // 2
        assert tiles.irrep[:half].tolist() == tiles.irrep[half:].tolist() == sorted(tiles.irrep[:half])
        assert tiles.size[:half].tolist() == Space.spatial("x", counts, 2).tiles.size.tolist()
    assert str(space) == "3 + 5 alpha tiles of up to 2 orbitals"


def test_unknown_names_and_frozen_orbitals() -> None:
    with pytest.raises(InputError, match="did you mean beta-carotene"):
        orbitals_named("beta-carotin")
    with pytest.raises(InputError, match=r"valid are water-1, water-2, \.\.\. water-n, benzene-aug-cc-pvtz"):
        orbitals_named("water-0")
    assert [orbital_outline("water-3", given).n_occ for given in (None, 0, 3, "auto")] == [15, 15, 12, 12]
    with pytest.raises(InputError, match="give 0, 3 or auto"):
        orbital_outline("water-3", 2)


def test_an_outline_in_a_subgroup() -> None:
    whole, part = (orbital_outline("benzene-aug-cc-pvtz", "auto", name) for name in ("auto", "C2v"))
    assert (whole.group.name, whole.occ) == ("D2h", (4, 2, 1, 1, 0, 1, 3, 3))
    assert part.group.name == "C2v" and part.n_occ == 15 and part.n_vir == 393
    with pytest.raises(InputError, match="valid are"):
        orbital_outline("uracil", 0, "D2h")
