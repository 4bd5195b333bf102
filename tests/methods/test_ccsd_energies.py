"""Correlation energies at the default thresholds, against PySCF's, in every symmetry and with every core."""

import numpy as np
import pytest
from ccsd_oracles import MOLECULES, TIGHT, mean_field, pyscf_ccsd, pyscf_mp2, pyscf_run, scf_of
from pyscf import gto, lib, scf

import tilewise

ACCURACY = 1e-8

CASES = [(name, group) for name, molecule in MOLECULES.items() for group in molecule.groups]
FROZEN_CASES = [(name, group) for name, group in CASES if MOLECULES[name].core]


@pytest.mark.parametrize(("name", "group"), CASES)
def test_all_electrons(name, group):
    ccsd = tilewise.CCSD(mean_field(name), symmetry=group).run()
    assert ccsd.converged
    assert ccsd.plan.outline.group.name == group
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd(name).e_corr, abs=ACCURACY)


@pytest.mark.parametrize(("name", "group"), FROZEN_CASES)
def test_core_frozen(name, group):
    core = MOLECULES[name].core
    ccsd = tilewise.CCSD(mean_field(name), frozen="auto", symmetry=group).run()
    assert ccsd.converged
    assert ccsd.plan.outline.frozen_core == core
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd(name, core).e_corr, abs=ACCURACY)


@pytest.mark.parametrize("name", MOLECULES)
def test_the_group_is_the_largest_abelian_one(name):
    group = tilewise.CCSD(mean_field(name)).plan.outline.group
    assert group.name == MOLECULES[name].groups[0]


@pytest.mark.parametrize(
    ("name", "frozen"),
    [
        ("water", 2),
        ("water", (0,)),
        ("water", (1, 3)),
        ("water", (0, 11, 12)),
        ("water", (2, 3, 4, 12)),
        ("nitrogen", (0, 1, 17)),
        ("nitrogen", (5,)),  # one of two degenerate orbitals
        ("beryllium", 1),  # one occupied orbital is left
        ("lithium hydride", 1),
        ("argon", (5, 6)),
    ],
)
@pytest.mark.parametrize("group", ["auto", "C1"])
def test_frozen_orbitals_as_a_number_or_a_list(name, frozen, group):
    given = list(frozen) if isinstance(frozen, tuple) else frozen
    ccsd = tilewise.CCSD(mean_field(name), frozen=given, symmetry=group).run()
    assert ccsd.converged
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd(name, frozen).e_corr, abs=ACCURACY)


@pytest.mark.parametrize(
    "name", ["water", "ethylene", "hydrogen, minimal", "hydrogen bromide, core potential"]
)
@pytest.mark.parametrize("frozen", [None, "auto"])
def test_the_first_iteration_begins_with_the_mp2_energy(name, frozen):
    core = MOLECULES[name].core if frozen else None
    ccsd = tilewise.CCSD(mean_field(name), frozen=frozen, max_cycle=1).run()
    first = ccsd.iterations[0]
    assert first.e_corr - first.change == pytest.approx(pyscf_mp2(mean_field(name), core), abs=1e-10)


@pytest.mark.parametrize("frozen", [None, 1])
def test_density_fitting(frozen):
    with lib.with_omp_threads(1):
        mf = scf.RHF(mean_field("water").mol).density_fit().run(conv_tol=1e-13, conv_tol_grad=1e-9)
    expected = pyscf_run(mf, frozen).e_corr
    assert abs(expected - pyscf_ccsd("water", frozen).e_corr) > 1e-6  # fitted integrals are others
    for symmetry in ("auto", "Cs", "C1"):
        ccsd = tilewise.CCSD(mf, symmetry=symmetry, frozen=frozen).run()
        assert ccsd.e_corr == pytest.approx(expected, abs=ACCURACY)


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
def test_integrals_that_do_not_fit_in_memory(symmetry):
    mf = mean_field("nitrogen").copy()
    mf._eri, mf.max_memory = None, 0
    assert tilewise.CCSD(mf, symmetry=symmetry).run().e_corr == pytest.approx(
        pyscf_ccsd("nitrogen").e_corr, abs=ACCURACY
    )


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
def test_fewer_orbitals_than_functions(symmetry):
    """As after PySCF's removal of linear dependencies."""
    mf = mean_field("water").copy()
    mf.mo_coeff, mf.mo_occ = np.asarray(mf.mo_coeff)[:, :11], mf.mo_occ[:11]
    mf.mo_energy = mf.mo_energy[:11]
    ccsd = tilewise.CCSD(mf, symmetry=symmetry).run()
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd("water", (11, 12)).e_corr, abs=ACCURACY)


