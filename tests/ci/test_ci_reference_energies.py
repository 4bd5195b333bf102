"""Energies of other programs, without symmetry and with it."""

import json

import pytest

import tilewise
from ci.cases import mean_field
from command_line import ROOT

CASES = json.loads((ROOT / "tests" / "reference" / "ci.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['determinants']} of rank {case['rank']}")
def test_energies_are_those_of_other_programs(case):
    mf = mean_field(case["molecule"], case["basis"])
    options = {"rank": case["rank"], "frozen": case["frozen"]}
    assert len(tilewise.CI(mf, symmetry="C1", **options).determinants) == case["determinants"]
    found = tilewise.CI(mf, conv_tol=1e-11, conv_tol_residual=1e-6, **options).run()
    assert found.e_tot == pytest.approx(case["e_tot"], abs=case["tolerance"])
