"""Integrals over four virtual orbitals that are formed when they are needed, and the memory that it takes."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from ccsd_oracles import mean_field, pyscf_ccsd
from pyscf import gto, scf
from pyscf.cc import ccsd as pyscf_cc

import tilewise
from tilewise.chem.fcidump import read_fcidump, write_fcidump
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import from_mean_field, run_scf
from tilewise.errors import InputError, MemoryBudgetError

TIGHT = {"conv_tol": 1e-11, "conv_tol_residual": 1e-9}
GEOMETRIES = Path(__file__).parents[2] / "examples" / "geometries"


@pytest.mark.parametrize(
    ("name", "symmetry"),
    [
        ("water", "auto"),
        ("water", "C1"),
        ("nitrogen", "auto"),
        ("neon", "auto"),
        ("lithium hydride", "Cs"),
        ("hydrogen, minimal", "auto"),
        ("helium", "C1"),
    ],
)
def test_energies_are_those_of_pyscf(name, symmetry):
    ccsd = tilewise.CCSD(mean_field(name), on_the_fly=True, symmetry=symmetry, **TIGHT).run()
    assert ccsd.plan.on_the_fly and "V" not in ccsd.plan.program.layouts
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd(name).e_corr, abs=1e-8)


def test_the_energy_of_benzene_changes_by_less_than_a_billionth_of_a_hartree():
    mf = run_scf(build_molecule(GEOMETRIES / "benzene.xyz", "6-31g"))
    settings = {"frozen": "auto", "threads": 1, **TIGHT}
    stored, formed = (tilewise.CCSD(mf, on_the_fly=wish, **settings).run() for wish in (False, True))
    assert formed.plan.on_the_fly and not stored.plan.on_the_fly
    assert formed.e_corr == pytest.approx(stored.e_corr, abs=1e-9)
    planned = tilewise.CCSD(mf, on_the_fly=True, **settings).plan
    assert sum(planned.vectors) == pytest.approx(sum(formed.plan.vectors), rel=0.15)


@pytest.mark.parametrize("policy", tilewise.policies)
@pytest.mark.parametrize("threads", [1, 3])
def test_fitted_energies_do_not_depend_on_what_is_stored(policy, threads):
    reference = from_mean_field(mean_field("water"), fitting=True)
    settings = {"threads": threads, "policy": policy, "tile": 5, **TIGHT}
    stored = tilewise.CCSD(reference, on_the_fly=False, **settings).run()
    formed = tilewise.CCSD(reference, on_the_fly=True, **settings).run()
    assert stored.e_corr == pytest.approx(formed.e_corr, abs=1e-10)
    assert "B" in formed.plan.program.layouts and "V" in stored.plan.program.layouts
    assert not formed.notes  # it was asked for


def test_the_serial_twins_form_them_too():
    reference = from_mean_field(mean_field("water"), fitting=True)
    energies = [
        tilewise.CCSD(reference, on_the_fly=True, executor=executor, **TIGHT).run().e_corr
        for executor in ("threads", "serial")
    ]
    assert energies[0] == pytest.approx(energies[1], abs=1e-10)


@pytest.fixture
def hydrogen(monkeypatch):
    """A molecule whose V takes most of the memory, in a process that takes none itself."""
    monkeypatch.setattr(import_module("tilewise.methods.plan"), "resident_memory", lambda: 0)
    return scf.RHF(gto.M(atom="H 0 0 0; H 0.1 0.2 0.7", basis="cc-pvqz", verbose=0)).run(conv_tol=1e-12)


def test_short_memory_chooses_it_and_too_little_is_refused(hydrogen):
    stored = tilewise.CCSD(hydrogen, on_the_fly=False).plan.peak_memory
    formed = tilewise.CCSD(hydrogen, on_the_fly=True).plan.peak_memory
    assert formed < 0.9 * stored
    enough = tilewise.CCSD(hydrogen, memory=f"{stored / 1e6 + 0.1}MB").run()
    assert not enough.plan.on_the_fly and not enough.notes
    short = tilewise.CCSD(hydrogen, memory=f"{formed / 1e6 + 0.1}MB", **TIGHT).run()
    assert short.plan.on_the_fly
    assert "formed on the fly" in short.notes[0]
    exact = pyscf_cc.CCSD(hydrogen)
    exact.verbose, exact.conv_tol, exact.conv_tol_normt = 0, 1e-11, 1e-9
    assert short.e_corr == pytest.approx(exact.run().e_corr, abs=1e-8)
    with pytest.raises(MemoryBudgetError, match="not enough memory"):
        tilewise.CCSD(hydrogen, memory=f"{formed / 1e6 - 0.1}MB").run()


def test_the_integrals_of_a_file_cannot_be_decomposed(tmp_path):
    write_fcidump(tmp_path / "dump", from_mean_field(mean_field("water")))
    with pytest.raises(InputError, match="needs a molecule"):
        tilewise.CCSD(read_fcidump(tmp_path / "dump"), on_the_fly=True)


MEASURED = """
import json, re, resource, sys
import tilewise
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import run_scf
mf = run_scf(build_molecule(sys.argv[1], sys.argv[2]))
settings = {"on_the_fly": sys.argv[3] == "formed", "max_cycle": 9, **json.loads(sys.argv[4])}
ccsd = tilewise.CCSD(mf, frozen="auto", threads=2, **settings)
estimate = ccsd.plan.peak_memory
ccsd.run()
try:  # what getrusage gives counts the memory of the process that started this one
    peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
except FileNotFoundError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([estimate, peak * 1024]))
"""


@pytest.mark.parametrize(
    ("geometry", "basis", "how", "options"),
    [
        ("water2", "aug-cc-pvdz", "stored", {}),
        ("water2", "aug-cc-pvdz", "formed", {"cholesky": 1e-3}),
        ("benzene", "cc-pvdz", "stored", {}),
    ],
)
def test_the_measured_peak_is_near_the_estimate(geometry, basis, how, options):
    path = GEOMETRIES / f"{geometry}.xyz"
    command = [sys.executable, "-c", MEASURED, str(path), basis, how, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    estimate, measured = json.loads(done.stdout.splitlines()[-1])
    assert measured == pytest.approx(estimate, rel=0.1)
