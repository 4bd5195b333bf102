"""Energies against PySCF and dense diagonalization; invariance under M_S and M_L."""
# ruff: noqa: E741

import numpy as np
import pytest
from pyscf import ci, fci, gto, mcscf, scf

import tilewise
from ci.cases import AMIDOGEN, HYDROGEN_FLUORIDE, NITROGEN, WATER, dense, lowest, mean_field

TIGHT = {"conv_tol": 1e-11, "conv_tol_residual": 1e-6}


@pytest.mark.parametrize(("atoms", "count"), [(WATER, 3416), (NITROGEN, 4256)])
def test_cisd_of_molecules_is_that_of_pyscf(atoms, count):
    mf = mean_field(atoms, "cc-pvdz")
    found = tilewise.CI(mf, rank=2, **TIGHT).run()
    assert found.converged and len(found.determinants) == count
    assert found.e_tot == pytest.approx(ci.CISD(mf).run(conv_tol=1e-12).e_tot, abs=1e-9)
    assert found.levels[0].name in ("1A1", "1Ag")
    assert found.natural_orbitals().occupations.sum() == pytest.approx(mf.mol.nelectron, abs=1e-9)


@pytest.mark.parametrize("irrep", ["A1", "B1"])
def test_full_ci_has_the_roots_of_every_irrep(irrep):
    mf = mean_field(HYDROGEN_FLUORIDE, "6-31g", symmetry="C2v")
    found = tilewise.CI(mf, rank=None, frozen=2, irrep=irrep, roots=3, **TIGHT).run()
    cas = mcscf.CASCI(mf, 9, 6)
    cas.fcisolver = fci.direct_spin1_symm.FCI(mf.mol)
    cas.fcisolver.wfnsym, cas.fcisolver.nroots, cas.fcisolver.conv_tol = irrep, 5, 1e-11
    np.testing.assert_allclose(found.energies, np.sort(cas.kernel()[0])[:3], atol=1e-9)


def test_roots_are_those_of_the_dense_matrix():
    calculation = tilewise.CI(mean_field(WATER, "sto-3g"), rank=None, symmetry="C1", roots=5, **TIGHT).run()
    np.testing.assert_allclose(calculation.energies, lowest(calculation, 5), atol=1e-9)


def test_direct_and_stored_calculations_agree():
    mf = mean_field(NITROGEN, "sto-3g")
    energies = [tilewise.CI(mf, rank=3, direct=direct, **TIGHT).run().e_tot for direct in (True, False)]
    assert energies[0] == pytest.approx(energies[1], abs=1e-10)


def test_open_shells_have_the_energies_of_full_ci():
    mf = mean_field(AMIDOGEN, "sto-3g", 1)
    found = tilewise.CI(mf, rank=None, frozen=1, **TIGHT).run()
    cas = mcscf.CASCI(mean_field(AMIDOGEN, "sto-3g", 1, symmetry=False), 6, 7)
    cas.fcisolver.conv_tol, cas.fcisolver.nroots = 1e-11, 2
    assert found.e_tot == pytest.approx(min(cas.kernel()[0]), abs=1e-9)
    assert found.multiplicities == [2]


