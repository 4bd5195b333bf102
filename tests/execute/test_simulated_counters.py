"""Simulated counters, loops and thieves: small cases worked out by hand, and twins."""

import heapq
from dataclasses import replace

import numpy as np
import pytest

from random_programs import bare_graph
from simulated_cases import free, one_level
from tilewise import Space, policies
from tilewise.equations import parse, plan_program
from tilewise.execute import Runner
from tilewise.execute.simulated import simulate
from tilewise.hardware.machines import MachineModel
from tilewise.inspect import PanelRule, inspect
from tilewise.schedule import Phase, Queue, Schedule, policy_named
from tilewise.schedule.loops import Loop

# Counters


@pytest.mark.parametrize(("nodes", "cores"), [(1, 8), (8, 1), (4, 2)])
def test_a_flooded_counter_answers_one_call_after_the_other(nodes, cores):
    graph, n = one_level(1000), 1000
    service, shared = 1e-3, 1e-4
    model = MachineModel("flood", nodes, cores, counter_service=service, counter_shared=shared)
    result = simulate(graph, policies["ie-nxtval"](graph, np.zeros(n), 8), np.zeros(n), model)
    assert result.counter_calls == n + 8
    each = shared if nodes == 1 else service
    assert result.makespan == pytest.approx((n + 8) * each)
    assert result.share(result.counter) > 0.99


def test_a_call_takes_longer_the_more_workers_there_are():
    graph, seconds = one_level(2000), np.full(2000, 0.01)
    model = MachineModel("many", 64, 1, counter_service=1e-3, counter_latency=1e-4)
    shares = []
    for workers in (2, 8, 32, 64):
        result = simulate(graph, policies["ie-nxtval"](graph, seconds, workers), seconds, model)
        shares.append(result.share(result.counter))
        assert result.makespan >= result.counter_calls * 1e-3
    assert shares == sorted(shares) and shares[0] < 0.15 and shares[-1] > 0.6


def test_a_flooded_host_without_buffers_takes_longer_for_each_call():
    graph, n = one_level(4000), 4000
    model = MachineModel("flood", 64, 1, counter_service=1e-3, counter_buffers=20, counter_resend=3e-3)

    def time(workers):
        result = simulate(graph, policies["ie-nxtval"](graph, np.zeros(n), workers), np.zeros(n), model)
        return result.counter.sum() / result.counter_calls

    assert time(10) == pytest.approx(10 * 1e-3, rel=0.02)
    assert time(20) == pytest.approx(20 * 1e-3, rel=0.02)
    assert time(40) == pytest.approx(40 * 3e-3, rel=0.05)
    assert time(64) == pytest.approx(64 * 3e-3, rel=0.05)


def test_phases_end_one_after_the_other():
    graph = bare_graph([0, 1, 2], [(0, 1), (1, 2)])
    seconds = np.array([1.0, 3.0, 2.0])
    schedule = policy_named("lpt(barriers=true)")(graph, seconds, 2)
    result = simulate(graph, schedule, seconds, replace(free(2), barrier=0.5))
    assert result.phases.tolist() == [1.5, 3.5, 2.5] and result.phase_ends[-1] == result.makespan
    flow = simulate(graph, policies["dataflow"](graph, seconds, 2), seconds, free(2))
    assert flow.phase_ends.tolist() == [6.0]


def test_the_way_to_a_counter_in_another_node_is_paid_twice():
    graph = one_level(1)
    model = MachineModel("far", 2, 1, counter_service=1.0, counter_latency=10.0)
    queue = Queue(np.array([0]), (0, 1))
    result = simulate(graph, Schedule("hand", 2, (Phase((queue,)),)), np.array([5.0]), model)
    # Worker 0 is the host: it draws at once, computes, and asks again at 6; worker 1 comes at 10.
    assert result.trace.tolist() == [(0, 10**9, 10**9, 6 * 10**9)]
    assert result.counter.tolist() == [2.0, 21.0] and result.waiting.tolist() == [14.0, 0.0]


def test_null_tuples_are_drawn_in_vain():
    graph = one_level(2)
    queue = Queue(np.array([-1, 0, -1, -1, 1]), (0, 1))
    schedule = Schedule("hand", 2, (Phase((queue,)),))
    result = simulate(graph, schedule, np.ones(2), replace(free(2), counter_shared=0.1))
    assert result.counter_calls == 5 + 2
    assert sorted(result.trace["start"].tolist()) == [2 * 10**8, 5 * 10**8]


