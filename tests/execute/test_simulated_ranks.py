"""A distribution on the model of a machine: each task on its rank, each transfer once."""

import numpy as np
import pytest

from random_programs import ccsd_case
from random_spaces import LETTERS
from tilewise import Space
from tilewise.errors import InputError
from tilewise.execute.distribution import distribute
from tilewise.execute.simulated_ranks import GetsOfTasks, schedule_of_ranks, simulate_ranks
from tilewise.hardware.model import STANDARD, MachineModel
from tilewise.inspect import PanelRule
from tilewise.schedule import policy_named

WORLD = {LETTERS["o"]: Space.spatial("o", [4], tile=2), LETTERS["v"]: Space.spatial("v", [9], tile=2)}
POLICIES = ("dataflow", "block", "lpt")


def seconds_of(graph):
    return STANDARD.seconds(graph.flops, graph.sorted_words)


@pytest.fixture(scope="module", params=[2, 3])
def shared(request):
    _, program, _, _ = ccsd_case(WORLD, 0)
    return distribute(program, request.param, seconds_of, PanelRule(6, 20))


def machine(ranks, threads, **more):
    return MachineModel("two", ranks, threads, **more)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_each_task_runs_on_its_rank(shared, policy, threads):
    found = simulate_ranks(shared, policy_named(policy), threads, machine(shared.ranks, threads))
    assert (found.trace["worker"] // threads == shared.placement.task_rank).all()
    load = np.bincount(shared.placement.task_rank, shared.seconds)
    assert found.makespan >= load.max() / threads * (1 - 1e-12)
    assert found.makespan <= load.sum()


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_moved_is_what_was_counted(shared, policy):
    moved = GetsOfTasks.of(shared)
    rank = shared.placement.task_rank
    for k in range(shared.ranks):
        counted = shared.counted(k)
        assert (moved.gets[rank == k].sum(), moved.bytes_got[rank == k].sum()) == (
            counted.gets,
            counted.bytes,
        )
    assert len(moved.places) == moved.gets.sum()
    found = simulate_ranks(shared, policy_named(policy), 1, machine(shared.ranks, 1, latency=1e-9))
    assert found.messages == moved.gets.sum()


def test_a_slow_network_makes_it_slower(shared):
    quick, slow = (machine(shared.ranks, 1, bandwidth=b, links=True) for b in (1e12, 1e5))
    policy = policy_named("dataflow")
    assert (
        simulate_ranks(shared, policy, 1, slow).makespan > simulate_ranks(shared, policy, 1, quick).makespan
    )


def test_schedules_of_ranks_break_no_dependency(shared):
    for policy in POLICIES:
        schedule_of_ranks(shared, policy_named(policy), 2).check(shared.graph)


def test_a_machine_with_other_cores_is_refused(shared):
    with pytest.raises(InputError, match="2 cores of a node are to work"):
        simulate_ranks(shared, policy_named("lpt"), 2, machine(shared.ranks, 4))