@pytest.mark.parametrize(
    ("symbol", "basis", "reference", "options"),
    [
        ("Be", "cc-pvdz", "1s2 2s2", {}),
        ("Li", "cc-pvtz", "1s2 2s1", {}),
        ("Li", "cc-pvtz", "1s2 2p1", {}),
        ("C", "6-31g", "1s2 2s2 2p2", {"term": "3P"}),
        ("C", "6-31g", "1s2 2s2 2p2", {"m_l": 0, "m_s": 1}),
        ("O", "6-31g", "1s2 2s2 2p4", {"term": "3P"}),
        ("O", "6-31g", "1s2 2s2 2p4", {"m_l": 0, "m_s": 1}),
    ],
)
def test_full_ci_of_atoms_is_that_of_pyscf(symbol, basis, reference, options):
    """In D2h, the lowest root of any irrep that the term has a part in."""
    found = tilewise.CI.atom(symbol, basis=basis, reference=reference, rank=None, **options, **TIGHT).run()
    unpaired = found.determinants.electrons[0] - found.determinants.electrons[1]
    mf = scf.ROHF(gto.M(atom=symbol, basis=basis, spin=unpaired, symmetry="D2h", verbose=0)).run()
    energies = []
    of_even = ("Ag", "B1g", "B2g", "B3g") if "2p" in reference else ("Ag",)
    for irrep in ("B1u",) if found.problem.is_odd else of_even:
        solver = fci.FCI(mf)
        solver.wfnsym, solver.nroots, solver.conv_tol = irrep, 3, 1e-11
        energies += np.atleast_1d(solver.kernel()[0]).tolist()
    assert np.abs(np.array(energies) - found.e_tot).min() < 1e-9
    assert found.e_tot < min(energies) + 1e-9


