"""Chains of products as reduction trees give the same sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import random_program
from random_spaces import RULES, SEEDS, WORKERS, worlds
from tilewise import Space, Tensor, policies
from tilewise.equations import parse, plan_program
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, chains, inspect
from tilewise.inspect.chains import SUMS, with_trees
from tilewise.inspect.records import ACCUMULATE, ASSIGN, READ

LONG = """
input A[i|ab]
input B[ab|j]
input D[i|j]
C[i|j] = D[i|j]
C[i|j] += 2 A[iab] B[abj]
E[i|j] = C[i|k] C[k|j]
"""


def case(text, spaces, rule=None):
    program = plan_program(parse(text), spaces)
    buffers = {name: np.zeros(layout.size) for name, layout in program.layouts.items()}
    for seed, name in enumerate(name for name, kind in program.kinds.items() if kind == "input"):
        buffers[name] = Tensor.random(program.layouts[name], seed).data
    return program, inspect(program, rule or PanelRule()), buffers


def results(graph, buffers, workers, policy="dataflow"):
    own = {name: data.copy() for name, data in buffers.items()}
    Runner(graph, policies[policy](graph, graph.flops, workers), own).run()
    return own


@pytest.mark.parametrize("workers", [2, 3, 8])
@pytest.mark.parametrize("policy", policies)
def test_a_long_chain_is_cut_into_parts_that_make_the_same_sum(workers, policy):
    spaces = {"ijk": Space.spatial("o", [2, 2]), "ab": Space.spatial("v", [20, 20])}
    _, graph, buffers = case(LONG, spaces)
    tree = with_trees(graph, graph.flops + 1.0, workers)
    tree.check()
    assert SUMS in tree.vectors and len(tree) > len(graph)
    assert tree.flops.sum() == graph.flops.sum()
    assert tree.longest_path(tree.flops).max() < 0.6 * graph.longest_path(graph.flops).max()
    expected, found = results(graph, buffers, 1), results(tree, buffers, workers, policy)
    for name in "CE":
        assert np.allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)
    again = Runner(tree, policies[policy](tree, tree.flops, workers), found)
    again.run()
    assert np.allclose(found["E"], expected["E"], rtol=1e-12, atol=1e-12)  # partial sums start afresh


def test_the_parts_of_a_chain_read_what_it_read_and_one_of_them_writes_at_a_time():
    spaces = {"ijk": Space.spatial("o", [2, 2]), "ab": Space.spatial("v", [20, 20])}
    _, graph, _ = case(LONG, spaces)
    tree = with_trees(graph, graph.flops + 1.0, 4)
    names = np.array([*graph.buffers, SUMS])

    def panels(of, kinds):
        mine = of.accesses[np.isin(of.accesses["kind"], kinds)]
        return {(str(names[a["tensor"]]), int(a["panel"])) for a in mine}

    assert panels(tree, [READ]) == panels(graph, [READ])
    assert panels(tree, [ASSIGN, ACCUMULATE]) == panels(graph, [ASSIGN, ACCUMULATE])
    assert (np.diff(tree.accesses["task"]) >= 0).all()
    writes = tree.accesses[tree.accesses["kind"] == ACCUMULATE]
    assert all(tree.tasks["n_lock"][t] == 1 for t in writes["task"])


def test_short_chains_single_workers_and_even_work_are_left_alone():
    spaces = {"ijk": Space.spatial("o", [8]), "ab": Space.spatial("v", [20])}
    _, graph, _ = case(LONG, spaces)
    assert with_trees(graph, graph.flops, 1) is graph
    assert with_trees(graph, np.zeros(len(graph)), 4) is graph
    shallow = {"ijk": Space.spatial("o", [40]), "ab": Space.spatial("v", [4])}
    _, graph, _ = case(LONG, shallow)
    assert with_trees(graph, graph.flops, 2) is graph


@settings(max_examples=60)
@given(
    worlds(largest=4, spin=False),
    SEEDS,
    st.integers(1, 5),
    WORKERS,
    st.sampled_from(RULES),
    st.sampled_from(list(policies)),
)
def test_random_programs_with_every_chain_cut(world, seed, length, workers, rule, policy):
    """Any depth and any share are cut here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "LEAST_DEPTH", 1)
        patch.setattr(chains, "LARGEST_SHARE", 1e-9)
        _, program, inputs = random_program(world, seed, length)
        graph = inspect(program, rule)
        tree = with_trees(graph, graph.flops + 1.0, workers)
    tree.check()
    buffers = {name: np.zeros(layout.size) for name, layout in program.layouts.items()}
    buffers |= {name: tensor.data for name, tensor in inputs.items()}
    expected, found = results(graph, buffers, 1), results(tree, buffers, workers, policy)
    for name in program.layouts:
        assert np.allclose(found[name], expected[name], rtol=1e-10, atol=1e-10)


def test_a_failing_part_is_named_like_its_chain():
    spaces = {"ijk": Space.spatial("o", [2, 2]), "ab": Space.spatial("v", [20, 20])}
    _, graph, _ = case(LONG, spaces)
    tree = with_trees(graph, graph.flops + 1.0, 4)
    texts = {tree.describe(t) for t in range(len(tree))}
    assert texts == {graph.describe(t) for t in range(len(graph))}
