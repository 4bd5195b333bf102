"""Semicanonical orbitals of an ROHF: the same determinant, its orbitals turned within their space."""

import numpy as np
import pytest
from open_shells import TIGHT, mean_field, pyscf_ccsd
from pyscf import tools

import tilewise
from tilewise.chem.sources import reference_of
from tilewise.equations.uccsd import UCCSD as TEXT

CASES = [
    # molecule, basis, unpaired, symmetry, frozen
    ("NH2", "6-31g", 1, "auto", 1),
    ("NH2", "6-31g", 1, "C1", None),
    ("OH", "6-31g", 1, "auto", [0, 10]),  # a virtual orbital too
    ("O2", "sto-3g", 2, "auto", 2),  # irreps without occupied orbitals
    ("N", "6-31g", 3, "C1", None),  # degenerate levels in one irrep
    ("H2", "6-31g", 2, "auto", None),  # no beta electron
    ("He", "cc-pvtz", 2, "auto", None),
    ("Li", "cc-pvdz", 1, "auto", 1),  # one electron is left
]


def turned_mean_field(mf, reference):
    """PySCF's UHF with the orbitals of a reference."""
    found = mf.to_uhf()
    found.mo_coeff = np.array([own.integrals.coefficients for own in reference.by_spin])
    found.converged = True
    return found


@pytest.mark.parametrize(("name", "basis", "spin", "symmetry", "frozen"), CASES)
def test_the_fock_matrix_is_diagonal_in_each_space_and_energies_stay(name, basis, spin, symmetry, frozen):
    mf = mean_field(name, basis, spin, "rohf")
    given = reference_of(mf, frozen, symmetry)
    reference = given.semicanonical()
    assert reference.outline == given.outline and reference.semicanonical() is reference
    density = sum(
        own.integrals.coefficients[:, filled] @ own.integrals.coefficients[:, filled].T
        for own, filled in zip(reference.by_spin, reference.occupied, strict=True)
    )
    assert np.abs(density - mf.make_rdm1().sum(axis=0)).max() < 1e-9
    overlap = mf.get_ovlp()
    for own, focks in zip(reference.by_spin, ("focka", "fockb"), strict=True):
        orbitals, n_occ = own.integrals.coefficients[:, own.order], own.outline.n_occ
        assert np.abs(orbitals.T @ overlap @ orbitals - np.eye(len(own.order))).max() < 1e-10
        fock = orbitals.T @ getattr(mf.get_fock(), focks) @ orbitals
        energies = np.concatenate([own.occ_energies, own.vir_energies])
        rest = fock - np.diag(energies)
        assert max(np.abs(x).max(initial=0.0) for x in (rest[:n_occ, :n_occ], rest[n_occ:, n_occ:])) < 1e-8
        assert np.abs(own.fock_rest() - rest).max() < 1e-8
        for space in (slice(n_occ), slice(n_occ, None)):  # numbers go up with the level
            assert (np.diff(energies[space][np.argsort(own.order[space])]) > -1e-7).all()
    alpha, beta = (own.integrals.coefficients for own in reference.by_spin)
    assert np.abs(reference.overlap - alpha.T @ overlap @ beta).max() < 1e-10
    assert abs(reference.s_squared - given.s_squared) < 1e-10
    expected, found = (tilewise.UCCSD(each, **TIGHT).run() for each in (given, reference))
    assert abs(found.e_corr - expected.e_corr) < 1e-9 and abs(found.e_hf - expected.e_hf) < 1e-12
    assert abs(found.s_squared - expected.s_squared) < 1e-7


def test_energies_and_amplitudes_are_those_of_pyscf_on_the_same_orbitals():
    mf, frozen = mean_field("NH2", "6-31g", 1, "rohf"), 1
    reference = reference_of(mf, frozen).semicanonical()
    expected = pyscf_ccsd(turned_mean_field(mf, reference), frozen)
    found = tilewise.CCSD(reference, **TIGHT).run()
    assert abs(found.e_corr - expected.e_corr) < 1e-9
    for mine, theirs in zip(found.to_pyscf(), (expected.t1, expected.t2), strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one.shape == other.shape and np.abs(one - other).max() < 1e-6


@pytest.mark.parametrize(
    ("df", "cholesky", "on_the_fly"), [(True, None, None), (None, 1e-9, None), (None, None, True)]
)
def test_decomposed_integrals_follow_the_orbitals(df, cholesky, on_the_fly):
    mf = mean_field("OH", "6-31g", 1, "rohf")
    given = reference_of(mf, fitting=df or cholesky)
    energies = [
        tilewise.CCSD(each, on_the_fly=on_the_fly, **TIGHT).run().e_corr
        for each in (given, given.semicanonical())
    ]
    assert abs(energies[0] - energies[1]) < 1e-9


def test_integrals_that_nobody_keeps_follow_the_orbitals():
    mf = mean_field("NH2", "6-31g", 1, "rohf").copy()
    mf._eri, mf.max_memory = None, 0
    given = reference_of(mf, 1)
    energies = [tilewise.CCSD(each, **TIGHT).run().e_corr for each in (given, given.semicanonical())]
    assert abs(energies[0] - energies[1]) < 1e-9


@pytest.mark.parametrize("frozen", [None, 1])
def test_a_file_follows_too(frozen, tmp_path):
    mf = mean_field("NH2", "6-31g", 1, "rohf")
    tools.fcidump.from_scf(mf, str(tmp_path / "dump"), tol=1e-14)
    given = tilewise.read_fcidump(tmp_path / "dump", frozen)
    energies = [tilewise.CCSD(each, **TIGHT).run().e_corr for each in (given, given.semicanonical())]
    assert abs(energies[0] - energies[1]) < 1e-9
    levels = np.sort(given.semicanonical().alpha.vir_energies)
    expected = np.sort(reference_of(mf, frozen).semicanonical().alpha.vir_energies)
    assert np.abs(levels - expected).max() < 1e-7


def test_a_method_may_ask_for_them_and_a_subgroup_restarts_from_them(tmp_path):
    mf = mean_field("NH2", "6-31g", 1, "rohf")
    asking = tilewise.Method(
        "semi", TEXT, start={"T": "K"}, results={"t1": "t", "t2": "T"}, spin_orbitals=True, semicanonical=True
    )
    first = asking(mf, checkpoint=tmp_path / "kept", **TIGHT).run()
    assert first.reference.is_semicanonical
    assert abs(first.e_corr - tilewise.CCSD(mf, **TIGHT).run().e_corr) < 1e-9
    again = asking(mf, symmetry="C1", restart=tmp_path / "kept", **TIGHT).run()
    assert len(again.iterations) <= 2 and abs(again.e_corr - first.e_corr) < 1e-9
    plain = tilewise.Method("semi", TEXT, start={"T": "K"}, spin_orbitals=True)
    with pytest.raises(tilewise.TilewiseError, match="other orbitals"):
        plain(mf, restart=tmp_path / "kept", **TIGHT).run()


def test_canonical_orbitals_stay_as_they_are():
    for kind in ("uhf", "rhf"):
        reference = reference_of(mean_field("H2O", "6-31g", 0, kind))
        assert reference.semicanonical() is reference
