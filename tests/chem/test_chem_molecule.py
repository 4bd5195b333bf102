"""Building molecules, running the SCF, and outlines before it."""

import numpy as np
import pytest
from chem_oracles import WATER
from pyscf import gto, lib, scf

from tilewise.chem import pyscf_source
from tilewise.chem.pyscf_functions import BasisFunctions
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import from_mean_field, outline, run_scf
from tilewise.errors import InputError

ETHYLENE = """C 0 0 0.6695; C 0 0 -0.6695; H 0 0.9289 1.2321; H 0 -0.9289 1.2321
H 0 0.9289 -1.2321; H 0 -0.9289 -1.2321"""
RING = [
    (radius * np.cos(k * np.pi / 3), radius * np.sin(k * np.pi / 3))
    for radius in (1.397, 2.481)
    for k in range(6)
]
BENZENE = "\n".join(f"{'C' if k < 6 else 'H'} {x:.6f} {y:.6f} 0" for k, (x, y) in enumerate(RING))


@pytest.mark.parametrize(
    ("atoms", "basis", "charge", "group"),
    [
        (WATER, "6-31g", 0, "C2v"),
        ("N 0 0 0; N 0 0 1.1", "cc-pvtz", 0, "D2h"),
        (ETHYLENE, "6-31g", 0, "D2h"),
        ("F 0 0 0", "6-31g", -1, "D2h"),
        ("Ne 0 0 0", "cc-pvdz", 0, "D2h"),
        ("Li 0 0 0; H 0 0 1.6", "6-31g", 0, "C2v"),
        ("H 0 0 0; H 0 0 0.74", "cc-pvdz", 0, "D2h"),
        (BENZENE, "sto-3g", 0, "D2h"),
        (WATER + "; ghost-O 0 0 3", "6-31g", 0, "C2v"),
        ("I 0 0 0; H 0 0 1.6", "def2-svp", 0, "C2v"),
    ],
)
def test_the_outline_foresees_the_scf(atoms, basis, charge, group):
    mol = build_molecule(atoms, basis, charge)
    core = "auto" if BasisFunctions(mol, mol.nao).core < mol.nelectron // 2 else None
    guessed, found = outline(mol, core), from_mean_field(run_scf(mol), core).outline
    assert guessed.group.name == group
    assert (guessed.occ, guessed.vir) == (found.occ, found.vir)
    assert guessed.n_electrons == 2 * (guessed.n_occ + guessed.frozen_core)
    assert "guessed" in guessed.source and found.source == "SCF orbitals"


@pytest.mark.parametrize("basis", ["cc-pvdz", "cc-pvtz"])
def test_an_outline_of_benzene_needs_no_scf(basis, monkeypatch):
    mol = build_molecule(BENZENE, basis)
    monkeypatch.setattr(scf.hf.SCF, "kernel", None)
    plan = outline(mol, "auto")
    assert plan.occ == (4, 2, 1, 1, 0, 1, 3, 3)
    assert (plan.formula, plan.basis, plan.frozen_core) == ("C6H6", basis, 6)


@pytest.mark.parametrize("missing", ["_atomic_potentials", "huckel"])
def test_the_outline_falls_back_and_says_so(missing, monkeypatch):
    def fail(*args, **kwargs):
        raise KeyError("no data")

    monkeypatch.setattr(pyscf_source, "_atomic_potentials", fail)
    if missing == "huckel":
        monkeypatch.setattr(scf.hf, "_init_guess_huckel_orbitals", fail)
    plan = outline(build_molecule(WATER, "6-31g"), symmetry="C2")
    assert plan.occ == (3, 2)
    assert ("core Hamiltonian" if missing == "huckel" else "Hueckel") in plan.source


def test_molecules_from_a_file_and_from_text_are_the_same(tmp_path):
    path = tmp_path / "water.xyz"
    path.write_text("3\n\n" + WATER.replace("; ", "\n") + "\n")
    from_file, from_text = build_molecule(path, "sto-3g"), build_molecule(WATER, "sto-3g", max_memory=10**9)
    assert np.allclose(from_file.atom_coords(), from_text.atom_coords())
    assert from_text.max_memory == 1000
    plain = gto.M(atom=WATER, basis="sto-3g", verbose=0)
    assert from_file.energy_nuc() == pytest.approx(plain.energy_nuc(), abs=1e-12)


def test_coordinates_in_bohr_are_the_same_molecule():
    angstrom = build_molecule(WATER, "sto-3g")
    text = "; ".join(
        f"{angstrom.atom_symbol(k)} {x:.12f} {y:.12f} {z:.12f}"
        for k, (x, y, z) in enumerate(angstrom.atom_coords())
    )
    bohr = build_molecule(text, "sto-3g", unit="bohr")
    assert np.allclose(bohr.atom_coords(), angstrom.atom_coords(), atol=1e-10)


@pytest.mark.parametrize("symbol", ["Gh(O)", "@O", "O@", "O-Bq"])
def test_ghosts_of_every_spelling_have_functions_and_no_electrons(symbol):
    mol = build_molecule(f"{WATER}; {symbol} 0 0 3", "sto-3g")
    assert (mol.nelectron, mol.nao) == (10, 12)


def test_deuterium_is_hydrogen():
    heavy, light = (build_molecule(WATER.replace("H", symbol), "sto-3g") for symbol in "DH")
    assert heavy.energy_nuc() == light.energy_nuc() and heavy.nao == light.nao


