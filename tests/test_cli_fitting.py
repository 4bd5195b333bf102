"""Density fitting and Cholesky decomposition on the command line, against PySCF."""

import json
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pyscf import cc, df, gto, scf
from pyscf.cc import dfccsd

from command_line import ROOT, WATER
from tilewise.chem.basis_names import auxiliary_name
from tilewise.config import thread_limits

BASIS = "def2-svp"  # its default auxiliary basis is not cc-pvdz-ri
JOB = ("ccsd", WATER, "--basis", BASIS, "--threads", 1, "--conv-tol", 1e-10, "--conv-tol-residual", 1e-8)


@pytest.fixture(scope="module")
def mean_field():
    return scf.RHF(gto.M(atom=WATER, basis=BASIS, verbose=0)).run(conv_tol=1e-12)


def solved(solver):
    with thread_limits(1):  # more of them take longer for so little
        return solver.run(verbose=0, conv_tol=1e-11, conv_tol_normt=1e-9).e_tot


@pytest.fixture(scope="module")
def exact_energy(mean_field):
    return solved(cc.ccsd.CCSD(mean_field))


@pytest.fixture(scope="module")
def fitted_energy(mean_field):
    @cache
    def energy(auxiliary):
        """In PySCF's default auxiliary basis for None."""
        solver = dfccsd.RCCSD(mean_field)
        if auxiliary:
            solver.with_df = df.DF(mean_field.mol, auxbasis=auxiliary)
        return solved(solver)

    return energy


def heading(text):
    """What is said of the integrals before the SCF."""
    before, found, _ = text.partition("\nmean field")
    assert found
    return [line.split(maxsplit=1)[1] for line in before.splitlines() if line.startswith("integrals ")]


def document():
    """That of the last run; `integrals` follows the schema."""
    content = json.loads(Path("r.json").read_text())
    schema = json.loads((ROOT / "docs" / "result.schema.json").read_text())
    assert "integrals" in schema["required"]
    Draft202012Validator(schema["properties"]["integrals"]).validate(content["integrals"])
    return content


@pytest.mark.parametrize(
    ("options", "auxiliary"),
    [
        (("--df",), "def2-svp-ri"),
        (("--auxbasis", "cc-pvdz-ri"), "cc-pvdz-ri"),
        (("--df", "--auxbasis", "cc-pvdz-ri"), "cc-pvdz-ri"),
    ],
    ids=["default", "named", "both"],
)
def test_density_fitting_equals_pyscfs(cli, mean_field, exact_energy, fitted_energy, options, auxiliary):
    expected = fitted_energy(auxiliary if "--auxbasis" in options else None)
    assert abs(expected - exact_energy) > 1e-6

    outcome = cli.run(*JOB, *options, "--no-checkpoint", "--json", "r.json")
    assert outcome.code == 0 and outcome.err == ""
    assert heading(outcome.out) == [f"density fitting, auxiliary basis {auxiliary}"]
    result = document()
    assert result["e_tot"] == pytest.approx(expected, abs=1e-8)
    assert result["e_hf"] == pytest.approx(mean_field.e_tot, abs=1e-9)  # the SCF is exact
    assert result["integrals"] == {"kind": "density fitting", "auxbasis": auxiliary, "threshold": None}


@pytest.mark.parametrize(
    ("threshold", "shown", "least", "most"),
    [(1e-2, "1e-2", 1e-6, 1e-2), (1e-6, "1e-6", 0, 1e-5), (1e-9, "1e-9", 0, 1e-7)],
)
def test_a_cholesky_decomposition_comes_as_near_as_asked(cli, exact_energy, threshold, shown, least, most):
    outcome = cli.run(*JOB, "--cholesky", threshold, "--no-checkpoint", "--json", "r.json")
    assert outcome.code == 0 and outcome.err == ""
    assert heading(outcome.out) == [f"Cholesky decomposition, threshold {shown}"]
    result = document()
    assert least <= abs(result["e_tot"] - exact_energy) < most
    assert result["integrals"] == {"kind": "cholesky", "auxbasis": None, "threshold": threshold}


def test_exact_integrals_are_named_in_json_alone(cli):
    exact = {"kind": "exact", "auxbasis": None, "threshold": None}
    assert cli.run("fcidump", WATER, "--basis", "sto-3g", "--out", "water.fcidump").code == 0
    for source in ((WATER, "--basis", "sto-3g"), ("water.fcidump",)):
        outcome = cli.run("ccsd", *source, "--threads", 1, "--no-checkpoint", "--json", "r.json")
        assert outcome.code == 0 and heading(outcome.out) == []
        assert document()["integrals"] == exact


def test_an_exact_run_starts_from_fitted_amplitudes(cli, exact_energy):
    fitted = cli.run(*JOB, "--df", "--checkpoint", "fitted.h5")
    outcome = cli.run(*JOB, "--restart", "fitted.h5", "--no-checkpoint")
    assert fitted.code == outcome.code == 0 and heading(outcome.out) == []
    assert outcome.energy == pytest.approx(exact_energy, abs=1e-8)
    assert outcome.residuals[0] < 0.1 * fitted.residuals[0]


def test_auxiliary_functions_made_up_for_a_basis_are_called_even_tempered(cli):
    outcome = cli.run("ccsd", WATER, "--basis", "minao", "--df", "--no-checkpoint", "--json", "r.json")
    assert outcome.code == 0 and outcome.err == ""
    assert heading(outcome.out) == ["density fitting, auxiliary basis even-tempered"]
    assert document()["integrals"]["auxbasis"] == "even-tempered"


@pytest.mark.parametrize(
    ("basis", "right"), [("cc-pvdz", "cc-pvdz-ri would do"), ("minao", "even-tempered functions would do")]
)
def test_the_refusal_of_an_auxiliary_basis_names_one_that_would_do(cli, basis, right):
    outcome = cli.run("ccsd", WATER, "--basis", basis, "--auxbasis", "cc-pvdzz-ri")
    outcome.assert_refused(
        "auxiliary basis 'cc-pvdzz-ri': PySCF has none such for these atoms", right, "--df"
    )


def test_an_auxiliary_basis_has_one_name_if_all_elements_share_it():
    assert auxiliary_name({"O": "cc-pvdz-ri", "H": "cc-pvdz-ri"}) == "cc-pvdz-ri"
    assert auxiliary_name({"O": [[0, [1.0, 1.0]]], "H": "cc-pvdz-ri"}) == "H: cc-pvdz-ri, O: even-tempered"
