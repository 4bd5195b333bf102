"""Chkfiles of PySCF: the SCF that they hold is not run again, on the command line and in Python."""

import json
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest
from pyscf import cc, dft, gto, lib, scf
from pyscf.pbc import gto as pbc_gto
from pyscf.pbc import scf as pbc_scf

import tilewise
from tilewise.chem import pyscf_source
from tilewise.cli.inputs import Calculation
from tilewise.errors import InputError

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
TIGHT = ("--conv-tol", 1e-10, "--conv-tol-residual", 1e-8)


def kept(path, make=scf.RHF, **options):
    """A mean field that has written a chkfile."""
    mol = gto.M(**{"atom": WATER, "basis": "6-31g", "verbose": 0} | options)
    mf = make(mol)
    mf.chkfile = str(path)
    return mf.run(conv_tol=1e-11)


@pytest.fixture
def no_scf(monkeypatch):
    def run(*args, **kwargs):
        raise AssertionError("an SCF is run")

    monkeypatch.setattr(pyscf_source, "run_scf", run)
    monkeypatch.setattr(scf.hf.SCF, "kernel", run)


@pytest.mark.parametrize(
    ("options", "group"), [({"symmetry": True}, "C2v"), ({}, "C1"), ({"symmetry": "Cs"}, "Cs")]
)
def test_a_chkfile_is_recognised_by_its_content_and_its_scf_taken(cli, tmp_path, request, options, group):
    path = tmp_path / "job.xyz"
    mf = kept(path, **options)
    expected = cc.CCSD(mf, frozen=1).run(conv_tol=1e-10, conv_tol_normt=1e-8).e_tot
    request.getfixturevalue("no_scf")
    outcome = cli.run("ccsd", path, "--frozen", "auto", *TIGHT, "--json", tmp_path / "result.json")
    assert outcome.code == 0, outcome.err
    assert outcome.energy == pytest.approx(expected, abs=1e-8)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["plan"]["group"] == group and "SCF" not in result["seconds"]
    planned = cli.run("plan", path, "--frozen", "auto", "--json", "-")
    assert json.loads(planned.out)["plan"]["orbitals_from"] == "SCF orbitals of a chkfile"


def test_geometries_and_bases_of_other_types_are_read_from_a_chkfile(tmp_path):
    atoms = [(symbol, np.array(xyz)) for symbol, xyz in (("Li", (0, 0, 0)), ("H", (0, 0, 1.6)))]
    basis = {"Li": gto.basis.load("6-31g", "Li"), "H": gto.basis.load("sto-3g", "H")}
    mf = kept(tmp_path / "job.chk", atom=atoms, basis=basis, symmetry=True)
    reference = Calculation(tmp_path / "job.chk").reference(50, 10**9)
    assert reference.outline.formula == "HLi" and reference.outline.group.name == "C2v"
    assert reference.e_hf == pytest.approx(mf.e_tot, abs=1e-12)


def test_options_that_a_chkfile_decides_are_refused(cli, tmp_path):
    kept(tmp_path / "job.chk")
    for option, value in (("--basis", "cc-pvdz"), ("--charge", 1)):
        refused = cli.run("ccsd", tmp_path / "job.chk", option, value)
        refused.assert_refused(f"{option} {value}", "job.chk is a chkfile, which has its own")


def test_a_checkpoint_of_a_chkfile_is_restarted(cli, tmp_path):
    kept(tmp_path / "job.chk", symmetry=True)
    first = cli.run("ccsd", tmp_path / "job.chk", *TIGHT, "--checkpoint", tmp_path / "kept.h5")
    again = cli.run(
        "ccsd", tmp_path / "job.chk", *TIGHT, "--restart", tmp_path / "kept.h5", "--no-checkpoint"
    )
    assert again.energy == pytest.approx(first.energy, abs=1e-9)
    assert len(again.residuals) < len(first.residuals) / 2


def periodic(path):
    cell = pbc_gto.M(atom="He 0 0 0", a=np.eye(3) * 4, basis="sto-3g", verbose=0, mesh=[5, 5, 5])
    mf = pbc_scf.RHF(cell)
    lib.chkfile.save_mol(cell, str(path))
    one = {"e_tot": 0.0, "mo_energy": np.zeros(1), "mo_occ": np.full(1, 2.0), "mo_coeff": np.eye(1)}
    lib.chkfile.save(str(path), "scf", one)
    return mf


def damaged(path):
    kept(path)
    path.write_bytes(path.read_bytes()[:3000])


def without_orbitals(path):
    kept(path)
    with h5py.File(path, "a") as file:
        del file["scf/mo_coeff"]


def forged(name, value):
    """A chkfile with something else in the place of a result of the SCF."""

    def make(path):
        kept(path)
        with h5py.File(path, "a") as file:
            del file[f"scf/{name}"]
            file[f"scf/{name}"] = value

    return make


def of_bytes(path):
    kept(path)
    with h5py.File(path, "a") as file:
        del file["mol"]
        file["mol"] = b"\xff\x9b"


