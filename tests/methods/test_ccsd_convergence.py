"""The way to the solution: limits, shifts, DIIS, hard cases, and options that make no sense."""

import numpy as np
import pytest
from ccsd_oracles import TIGHT, mean_field, pyscf_ccsd, pyscf_run, scf_of

import tilewise
from tilewise.errors import InputError
from tilewise.methods.diis import DIIS


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_too_few_cycles_end_unconverged_with_the_last_energy(limit):
    ccsd = tilewise.CCSD(mean_field("water"), max_cycle=limit).run()
    assert not ccsd.converged
    assert len(ccsd.iterations) == limit
    assert ccsd.e_corr == ccsd.iterations[-1].e_corr
    assert abs(ccsd.e_corr - pyscf_ccsd("water").e_corr) > 1e-8


@pytest.mark.parametrize("name", ["water", "hydrogen, minimal"])
@pytest.mark.parametrize(
    "options",
    [
        {"level_shift": 0.3},
        {"level_shift": 1.0},
        {"diis_space": 1},
        {"diis_space": 2},
        {"diis_space": 30},
        {"level_shift": 0.5, "diis_space": 3},
    ],
    ids=str,
)
def test_the_way_does_not_change_the_energy(name, options):
    ccsd = tilewise.CCSD(mean_field(name), **(TIGHT | {"max_cycle": 300} | options)).run()
    assert ccsd.converged
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd(name).e_corr, abs=1e-9)


def test_a_level_shift_shortens_the_steps():
    def norm_after_a_step(shift):
        return tilewise.CCSD(mean_field("water"), level_shift=shift, max_cycle=1).run().t1.norm()

    assert norm_after_a_step(1.0) < 0.8 * norm_after_a_step(0.0)


def test_diis_saves_iterations():
    plain = tilewise.CCSD(mean_field("nitrogen"), diis_space=1).run()
    extrapolated = tilewise.CCSD(mean_field("nitrogen")).run()
    assert plain.converged and extrapolated.converged
    assert len(extrapolated.iterations) < len(plain.iterations)


@pytest.mark.parametrize(
    ("atom", "basis"),
    [
        ("O 0 0 0; H 0 1.2 0.9; H 0 -1.2 0.9", "6-31g"),
        ("F 0 0 0; H 0 0 1.8", "6-31g"),
        ("N 0 0 0; N 0 0 1.6", "sto-3g"),
        ("H 0 0 0; H 0 0 3", "6-31g"),
    ],
    ids=["water", "hydrogen fluoride", "nitrogen", "hydrogen"],
)
def test_stretched_bonds(atom, basis):
    mf = scf_of(atom, basis)
    expected = pyscf_run(mf).e_corr
    for symmetry in ("auto", "C1"):
        ccsd = tilewise.CCSD(mf, symmetry=symmetry, max_cycle=150).run()
        assert ccsd.converged
        assert ccsd.e_corr == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"conv_tol": 0.0},
        {"conv_tol": -1e-8},
        {"conv_tol": float("nan")},
        {"conv_tol_residual": 0.0},
        {"conv_tol_residual": -1.0},
        {"conv_tol_residual": float("nan")},
        {"max_cycle": 0},
        {"max_cycle": -3},
        {"level_shift": -0.1},
        {"level_shift": float("nan")},
        {"diis_space": -2},
        {"tile": 0},
        {"tile": -4},
        {"threads": 0},
        {"threads": -1},
        {"threads": 1.5},
        {"memory": "-1GB"},
        {"memory": "plenty"},
        {"memory": 0},
        {"frozen": -1},
        {"frozen": 5},
        {"frozen": [13]},
        {"frozen": "core"},
        {"symmetry": "D2h"},
        {"symmetry": "D6h"},
        {"executor": "gpu"},
        {"policy": "fastest"},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused_at_once(options):
    with pytest.raises(InputError) as caught:
        tilewise.CCSD(mean_field("water"), **options)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", [None, "water.xyz", 3.0])
def test_something_else_than_a_mean_field_is_refused(source):
    with pytest.raises(InputError, match="mean field"):
        tilewise.CCSD(source)


def test_diis_solves_a_linear_problem_in_as_many_steps_as_it_has_unknowns():
    rng = np.random.default_rng(3)
    matrix = np.eye(4) + 0.1 * rng.standard_normal((4, 4))
    right = rng.standard_normal(4)
    diis, x = DIIS(8, 4), np.zeros(4)
    for _ in range(6):
        new, step = diis.slot()
        step[:] = right - matrix @ x
        new[:] = x + step
        diis.extrapolate(x)
    assert np.allclose(matrix @ x, right, atol=1e-10)


def test_diis_survives_a_step_of_nothing_and_one_that_repeats():
    diis, x = DIIS(3, 5), np.zeros(5)
    for _ in range(5):
        new, step = diis.slot()
        step[:] = 0.0
        new[:] = 1.0
        diis.extrapolate(x)
        assert np.allclose(x, 1.0)
