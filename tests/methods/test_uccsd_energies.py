"""Open-shell CCSD against PySCF's UCCSD: UHF and ROHF, groups and their subgroups, frozen orbitals."""

import numpy as np
import pytest
from open_shells import ATOMS, TIGHT, broken_symmetry, mean_field, pyscf_ccsd
from pyscf import cc, gto, scf

import tilewise
from tilewise.chem.pyscf_scf import run_scf
from tilewise.errors import InputError

CASES = [
    # molecule, basis, unpaired, kind, charge, symmetry, frozen
    ("O2", "sto-3g", 2, "uhf", 0, "auto", 2),
    ("O2", "sto-3g", 2, "rohf", 0, "auto", 2),
    ("O2", "sto-3g", 2, "uhf", 0, "C1", None),
    ("O2", "sto-3g", 2, "rohf", 0, "C2v", None),
    ("O2", "6-31g", 2, "rohf", 0, "auto", None),
    ("O2", "6-31g", 2, "uhf", 0, "C1", 2),
    ("O2", "6-31g", 1, "uhf", -1, "auto", 2),
    ("O2", "6-31g", 1, "rohf", -1, "C2v", None),
    ("NH2", "6-31g", 1, "uhf", 0, "auto", None),
    ("NH2", "6-31g", 1, "rohf", 0, "auto", 1),
    ("NH2", "6-31g", 1, "rohf", 0, "C1", None),
    ("NH2", "6-31g", 1, "uhf", 0, "Cs", 1),
    ("CN", "6-31g", 1, "uhf", 0, "auto", None),
    ("CN", "6-31g", 1, "rohf", 0, "auto", 2),
    ("OH", "cc-pvdz", 1, "uhf", 0, "auto", None),
    ("OH", "cc-pvdz", 1, "rohf", 0, "auto", 1),
    ("OH", "6-31g", 1, "rohf", 0, "C1", None),
    ("NO", "6-31g", 1, "uhf", 0, "auto", 2),
    ("NO", "6-31g", 1, "uhf", 0, "C1", None),
    ("NO", "6-31g", 1, "rohf", 0, "auto", 2),
    ("NO", "sto-3g", 1, "rohf", 0, "C2", None),
    ("Li", "cc-pvdz", 1, "uhf", 0, "auto", None),
    ("Li", "cc-pvdz", 1, "rohf", 0, "C1", None),
    ("Li", "cc-pvdz", 1, "rohf", 0, "auto", 1),  # one electron is left
    ("CH2", "6-31g", 2, "uhf", 0, "auto", None),
    ("CH2", "6-31g", 2, "rohf", 0, "auto", 1),
    ("N", "6-31g", 3, "uhf", 0, "auto", None),
    ("N", "6-31g", 3, "rohf", 0, "auto", 1),
    ("HCO", "6-31g", 1, "uhf", 0, "auto", 2),
    ("HCO", "6-31g", 1, "rohf", 0, "C1", None),
    ("HO2", "6-31g", 1, "uhf", 0, "auto", 2),
    ("HO2", "6-31g", 1, "rohf", 0, "auto", None),
    ("HO2", "sto-3g", 1, "rohf", 0, "C1", 2),
    ("BeH", "6-31g", 1, "rohf", 0, "auto", [0, 10]),  # a virtual orbital too
    ("H2", "6-31g", 2, "uhf", 0, "auto", None),  # no beta electrons
    ("He", "cc-pvtz", 2, "rohf", 0, "auto", None),
    ("He", "cc-pvtz", 2, "uhf", 0, "auto", None),
    ("He", "cc-pvdz", 1, "uhf", 1, "auto", None),  # one electron
    ("H2", "sto-3g", 2, "rohf", 0, "auto", None),  # no alpha orbital to go to
    ("LiH", "sto-3g", 2, "uhf", 0, "auto", None),
    ("H2O", "6-31g", 0, "rhf", 0, "auto", 1),
    ("H2O", "6-31g", 0, "rohf", 0, "C1", None),
    ("H2O", "6-31g", 0, "uhf", 0, "Cs", None),
]


@pytest.mark.parametrize(("name", "basis", "spin", "kind", "charge", "symmetry", "frozen"), CASES)
def test_the_energy_is_that_of_pyscf(name, basis, spin, kind, charge, symmetry, frozen):
    mf = mean_field(name, basis, spin, kind, charge)
    found = tilewise.UCCSD(mf, frozen=frozen, symmetry=symmetry, **TIGHT).run()
    expected = pyscf_ccsd(mf, frozen, found.to_pyscf())
    assert expected.converged
    assert found.converged and abs(found.e_corr - expected.e_corr) < 1e-8
    assert abs(found.e_tot - expected.e_tot) < 1e-8


def test_one_electron_has_no_correlation():
    for kind in ("uhf", "rohf"):
        found = tilewise.CCSD(mean_field("H", "cc-pvdz", 1, kind)).run()
        assert found.converged and found.e_corr == 0.0 and abs(found.s_squared - 0.75) < 1e-10


def test_the_benzene_cation():
    ring = [(np.cos(k * np.pi / 3), np.sin(k * np.pi / 3)) for k in range(6)]
    atoms = [(symbol, (r * x, r * y, 0)) for symbol, r in (("C", 1.39), ("H", 2.48)) for x, y in ring]
    mol = gto.M(atom=atoms, basis="sto-3g", charge=1, spin=1, symmetry=True, verbose=0)
    mf = run_scf(mol, reference="rohf")
    found = tilewise.CCSD(mf, frozen=6, **TIGHT).run()
    assert found.converged and abs(found.e_corr - pyscf_ccsd(mf, 6, found.to_pyscf()).e_corr) < 1e-8


