"""Simulated Gets and Accumulates: how many, how long, what hides them, and who shares a link."""

from dataclasses import replace

import numpy as np
import pytest

from random_programs import bare_graph
from simulated_cases import free, one_level
from tilewise import Space, policies
from tilewise.equations import parse, plan_program
from tilewise.execute.simulated import simulate
from tilewise.inspect import PanelRule, inspect
from tilewise.inspect.traffic import bytes_moved
from tilewise.schedule import Phase, Queue, Schedule

NETWORK = replace(free(1), latency=0.25, bandwidth=100.0)


@pytest.mark.parametrize(
    ("prefetch", "got", "put", "expected"),
    [
        (0, 75.0, 0.0, 3 * (1.0 + 1.0)),
        (1, 75.0, 0.0, 1.0 + 3 * 1.0),
        (0, 0.0, 25.0, 3 * (1.0 + 0.5)),
        (1, 0.0, 25.0, 3 * 1.0 + 0.5),
        (1, 175.0, 0.0, 3 * 2.0 + 1.0),  # the network is the slower one
        (3, 175.0, 0.0, 3 * 2.0 + 1.0),
        (0, 75.0, 25.0, 3 * 2.5),
    ],
)
@pytest.mark.parametrize("policy", ["lpt", "ie-nxtval", "dataflow"])
def test_prefetch_hides_messages_behind_the_work(policy, prefetch, got, put, expected):
    graph = one_level(3)
    model = replace(NETWORK, prefetch=prefetch)
    result = simulate(
        graph,
        policies[policy](graph, np.ones(3), 1),
        np.ones(3),
        model,
        bytes_got=np.full(3, got),
        bytes_put=np.full(3, put),
    )
    assert result.makespan == pytest.approx(expected)
    assert result.messages == 3 * ((got > 0) + (put > 0))
    exposed = result.communication if policy != "dataflow" else result.communication + result.waiting
    assert result.busy[0] + exposed[0] == pytest.approx(expected)


def test_every_message_pays_the_latency():
    graph, bytes_got, bytes_put = one_level(2), np.array([75.0, 0.0]), np.array([25.0, 50.0])
    schedule = policies["lpt"](graph, np.ones(2), 1)
    gets, puts = np.array([3, 2]), np.array([1, 2])
    moved = {"bytes_got": bytes_got, "bytes_put": bytes_put, "gets": gets, "puts": puts}
    result = simulate(graph, schedule, np.ones(2), NETWORK, **moved)
    assert result.messages == 8
    assert result.makespan == pytest.approx(2 * 1.0 + 8 * 0.25 + 150 / 100)


@pytest.mark.parametrize(("seconds", "expected"), [(8.0, 1.0 + 8.0), (2.0, 4.0 + 0.5), (0.0, 4.0)])
@pytest.mark.parametrize("links", [False, True])
def test_double_buffering_exposes_the_first_message_or_the_last_work(links, seconds, expected):
    """Four messages of a second each, and a quarter of the work on each."""
    graph = one_level(1)
    model = replace(NETWORK, nodes=2, overlap=True, links=links)
    schedule = policies["lpt"](graph, np.full(1, seconds), 2)
    moved = {"bytes_got": np.array([300.0]), "gets": np.array([4]), "places": np.full(4, 0.9)}
    result = simulate(graph, schedule, np.full(1, seconds), model, **moved)
    assert result.makespan == pytest.approx(expected)
    assert result.busy.sum() == pytest.approx(seconds)
    assert result.communication.sum() == pytest.approx(expected - seconds)


# Links

LINKED = replace(NETWORK, nodes=3, cores=2, latency=0.0, links=True)


def fetched(nodes, workers, model=LINKED, **more):
    """When the tasks begin that the workers have, each with one Get of a second from a node."""
    graph = one_level(len(nodes))
    queues = [Queue(np.array([k]), (w,), quantum=0) for k, w in enumerate(workers)]
    places = (np.array(nodes) + 0.5) / model.nodes
    moved = {"bytes_got": np.full(len(nodes), 100.0), "places": places, **more}
    schedule = Schedule("hand", model.size, (Phase(tuple(queues)),))
    run = simulate(graph, schedule, np.full(len(nodes), 0.5), model, **moved)
    return (1e-9 * run.trace["start"]).tolist()


def test_the_cores_of_a_node_share_its_link():
    assert fetched([1, 2], [0, 1]) == [1.0, 2.0]  # both come to node 0
    assert fetched([1, 2], [0, 1], replace(LINKED, links=False)) == [1.0, 1.0]


def test_those_who_want_data_of_one_node_wait_for_each_other():
    assert fetched([2, 2], [0, 2]) == [1.0, 2.0]
    assert fetched([2, 1], [0, 4]) == [1.0, 1.0]  # one link in each direction
    assert fetched([0, 2], [0, 2]) == [0.0, 1.0]  # its own node has it


def test_who_waits_for_its_turn_at_the_other_end_keeps_no_link_busy():
    """Worker 2 waits until node 2 has served worker 0; worker 3, of the same node, need not wait for that."""
    assert fetched([2, 2, 0], [0, 2, 3]) == [1.0, 2.0, 1.0]


