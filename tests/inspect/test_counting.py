"""Flops counted from layouts alone, against the tasks and against dense formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import ccsd_case, random_program
from random_spaces import LETTERS, RULES, SEEDS, worlds
from tilewise import Space
from tilewise.equations import parse, plan_program
from tilewise.inspect import dense_flops, inspect, operation_flops
from tilewise.inspect.counting import program_bytes, program_flops


@settings(max_examples=60)
@given(worlds(largest=4, spin=False), SEEDS, st.integers(1, 6), st.sampled_from(RULES))
def test_flops_counted_from_layouts_are_those_of_the_tasks(world, seed, length, rule):
    _, program, _ = random_program(world, seed, length)
    graph = inspect(program, rule)
    for number, op in enumerate(graph.operations):
        mine = graph.tasks["operation"] == number
        assert graph.flops[mine].sum() == operation_flops(op, program.layouts), op.text
    assert graph.flops.sum() == program_flops(program)


@settings(max_examples=10)
@given(worlds(largest=5, spin=False), st.sampled_from(RULES))
def test_flops_of_ccsd_are_those_of_its_tasks(world, rule):
    program = ccsd_case(world)[1]
    graph = inspect(program, rule)
    for number, op in enumerate(graph.operations):
        mine = graph.tasks["operation"] == number
        assert graph.flops[mine].sum() == operation_flops(op, program.layouts), op.text


def plan(text, o, v):
    return plan_program(parse(text), {LETTERS["o"]: o, LETTERS["v"]: v})


@pytest.mark.parametrize(
    "text",
    [
        "input A[ij|cd]\ninput B[cd|ab]\nC[ij|ab] = A[ij|cd] B[cd|ab]",
        "input t[i|c]\ninput B[ca|kd]\nC[ia|kd] = t[i|c] B[ca|kd]",
        "input A[ka|lc]\ninput B[ki|lc]\nr[i|a] = B[ki|lc] A[ka|lc]",
    ],
)
def test_without_symmetry_the_flops_are_the_dense_ones(text):
    o, v = Space.spatial("o", [4], tile=3), Space.spatial("v", [7], tile=2)
    program = plan(text, o, v)
    (op,) = program.operations
    sizes = {**dict.fromkeys(LETTERS["o"], 4), **dict.fromkeys(LETTERS["v"], 7)}
    letters = set(parse(text).statements[0].terms[0].letters)
    expected = 2.0 * np.prod([sizes[c] for c in letters])
    assert operation_flops(op, program.layouts) == expected
    assert dense_flops(op, program.layouts) == pytest.approx(expected, rel=1e-12)
    assert inspect(program).flops.sum() == expected


@pytest.mark.parametrize("order", [2, 4, 8])
def test_h_irreps_of_equal_size_cost_one_in_h_squared(order):
    text = "input A[ij|cd]\ninput B[cd|ab]\nC[ij|ab] = A[ij|cd] B[cd|ab]"
    plain = plan(text, Space.spatial("o", [8]), Space.spatial("v", [16]))
    high = plan(text, Space.spatial("o", [8 // order] * order), Space.spatial("v", [16 // order] * order))
    assert program_flops(plain) == order**2 * program_flops(high)
    assert inspect(plain).flops.sum() == order**2 * inspect(high).flops.sum()
    assert program_bytes(plain) == order * program_bytes(high)


def test_d2h_ccsd_costs_nearly_a_64th_of_c1():
    text_o, text_v = [1] * 8, [3] * 8
    worlds = [
        {LETTERS["o"]: Space.spatial("o", o), LETTERS["v"]: Space.spatial("v", v)}
        for o, v in ((text_o, text_v), ([8], [24]))
    ]
    d2h, c1 = (program_flops(ccsd_case(world)[1]) for world in worlds)
    assert 0.9 / 64 < d2h / c1 < 1.2 / 64


def test_exchange_parity_costs_a_quarter_of_the_ladder():
    text = "input V[ab+-|cd+-]\ninput T[cd+-|ij+-]\nR[ab+-|ij+-] = V[ab|cd] T[cd|ij]"
    o, v = 20, 40
    program = plan(text, Space.spatial("o", [o]), Space.spatial("v", [v]))
    (op,) = program.operations
    plus = 2.0 * (o * (o + 1) // 2) * (v * (v + 1) // 2) ** 2
    minus = 2.0 * (o * (o - 1) // 2) * (v * (v - 1) // 2) ** 2
    assert operation_flops(op, program.layouts) == plus + minus
    assert (plus + minus) / dense_flops(op, program.layouts) == pytest.approx(0.25, rel=0.02)


@pytest.mark.parametrize("rule", RULES)
def test_words_of_a_sort_are_its_elements(rule):
    spaces = {"ij": Space.spatial("o", [3, 2], 2), "ab": Space.spatial("v", [4, 1], 3)}
    moved = inspect(plan_program(parse("input A[ij|ab]\nB[ia|jb] = A[ij|ab]"), spaces), rule)
    stored = 3 * 3 * 4 * 4 + 2 * 2 * 1 * 1 + 4 * 3 * 2 * 4 * 1 + 3 * 3 * 1 * 1 + 2 * 2 * 4 * 4
    assert moved.sorted_words.sum() == stored and not moved.flops.any()
