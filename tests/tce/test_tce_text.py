"""The TCE's routines as equations that run: its CCSD gives the energy of ours."""

from dataclasses import replace

import pytest
from pyscf import gto, scf

import tilewise
from tilewise import policies
from tilewise.inspect import PanelRule
from tilewise.tce import TCE_CCSD, equation_text
from tilewise.tce.routines import tce_routines

MOLECULES = {
    "water": ("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", "sto-3g"),
    "lithium hydride": ("Li 0 0 0; H 0 0 1.6", "6-31g"),
    "nitrogen": ("N 0 0 0; N 0 0 1.1", "sto-3g"),
}
TIGHT = {"conv_tol": 1e-11, "conv_tol_residual": 1e-9}


@pytest.fixture(scope="module", params=MOLECULES)
def solved(request):
    atom, basis = MOLECULES[request.param]
    mf = scf.RHF(gto.M(atom=atom, basis=basis, symmetry=True, verbose=0)).run(conv_tol=1e-12)
    return mf, tilewise.CCSD(mf, **TIGHT).run().e_corr


@pytest.mark.parametrize("policy", policies)
def test_the_tce_gives_our_energy_by_every_policy(solved, policy):
    mf, expected = solved
    found = TCE_CCSD(mf, threads=2, policy=policy, tile=4, **TIGHT).run()
    assert found.converged and abs(found.e_corr - expected) < 1e-9


def test_blocks_may_be_tasks_as_in_the_tce(solved):
    mf, expected = solved
    plan = replace(tilewise.plan(mf, method=TCE_CCSD, threads=2, tile=4), rule=PanelRule(1, 1))
    found = TCE_CCSD(mf, plan=plan, **TIGHT).run()
    assert abs(found.e_corr - expected) < 1e-9


def test_each_routine_is_a_line_with_its_name():
    lines = equation_text(tce_routines()).splitlines()
    names = [line.partition("# ")[2] for line in lines if "#" in line]
    assert names == [routine.name for routine in tce_routines()]
    assert "r2[ab-|ij-] += - P(i/j) t1[c|i] v_pphp[ab|jc]  # lt2_3x" in lines