@pytest.mark.parametrize("quantum", [1, 3, 100])
def test_a_larger_quantum_saves_calls(quantum):
    graph = one_level(10)
    schedule = policy_named(f"ie-nxtval(quantum={quantum})")(graph, np.ones(10), 2)
    assert simulate(graph, schedule, np.ones(10), free(2)).counter_calls == -(-10 // quantum) + 2


@pytest.mark.parametrize("policy", ["nxtval", "ie-nxtval(quantum=2)", "gss", "buckets(size=1)", "lpt"])
def test_counters_are_called_as_often_as_in_a_real_run(policy):
    spaces = {
        "ij": Space.spin_orbital("o", [2, 2], [2, 2], 99),
        "abcd": Space.spin_orbital("v", [3, 2], [3, 2], 99),
    }
    text = "input V[ab-|cd-]\ninput T[cd-|ij-]\nR[ab-|ij-] = V[ab|cd] T[cd|ij]"
    program = plan_program(parse(text), spaces)
    graph = inspect(program, PanelRule(1, 1))
    schedule = policy_named(policy)(graph, graph.flops, 2)
    buffers = {name: np.full(layout.size, 0.5) for name, layout in program.layouts.items()}
    real = Runner(graph, schedule, buffers).run()
    simulated = simulate(graph, schedule, 1e-9 * graph.flops, free(2))
    assert simulated.counter_calls == real.counter_calls and simulated.steals == real.steals


def test_barriers_are_paid_after_each_level():
    graph = bare_graph([0, 1, 2], [(0, 1), (1, 2)])
    schedule = policy_named("lpt(barriers=true)")(graph, np.ones(3), 2)
    result = simulate(graph, schedule, np.ones(3), replace(free(2), barrier=0.25))
    assert result.makespan == 3.75 and sorted(result.waiting.tolist()) == [0.75, 3.75]


@pytest.mark.parametrize(
    "policy",
    [
        "gss",
        "tss",
        "factoring",
        "factoring(f=4, delta=0.5)",
        "chunk(size=0, delta=1)",
        "tss(delta=2)",
        "factoring(literal=true)",
        "factoring(delta=0.5, taper=true)",
        "factoring(most=0.5)",
        "gss(delta=1, most=3)",
        "tss(most=2)",
        "tss(delta=2, taper=true, probe=2)",
        "factoring(f=4, delta=0.5, literal=true)",
        "factoring(delta=5, literal=true, probe=2)",
        "chunk(size=0, delta=1, literal=true)",
        "chunk(size=0, delta=20, literal=true, probe=3)",
    ],
)
@pytest.mark.parametrize("workers", [1, 3, 5])
def test_loops_are_those_of_their_twins(policy, workers):
    rng = np.random.default_rng(3)
    graph, seconds, actual = one_level(300), np.arange(300, 0, -1) / 100.0, rng.random(300) + 0.1
    speeds = tuple(1.0 / (1 + w % 3) for w in range(workers))
    model = replace(free(workers), speed=speeds)
    schedule = policy_named(policy)(graph, seconds, workers)
    trace = simulate(graph, schedule, actual, model).trace
    loop, idle = Loop(schedule.queues[0].rule, seconds, workers), [(0.0, w, 0.0) for w in range(workers)]
    while idle:
        time, w, before = heapq.heappop(idle)
        first, last = loop.next(w, before)
        end = time
        for task in range(first, last):
            assert trace["worker"][task] == w
            assert 1e-9 * trace["start"][task] == pytest.approx(end, abs=2e-9)
            end += actual[task] / speeds[w]
        if first < last:
            heapq.heappush(idle, (end, w, end - time))


# Stealing


def test_thieves_take_from_the_far_end_of_the_longest_queue():
    graph, n = one_level(7), 7
    queues = (Queue(np.arange(5), (0,)), Queue(np.array([5, 6]), (1,)), Queue(np.zeros(0, np.int64), (2,)))
    schedule = Schedule("hand", 3, (Phase(queues, steal=True),))
    result = simulate(graph, schedule, np.ones(n), free(3))
    assert result.trace["worker"].tolist() == [0, 0, 0, 2, 2, 1, 1]
    assert result.makespan == 3.0 and result.steals == 2
    assert result.trace["start"][[4, 3]].tolist() == [0, 10**9]


def test_a_theft_from_another_node_takes_longer():
    graph = one_level(4)
    queues = (Queue(np.arange(4), (0,)), Queue(np.zeros(0, np.int64), (1,)))
    schedule = Schedule("hand", 2, (Phase(queues, steal=True),))
    costs_of = {"counter_service": 0.25, "counter_latency": 0.5}
    near = simulate(graph, schedule, np.ones(4), MachineModel("near", 1, 2, **costs_of))
    far = simulate(graph, schedule, np.ones(4), MachineModel("far", 2, 1, **costs_of))
    assert near.makespan == 2.0 and near.counter.tolist() == [0.0, 0.0]
    # The empty queue of worker 1 is its own, in its own node; then 0.5 + 0.25 + 0.5 for a theft.
    assert far.trace["start"][3] == 125 * 10**7 and far.makespan == 3.0
