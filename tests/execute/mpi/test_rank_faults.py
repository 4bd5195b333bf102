"""A few cases of the campaign of faults: the job ends with a reason, and a restart gives the same energy."""

import pytest
from pyscf import gto, scf

import tilewise
from rank_faults import Case, Fault, run_case, undisturbed
from tilewise.chem.sources import reference_of


@pytest.fixture(scope="module")
def water(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    mol = gto.M(atom="O 0 0 0.12; H 0 0.76 -0.47; H 0 -0.76 -0.47", basis="sto-3g", verbose=0)
    tilewise.write_fcidump(folder / "water.fcidump", reference_of(scf.RHF(mol).run(conv_tol=1e-11)))
    return folder / "water.fcidump", *undisturbed(folder / "water.fcidump", folder, ranks=2, times=1)


@pytest.mark.parametrize(("kind", "again"), [("NaN", 3), ("SIGKILL", 1), ("full disk", 2)])
def test_a_fault_ends_the_job_and_a_restart_goes_on(water, tmp_path, kind, again):
    fcidump, energy, duration = water
    moment = 3.0 if kind == "NaN" else 0.0 if kind == "full disk" else duration / 2
    rank = 1 if kind == "NaN" else 0  # a NaN goes on to rank 0: then both have failed
    case = run_case(Case(2, Fault(kind, rank, moment), again), fcidump, energy, tmp_path)
    assert case.reason or case.code == 0, case.text
    assert abs(case.error) < 1e-8
