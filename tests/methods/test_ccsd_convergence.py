"""The way to the solution: limits, shifts, DIIS, hard cases, and options that make no sense."""

import numpy as np
import pytest
from ccsd_oracles import TIGHT, mean_field, pyscf_ccsd, pyscf_run, scf_of
from pyscf import cc, gto, scf

import tilewise
from tilewise.core import core
from tilewise.errors import InputError
from tilewise.methods.diis import DIIS, combine, weighted_products


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


def test_diis_takes_the_newest_amplitudes_if_squares_of_steps_are_too_large():
    diis, x = DIIS(3, 2), np.zeros(2)
    for size in (1.0, 1e200):
        new, step = diis.slot()
        new[:] = step[:] = size
        with np.errstate(over="ignore"):
            diis.extrapolate(x)
    assert np.array_equal(x, [1e200, 1e200])


def test_diis_makes_the_weighted_step_as_short_as_it_can():
    rng = np.random.default_rng(7)
    weights, steps, amplitudes = rng.random(6) + 0.1, rng.standard_normal((3, 6)), rng.standard_normal((3, 6))
    diis, x = DIIS(3, 6, weights), np.zeros(6)
    for k in range(3):
        new, step = diis.slot()
        new[:], step[:] = amplitudes[k], steps[k]
        diis.extrapolate(x)
    shares = diis.coefficients(3)
    assert shares.sum() == pytest.approx(1.0)
    assert np.allclose(shares @ amplitudes, x)
    gradient = steps @ (weights * (shares @ steps))  # alike for all shares where their sum is kept
    assert np.ptp(gradient) < 1e-12


def test_diis_leaves_little_of_what_changes_the_energy():
    rng = np.random.default_rng(8)
    weights, first = rng.random(9) + 0.1, rng.standard_normal(9)
    steps, amplitudes = 0.1 * rng.standard_normal((4, 9)), first + 0.3 * rng.standard_normal((4, 9))
    plain, best, x = DIIS(4, 9, weights), DIIS(4, 9, weights, first=first), np.zeros(9)
    for diis in (plain, best):
        for k in range(4):
            new, step = diis.slot()
            new[:], step[:] = amplitudes[k], steps[k]
            diis.extrapolate(x)
    left = [diis.coefficients(4) @ steps @ (weights * (amplitudes[-1] - first)) for diis in (plain, best)]
    assert best.coefficients(4).sum() == pytest.approx(1.0)
    assert abs(left[1]) < 0.05 * abs(left[0])


@pytest.mark.parametrize("pieces", [None, [slice(0, 3), slice(3, 7), slice(7, 9)]])
def test_diis_leaves_out_of_the_energy_what_is_settled(pieces):
    rng = np.random.default_rng(8)
    weights, first = rng.random(9) + 0.1, rng.standard_normal(9)
    steps, amplitudes = 0.1 * rng.standard_normal((4, 9)), first + 0.3 * rng.standard_normal((4, 9))
    shares = {}
    for settled in (0, 3, 9):
        total = None if pieces is None else (lambda partial: partial.sum(axis=1))
        diis = DIIS(4, 9, weights, total, pieces, first=first, settled=settled)
        for k in range(4):
            new, step = diis.slot()
            new[:], step[:] = amplitudes[k], steps[k]
            diis.extrapolate(np.zeros(9))
        along = (steps * weights)[:, settled:] @ (amplitudes[-1] - first)[settled:]
        assert np.allclose(diis.of_energy, along, rtol=1e-12, atol=1e-14)
        assert np.allclose(diis.overlaps, (steps * weights) @ steps.T, rtol=1e-12)
        shares[settled] = diis.coefficients(4)
    for some in (3, 9):
        assert not np.allclose(shares[0], shares[some], atol=1e-3)


def test_diis_trusts_longer_steps_less_unless_the_newest_is_the_longest():
    for scales in ((1.0, 0.1), (0.1, 1.0)):
        plain, best, x = DIIS(2, 2), DIIS(2, 2, first=np.zeros(2)), np.zeros(2)
        for diis in (plain, best):
            for k, scale in enumerate(scales):
                new, step = diis.slot()
                new[:], step[k] = 1.0, scale
                diis.extrapolate(x)
        long = int(np.argmax(scales))
        assert (best.coefficients(2)[long] < 0.9 * plain.coefficients(2)[long]) == (long == 0)


def test_diis_takes_the_newest_amplitudes_if_what_changes_the_energy_is_too_large():
    diis, x = DIIS(4, 2, first=np.array([1e170, 0.0])), np.zeros(2)
    for size in (1.0, 2.0, 3.0):
        new, step = diis.slot()
        new[:], step[:] = size, 1.0 / size
        with np.errstate(all="raise"):
            diis.extrapolate(x)
    assert np.array_equal(x, [3.0, 3.0])


