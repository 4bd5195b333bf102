"""Amplitudes and the other results of a run, against PySCF's for the same orbitals."""

import numpy as np
import pytest
from ccsd_oracles import TIGHT, mean_field, pyscf_ccsd

import tilewise
from tilewise.errors import InputError
from tilewise.methods.solver import Iteration


@pytest.mark.parametrize(
    ("name", "frozen", "symmetry"),
    [
        ("water", None, "auto"),
        ("water", None, "Cs"),
        ("water", None, "C1"),
        ("water", (0, 3, 12), "auto"),
        ("water", (0, 3, 12), "C1"),
        ("nitrogen", 2, "D2h"),
        ("nitrogen", 2, "C2h"),
        ("nitrogen", (0, 1, 17), "D2"),
        ("methane", 1, "auto"),
        ("hydrogen", None, "auto"),
        ("hydrogen, minimal", None, "auto"),
        ("trans-difluoroethylene", 4, "auto"),
        ("water without symmetry", None, "auto"),
    ],
)
def test_to_pyscf_gives_pyscfs_amplitudes(name, frozen, symmetry):
    """Orbitals, their order and their signs are those of the mean field, whatever the irreps."""
    expected = pyscf_ccsd(name, frozen)
    given = list(frozen) if isinstance(frozen, tuple) else frozen
    ccsd = tilewise.CCSD(mean_field(name), frozen=given, symmetry=symmetry, **TIGHT).run()
    t1, t2 = ccsd.to_pyscf()
    assert t1.shape == expected.t1.shape
    assert t2.shape == expected.t2.shape
    assert np.abs(t1 - expected.t1).max() < 1e-6
    assert np.abs(t2 - expected.t2).max() < 1e-6
    assert ccsd.t1_diagnostic == pytest.approx(expected.get_t1_diagnostic(), abs=1e-7)


@pytest.mark.parametrize(("name", "core"), [("water", 1), ("ethylene", None), ("lithium hydride", None)])
def test_default_thresholds_give_the_t1_diagnostic(name, core):
    ccsd = tilewise.CCSD(mean_field(name), frozen=core).run()
    assert ccsd.t1_diagnostic == pytest.approx(pyscf_ccsd(name, core).get_t1_diagnostic(), abs=1e-7)


@pytest.mark.parametrize("name", ["water", "lithium hydride", "hydrogen, minimal"])
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_the_energy_is_that_of_the_amplitudes(name, limit):
    ccsd = tilewise.CCSD(mean_field(name), max_cycle=limit).run()
    solver = pyscf_ccsd(name)
    assert ccsd.e_corr == pytest.approx(solver.energy(*ccsd.to_pyscf(), solver.ao2mo()), abs=1e-11)


def test_amplitudes_have_the_symmetry_of_closed_shells():
    t2 = tilewise.CCSD(mean_field("hydrogen peroxide")).run().to_pyscf()[1]
    assert np.abs(t2 - t2.transpose(1, 0, 3, 2)).max() < 1e-14
    assert np.abs(t2 - t2.transpose(1, 0, 2, 3)).max() > 1e-3


def test_the_results_of_a_run():
    mf = mean_field("water")
    seen, phases = [], []
    ccsd = tilewise.CCSD(mf, frozen="auto", callback=seen.append, progress=phases.append).run()
    assert ccsd.converged is True
    assert ccsd.e_hf == mf.e_tot
    assert ccsd.e_tot == ccsd.e_hf + ccsd.e_corr
    assert ccsd.e_corr == ccsd.iterations[-1].e_corr
    assert ccsd.notes == []
    assert seen == ccsd.iterations
    assert all(isinstance(iteration, Iteration) for iteration in seen)
    assert [iteration.number for iteration in seen] == list(range(1, len(seen) + 1))
    assert np.allclose(np.diff([i.e_corr for i in seen]), [i.change for i in seen[1:]], atol=1e-15)
    assert ccsd.iteration_seconds == [iteration.seconds for iteration in seen]
    assert all(seconds > 0 for seconds in ccsd.iteration_seconds)
    assert set(ccsd.seconds) >= {"planning", "integrals", "set-up", "iterations"}
    assert phases == list(ccsd.seconds)
    assert sum(ccsd.iteration_seconds) <= ccsd.seconds["iterations"]
    assert (ccsd.t1.layout.shape, ccsd.t2.layout.shape) == ((4, 8), (8, 8, 4, 4))


def test_the_last_iteration_meets_both_thresholds_and_no_earlier_one_does():
    ccsd = tilewise.CCSD(mean_field("formaldehyde"), conv_tol=1e-7, conv_tol_residual=1e-5).run()
    met = [abs(i.change) < 1e-7 and i.residual < 1e-5 for i in ccsd.iterations]
    assert met == [False] * (len(met) - 1) + [True]


def test_nothing_is_claimed_before_run():
    ccsd = tilewise.CCSD(mean_field("water"))
    assert not ccsd.converged
    assert np.isnan([ccsd.e_corr, ccsd.e_tot, ccsd.t1_diagnostic]).all()
    assert ccsd.iterations == ccsd.iteration_seconds == []
    with pytest.raises(InputError, match=r"run\(\)"):
        ccsd.to_pyscf()


def test_running_again_gives_the_same():
    ccsd = tilewise.CCSD(mean_field("water"), deterministic=True).run()
    first = ccsd.e_corr, len(ccsd.iterations), ccsd.t2.data.copy()
    ccsd.run()
    assert (ccsd.e_corr, len(ccsd.iterations)) == first[:2]
    assert np.array_equal(ccsd.t2.data, first[2])