def test_rounded_coordinates_are_made_exactly_symmetric():
    wobbly = "O 0.00001 0 0.1173; H 0 0.75721 -0.46921; H 0 -0.75719 -0.4692"
    assert gto.M(atom=wobbly, symmetry=True, verbose=0).groupname == "Cs"
    mol = build_molecule(wobbly, "6-31g")
    assert mol.groupname == "C2v"
    overlap = mol.intor("int1e_ovlp")
    blocks = mol.symm_orb
    assert max(np.abs(a.T @ overlap @ b).max() for a in blocks for b in blocks if a is not b) < 1e-12
    assert np.abs(mol.atom_coords() - gto.M(atom=wobbly, verbose=0).atom_coords()).max() < 5e-5


def test_symmetry_can_be_chosen():
    assert not build_molecule(WATER, "sto-3g", symmetry="C1").symmetry
    assert not build_molecule(WATER, "sto-3g", symmetry=False).symmetry
    methane = "C 0 0 0; H 0.63 0.63 0.63; H -0.63 -0.63 0.63; H 0.63 -0.63 -0.63; H -0.63 0.63 -0.63"
    assert build_molecule(methane, "sto-3g").groupname == "D2"
    assert build_molecule(methane, "sto-3g", symmetry="C2v").groupname == "C2v"
    with pytest.raises(InputError, match=r"lacks the symmetry D2h; valid are C2v, "):
        build_molecule(WATER, "sto-3g", symmetry="D2h")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((WATER, "cc-pvdzz"), "unknown basis 'cc-pvdzz': did you mean cc-pvdz"),
        ((WATER, "qqqqqq"), "unknown basis 'qqqqqq': try"),
        (("Xe 0 0 0", "6-31g"), "basis '6-31g' has no functions for Xe"),
        (("U 0 0 0", "cc-pvdz"), "basis 'cc-pvdz' has no functions for U"),
        ((WATER, {"O": "sto-3g"}), "no basis given for H"),
        ((WATER, "sto-3g", 1), r"charge \+1 leaves 9 electrons.*charge \+0 or \+2"),
        ((WATER, "sto-3g", 10), "leaves 0 electrons"),
        ((WATER, "sto-3g", 10**25), r"charge \+10{25} leaves -9{24}0 electrons"),
        ((WATER, "sto-3g", -(10**25)), r"charge -10{25} is more than 10 protons can bind: .* from -10 up"),
        (("nowhere.xyz", "sto-3g"), "no such file"),
        (("O 0 0 0; Q 0 0 1", "sto-3g"), "line 2: unknown element 'Q'"),
    ],
)
def test_wrong_molecules_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        build_molecule(*arguments)


def test_a_heavy_element_gets_the_core_potential_of_its_basis():
    assert build_molecule("I 0 0 0; H 0 0 1.6", "def2-svp").nelectron == 26
    assert build_molecule("I 0 0 0; ghost-I 0 0 3; H 0 0 1.6", {"default": "def2-svp"}).nelectron == 26


def test_scf_reports_its_cycles_and_restarts(capfd):
    mol, seen = build_molecule(WATER, "sto-3g"), []
    mf = run_scf(mol, progress=lambda *cycle: seen.append(cycle), max_memory=10**9)
    assert [cycle for cycle, _, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][1] == pytest.approx(mf.e_tot, abs=1e-8)
    assert mf.e_tot == pytest.approx(scf.RHF(mol).run().e_tot, abs=1e-8)
    again = []
    run_scf(mol, guess=(mf.mo_coeff, mf.mo_occ), progress=lambda *cycle: again.append(cycle))
    assert len(again) < len(seen)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("atoms", "spin", "kind"),
    [
        ("Cr 0 0 0; O 0 0 1.6", 4, "uhf"),
        ("Fe 0 0 0; O 0 0 1.6", 4, "rohf"),
        ("Ni 0 0 0; O 0 0 1.6", 2, "rohf"),
    ],
)
def test_where_diis_stalls_a_second_order_solver_goes_on(atoms, spin, kind):
    mol, notes, seen = build_molecule(atoms, "sto-3g", spin=spin), [], []
    plain = {"uhf": scf.UHF, "rohf": scf.ROHF}[kind](mol).set(conv_tol_grad=1e-7, max_cycle=100).run()
    assert not plain.converged
    mf = run_scf(mol, reference=kind, note=notes.append, progress=lambda *cycle: seen.append(cycle))
    assert mf.converged and mf.e_tot < plain.e_tot and type(mf) is type(plain)
    fock = mf.get_fock(dm=mf.make_rdm1())
    assert np.linalg.norm(mf.get_grad(mf.mo_coeff, mf.mo_occ, fock)) < 2e-6
    assert [cycle for cycle, _, _ in seen] == list(range(1, len(seen) + 1))
    assert len(notes) == 1 and "PySCF's second-order solver went on" in notes[0]
    assert from_mean_field(mf).kind == kind
    with pytest.raises(InputError, match="SCF not converged in 22 cycles"):
        run_scf(mol, reference=kind, max_cycle=22)


def test_an_interrupted_scf_is_interrupted_wherever_it_is(monkeypatch):
    """PySCF's DIIS catches errors of NumPy by a name that NumPy no longer has, and fails over it."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(lib.diis.numpy.linalg, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_scf(build_molecule(WATER, "sto-3g"))


def test_scf_that_does_not_converge_says_what_to_try():
    with pytest.raises(
        InputError, match=r"SCF not converged in 2 cycles .last energy change .* hartree.: allow more"
    ):
        run_scf(build_molecule(WATER, "sto-3g"), max_cycle=2)
    with pytest.raises(InputError, match="reference rhf: the molecule has 2 unpaired electrons"):
        run_scf(gto.M(atom="O 0 0 0", basis="sto-3g", spin=2, verbose=0), reference="rhf")
