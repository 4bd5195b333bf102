"""Equations over spin orbitals: permutation operators, and upper and lower indices inferred."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import energies_by_letter, random_integrals, run_program
from random_spaces import POLICIES, RULES, SEEDS, WORKERS, assert_close, worlds
from tilewise import Space, Tensor
from tilewise.equations import evaluate_dense, parse, plan_program
from tilewise.equations.constants import with_plain_constants
from tilewise.equations.dense import dense_constants
from tilewise.equations.places import inferred_places
from tilewise.equations.uccsd import UCCSD
from tilewise.errors import InputError

SPACES = {"ijkl": Space.spin_orbital("o", [2, 1], [1, 1]), "abcd": Space.spin_orbital("v", [2, 1], [3, 1])}


@settings(max_examples=25)
@given(worlds(largest=3, spin=True), SEEDS, POLICIES, WORKERS, st.sampled_from(RULES))
def test_spin_orbital_ccsd_equals_the_dense_oracle(world, seed, policy, workers, rule):
    equation = parse(UCCSD)
    program = plan_program(with_plain_constants(equation, world), world)
    sizes = {space.name: space.size for space in world.values()}
    integrals = random_integrals(world, seed), world, {"o": 0, "v": sizes["o"]}
    plain = dense_constants(with_plain_constants(equation, world), *integrals)
    rng = np.random.default_rng(seed)
    amplitudes = {
        name: Tensor.random(program.layouts[name], rng, name)
        for name, kind in program.kinds.items()
        if kind == "input"
    }
    tensors = {n: Tensor.from_dense(x, program.layouts[n], n) for n, x in plain.items()} | amplitudes
    energies = {"o": -1 - np.sort(rng.random(sizes["o"])), "v": 1 + np.sort(rng.random(sizes["v"]))}
    dense = dense_constants(equation, *integrals) | {n: t.to_dense() for n, t in amplitudes.items()}
    expected = evaluate_dense(equation, dense, energies_by_letter(energies))
    buffers, scalars, _ = run_program(
        program, tensors, policy=policy, workers=workers, rule=rule, energies=energies
    )
    for name, layout in program.layouts.items():
        if name in expected:
            assert_close(Tensor(layout, buffers[name]).to_dense(), expected[name], 1e-11)
    for name, value in scalars.items():
        assert_close(value, expected[name], 1e-11)


def test_no_product_of_spin_orbital_ccsd_needs_a_sort_of_its_own():
    program = plan_program(parse(UCCSD), SPACES)
    assert set(program.layouts) - set(program.scalars) <= set(parse(UCCSD).declarations) | {
        f"{amplitude}.{made}" for amplitude in "tT" for made in ("new", "step")
    }


def test_plain_constants_over_spin_orbitals_hold_pairs_of_one_spin():
    plain = with_plain_constants(parse(UCCSD), SPACES)
    program = plan_program(plain, SPACES)
    constants = {name: program.layouts[name] for name, kind in program.kinds.items() if kind == "constant"}
    pairs = [name for name in constants if name not in ("f", "fo", "fw")]
    assert pairs == ["(vv|vv)", "(ov|vv)", "(ov|ov)", "(oo|vv)", "(oo|ov)", "(oo|oo)"]
    n_occ, n_vir = np.array([3, 2]), np.array([3, 4])  # of alpha and beta
    kinds = {"oo": n_occ * (n_occ + 1) // 2, "ov": n_occ * n_vir, "vv": n_vir * (n_vir + 1) // 2}
    for name in pairs:
        layout = constants[name]
        rows, cols = name[1:-1].split("|")
        assert {spin for _, spin, _ in layout.labels} == {0}
        assert int(layout.rows.sizes.sum()) == kinds[rows].sum()
        assert int(layout.cols.sizes.sum()) == kinds[cols].sum()


def test_pairs_of_one_spin_can_be_turned_over_and_others_cannot():
    text = "constant L[ia|kc] = (kc|ai)\nconstant ovov[ia|jb] = (ia|jb)\nX[ia|kc] = L[ia|kc]\n"
    plan_program(parse(text + "X[ia|kc] += ovov[kc|ia]\n"), SPACES)
    with pytest.raises(InputError, match="would not keep spin"):
        plan_program(parse(text + "input G[ia|kc]\nX[ia|kc] += G[ia|kc]\n"), SPACES)


def test_places_follow_from_inputs_integrals_and_sums():
    places = inferred_places(
        parse(
            "input t[i|a]\ninput T[ab-|ij-]\nconstant J[ia|kc] = (kc|ai) - (ki|ac)\n"
            "constant f[k|c] = fock\nconstant B[ac+|x] = vectors\n"
            "tau[ab-|ij-] = t[i|a] t[j|b] - t[j|a] t[i|b] + T[ab|ij]\n"  # the last term decides
            "G[i|k] = t[i|c] f[k|c]\nX[ia|kc] = J[ia|kc]\nY[ia|jb] = t[i|a] t[j|b]\n"
        )
    )
    assert places["t"] == "+-" and places["T"] == places["tau"] == "++--"
    assert places["J"] == places["X"] == "-++-" and places["B"] == "+-+"
    assert places["G"] == "+-"  # t has c below, so that f is turned over and has k below
    assert places["Y"] == "+-+-"


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("P(i/j)", {"ijk": 1, "jik": -1}),
        ("P(i/jk)", {"ijk": 1, "jik": -1, "kij": 1}),
        ("P(ij/k)", {"ijk": 1, "ikj": -1, "jki": 1}),
        ("P(i/j/k)", {"ijk": 1, "ikj": -1, "jik": -1, "jki": 1, "kij": 1, "kji": -1}),
    ],
)
def test_a_permutation_operator_is_a_signed_sum(operator, expected):
    (statement,) = parse(f"input A[i|jk]\nB[i|jk] = {operator} A[i|jk]\n").statements
    assert {term.factors[0].indices: term.coefficient for term in statement.terms} == expected


def test_operators_multiply_and_stand_with_coefficients():
    text = "input A[ia|jb]\nB[ia|jb] = 1/2 P(i/j) P(a/b) A[ia|jb] - P(i/j) 2 A[ja|ib]\n"
    (statement,) = parse(text).statements
    found = [(term.coefficient, term.factors[0].indices) for term in statement.terms]
    assert sorted(found) == sorted(
        [(0.5, "iajb"), (-0.5, "jaib"), (-0.5, "ibja"), (0.5, "jbia"), (-2.0, "jaib"), (2.0, "iajb")]
    )


@pytest.mark.parametrize("operator", ["P(i/k)", "P(i/i)", "P(c/j)"])
def test_an_operator_permutes_indices_of_the_left_hand_side_alone(operator):
    with pytest.raises(InputError, match=r"line 2: index . of P.* must stand once there and once on"):
        parse(f"input A[i|jk]\nB[i|j] = {operator} A[i|jk]\n")


def test_a_term_that_would_not_keep_spin_is_refused():
    text = "input t[i|a]\ninput T[ab-|ij-]\nX[ab-|ij-] = T[ab|ij]\nX[ab|ij] += t[i|a] t[b|j]\n"
    with pytest.raises(InputError, match="runs over different spaces"):
        plan_program(parse(text), SPACES)
    text = "input u[i|j]\ninput d[ij|]\nY[i|j] = u[i|j]\nY[i|j] += d[ij|]\n"
    with pytest.raises(InputError, match="would not keep spin"):
        plan_program(parse(text), SPACES)
