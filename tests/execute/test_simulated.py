"""Simulated runs: what is conserved, bounds from theory, and small cases worked out by hand."""

import heapq
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_spaces import SEEDS, bare_graph
from schedule_cases import bare_graphs, costs
from tilewise import Space, policies
from tilewise.equations import parse, plan_program
from tilewise.errors import InputError
from tilewise.execute import Machine
from tilewise.execute.machines import Load, MachineModel
from tilewise.execute.simulated import simulate
from tilewise.inspect import PanelRule, inspect
from tilewise.inspect.traffic import bytes_moved
from tilewise.native import TRACE
from tilewise.schedule import Phase, Queue, Schedule, Team, policy_named
from tilewise.schedule.loops import Loop
from tilewise.schedule.policy import tasks_by_level

COSTLY = MachineModel(
    "costly",
    nodes=3,
    cores=2,
    speed=(1.0, 0.5, 2.0, 1.0, 1.0, 0.25),
    noise=0.3,
    barrier=0.01,
    latency=1e-3,
    bandwidth=1e4,
    counter_service=2e-3,
    counter_latency=5e-3,
    counter_shared=1e-4,
    loads=(Load(0, 3, 0.5, 1.5), Load(0, 2, 2.0, 4.0), Load(3, 2)),
)
WORKERS = st.integers(1, 6)
PREFETCH = st.sampled_from([0, 1, 3])
EXACT = 1e-9


def free(workers):
    """A machine on which nothing but the work takes time."""
    return MachineModel("free", 1, workers)


def one_level(n):
    return bare_graph([0] * n, [])


@st.composite
def runs(draw, name):
    """A simulated run on a machine on which everything takes time, and what went in."""
    graph, workers = draw(bare_graphs()), draw(WORKERS)
    seconds, rng = draw(costs(len(graph))), np.random.default_rng(draw(SEEDS))
    got, put = (rng.integers(0, 3, len(graph)) * rng.random(len(graph)) * 1e3 for _ in range(2))
    model = replace(COSTLY, prefetch=draw(PREFETCH))
    schedule = policies[name](graph, seconds, model.team(workers))

    def run(seed=0):
        return simulate(graph, schedule, seconds, model, bytes_got=got, bytes_put=put, seed=seed)

    return graph, seconds, got, put, run


# What holds for every policy


@pytest.mark.parametrize("name", policies)
@settings(max_examples=25)
@given(st.data())
def test_the_same_seed_gives_the_same_bits(name, data):
    *_, run = data.draw(runs(name))
    first, second = run(7), run(7)
    assert first.makespan == second.makespan
    for field in ("busy", "counter", "communication", "waiting", "counts", "trace"):
        assert getattr(first, field).tobytes() == getattr(second, field).tobytes()


@pytest.mark.parametrize("name", policies)
@settings(max_examples=25)
@given(st.data())
def test_work_and_messages_are_conserved(name, data):
    graph, _, got, put, run = data.draw(runs(name))
    result = run()
    assert result.trace.dtype == TRACE and len(result.trace) == len(graph)
    assert result.messages == np.count_nonzero(got) + np.count_nonzero(put)
    spent = result.busy + result.counter + result.communication
    assert (spent <= result.makespan * (1 + EXACT) + EXACT).all()
    np.testing.assert_allclose(spent + result.waiting, result.makespan, rtol=1e-9, atol=1e-9)
    traced = 1e-9 * (result.trace["end"] - result.trace["start"])
    by_worker = np.bincount(result.trace["worker"], traced, result.workers) if len(graph) else 0.0
    np.testing.assert_allclose(by_worker, result.busy, rtol=1e-9, atol=1e-8 * (1 + len(graph)))
    for w in range(result.workers):
        mine = np.sort(result.trace[result.trace["worker"] == w], order=["start", "end"])
        assert (mine["start"][1:] >= mine["end"][:-1]).all()


