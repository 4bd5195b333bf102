"""How evenly CCSD of water clusters is shared out between ranks: work, memory and traffic, all counted."""

import numpy as np
import pytest

from random_spaces import LETTERS
from tilewise import Space
from tilewise.equations import parse, plan_program
from tilewise.equations.ccsd import CCSD
from tilewise.execute.distribution import distribute
from tilewise.hardware.model import STANDARD


def shared(waters, ranks, repeats=True):
    """(H2O)n in aug-cc-pVDZ without symmetry and without its core, at the rates of a standard core."""
    counts = {"o": 4 * waters, "v": 36 * waters}
    world = {LETTERS[name]: Space.spatial(name, [count], tile=16) for name, count in counts.items()}
    program = plan_program(parse(CCSD), world)

    def seconds(graph):
        return STANDARD.seconds(graph.flops, graph.sorted_words)

    return distribute(program, ranks, seconds, repeats=repeats)


on_one_node_or_several = pytest.mark.parametrize("repeats", [False, True])


def uneven(distribution):
    """Work of the rank that has the most over the mean."""
    load = np.bincount(distribution.placement.task_rank, distribution.seconds, distribution.ranks)
    return load.max() / load.mean()


@on_one_node_or_several
@pytest.mark.parametrize(("ranks", "most"), [(2, 1.05), (4, 1.10)])
def test_ranks_have_the_same_to_do(ranks, most, repeats):
    assert uneven(shared(3, ranks, repeats)) <= most


@pytest.mark.parametrize(("repeats", "most"), [(False, 80e6), (True, 25e6)])
def test_two_ranks_move_little(repeats, most):
    assert shared(3, 2, repeats).transfers.bytes() <= most


def test_on_one_node_nothing_is_made_twice():
    assert not shared(3, 2, repeats=False).own
    assert shared(3, 2, repeats=True).own


def test_what_each_rank_holds_is_counted_as_its_shards_are():
    made = shared(3, 3)
    for name, held in made.elements.items():
        assert [made.shard(name, rank).size for rank in range(3)] == held.tolist()
    for name in made.home_of_cell:
        assert [made.home(name, rank).size for rank in range(3)] == made.elements_at_home(name).tolist()


@on_one_node_or_several
def test_memory_falls_with_the_number_of_ranks(repeats):
    alone = shared(4, 1).bytes(0)
    for ranks, most in ((2, 0.62), (4, 0.42)):
        made = shared(4, ranks, repeats)
        assert max(made.bytes(rank) for rank in range(ranks)) <= most * alone


def test_ranks_beyond_the_cells_of_the_largest_tensor_have_nothing_to_do():
    made = shared(1, 400)
    made.check()
    busy = np.unique(made.placement.task_rank)
    assert 1 < len(busy) < 400
    assert max(len(split.parts) for split in made.splits) < 400
    assert made.bytes(399) == 0