def test_a_broken_symmetry_singlet_gets_a_note_and_the_energy_of_pyscf():
    mf = broken_symmetry(ATOMS["N2"], "sto-3g")
    found = tilewise.CCSD(mf, **TIGHT).run()
    expected = cc.UCCSD(mf)  # by itself it wanders about this solution by 1e-8 hartree
    expected.verbose = 0
    expected.kernel(*found.to_pyscf())
    assert expected.converged
    assert mf.spin_square()[0] > 1.0
    assert abs(found.reference.s_squared - mf.spin_square()[0]) < 1e-8
    assert found.converged and abs(found.e_corr - expected.e_corr) < 1e-8
    assert any("mixes spin states" in note and "mf.stability()" in note for note in found.notes)


def test_closed_shells_through_the_open_shell_text_equal_the_closed_shell_method():
    mf = mean_field("H2O", "6-31g", 0, "rhf")
    one, other = tilewise.CCSD(mf, **TIGHT).run(), tilewise.UCCSD(mf, **TIGHT).run()
    assert one.method.name == "ccsd" and other.method.name == "uccsd"
    assert abs(one.e_corr - other.e_corr) < 1e-9
    assert abs(one.t1_diagnostic - other.t1_diagnostic) < 1e-7
    (t1a, t1b), (_, t2ab, _) = other.to_pyscf()
    t1, t2 = one.to_pyscf()
    for found, expected in ((t1a, t1), (t1b, t1), (t2ab, t2)):
        assert np.abs(found - expected).max() < 1e-6


@pytest.mark.parametrize(("kind", "frozen"), [("uhf", None), ("rohf", 1), ("uhf", [[0], [0, 1]])])
def test_amplitudes_are_those_of_pyscf_by_spin_case(kind, frozen):
    mf = mean_field("NH2", "6-31g", 1, kind)
    expected, found = pyscf_ccsd(mf, frozen), tilewise.CCSD(mf, frozen=frozen, **TIGHT).run()
    assert abs(found.e_corr - expected.e_corr) < 1e-8
    for mine, theirs in zip(found.to_pyscf(), (expected.t1, expected.t2), strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one.shape == other.shape and np.abs(one - other).max() < 1e-6


def test_projected_spin_is_exact_where_ccsd_is_and_for_every_rohf():
    mf = broken_symmetry("H 0 0 0; H 0 0 2.5", "6-31g")
    found = tilewise.CCSD(mf, conv_tol=1e-12, conv_tol_residual=1e-9, max_cycle=200).run()
    assert found.reference.s_squared > 0.5 and abs(found.s_squared) < 1e-7
    for frozen in (None, 1):
        rohf = tilewise.CCSD(mean_field("NH2", "6-31g", 1, "rohf"), frozen=frozen).run()
        assert abs(rohf.reference.s_squared - 0.75) < 1e-10 and abs(rohf.s_squared - 0.75) < 1e-10


def test_the_mean_field_decides_on_the_method():
    rhf, uhf = mean_field("H2O", "6-31g", 0, "rhf"), mean_field("OH", "6-31g", 1, "uhf")
    assert type(tilewise.CCSD(rhf)) is tilewise.CCSD
    assert type(tilewise.CCSD(uhf)) is tilewise.UCCSD
    assert type(tilewise.CCSD(tilewise.CCSD(uhf).reference)) is tilewise.UCCSD
    with pytest.raises(InputError, match="GHF is neither restricted nor unrestricted"):
        tilewise.CCSD(scf.GHF(uhf.mol))
    with pytest.raises(InputError, match="lccd treats closed shells alone"):
        lccd = tilewise.Method(
            "lccd",
            "input T[ab+-|ij+-]\nconstant K[ab+-|ij+-] = (ia|jb)\ne[] = T[ab|ij] K[ab|ij]\n"
            "R[ab+-|ij+-] = K[ab|ij]\nsolve T[ab|ij] : R[ab|ij] / (i + j - a - b)\n",
        )
        lccd(uhf)


def test_density_fitting_and_cholesky_decompositions():
    mf = mean_field("OH", "6-31g", 1, "rohf")
    expected = pyscf_ccsd(mf).e_corr
    assert abs(tilewise.CCSD(mf, cholesky=1e-9, **TIGHT).run().e_corr - expected) < 1e-7
    mol = mf.mol
    fitted = scf.UHF(mol).density_fit(auxbasis="cc-pvdz-ri").run(conv_tol=1e-12, conv_tol_grad=1e-8)
    theirs = cc.UCCSD(fitted)
    theirs.conv_tol, theirs.conv_tol_normt, theirs.verbose = 1e-10, 1e-7, 0
    found = tilewise.CCSD(fitted, **TIGHT).run()
    assert abs(found.e_corr - theirs.run().e_corr) < 1e-8


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        (7, "there are 5 occupied orbitals of one spin, so a number from 0 to 5"),
        ([0, 99], "frozen orbital 99 does not exist"),
        (list(range(11)), "leaves no occupied orbital"),
    ],
)
def test_frozen_orbitals_that_do_not_fit_are_refused(frozen, message):
    with pytest.raises(InputError, match=message):
        tilewise.CCSD(mean_field("OH", "6-31g", 1, "uhf"), frozen=frozen)
