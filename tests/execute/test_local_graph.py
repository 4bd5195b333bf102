"""Ranks that are threads of one process give what one rank gives, and read nothing that has not come."""

import numpy as np
import pytest

from random_programs import ccsd_case, gaps
from random_spaces import LETTERS
from tilewise import Space
from tilewise.execute import Runner
from tilewise.execute.distribution import distribute, shards_of_whole
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.execute.mpi.message_store import MessageStore
from tilewise.execute.mpi.runner import DistributedRunner
from tilewise.execute.store import Board, LocalStore
from tilewise.inspect import PanelRule, inspect
from tilewise.inspect.graph import inspect_operations
from tilewise.schedule import Team, policy_named

RULE = PanelRule(6, 20)
C1 = {LETTERS["o"]: Space.spatial("o", [3], tile=2), LETTERS["v"]: Space.spatial("v", [5], tile=2)}
WITH_SYMMETRY = {
    LETTERS["o"]: Space.spatial("o", [2, 1], tile=1),
    LETTERS["v"]: Space.spatial("v", [3, 2], tile=2),
}


def rough_seconds(graph):
    return 1e-9 * graph.flops + 1e-9 * graph.bytes + 1e-6


class Case:
    """CCSD with random integrals, after the set-up, and what one rank makes of it."""

    def __init__(self, world, seed=0, ordered=False):
        _, self.program, tensors, energies = ccsd_case(world, seed)
        self.ordered = ordered
        self.buffers = {name: np.zeros(layout.size) for name, layout in self.program.layouts.items()}
        self.buffers |= {name: tensor.data.copy() for name, tensor in tensors.items()}
        self.vectors = gaps(self.program, energies)
        setup = inspect_operations(self.program, self.program.setup, RULE)
        self.buffers |= self.vectors
        Runner(setup, policy_named("lpt")(setup, rough_seconds(setup), 1), self.buffers).run()
        graph = inspect(self.program, RULE, ordered)
        whole = {name: data.copy() for name, data in self.buffers.items()}
        self.result = Runner(graph, policy_named("dataflow")(graph, rough_seconds(graph), 1), whole).run()
        self.expected = whole

    def distributed(self, ranks, manner="block", repeats=True):
        return distribute(self.program, ranks, rough_seconds, RULE, self.ordered, manner, repeats)

    def run(
        self, ranks, policy="dataflow", threads=1, manner="block", tasks=None, messages=False, repeats=True
    ):
        """(distribution, the tensors of each rank, the result of each)."""
        distribution, board = self.distributed(ranks, manner, repeats), Board(ranks)
        distribution.check()

        def work(world):
            store = MessageStore(world) if messages else LocalStore(board, world.rank)
            own = shards_of_whole(distribution, world.rank, self.buffers) | self.vectors
            runner = DistributedRunner(
                distribution,
                world,
                store,
                policy_named(policy),
                Team(threads),
                own,
                poison=True,
            )
            for name in ("t", "T"):
                home = distribution.home(name, world.rank)
                distribution.shard(name, world.rank).put_part(
                    runner.tensors[name], home, home.take(self.buffers[name])
                )
            world.barrier()
            for _ in range(2):  # what one run leaves must not matter to the next
                result = runner.run(None if tasks is None else tasks(distribution))
                world.barrier()
            return runner.tensors, result

        tensors, results = zip(*LocalWorld.run(ranks, work), strict=True)
        return distribution, tensors, results


@pytest.fixture(scope="module", params=[C1, WITH_SYMMETRY], ids=["C1", "Cs"])
def case(request):
    return Case(request.param)


def gathered(distribution, tensors, name):
    whole = np.full(distribution.program.layouts[name].size, np.nan)
    for rank, mine in enumerate(tensors):
        home = distribution.home(name, rank)
        home.put(distribution.shard(name, rank).part(mine[name], home), whole)
    return whole


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("repeats", [False, True])
def test_all_ranks_together_make_the_residual_of_one(case, ranks, threads, repeats):
    distribution, tensors, results = case.run(ranks, threads=threads, repeats=repeats)
    for name in ("r", "R", "t.new", "T.new", "T.step"):
        if name in case.expected:
            np.testing.assert_allclose(gathered(distribution, tensors, name), case.expected[name], atol=1e-10)
    for result in results:
        assert result.scalars == results[0].scalars
        for name, value in case.result.scalars.items():
            assert abs(result.scalars[name] - value) < 1e-10 * max(1, abs(value))


@pytest.mark.parametrize("manner", ["interleaved", "lpt"])
def test_rows_may_lie_anywhere(case, manner):
    distribution, tensors, _ = case.run(3, manner=manner)
    np.testing.assert_allclose(gathered(distribution, tensors, "R"), case.expected["R"], atol=1e-10)


@pytest.mark.parametrize("policy", ["block", "lpt", "interleaved", "dataflow(trees=false)"])
def test_lists_of_different_ranks_wait_for_each_other(case, policy):
    distribution, tensors, _ = case.run(3, policy=policy, threads=2)
    np.testing.assert_allclose(gathered(distribution, tensors, "R"), case.expected["R"], atol=1e-10)


@pytest.mark.parametrize("ranks", [2, 3])
def test_strips_may_go_by_messages(case, ranks):
    distribution, tensors, results = case.run(ranks, messages=True)
    np.testing.assert_allclose(gathered(distribution, tensors, "R"), case.expected["R"], atol=1e-10)
    assert [r.moved.bytes for r in results] == [distribution.counted(k).bytes for k in range(ranks)]


@pytest.mark.parametrize("world", [C1, WITH_SYMMETRY], ids=["C1", "Cs"])
def test_in_order_every_number_of_ranks_gives_the_same_bits(world):
    case = Case(world, ordered=True)
    for ranks in (2, 3, 4):
        distribution, tensors, results = case.run(ranks, threads=2)
        for name in ("r", "R", "T.new"):
            assert (gathered(distribution, tensors, name) == case.expected[name]).all()
        assert results[0].scalars == case.result.scalars


def test_messages_between_two_ranks_are_told_apart(case):
    transfers = case.distributed(3).transfers
    pairs = transfers.table["source"] * 3 + transfers.table["target"]
    for pair in np.unique(pairs):
        channels = transfers.channel[pairs == pair]
        assert sorted(channels.tolist()) == list(range(len(channels)))


def test_what_is_moved_is_what_was_counted(case):
    distribution, _, results = case.run(3)
    for rank, result in enumerate(results):
        counted = distribution.counted(rank)
        assert (result.moved.gets, result.moved.bytes) == (counted.gets, counted.bytes)