@settings(max_examples=40)
@given(st.data(), st.sampled_from(list(policies)), WORKERS)
def test_cores_of_one_speed_are_busy_for_the_work_and_no_longer(data, name, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    result = simulate(graph, policies[name](graph, seconds, workers), seconds, free(workers))
    assert result.busy.sum() == pytest.approx(seconds.sum(), rel=1e-6, abs=1e-9)
    assert result.efficiency == pytest.approx(1 - result.imbalance, rel=1e-6, abs=1e-6) or not seconds.any()
    noisy = simulate(
        graph, policies[name](graph, seconds, workers), seconds, replace(free(workers), noise=0.5)
    )
    assert noisy.work == pytest.approx(noisy.busy.sum(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", policies)
@settings(max_examples=25)
@given(st.data())
def test_no_dependency_is_broken_in_the_trace(name, data):
    graph, *_, run = data.draw(runs(name))
    trace = run().trace
    assert (trace["end"][graph.sources] <= trace["start"][graph.targets]).all()
    assert (trace["ready"] <= trace["start"]).all() and (trace["start"] <= trace["end"]).all()


@pytest.mark.parametrize("name", policies)
@settings(max_examples=25)
@given(st.data(), WORKERS)
def test_nothing_is_faster_than_the_critical_path_or_the_work_shared_evenly(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    path = graph.longest_path(seconds).max(initial=0.0)
    for model in (free(workers), replace(COSTLY, speed=1.0, noise=0.0, loads=())):
        found = simulate(graph, policies[name](graph, seconds, workers), seconds, model).makespan
        assert found >= max(path, seconds.sum() / workers) * (1 - EXACT)


# Bounds of theory, where nothing costs extra


@settings(max_examples=60)
@given(st.lists(st.floats(0, 10), max_size=7), st.integers(1, 4))
def test_longest_first_keeps_its_bound(cost, workers):
    graph, seconds = one_level(len(cost)), np.array(cost, float)
    found = simulate(graph, policies["lpt"](graph, seconds, workers), seconds, free(workers)).makespan
    loads = (
        np.bincount(where, seconds, workers).max() for where in product(range(workers), repeat=len(cost))
    )
    best = min(loads) if len(cost) else 0.0
    assert found <= (4 / 3 - 1 / (3 * workers)) * best * (1 + EXACT) + EXACT


@settings(max_examples=80)
@given(st.data(), WORKERS)
def test_data_flow_keeps_grahams_bound(data, workers):
    """At most work / p + (1 - 1/p) path, and so at most 2 - 1/p times the best."""
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    path = graph.longest_path(seconds).max(initial=0.0)
    found = simulate(graph, policies["dataflow"](graph, seconds, workers), seconds, free(workers)).makespan
    assert found <= (seconds.sum() / workers + (1 - 1 / workers) * path) * (1 + EXACT)


@pytest.mark.parametrize("name", ["levels", "ie-nxtval"])
@settings(max_examples=60)
@given(st.data(), WORKERS)
def test_counters_keep_grahams_bound_in_each_level(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    found = simulate(graph, policies[name](graph, seconds, workers), seconds, free(workers)).makespan
    levels = [seconds[tasks] for tasks in tasks_by_level(graph)]
    bound = sum(s.sum() / workers + (1 - 1 / workers) * s.max(initial=0.0) for s in levels)
    assert found <= bound * (1 + EXACT)


@pytest.mark.parametrize("name", ["lpt", "block", "interleaved", "proportional"])
@settings(max_examples=40)
@given(st.data(), WORKERS, st.booleans())
def test_static_lists_take_what_the_schedule_says(name, data, workers, equal):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    model = replace(free(workers), speed=1.0 if equal else tuple(1.0 + 0.5 * w for w in range(workers)))
    schedule = policies[name](graph, seconds, model.team(workers))
    expected = schedule.makespan(graph, seconds, model.team(workers))
    assert simulate(graph, schedule, seconds, model).makespan == pytest.approx(expected, rel=1e-9)


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
    real = Machine(graph, schedule, buffers).run()
    simulated = simulate(graph, schedule, 1e-9 * graph.flops, free(2))
    assert simulated.counter_calls == real.counter_calls and simulated.steals == real.steals


def test_barriers_are_paid_after_each_level():
    graph = bare_graph([0, 1, 2], [(0, 1), (1, 2)])
    schedule = policies["lpt"](graph, np.ones(3), 2)
    result = simulate(graph, schedule, np.ones(3), replace(free(2), barrier=0.25))
    assert result.makespan == 3.75 and sorted(result.waiting.tolist()) == [0.75, 3.75]


@pytest.mark.parametrize(
    "policy",
    ["gss", "tss", "factoring", "factoring(f=4, delta=0.5)", "chunk(size=0, delta=1)", "tss(delta=2)"],
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


# Cores


def test_a_core_under_load_shares_its_time():
    graph, seconds = one_level(2), np.array([10.0, 10.0])
    schedule = policies["interleaved"](graph, seconds, 2)

    def ends(*loads):
        run = simulate(graph, schedule, seconds, replace(free(2), loads=loads))
        return (1e-9 * run.trace["end"]).tolist()

    assert ends(Load(0, 2)) == pytest.approx([20.0, 10.0])
    assert ends(Load(0, 2, 4.0, 10.0)) == pytest.approx([13.0, 10.0])
    assert ends(Load(0, 2, 0.0, 4.0), Load(0, 4, 4.0, 8.0), Load(1, 3, 50.0)) == pytest.approx([15.0, 10.0])
    assert ends(Load(0, 2, 10.0)) == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize(
    ("jobs", "ideal"), [((1, 1, 1, 1), 2028), ((2, 2, 1, 1), 2704), ((3, 2, 2, 1), 3477)]
)
def test_self_scheduling_reaches_the_ideal_time_under_load(jobs, ideal):
    """Stathopoulos and Ynnerman: a triangle of 7158 columns, 4 x 2028 seconds of work."""
    n = 7158
    seconds = np.arange(n, 0, -1.0)
    seconds *= 4 * 2028 / seconds.sum()
    loads = tuple(Load(core, k) for core, k in enumerate(jobs))
    model = MachineModel("workstations", 4, 1, loads=loads)
    graph = one_level(n)

    def time(policy):
        return simulate(graph, policy_named(policy)(graph, seconds, 4), seconds, model).makespan

    assert time("ie-nxtval") == pytest.approx(ideal, rel=0.002)
    assert time("factoring(f=2, delta=0.5)") == pytest.approx(ideal, rel=0.01)
    assert time("interleaved") == pytest.approx(max(jobs) * 2028, rel=0.002)


def test_noise_has_the_asked_width_and_leaves_the_mean_alone():
    graph, seconds = one_level(20000), np.ones(20000)
    schedule = policies["block"](graph, seconds, 4)
    spread = [
        1e-9 * (run.trace["end"] - run.trace["start"])
        for run in (simulate(graph, schedule, seconds, replace(free(4), noise=0.2), seed=s) for s in (1, 2))
    ]
    for times in spread:
        assert times.mean() == pytest.approx(1.0, abs=0.01) and times.std() == pytest.approx(0.2, rel=0.05)
    assert not np.array_equal(*spread)


# Communication

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


# Machines and bad input


def test_a_team_has_the_speeds_and_nodes_of_its_machine():
    team = COSTLY.team(5)
    assert team == Team(5, (1.0, 0.5, 2.0, 1.0, 1.0), ((0, 1), (2, 3), (4,)))


def test_bad_input_gets_one_sentence():
    graph, model = one_level(3), free(2)
    schedule = policies["lpt"](graph, np.ones(3), 2)
    with pytest.raises(InputError, match="7 workers on machine costly: from 1 to 6 are possible"):
        simulate(graph, policies["lpt"](graph, np.ones(3), 7), np.ones(3), COSTLY)
    for wrong in (np.ones(2), -np.ones(3), np.array([1.0, np.nan, 1.0])):
        with pytest.raises(InputError, match="seconds: a number from 0 up is needed for each of 3 tasks"):
            simulate(graph, schedule, wrong, model)
    with pytest.raises(InputError, match="bytes_got: a number"):
        simulate(graph, schedule, np.ones(3), model, bytes_got=np.full(3, np.inf))


def test_an_empty_graph_takes_no_time():
    graph = one_level(0)
    for policy in policies.values():
        result = simulate(graph, policy(graph, np.zeros(0), 3), np.zeros(0), free(3))
        assert result.makespan == 0.0 and result.imbalance == 0.0 and result.efficiency == 1.0
