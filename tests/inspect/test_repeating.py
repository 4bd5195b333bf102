"""What every rank makes for itself: which operations make it, and what each rank makes."""

import numpy as np
import pytest

from random_programs import ccsd_case
from random_spaces import LETTERS
from tilewise import Space
from tilewise.equations import parse, plan_program
from tilewise.execute.distribution import distribute
from tilewise.inspect import PanelRule
from tilewise.inspect.records import READ
from tilewise.inspect.repeating import repeat

WORLD = {
    LETTERS["o"]: Space.spatial("o", [3, 1], tile=2),
    LETTERS["v"]: Space.spatial("v", [4, 3], tile=2),
}

MANY_VIRTUALS = {
    LETTERS["o"]: Space.spatial("o", [2, 1], tile=2),
    LETTERS["v"]: Space.spatial("v", [7, 5], tile=2),
}


def targets(text, ranks=2):
    _, repeated = repeat(plan_program(parse(text), WORLD), ranks)
    return {name for one in repeated for name in one.copies[0].outputs}


def test_in_ccsd_they_are_tau_and_the_plain_forms_of_the_doubles():
    _, program, _, _ = ccsd_case(WORLD)
    changed, repeated = repeat(program, 3)
    assert {tuple(one.copies[0].outputs) for one in repeated} == {("tau",), ("U", "X")}
    assert all(len(one.copies) == 3 for one in repeated)
    assert changed.layouts["U@2"] == program.layouts["U"]


def test_with_many_virtual_orbitals_what_the_residual_reads_exchanged_is_one_of_them():
    _, program, _, _ = ccsd_case(MANY_VIRTUALS)
    _, repeated = repeat(program, 2)
    assert {tuple(one.copies[0].outputs) for one in repeated} == {("tau",), ("U", "X"), ("M",)}


def test_one_rank_repeats_nothing():
    _, program, _, _ = ccsd_case(WORLD)
    changed, repeated = repeat(program, 1)
    assert repeated == [] and changed.operations == program.operations


RING = """
input    T[ab+-|ij+-]
constant L[ia|jb] = (ia|jb)
X[ia|jb] = T[ba|ij]
{more}
R[ia|jb] = L[ia|kc] X[kc|jb]
"""


def test_what_is_made_of_less_and_read_whole_is_repeated():
    assert targets(RING.format(more="")) == {"X"}


@pytest.mark.parametrize("more", ["X[ia|jb] += L[ia|kc] L[kc|jb]", "input Z[ia|jb]\nX[ia|jb] += Z[jb|ia]"])
def test_what_a_product_adds_to_or_what_is_made_of_as_much_is_not(more):
    assert targets(RING.format(more=more)) == set()


def test_what_is_made_of_more_is_moved():
    text = """
    input    X[ia|jb]
    constant vvvv[ac+|bd+] = (ac|bd)
    V[ab+-|cd+-] = vvvv[ac|bd]
    P[ab+-|ij+-] = X[ia|jb]
    R[ab+-|ij+-] = V[ab|cd] P[cd|ij]
    """
    assert targets(text) == set()


def test_left_operands_alone_are_moved():
    text = RING.format(more="").replace("L[ia|kc] X[kc|jb]", "X[ia|kc] L[kc|jb]")
    assert targets(text) == set()


EXCHANGED = """
constant ooov[ki+|lc] = (ki|lc)
input    t[i|a]
N[kb|ij] = ooov[ki|jb]
M[ab|ij] = t[k|a] N[kb|ij]
R[ab|ij] = {term}
"""


def test_what_a_sort_reads_with_exchanged_rows_is_repeated():
    program = plan_program(parse(EXCHANGED.format(term="M[ab|ij] + M[ba|ji]")), MANY_VIRTUALS)
    assert "M" in {name for one in repeat(program, 2)[1] for name in one.copies[0].outputs}


def test_what_is_read_in_its_own_order_is_not():
    program = plan_program(parse(EXCHANGED.format(term="M[ab|ij] + M[ab|ji]")), MANY_VIRTUALS)
    assert repeat(program, 2)[1] == []


@pytest.mark.parametrize("world", [WORLD, MANY_VIRTUALS], ids=["few", "many"])
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_rank_makes_what_its_tasks_read_and_nothing_else(ranks, world):
    _, program, _, _ = ccsd_case(world)
    made = distribute(program, ranks, lambda graph: 1e-9 * graph.flops + 1e-6, PanelRule(6, 20))
    made.check()
    graph, rank = made.graph, made.placement.task_rank
    moved = {graph.buffers[number] for number in np.unique(made.transfers.table["tensor"])}
    for name, owner in made.own.items():
        assert name.partition("@")[0] not in moved
        mine = graph.accesses[graph.accesses["tensor"] == graph.buffers.index(name)]
        assert (rank[mine["task"]] == owner).all()
        reading = mine["kind"] == READ
        read, written = set(mine["panel"][reading].tolist()), set(mine["panel"][~reading].tolist())
        assert read <= written
    for number in np.unique(graph.tasks["operation"]).tolist():
        names = set(graph.operations[number].outputs) & set(made.own)
        read = graph.accesses[
            np.isin(graph.accesses["tensor"], [graph.buffers.index(name) for name in names])
        ]
        wanted = read["panel"][read["kind"] == READ]
        for task in np.flatnonzero(graph.tasks["operation"] == number).tolist() if names else []:
            some = graph.accesses[graph.accesses["task"] == task]
            assert np.isin(some["panel"][some["kind"] != READ], wanted).any()
