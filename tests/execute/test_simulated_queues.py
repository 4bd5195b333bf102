"""Queues of ready tasks in simulated data flow: who takes what, what it costs, and who is told."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import bare_graph
from random_spaces import SEEDS
from schedule_cases import bare_graphs, costs
from simulated_cases import COSTLY, FLOWS, WORKERS, free, one_level
from tilewise.execute.simulated import simulate
from tilewise.hardware.machines import MachineModel
from tilewise.schedule import ReadyQueues, Schedule, Team, policy_named

QUEUES = FLOWS[1:]
TWO_NODES = MachineModel("two nodes", 2, 1)


def flow(name, graph, seconds, model, workers, **messages):
    schedule = policy_named(name)(graph, np.asarray(seconds, float), model.team(workers))
    return simulate(graph, schedule, np.asarray(seconds, float), model, **messages)


def same(first, second):
    assert first.makespan == second.makespan
    for field in ("busy", "counter", "communication", "waiting", "trace"):
        assert getattr(first, field).tobytes() == getattr(second, field).tobytes()


@pytest.mark.parametrize("name", QUEUES)
@settings(max_examples=40)
@given(st.data(), SEEDS, st.sampled_from([0, 1, 3]), st.booleans())
def test_a_single_worker_does_not_see_how_many_queues_there_are(name, data, seed, prefetch, links):
    graph = data.draw(bare_graphs())
    seconds, rng = data.draw(costs(len(graph))), np.random.default_rng(seed)
    model = replace(COSTLY, prefetch=prefetch, links=links)
    moved = {"bytes_got": 1e3 * rng.random(len(graph)), "bytes_put": 1e3 * rng.random(len(graph))}
    one, several = (flow(policy, graph, seconds, model, 1, **moved) for policy in ("dataflow", name))
    same(one, several)
    assert one.activations == several.steals == 0


@pytest.mark.parametrize("name", ["dataflow(queues=node)", "dataflow(queues=node, placement=lpt)"])
@settings(max_examples=40)
@given(st.data(), WORKERS, st.sampled_from([0, 2]))
def test_a_queue_for_the_only_node_is_one_queue(name, data, workers, prefetch):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    model = replace(COSTLY, nodes=1, cores=6, prefetch=prefetch)
    same(*(flow(policy, graph, seconds, model, workers) for policy in ("dataflow", name)))


@pytest.mark.parametrize("name", FLOWS)
@settings(max_examples=40)
@given(st.data(), WORKERS)
def test_the_end_of_a_task_is_told_once_to_each_other_node_that_waits_for_it(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    run = flow(name, graph, seconds, COSTLY, workers)
    schedule = policy_named(name)(graph, seconds, COSTLY.team(workers))
    home = schedule.ready.home if schedule.ready else np.zeros(len(graph), int)
    at = run.trace["worker"] // COSTLY.cores
    expected = {
        (s, home[t])
        for s, t in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
        if at[s] != home[t]
    }
    assert run.activations == len(expected)


@pytest.mark.parametrize("name", QUEUES)
@settings(max_examples=40)
@given(st.data(), WORKERS)
def test_tasks_run_in_the_node_of_their_chain(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    schedule = policy_named(name)(graph, seconds, COSTLY.team(workers))
    run = simulate(graph, schedule, seconds, COSTLY)
    assert (run.trace["worker"] // COSTLY.cores == schedule.ready.home).all()


@settings(max_examples=40)
@given(st.data(), st.integers(1, 6))
def test_a_node_is_never_idle_while_a_task_is_ready_there(data, nodes):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    model = MachineModel("free", nodes, 1)
    trace = flow("dataflow(queues=node)", graph, seconds, model, nodes).trace
    ready = np.zeros(len(graph), np.int64)
    np.maximum.at(ready, graph.targets, trace["end"][graph.sources])
    for node in range(nodes):
        mine = np.flatnonzero(trace["worker"] == node)
        mine = mine[np.lexsort((trace["end"][mine], trace["start"][mine]))]
        before = 0
        for k, task in enumerate(mine):
            if trace["start"][task] > before + 1:  # nanoseconds are rounded
                assert (ready[mine[k:]] >= trace["start"][task] - 1).all()
            before = trace["end"][task]


# Small cases worked out by hand


def test_a_task_in_another_node_waits_for_the_message_of_its_predecessor():
    graph = bare_graph([0, 1], [(0, 1)])
    model = replace(TWO_NODES, ready_latency=0.25, ready_activation=0.125)
    run = flow("dataflow(queues=node)", graph, [1.0, 2.0], model, 2)
    assert (run.trace["worker"].tolist(), run.activations) == ([0, 1], 1)
    assert run.trace["start"][1] == 1.5e9 and run.makespan == 3.5
    assert run.waiting.tolist() == [2.5, 1.5]


def test_a_node_writes_and_reads_one_message_after_the_other():
    """Task 0 ends in node 0 and is waited for in nodes 1 and 2; tasks 1 and 2 start after 1.2 and 1.3 s."""
    graph = bare_graph([0, 1, 1], [(0, 1), (0, 2)])
    model = replace(MachineModel("three", 3, 1), ready_activation=0.1)
    run = flow("dataflow(queues=node)", graph, [1.0, 1.0, 1.0], model, 3)
    assert run.trace["worker"].tolist() == [0, 1, 2] and run.activations == 2
    np.testing.assert_allclose(run.trace["start"], [0.0, 1.2e9, 1.3e9])


def test_a_queue_gives_one_task_after_the_other():
    model = replace(free(4), ready_service=0.125)
    run = flow("dataflow", one_level(4), np.ones(4), model, 4)
    assert sorted(run.trace["start"].tolist()) == [1.25e8, 2.5e8, 3.75e8, 5e8]
    assert run.counter.sum() == 0.125 * (1 + 2 + 3 + 4) and run.makespan == 1.5
    run = flow("dataflow(queues=worker)", one_level(4), np.ones(4), model, 4)
    assert run.trace["start"].tolist() == [1.25e8] * 4 and run.makespan == 1.125


def test_the_queue_of_all_is_in_the_first_node_and_others_go_there_and_back():
    model = replace(TWO_NODES, ready_latency=0.25, ready_service=0.5)
    run = flow("dataflow", one_level(2), np.ones(2), model, 2)
    # The first node's call is answered at 0.5; the other's comes at 0.25, is answered at 1 and back at 1.25.
    assert sorted(run.trace["start"].tolist()) == [0.5e9, 1.25e9]
    assert run.counter.tolist() == [0.5, 1.25] and run.activations == 0


def test_an_idle_worker_takes_from_the_queue_of_another():
    """Both tasks become ready in the queue of worker 0; the more urgent one stays there."""
    graph = bare_graph([0, 1, 1], [(0, 1), (0, 2)])
    run = flow("dataflow(queues=worker, alike=0)", graph, [1.0, 1.0, 2.0], replace(free(2)), 2)
    assert run.trace["worker"].tolist() == [0, 1, 0] and run.steals == 1
    assert run.makespan == 3.0


def test_nobody_takes_from_another_node():
    graph = bare_graph([0, 0, 0, 0], [])
    model = MachineModel("two of two", 2, 2)
    ready = ReadyQueues.of_workers(model.team(4), np.zeros(4, np.int64))
    run = simulate(graph, Schedule("hand", 4, (), np.zeros(4), ready=ready), np.ones(4), model)
    assert set(run.trace["worker"].tolist()) == {0, 1} and run.makespan == 2.0


def test_a_call_to_a_queue_is_hidden_behind_work_that_was_taken_ahead():
    model = replace(free(1), ready_service=0.25)
    assert flow("dataflow", one_level(4), np.ones(4), model, 1).makespan == 4 * 1.25
    ahead = flow("dataflow", one_level(4), np.ones(4), replace(model, prefetch=1), 1)
    assert ahead.makespan == 0.25 + 4.0 and ahead.counter[0] == 0.25


@pytest.mark.parametrize("name", QUEUES)
def test_the_same_team_gets_the_same_homes_whatever_the_costs_of_queues(name):
    graph = one_level(7)
    team = Team(4, groups=((0, 1), (2, 3)))
    schedule = policy_named(name)(graph, np.arange(7.0), team)
    if "lpt" in name:
        assert [np.arange(7.0)[schedule.ready.home == g].sum() for g in (0, 1)] == [11.0, 10.0]
    else:
        assert schedule.ready.home.tolist() == [0, 1, 0, 1, 0, 1, 0]
