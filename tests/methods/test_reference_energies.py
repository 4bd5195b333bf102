"""Energies that other programs gave: tests/reference/energies.json says which, and how far to trust them."""

import json
from pathlib import Path

import pytest
from ccsd_oracles import scf_of

import tilewise
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import run_scf

ROOT = Path(__file__).parents[2]
ENERGIES = json.loads((ROOT / "tests" / "reference" / "energies.json").read_text())


def mean_field(entry):
    if entry["geometry"].endswith(".xyz"):
        return run_scf(build_molecule(ROOT / entry["geometry"], entry["basis"]))
    return scf_of(entry["geometry"], entry["basis"], unit=entry.get("unit", "angstrom"))


@pytest.mark.parametrize(
    "entry", ENERGIES, ids=lambda e: f"{e['molecule']}, {e['basis']}, {e['frozen'] or 'none'} frozen"
)
def test_the_correlation_energy_is_that_of_other_programs(entry):
    ccsd = tilewise.CCSD(mean_field(entry), frozen=entry["frozen"]).run()
    assert ccsd.converged
    assert ccsd.plan.outline.group.name == entry["group"]
    assert ccsd.e_corr == pytest.approx(entry["e_corr"], abs=entry["tolerance"])
    if "e_mp2" in entry:
        first = ccsd.iterations[0]
        assert first.e_corr - first.change == pytest.approx(entry["e_mp2"], abs=entry["tolerance"])
    if "e_hf" in entry:
        assert ccsd.e_hf == pytest.approx(entry["e_hf"], abs=entry["tolerance"])


@pytest.mark.parametrize("symmetry", ["C2v", "Ci"])
def test_benzene_in_subgroups(symmetry):
    entry = next(e for e in ENERGIES if (e["molecule"], e["basis"], e["frozen"]) == ("benzene", "6-31g", 6))
    ccsd = tilewise.CCSD(mean_field(entry), frozen="auto", symmetry=symmetry).run()
    assert ccsd.plan.outline.frozen_core == 6
    assert ccsd.e_corr == pytest.approx(entry["e_corr"], abs=entry["tolerance"])


def test_every_energy_says_where_it_comes_from():
    for entry in ENERGIES:
        assert entry["programs"], entry["molecule"]
        assert 0 < entry["tolerance"] <= 2e-7