def test_gets_without_a_buffer_take_time_of_the_messages_before_them():
    model = replace(LINKED, nodes=5, cores=1, link_buffers=1, link_resend=0.5)
    # All want data of node 4 at the same time: messages there take 1, 1.5, 2 and 2.5 seconds.
    assert fetched([4, 4, 4, 4], [0, 1, 2, 3], model) == [1.0, 2.0, 3.5, 5.5]
    assert fetched([4, 4, 4, 4], [0, 1, 2, 3], replace(model, link_buffers=4)) == [1.0, 2.0, 3.0, 4.0]


def test_a_node_holds_gets_back_while_enough_are_under_way():
    """Worker 2 waits for node 2; worker 3, of the same node, may ask node 0 meanwhile or not."""
    for in_flight, begins in ((0, 1.0), (1, 3.0), (2, 1.0)):
        assert fetched([2, 2, 0], [0, 2, 3], replace(LINKED, in_flight=in_flight)) == [1.0, 2.0, begins]


def test_a_task_that_waits_for_each_message_leaves_the_link_to_others_meanwhile():
    graph = one_level(2)
    queues = (Queue(np.array([0]), (0,), quantum=0), Queue(np.array([1]), (1,), quantum=0))
    schedule = Schedule("hand", 6, (Phase(queues),))
    run = simulate(
        graph,
        schedule,
        np.array([4.0, 4.0]),
        LINKED,
        bytes_got=np.array([200.0, 200.0]),
        gets=np.array([2, 2]),
        places=np.full(4, 0.9),
    )
    # A message each to 1 and 2, work to 3 and 4, a message each to 4 and 5, work to 6 and 7.
    assert (1e-9 * run.trace["end"]).tolist() == [6.0, 7.0]
    assert run.communication[:2].tolist() == [2.0, 3.0]


@pytest.mark.parametrize("cores", [1, 2, 8])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_more_cores_have_no_more_bandwidth(cores, prefetch):
    """All data are in the other one of two nodes."""
    graph, n = one_level(80), 80
    model = replace(LINKED, nodes=2, cores=cores, prefetch=prefetch)
    node = np.arange(n) // (n // 2)
    schedule = policies["block"](graph, np.ones(n), model.size)
    moved = {"bytes_got": np.full(n, 100.0), "places": 0.75 - 0.5 * node}
    result = simulate(graph, schedule, np.zeros(n), model, **moved)
    assert result.makespan == pytest.approx(n / 2) and result.messages == n


def test_results_go_over_links_too():
    """Four results leave one node; only those that stay there are at home at once."""
    graph, n = one_level(8), 8
    schedule = policies["block"](graph, np.ones(n), 4)
    model, moved = replace(LINKED, nodes=2), {"bytes_put": np.full(n, 100.0)}
    apart = simulate(graph, schedule, np.ones(n), replace(model, links=False), **moved)
    linked = simulate(graph, schedule, np.ones(n), model, **moved)
    assert apart.makespan == 4.0 and apart.communication.tolist() == [2.0] * 4
    assert linked.communication.sum() > 0 and linked.makespan != apart.makespan
    assert linked.messages == apart.messages == n


# Data flow


@pytest.mark.parametrize("policy", ["lpt", "ie-nxtval", "dataflow"])
@pytest.mark.parametrize(("prefetch", "taken"), [(0, [0, 1, 2, 3]), (1, [0, 0, 1, 2]), (2, [0, 0, 0, 1])])
def test_as_many_tasks_are_taken_ahead_as_the_machine_says(policy, prefetch, taken):
    graph = one_level(4)
    schedule = policies[policy](graph, np.ones(4), 1)
    trace = simulate(graph, schedule, np.ones(4), replace(free(1), prefetch=prefetch)).trace
    assert sorted((trace["ready"] // 10**9).tolist()) == taken
    assert sorted((trace["start"] // 10**9).tolist()) == [0, 1, 2, 3]


def test_data_flow_takes_the_ready_task_of_highest_priority():
    graph = bare_graph([0, 0, 0, 1], [(0, 3)])
    schedule = Schedule("hand", 1, (), priority=np.array([2.0, 1.0, 3.0, 9.0]))
    trace = simulate(graph, schedule, np.ones(4), free(1)).trace
    assert np.argsort(trace["start"]).tolist() == [2, 0, 3, 1]


def test_data_flow_waits_until_results_are_in_place():
    graph = bare_graph([0, 1], [(0, 1)])
    for prefetch in (0, 2):
        model = replace(NETWORK, cores=2, prefetch=prefetch)
        schedule = policies["dataflow"](graph, np.ones(2), 2)
        result = simulate(graph, schedule, np.ones(2), model, bytes_put=np.array([75.0, 0.0]))
        assert result.trace["start"].tolist() == [0, 2 * 10**9]


def test_bytes_of_a_product_are_its_operands_and_its_result():
    spaces = {"ij": Space.spatial("o", [4], 99), "abcd": Space.spatial("v", [6], 99)}
    program = plan_program(parse("input A[ij|cd]\ninput B[ab|cd]\nC[ij|ab] = A[ij|cd] B[ab|cd]"), spaces)
    graph = inspect(program, PanelRule())
    got, put = bytes_moved(graph)
    assert len(graph) == 1
    assert got.tolist() == [8 * (16 * 36 + 36 * 36)] and put.tolist() == [8 * 16 * 36]