@pytest.mark.parametrize(
    ("symbol", "unpaired", "irreps", "most"), [("C", 2, "Ag B1g B2g B3g", 4), ("O", 2, "B1g Ag", 5)]
)
def test_full_ci_of_atoms_in_d2h_has_the_roots_of_pyscf(symbol, unpaired, irreps, most):
    """Roots that lie as close together as 1e-5 hartree are told apart: PySCF follows more of them."""
    mf = mean_field(f"{symbol} 0 0 0", "cc-pvdz", unpaired, symmetry="D2h")
    active = mf.mol.nelectron - 2
    for irrep in irreps.split():
        found = tilewise.CI(mf, rank=None, frozen=1, irrep=irrep, roots=2, **TIGHT).run()
        cas = mcscf.CASCI(mf, 13, ((active + unpaired) // 2, (active - unpaired) // 2))
        cas.fcisolver = fci.direct_spin1_symm.FCI(mf.mol)
        cas.fcisolver.wfnsym, cas.fcisolver.nroots, cas.fcisolver.conv_tol = irrep, most, 1e-11
        cas.canonicalization = False
        np.testing.assert_allclose(found.energies, np.sort(cas.kernel()[0])[:2], atol=1e-9)


def test_full_ci_of_the_valence_of_beryllium_is_that_of_pyscf():
    options = {"basis": "aug-cc-pvtz", "reference": "1s2 2s2", "rank": None, "frozen": "1s"}
    found = tilewise.CI.atom("Be", **options, **TIGHT).run()
    mf = mean_field("Be 0 0 0", "aug-cc-pvtz")
    cas = mcscf.CASCI(mf, mf.mo_coeff.shape[1] - 1, 2)
    cas.fcisolver.conv_tol, cas.canonicalization = 1e-12, False
    assert len(found.determinants) == 209
    assert found.e_tot == pytest.approx(cas.kernel()[0], abs=1e-9)


@pytest.mark.parametrize(("basis", "by_m_l", "in_d2h"), [("cc-pvdz", 312, 400), ("aug-cc-pvtz", 5104, 7888)])
def test_cisd_of_neon_by_m_l_is_that_of_pyscf(basis, by_m_l, in_d2h):
    found = tilewise.CI.atom("Ne", basis=basis, reference="1s2 2s2 2p6", rank=2, term="1S", **TIGHT).run()
    mf = mean_field("Ne 0 0 0", basis)
    assert len(found.determinants) == by_m_l
    assert len(tilewise.CI(mf, rank=2).determinants) == in_d2h
    assert found.e_hf == pytest.approx(mf.e_tot, abs=1e-9)
    assert found.e_tot == pytest.approx(ci.CISD(mf).run(conv_tol=1e-12).e_tot, abs=1e-9)


@pytest.mark.parametrize(
    ("symbol", "reference", "projections"),
    [
        ("O", "1s2 2s2 2p4", [(1, 1), (1, 0), (0, 1), (0, 0)]),
        ("C", "1s2 2s2 2p2", [(1, 1), (1, 0), (0, 1)]),
        ("N", "1s2 2s2 2p3", [(0, 1.5), (0, 0.5)]),
    ],
)
def test_energies_are_the_same_for_every_projection(symbol, reference, projections):
    energies = [
        tilewise.CI.atom(
            symbol,
            basis="6-31g",
            reference=reference,
            rank=2,
            m_l=m_l,
            m_s=m_s,
            conv_tol=1e-12,
            conv_tol_residual=1e-7,
        )
        .run()
        .e_tot
        for m_l, m_s in projections
    ]
    assert np.ptp(energies) < 1e-10


def test_terms_are_found_among_roots_of_others():
    options = {"basis": "cc-pvdz", "reference": "1s2 2s2 2p2", "rank": 2, "frozen": "1s"}
    found = {term: tilewise.CI.atom("C", term=term, **options).run() for term in ("3P", "1D", "1S")}
    energies = [found[term].e_tot for term in ("3P", "1D", "1S")]
    assert energies == sorted(energies)
    for term, l in (("3P", 1), ("1D", 2), ("1S", 0)):
        level = found[term].levels[0]
        assert level.name == term and level.l_squared == pytest.approx(l * (l + 1), abs=1e-6)
        assert level.configurations[0][0] == "2s2 2p2"
    matrix = dense(found["1S"])
    assert np.abs(np.linalg.eigvalsh(matrix) - found["1S"].e_tot).min() < 1e-8


def test_weights_and_natural_orbitals_of_beryllium():
    found = tilewise.CI.atom("Be", basis="cc-pvdz", reference="1s2 2s2", rank=None, term="1S").run()
    weights = found.weights[0]
    assert list(weights)[:2] == ["1s2 2s2", "1s2 2p2"]
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-3)
    natural = found.natural_orbitals()
    assert natural.occupations.sum() == pytest.approx(4.0, abs=1e-9)
    mf = mean_field("Be 0 0 0", "cc-pvdz", symmetry=False)
    solver = fci.FCI(mf)
    solver.conv_tol = 1e-12
    _, vector = solver.kernel()
    density = solver.make_rdm1(vector, mf.mo_coeff.shape[1], mf.mol.nelec)
    expected = np.linalg.eigvalsh(density)[::-1]
    by_l = [
        np.repeat(occupation / (2 * l + 1), 2 * l + 1)
        for occupation, l in zip(
            natural.occupations, ["spd".index(name) for name in natural.names], strict=True
        )
    ]
    np.testing.assert_allclose(np.sort(np.concatenate(by_l))[::-1], expected, atol=1e-6)


def test_two_references_make_the_union_of_their_spaces():
    mf = mean_field(WATER, "sto-3g")
    both = tilewise.CI(mf, rank=1, reference=["2222200", "2222020"], **TIGHT)
    one = tilewise.CI(mf, rank=1, reference="2222200")
    other = tilewise.CI(mf, rank=1, reference="2222020")
    sets = []
    for calculation in (both, one, other):
        a, b = calculation.determinants.occupied(np.arange(len(calculation.determinants)))
        sets.append({(*x, -1, *y) for x, y in zip(a.tolist(), b.tolist(), strict=True)})
    assert sets[0] == sets[1] | sets[2]
    assert both.run().e_tot == pytest.approx(lowest(both)[0], abs=1e-9)


def test_a_list_of_determinants_is_taken_as_it_is():
    mf = mean_field(WATER, "sto-3g", symmetry=False)
    listed = [(range(5), range(5)), ((0, 1, 2, 3, 5), (0, 1, 2, 3, 5)), ((0, 1, 2, 3, 6), (0, 1, 2, 3, 6))]
    found = tilewise.CI(mf, determinants=listed, **TIGHT).run()
    assert len(found.determinants) == 3 and found.converged
    assert found.e_hf > found.e_tot == pytest.approx(lowest(found)[0], abs=1e-10)
