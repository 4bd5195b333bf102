"""Tasks that any rank may take: by counters, chunks, lists or theft, they make what one rank makes."""

import numpy as np
import pytest
from test_local_graph import C1, RULE, WITH_SYMMETRY, Case, gathered, rough_seconds

from tilewise.execute.mpi.claims import counter_homes
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.execute.mpi.message_store import MessageStore
from tilewise.execute.mpi.spread_runner import SpreadRunner, groups_of
from tilewise.execute.spread import spread
from tilewise.execute.store import Board, LocalStore
from tilewise.schedule import Team, policy_named

POLICIES = ("nxtval", "ie-nxtval", "chunk", "gss", "tss", "factoring(delta=0.001)", "steal", "hybrid")
LISTS = ("proportional", "hypergraph", "block", "dataflow", "buckets")


@pytest.fixture(scope="module", params=[C1, WITH_SYMMETRY], ids=["C1", "Cs"])
def case(request):
    return Case(request.param)


def run(case, ranks, policy, threads=1, messages=False, inverted=False, nodes=1):
    spreading, board = spread(case.program, ranks, rough_seconds, RULE, inverted), Board(ranks)

    def work(world):
        world.places = [(f"node {rank * nodes // ranks}", ()) for rank in range(ranks)]
        store = MessageStore(world) if messages else LocalStore(board, world.rank)
        own = {n: spreading.home(n, world.rank).take(case.buffers[n]) for n in spreading.constants}
        runner = SpreadRunner(
            spreading, world, store, policy_named(policy), Team(threads), own | case.vectors
        )
        for name in ("t", "T"):
            runner.tensors[name][:] = spreading.home(name, world.rank).take(case.buffers[name])
        world.barrier()
        for _ in range(2):
            result = runner.run()
            world.barrier()
        return runner.tensors, result

    tensors, results = zip(*LocalWorld.run(ranks, work), strict=True)
    return spreading, tensors, results


def check(case, spreading, tensors, results):
    for name in ("r", "R", "T.new", "T.step"):
        np.testing.assert_allclose(gathered(spreading, tensors, name), case.expected[name], atol=1e-10)
    for name, value in case.result.scalars.items():
        assert abs(results[0].scalars[name] - value) < 1e-10 * max(1, abs(value))


@pytest.fixture(scope="module")
def symmetric():
    return Case(WITH_SYMMETRY)


@pytest.mark.parametrize("policy", [*POLICIES, *LISTS])
def test_every_policy_makes_the_residual_of_one_rank(symmetric, policy):
    check(symmetric, *run(symmetric, 2, policy))


@pytest.mark.parametrize("messages", [False, True])
def test_nodes_have_buckets(case, messages):
    check(case, *run(case, 4, "buckets", messages=messages, nodes=2))


def test_counters_of_a_bucket_lie_on_its_node(case):
    graph = spread(case.program, 4, rough_seconds, RULE).graph
    groups = groups_of([[0, 2], [1, 3]], 2)
    assert groups == ((0, 1, 4, 5), (2, 3, 6, 7))
    schedule = policy_named("buckets")(graph, rough_seconds(graph), Team(8, groups=groups))
    homes = counter_homes(schedule.phases, 2)
    assert len(homes) == len(schedule.queues)
    for home, queue in zip(homes, schedule.queues, strict=True):
        assert home in ((0, 2) if queue.workers[0] in groups[0] else (1, 3))
    assert set(homes) == {0, 1, 2, 3}


@pytest.mark.parametrize("policy", ["ie-nxtval", "steal"])
def test_counters_and_strips_may_go_by_messages(case, policy):
    check(case, *run(case, 3, policy, messages=True))


def test_what_is_moved_is_what_was_counted_whoever_ran_the_tasks(case):
    for policy in ("nxtval", "lpt"):
        spreading, _, results = run(case, 3, policy, threads=2)
        moved = [(r.moved.gets, r.moved.adds, r.moved.bytes) for r in results]
        assert tuple(np.sum(moved, axis=0)) == spreading.counted_moves


@pytest.mark.parametrize("policy", ["ie-nxtval", "lpt"])
def test_products_may_be_grouped_by_what_they_multiply(case, policy):
    spreading, tensors, results = run(case, 2, policy, inverted=True)
    check(case, spreading, tensors, results)
    moved = [(r.moved.gets, r.moved.adds, r.moved.bytes) for r in results]
    assert tuple(np.sum(moved, axis=0)) == spreading.counted_moves


def test_no_rank_holds_what_another_is_the_home_of(case):
    spreading = spread(case.program, 3, rough_seconds, RULE)
    for name in spreading.home_of_cell:
        held = sum(spreading.shard(name, rank).size for rank in range(3))
        assert held == case.program.layouts[name].size