def with_code(path):
    """What PySCF would evaluate when it reads the file."""
    kept(path)
    with h5py.File(path, "a") as file:
        content = json.loads(file["mol"][()])
        content["atom"] = f"open({str(path.parent / 'written')!r}, 'w').close()"
        content["_atom"] = "nothing"
        del file["mol"]
        file["mol"] = json.dumps(content)


def unfinished(path):
    mol = gto.M(atom=WATER, basis="6-31g", verbose=0)
    mf = scf.RHF(mol)
    mf.chkfile, mf.max_cycle = str(path), 2
    mf.kernel()


REFUSED = {
    "Kohn-Sham": (lambda p: kept(p, dft.RKS), "a plain RHF alone can be taken from a file"),
    "generalized": (lambda p: kept(p, scf.GHF), "/scf/mo_coeff is float64 of shape (26, 26)"),
    "density fitting": (lambda p: kept(p, lambda mol: scf.RHF(mol).density_fit()), "no Kohn-Sham, density"),
    "relativistic": (lambda p: kept(p, lambda mol: scf.RHF(mol).x2c()), "a plain RHF alone"),
    "unfinished": (unfinished, "SCF not converged"),
    "periodic": (periodic, "is of a periodic system"),
    "damaged": (damaged, "the chkfile is damaged"),
    "another HDF5 file": (lambda p: h5py.File(p, "w").close(), "it lacks /mol or /scf"),
    "an energy in a list": (forged("e_tot", [1.0, 2.0]), "/scf/e_tot is float64 of shape (2,)"),
    "no orbital energies": (forged("mo_energy", np.zeros(0)), "/scf/mo_energy is float64 of shape (0,)"),
    "fewer occupations": (forged("mo_occ", [2.0, 0.0]), "/scf/mo_occ is float64 of shape (2,)"),
    "orbitals of another basis": (forged("mo_coeff", np.eye(3)), "/scf/mo_energy is float64"),
    "orbitals that are no numbers": (forged("mo_coeff", np.full((13, 13), np.nan)), "finite numbers"),
    "a molecule of bytes": (of_bytes, "the chkfile is damaged"),
    "no orbitals": (without_orbitals, "it lacks /scf/mo_coeff"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_chkfiles_that_hold_no_plain_rhf_are_refused(cli, tmp_path, name):
    make, words = REFUSED[name]
    make(tmp_path / "job.chk")
    cli.run("ccsd", tmp_path / "job.chk").assert_refused("job.chk", words)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("exec sleep 600", "within 0.2 s"),
        ("kill -XCPU $$", "within 30 s of a processor"),
        ("kill -SEGV $$", "its reader ended with -11"),
    ],
)
def test_a_chkfile_over_which_hdf5_hangs_or_crashes_is_refused(cli, tmp_path, monkeypatch, what, words):
    kept(tmp_path / "job.chk")
    reader = tmp_path / "reader"
    reader.write_text(f"#!/bin/sh\n{what}\n")
    reader.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(reader))
    monkeypatch.setattr("tilewise.chem.chkfile_content.LONGEST", 0.2)
    cli.run("ccsd", tmp_path / "job.chk").assert_refused("job.chk: the chkfile is damaged", words)


def test_the_reader_of_a_chkfile_may_not_use_a_processor_for_ever(tmp_path):
    kept(tmp_path / "job.chk")
    command = [sys.executable, "-P", "-m", "tilewise.chem.chkfile_content", str(tmp_path / "job.chk"), "0"]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGXCPU


def test_nothing_in_a_chkfile_is_run(cli, tmp_path):
    with_code(tmp_path / "job.chk")
    cli.run("ccsd", tmp_path / "job.chk", "--no-checkpoint")
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("symmetry", [True, False])
def test_a_mean_field_restored_in_python_is_not_called_unconverged(tmp_path, symmetry):
    done = kept(tmp_path / "job.chk", symmetry=symmetry)
    restored = scf.RHF(done.mol)
    restored.__dict__.update(scf.chkfile.load(str(tmp_path / "job.chk"), "scf"))
    assert not restored.converged
    expected = cc.CCSD(done).run(conv_tol=1e-10, conv_tol_normt=1e-8).e_tot
    found = tilewise.CCSD(restored, conv_tol=1e-10, conv_tol_residual=1e-8).run()
    assert found.e_hf == pytest.approx(done.e_tot, abs=1e-9)
    assert found.e_tot == pytest.approx(expected, abs=1e-8)


def test_orbitals_alone_are_enough_and_have_their_energy():
    done = scf.RHF(gto.M(atom=WATER, basis="6-31g", verbose=0)).run(conv_tol=1e-11)
    restored = scf.RHF(done.mol)
    restored.mo_coeff, restored.mo_occ = done.mo_coeff, done.mo_occ
    found = tilewise.CCSD(restored)
    assert found.e_hf == pytest.approx(done.e_tot, abs=1e-9)
    assert np.allclose(np.sort(found.reference.vir_energies), done.mo_energy[5:], atol=1e-6)
    restored.mo_coeff = np.linalg.qr(np.random.default_rng(0).standard_normal(done.mo_coeff.shape))[0]
    with pytest.raises(InputError, match=r"SCF not converged: .* between occupied and virtual orbitals"):
        tilewise.CCSD(restored)
