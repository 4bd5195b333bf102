"""Whole programs against the dense oracle: CCSD, and random equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import ccsd_case, energies_by_letter, random_program, run_program
from random_spaces import LETTERS, POLICIES, RULES, SEEDS, WORKERS, assert_close, worlds
from tilewise import Space, Tensor, policies
from tilewise.equations import evaluate_dense
from tilewise.equations.dense import dense_constants
from tilewise.equations.parse import parse
from tilewise.inspect import PanelRule


def compare(program, expected, buffers, scalars, tol=1e-11):
    for name in program.layouts:
        if name in expected:
            assert_close(Tensor(program.layouts[name], buffers[name]).to_dense(), expected[name], tol)
    for name, value in scalars.items():
        assert_close(value, expected[name], tol)


@settings(max_examples=25)
@given(worlds(largest=5, spin=False), SEEDS, POLICIES, WORKERS, st.sampled_from(RULES))
def test_ccsd_on_random_spaces(world, seed, policy, workers, rule):
    equation, program, tensors, energies = ccsd_case(world, seed)
    dense = {name: t.to_dense() for name, t in tensors.items()}
    expected = evaluate_dense(equation, dense, energies_by_letter(energies))
    buffers, scalars, _ = run_program(
        program, tensors, policy=policy, workers=workers, rule=rule, energies=energies
    )
    assert set(scalars) == {"e", "t.norm2", "T.norm2"} == set(program.scalars)
    compare(program, expected, buffers, scalars)


WORLD = {
    LETTERS["o"]: Space.spatial("o", [3, 1, 0, 2], tile=2),
    LETTERS["v"]: Space.spatial("v", [4, 3, 2, 0], tile=3),
}


@pytest.fixture(scope="module")
def ccsd():
    equation, program, tensors, energies = ccsd_case(WORLD, 7)
    dense = {name: t.to_dense() for name, t in tensors.items()}
    return program, tensors, energies, evaluate_dense(equation, dense, energies_by_letter(energies))


@pytest.mark.parametrize("policy", policies)
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_ccsd_under_every_policy(ccsd, policy, workers):
    program, tensors, energies, expected = ccsd
    result = run_program(
        program, tensors, policy=policy, workers=workers, energies=energies, rule=PanelRule(4, 9)
    )
    compare(program, expected, *result[:2])


def test_ccsd_with_the_serial_twins(ccsd):
    program, tensors, energies, expected = ccsd
    compare(program, expected, *run_program(program, tensors, executor="serial", energies=energies)[:2])


def test_an_ordered_graph_gives_the_same_bits_for_every_policy_and_number_of_workers(ccsd):
    program, tensors, energies, _ = ccsd
    results = [
        run_program(
            program, tensors, policy=policy, workers=w, energies=energies, rule=PanelRule(4, 9), ordered=True
        )
        for policy in policies
        for w in (1, 2, 3, 4)
    ]
    first_buffers, first_scalars, _ = results[0]
    for buffers, scalars, _ in results[1:]:
        assert scalars == first_scalars
        for name in program.layouts:
            assert np.array_equal(buffers[name], first_buffers[name]), name


@settings(max_examples=60)
@given(worlds(largest=4, spin=False), SEEDS, st.integers(1, 6), POLICIES, WORKERS, st.sampled_from(RULES))
def test_random_equations(world, seed, length, policy, workers, rule):
    equation, program, inputs = random_program(world, seed, length)
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in inputs.items()})
    for executor, ordered in (("serial", False), ("threads", False), ("threads", True)):
        buffers, scalars, _ = run_program(
            program, inputs, policy=policy, workers=workers, executor=executor, rule=rule, ordered=ordered
        )
        compare(program, expected, buffers, scalars)


def test_dense_constants_are_slices_of_the_integrals():
    equation = parse("constant K[ab+-|ij+-] = (ia|jb)\nconstant q[l|c] = 2 (ii|lc) - (li|ic)\n")
    spaces = {"ijkl": Space.spatial("o", [2]), "abc": Space.spatial("v", [3])}
    eri = np.random.default_rng(0).standard_normal((5,) * 4)
    found = dense_constants(equation, eri, spaces, {"o": 0, "v": 2})
    o, v = slice(0, 2), slice(2, 5)
    assert_close(found["K"], eri[o, v, o, v].transpose(1, 3, 0, 2))
    assert_close(
        found["q"], 2 * np.einsum("iilc->lc", eri[o, o, o, v]) - np.einsum("liic->lc", eri[o, o, o, v])
    )


def test_the_oracle_adds_on_a_diagonal_and_leaves_the_rest_as_it_was():
    equation = parse(
        "input A[ia|jb]\ninput E[a|b]\nW[ia|jb] = A[ia|jb]\nW[ia|ib] += 2 E[a|b]\nW[ia|ia] -= E[b|b]\n"
    )
    a, e = np.zeros((2, 3, 2, 3)), np.arange(9.0).reshape(3, 3)
    found = evaluate_dense(equation, {"A": a, "E": e})
    expected = np.zeros((6, 6))
    for first in (0, 3):
        expected[first : first + 3, first : first + 3] = 2 * e
    assert_close(found["W"].reshape(6, 6), expected - np.trace(e) * np.eye(6))
    assert not a.any()
