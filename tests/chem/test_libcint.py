"""Integrals over shells that the native core has libcint compute, against PySCF's own calls."""

import itertools

import numpy as np
import pytest
from chem_oracles import WATER
from pyscf import gto

from tilewise.chem import pyscf_libcint, pyscf_libcint_twins
from tilewise.core import core

GHOST = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692; ghost-H 0 0 2.0; X-O 1.0 0 3.0"


def molecule(atom, basis, omega=0.0, **options):
    mol = gto.M(atom=atom, basis=basis, verbose=0, **options)
    mol.set_range_coulomb(omega)
    return mol


MOLECULES = {
    "water": (WATER, "cc-pvdz", {}),
    "water with symmetry": (WATER, "6-31g*", {"symmetry": True}),
    "cartesian functions": (WATER, "cc-pvtz", {"cart": True}),
    "d and f shells": ("Ne 0 0 0", "cc-pvtz", {}),
    "general contractions": ("O 0 0 0; H 0 0 0.9", "ano@3s2p1d", {"charge": -1}),
    "one shell": ("He 0 0 0", "sto-3g", {}),
    "one shell of contracted g functions": ("He 0 0 0", {"He": [[4, [1.5, 1.0], [0.5, 0.6]]]}, {}),
    "long and high shells": (
        "He 0 0 0; H 0 0 1",
        {"He": [[0, *([3.0**k, 1.0, 0.5**k] for k in range(-3, 9))], [4, [0.7, 1.0]]], "H": "sto-3g"},
        {"charge": 1},
    ),
    "a core potential": ("I 0 0 0; H 0 0 1.609", "def2-svp", {"ecp": "def2-svp"}),
    "ghost atoms": (GHOST, "6-31g", {"basis": {"default": "6-31g", "X-O": "sto-3g", "ghost-H": "6-31g"}}),
    "long range": (WATER, "6-31g*", {"omega": 0.4}),
    "short range": (WATER, "6-31g*", {"omega": -0.4}),
    "far apart": ("He 0 0 0; He 0 0 40", "6-31g", {}),
}


@pytest.fixture(params=MOLECULES, scope="module")
def mol(request):
    atom, basis, options = MOLECULES[request.param]
    return molecule(atom, **({"basis": basis} | options))


def both(function, shape, mol, *arguments):
    """What the native function and its twin write to arrays of one shape."""
    results = []
    for module, libcint in (
        (core, pyscf_libcint.libcint_of(mol)),
        (pyscf_libcint_twins, pyscf_libcint_twins.Libcint(mol)),
    ):
        out = np.full(shape, np.nan)
        arguments_of = (*arguments, out) if function == "quartet" else (out, *arguments)
        getattr(module, function)(libcint, *arguments_of)
        results.append(out)
    return results


def test_it_knows_the_shells_and_functions(mol):
    native, twin = pyscf_libcint.libcint_of(mol), pyscf_libcint_twins.Libcint(mol)
    assert (native.n_shells, native.n_functions) == (twin.n_shells, twin.n_functions)


def test_integrals_of_four_shells_are_those_of_pyscf(mol):
    rng, sizes = np.random.default_rng(3), np.diff(mol.ao_loc_nr())
    highest = int(np.argmax(mol._bas[:, gto.ANG_OF]))
    longest = int(np.argmax(mol._bas[:, gto.NPRIM_OF] * mol._bas[:, gto.NCTR_OF]))
    extremes = itertools.product({highest, longest}, repeat=4)
    for shells in {*extremes, *map(tuple, rng.integers(0, mol.nbas, (20, 4)).tolist())}:
        native, twin = both("quartet", int(np.prod(sizes[list(shells)])), mol, *shells)
        assert np.allclose(native, twin, rtol=1e-12, atol=1e-14), shells


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_diagonal_is_that_of_pyscf(mol, workers):
    native, twin = both("diagonal", mol.nao * (mol.nao + 1) // 2, mol, workers)
    assert np.allclose(native, twin, rtol=1e-12, atol=1e-14)
    assert np.array_equal(native, pyscf_libcint.diagonal(mol, 1))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_bounds_are_those_of_the_diagonal(mol, workers):
    native, twin = both("schwarz", (mol.nbas, mol.nbas), mol, workers)
    assert np.allclose(native, twin, rtol=1e-12, atol=1e-9)  # the root of a diagonal off by 1e-18
    assert np.array_equal(native, pyscf_libcint.schwarz(mol, 1))


def test_no_integral_is_larger_than_its_bounds(mol):
    bound, shell = pyscf_libcint.schwarz(mol, 2), np.repeat(np.arange(mol.nbas), np.diff(mol.ao_loc_nr()))
    of_functions = bound[np.ix_(shell, shell)]
    limit = np.multiply.outer(of_functions, of_functions)
    assert (np.abs(mol.intor("int2e")) <= limit * (1 + 1e-10) + 1e-14).all()


def test_what_happens_to_the_molecule_later_changes_nothing():
    mol = molecule(WATER, "6-31g")
    before, libcint = pyscf_libcint.diagonal(mol, 1), pyscf_libcint.libcint_of(mol)
    mol.set_range_coulomb(0.3)
    mol.set_geom_("O 0 0 0; H 0 0 1; H 0 1 0")
    mol._bas[:] = 0
    after = np.empty_like(before)
    core.diagonal(libcint, after, 2)
    assert np.array_equal(before, after)
    assert not np.allclose(before, pyscf_libcint.diagonal(molecule(WATER, "6-31g", omega=0.3), 1))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("atm", 1, 10**6),
        ("bas", 0, 3),
        ("bas", 1, -1),
        ("bas", 2, 0),
        ("bas", 3, 10**8),
        ("bas", 5, 0),
        ("bas", 6, -1),
    ],
)
def test_tables_that_point_nowhere_are_refused(monkeypatch, table, column, value):
    mol = molecule(WATER, "6-31g")
    broken = getattr(mol, f"_{table}").copy()
    broken[1, column] = value
    monkeypatch.setattr(mol, f"_{table}", broken)
    with pytest.raises(ValueError, match="do not fit"):
        pyscf_libcint.libcint_of(mol)


def test_wrong_lengths_and_shells_are_refused():
    libcint = pyscf_libcint.libcint_of(molecule("He 0 0 0", "sto-3g"))
    with pytest.raises(ValueError, match="no such shell"):
        core.quartet(libcint, 0, 0, 1, 0, np.empty(1))
    with pytest.raises(ValueError, match="another length"):
        core.quartet(libcint, 0, 0, 0, 0, np.empty(2))
    with pytest.raises(ValueError, match="another length"):
        core.diagonal(libcint, np.empty(2), 1)
    with pytest.raises(ValueError, match="another shape"):
        core.schwarz(libcint, np.empty((1, 2)), 1)