@pytest.mark.parametrize(("length", "n_rows"), [(1, 1), (2048, 3), (5000, 7), (6145, 0)])
def test_native_products_and_combinations_are_those_of_their_twins_on_any_number_of_workers(length, n_rows):
    rng = np.random.default_rng(length)
    rows, weights = rng.standard_normal((n_rows, length)), rng.random(length)
    vectors, coefficients = list(rng.standard_normal((2, length))), rng.standard_normal(n_rows)
    products, expected = np.full((3, 2, n_rows + 2), np.nan), np.empty((2, n_rows + 2))
    combined, whole = np.full((3, length), np.nan), np.empty(length)
    weighted_products(vectors, weights, rows, expected)
    combine(coefficients, rows, whole)
    for workers in (1, 2, 3):
        core.weighted_products(vectors, weights, rows, products[workers - 1], workers)
        core.combine(coefficients, rows, combined[workers - 1], workers)
    assert np.allclose(products[0], expected, rtol=1e-12, atol=1e-12)
    assert np.allclose(combined[0], whole, rtol=1e-12, atol=1e-12)
    assert (products == products[0]).all()
    assert (combined == combined[0]).all()


def test_native_products_and_combinations_refuse_vectors_of_other_lengths():
    one, two, rows = np.zeros(1), np.zeros(2), np.zeros((3, 2))
    with pytest.raises(ValueError, match="differ in length"):
        core.weighted_products([one], two, rows, np.zeros((1, 4)), 1)
    with pytest.raises(ValueError, match="all rows and all vectors"):
        core.weighted_products([two], two, rows, np.zeros((1, 3)), 1)
    with pytest.raises(ValueError, match="needs a coefficient"):
        core.combine(one, rows, two, 1)


def test_diis_goes_without_first_amplitudes_that_are_not_finite():
    plain, other, x = DIIS(3, 2), DIIS(3, 2, first=np.array([np.inf, 1.0])), np.zeros(2)
    for diis in (plain, other):
        for k in range(3):
            new, step = diis.slot()
            new[:], step[:] = (1.0, k), (0.5**k, 0.3**k)
            with np.errstate(invalid="ignore"):
                diis.extrapolate(x)
    assert np.allclose(plain.coefficients(3), other.coefficients(3))


@pytest.mark.parametrize(
    ("atom", "basis", "most"),
    [
        ("H 0 0 -1.065; C 0 0 0; N 0 0 1.153", "6-31g*", 10),
        ("C 0 0 0.6; C 0 0 -0.6; H 0 0 1.663; H 0 0 -1.663", "6-31g*", 9),
        ("Be 0 0 0", "cc-pvdz", 9),
        ("N 0 0 0; N 0 0 1.6", "cc-pvdz", 19),
    ],
    ids=["hydrogen cyanide", "acetylene", "beryllium", "nitrogen"],
)
def test_no_more_iterations_than_pyscf(atom, basis, most):
    """`most` is what PySCF takes until its energy stays within 1e-8 hartree."""
    mf = scf.RHF(gto.M(atom=atom, basis=basis, symmetry=True, verbose=0)).run(conv_tol=1e-12)
    energies = [
        step.e_corr for step in tilewise.CCSD(mf, conv_tol=1e-11, conv_tol_residual=1e-9).run().iterations
    ]
    off = [number for number, energy in enumerate(energies, 1) if abs(energy - energies[-1]) >= 1e-8]
    assert max(off, default=0) + 1 <= most


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
def test_steps_are_measured_by_their_second_order_energy(symmetry):
    mf = mean_field("water")
    ccsd = tilewise.CCSD(mf, symmetry=symmetry, max_cycle=2)
    found = []
    ccsd._iterate = lambda runner, amplitudes: found.append((amplitudes, amplitudes.weights(runner, False)))
    ccsd.run()
    amplitudes, weights = found[0]
    amplitudes.vector[:] = np.random.default_rng(1).standard_normal(len(weights))
    t1, t2 = (amplitudes.tensors[name].to_dense() for name in ("t", "T"))
    gaps = ccsd.reference.vir_energies[:, None] - ccsd.reference.occ_energies  # [a, i]
    pairs = gaps[:, None, :, None] + gaps[None, :, None, :]  # [a, b, i, j]
    singles = 2.0 * np.sum(t1**2 * gaps.T)
    doubles = np.sum(pairs * t2 * (2.0 * t2 - t2.transpose(1, 0, 2, 3)))
    assert weights @ amplitudes.vector**2 == pytest.approx(singles + doubles, rel=1e-12)


@pytest.mark.parametrize("name", ["water", "nitrogen", "carbon monoxide", "ethylene", "hydrogen peroxide"])
def test_it_takes_no_more_iterations_than_pyscf(name):
    """To an energy that stays within 1e-8 hartree; both count the energy that an iteration ends with."""
    solver, energies = cc.CCSD(mean_field(name)), []
    energy_of = solver.energy
    solver.energy = lambda *args: energies.append(energy_of(*args)) or energies[-1]
    solver.verbose, solver.conv_tol, solver.conv_tol_normt = 0, 1e-10, 1e-8
    solver.run()
    ours = [i.e_corr for i in tilewise.CCSD(mean_field(name), **TIGHT).run().iterations]
    exact = pyscf_ccsd(name).e_corr
    counts = [max(n for n, e in enumerate(run, 1) if abs(e - exact) >= 1e-8) for run in (ours, energies[1:])]
    assert counts[0] <= counts[1]