def test_orbitals_in_any_order():
    mf = mean_field("water").copy()
    shuffled = np.random.default_rng(1).permutation(len(mf.mo_occ))
    mf.mo_coeff, mf.mo_occ = np.asarray(mf.mo_coeff)[:, shuffled], mf.mo_occ[shuffled]
    mf.mo_energy = mf.mo_energy[shuffled]
    for symmetry in ("auto", "C1"):
        ccsd = tilewise.CCSD(mf, frozen="auto", symmetry=symmetry).run()
        assert ccsd.e_corr == pytest.approx(pyscf_ccsd("water", 1).e_corr, abs=ACCURACY)


@pytest.mark.parametrize(
    ("name", "threshold"),
    [("carbon monoxide", 1e-9), ("carbon monoxide", 1e-7), ("lithium hydride", 1e-9), ("formaldehyde", 1e-9)],
)
def test_a_mean_field_that_is_not_converged_to_the_last_digit(name, threshold):
    """Its Fock matrix has elements of 1e-7 to 1e-6 between orbitals (1e-9 is PySCF's default)."""
    with lib.with_omp_threads(1):
        mf = scf.RHF(mean_field(name).mol).run(conv_tol=threshold)
    expected = pyscf_run(mf)
    ccsd = tilewise.CCSD(mf, **TIGHT).run()
    assert ccsd.e_corr == pytest.approx(expected.e_corr, abs=1e-9)
    t1, t2 = ccsd.to_pyscf()
    assert np.abs(t1 - expected.t1).max() < 1e-6
    assert np.abs(t2 - expected.t2).max() < 1e-6


def test_a_core_that_is_partly_a_potential():
    """The potential stands for 28 electrons of iodide; 4s and 4p are left to be frozen."""
    mf = scf_of("I", "def2-svp", charge=-1, ecp="def2-svp")
    expected = pyscf_run(mf, 4).e_corr
    for symmetry in ("D2h", "C1"):
        ccsd = tilewise.CCSD(mf, frozen="auto", symmetry=symmetry).run()
        assert (ccsd.plan.outline.frozen_core, ccsd.plan.outline.n_occ) == (4, 9)
        assert ccsd.e_corr == pytest.approx(expected, abs=ACCURACY)


def test_a_solvent():
    mol = gto.M(atom="He 0 0 0; H 0 0 0.77", basis="6-31g", charge=1, verbose=0)
    with lib.with_omp_threads(1):
        mf = scf.RHF(mol).ddCOSMO().run(conv_tol=1e-12, conv_tol_grad=1e-8)
    expected = pyscf_run(mf).e_corr
    assert abs(expected - pyscf_run(scf.RHF(mol).run()).e_corr) > 1e-6  # the solvent is felt
    assert tilewise.CCSD(mf).run().e_corr == pytest.approx(expected, abs=ACCURACY)


def test_two_molecules_far_apart_have_the_sum_of_their_energies():
    """Size consistency, in an irrep structure that neither molecule has on its own."""
    pair = tilewise.CCSD(scf_of("He 0 0 0; He 0 0 50", "6-31g")).run()
    assert pair.plan.outline.group.name == "D2h"
    single = tilewise.CCSD(scf_of("He", "6-31g")).run()
    assert pair.e_corr == pytest.approx(2 * single.e_corr, abs=ACCURACY)
