"""Operands that are formed when they are needed, and symmetric ones that are stored by half."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import run_program
from random_spaces import POLICIES, RULES, SEEDS, WORKERS, assert_close, space_of, worlds
from tilewise import Layout, Space, Tensor
from tilewise.equations import evaluate_dense, parse, plan_program
from tilewise.equations.program import Contract, FormedContract
from tilewise.errors import InputError
from tilewise.inspect.counting import program_flops
from tilewise.inspect.graph import inspect
from tilewise.tensor.compound import PACKINGS

FORMED = """
input B[ac+|x]
input T[ab+-|ij+-]
formed V[ab+-|cd+-] = B[ac|x] B[bd|x]
R[ab+-|ij+-] = 2 V[ab|cd] T[cd|ij]
R[ab|ij] += V[ab|cd] T[cd|ij]
"""
HALF = """
input v[ac+|bd+]
input T[ab+-|ij+-]
V[ab+-||cd+-] = v[ac|bd]
R[ab+-|ij+-] = 3 V[ab|cd] T[cd|ij]
"""


@st.composite
def cases(draw):
    world = draw(worlds(spin=False))
    order = next(iter(world.values())).order
    return world | {"x": draw(space_of("x", order, False, 6))}


def random_inputs(equation, world, seed):
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, declaration in equation.declarations.items():
        if declaration.kind == "input":
            layout = Layout.parse(str(declaration.form), world)
            tensors[name] = Tensor(layout, rng.standard_normal(layout.size), name)
    return tensors


def symmetric(tensor):
    """(x + its transpose) / 2, sector by sector."""
    for label in tensor.layout.labels:
        block = tensor.sector(label)
        block[...] = 0.5 * (block + block.T)
    return tensor


@settings(max_examples=60)
@given(cases(), SEEDS, POLICIES, WORKERS, st.sampled_from(RULES))
def test_a_formed_operand_multiplies_like_a_stored_one(world, seed, policy, workers, rule):
    equation = parse(FORMED)
    program = plan_program(equation, world)
    assert [type(op) for op in program.operations] == [FormedContract] * 2 and "V" not in program.layouts
    tensors = random_inputs(equation, world, seed)
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in tensors.items()})
    buffers, _, _ = run_program(program, tensors, policy=policy, workers=workers, rule=rule)
    assert_close(Tensor(program.layouts["R"], buffers["R"]).to_dense(), expected["R"])


@settings(max_examples=60)
@given(worlds(spin=False), SEEDS, POLICIES, WORKERS, st.sampled_from(RULES))
def test_an_operand_stored_by_half_multiplies_like_a_whole_one(world, seed, policy, workers, rule):
    equation = parse(HALF)
    program = plan_program(equation, world)
    assert [type(op) for op in program.operations][-1] is Contract
    tensors = random_inputs(equation, world, seed)
    symmetric(tensors["v"])
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in tensors.items()})
    buffers, _, _ = run_program(program, tensors, policy=policy, workers=workers, rule=rule)
    for name in ("V", "R"):
        assert_close(Tensor(program.layouts[name], buffers[name]).to_dense(), expected[name])


def transposed_too(tensor):
    """(x + its transpose) / 2, which sectors of opposite spin share."""
    dense = tensor.to_dense()
    return Tensor.from_dense((dense + dense.transpose(2, 3, 0, 1)) / 2, tensor.layout, tensor.name)


@settings(max_examples=60)
@given(worlds(spin=True), st.sampled_from(PACKINGS), SEEDS, POLICIES, WORKERS, st.sampled_from(RULES))
def test_an_operand_stored_by_half_may_have_spin(world, packing, seed, policy, workers, rule):
    half = "input v[ab-|cd-]\ninput T[ab-|ij-]\nV[ab-||cd-] = v[ab|cd]\nR[ab-|ij-] = 3 V[ab|cd] T[cd|ij]"
    equation = parse(half.replace("-]", f"{packing}]").replace("-|", f"{packing}|"))
    program = plan_program(equation, world)
    tensors = random_inputs(equation, world, seed)
    tensors["v"] = transposed_too(tensors["v"])
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in tensors.items()})
    buffers, _, _ = run_program(program, tensors, policy=policy, workers=workers, rule=rule)
    for name in ("V", "R"):
        assert_close(Tensor(program.layouts[name], buffers[name]).to_dense(), expected[name])


LARGE = {
    "ijklmn": Space.spatial("o", [5]),
    "abcdef": Space.spatial("v", [41], tile=8),
    "x": Space.spatial("x", [60]),
}


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize("text", [FORMED, HALF])
def test_several_bands_and_panels(text, executor):
    equation = parse(text)
    program = plan_program(equation, LARGE)
    tensors = random_inputs(equation, LARGE, 5)
    if "v" in tensors:
        symmetric(tensors["v"])
        assert len(program.layouts["V"].bands.first) == 8  # four for each parity
        assert program.layouts["V"].size < 0.63 * sum(program.layouts["V"].nrows ** 2)
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in tensors.items()})
    buffers, _, _ = run_program(program, tensors, executor=executor, workers=2)
    assert_close(Tensor(program.layouts["R"], buffers["R"]).to_dense(), expected["R"])


def test_flops_of_a_formed_operand_are_those_of_its_tasks():
    for world in (LARGE, {k: Space.spatial(s.name, [3, 1, 2, 4], tile=2) for k, s in LARGE.items()}):
        program = plan_program(parse(FORMED), world)
        assert program_flops(program) == inspect(program).flops.sum()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("R[ab+-|ij+-] = V[cd|ab] T[cd|ij]", "V is formed"),
        ("R[ab+-|cd+-] = V[ab|ef] V[ef|cd]", "V is formed"),
    ],
)
def test_what_a_formed_operand_cannot_do_is_refused(line, message):
    text = "\n".join(FORMED.splitlines()[:4]) + "\n" + line
    with pytest.raises(InputError, match=message):
        plan_program(parse(text), LARGE)


@pytest.mark.parametrize(
    "line", ["S[ab+-|cd+-] = V[ab|cd]", "R[ab+-|ij+-] = T[cd|ij] V[cd|ab]\ns[] = V[ab|cd] V[ab|cd]"]
)
def test_what_an_operand_stored_by_half_cannot_do_is_refused(line):
    text = "\n".join(HALF.splitlines()[:4]) + "\n" + line
    with pytest.raises(InputError, match="stored by half"):
        plan_program(parse(text), LARGE)


def test_rows_and_columns_of_a_tensor_stored_by_half_must_be_equal():
    with pytest.raises(InputError, match="equal rows and columns"):
        Layout.parse("ab+-||ij+-", LARGE)
    with_spin = {"abcd": Space("v", ((2,), (3,)), (1, -1))}
    with pytest.raises(InputError, match=r"signs '[+]{4}': half of a matrix"):
        Layout.parse("ab||cd", with_spin, "++++")
