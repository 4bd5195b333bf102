"""Simulated runs: what is conserved for every policy, and bounds of theory."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import bare_graph
from schedule_cases import bare_graphs, costs
from simulated_cases import COSTLY, EXACT, NAMES, WORKERS, free, one_level, runs
from tilewise import policies
from tilewise.execute.simulated import simulate
from tilewise.native import TRACE
from tilewise.schedule import Phase, Queue, Schedule, policy_named
from tilewise.schedule.policy import tasks_by_level
from tilewise.schedule.schedule import WHOLE

# What holds for every policy


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(st.data())
def test_the_same_seed_gives_the_same_bits(name, data):
    *_, run = data.draw(runs(name))
    first, second = run(7), run(7)
    assert first.makespan == second.makespan
    for field in ("busy", "counter", "communication", "waiting", "counts", "trace"):
        assert getattr(first, field).tobytes() == getattr(second, field).tobytes()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(st.data())
def test_work_and_messages_are_conserved(name, data):
    graph, messages, run = data.draw(runs(name))
    result = run()
    assert result.trace.dtype == TRACE and len(result.trace) == len(graph)
    assert result.messages == messages
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
@given(st.data(), st.sampled_from(NAMES), WORKERS)
def test_cores_of_one_speed_are_busy_for_the_work_and_no_longer(data, name, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    result = simulate(graph, policy_named(name)(graph, seconds, workers), seconds, free(workers))
    assert result.busy.sum() == pytest.approx(seconds.sum(), rel=1e-6, abs=1e-9)
    assert result.efficiency == pytest.approx(1 - result.imbalance, rel=1e-6, abs=1e-6) or not seconds.any()
    noisy = simulate(
        graph, policy_named(name)(graph, seconds, workers), seconds, replace(free(workers), noise=0.5)
    )
    assert noisy.work == pytest.approx(noisy.busy.sum(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(st.data())
def test_no_dependency_is_broken_in_the_trace(name, data):
    graph, *_, run = data.draw(runs(name))
    trace = run().trace
    assert (trace["end"][graph.sources] <= trace["start"][graph.targets]).all()
    assert (trace["ready"] <= trace["start"]).all() and (trace["start"] <= trace["end"]).all()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(st.data(), WORKERS)
def test_nothing_is_faster_than_the_critical_path_or_the_work_shared_evenly(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    path = graph.longest_path(seconds).max(initial=0.0)
    for model in (free(workers), replace(COSTLY, speed=1.0, noise=0.0, loads=())):
        found = simulate(
            graph, policy_named(name)(graph, seconds, model.team(workers)), seconds, model
        ).makespan
        assert found >= max(path, seconds.sum() / workers) * (1 - EXACT)


# Bounds of theory, where nothing costs extra


@settings(max_examples=30)
@given(st.lists(st.floats(0, 10), max_size=7), st.integers(1, 4))
def test_longest_first_keeps_its_bound(cost, workers):
    graph, seconds = one_level(len(cost)), np.array(cost, float)
    found = simulate(graph, policies["lpt"](graph, seconds, workers), seconds, free(workers)).makespan
    loads = (
        np.bincount(where, seconds, workers).max() for where in product(range(workers), repeat=len(cost))
    )
    best = min(loads) if len(cost) else 0.0
    assert found <= (4 / 3 - 1 / (3 * workers)) * best * (1 + EXACT) + EXACT


@pytest.mark.parametrize("name", ["dataflow", "dataflow(queues=worker)"])
@settings(max_examples=40)
@given(st.data(), WORKERS)
def test_data_flow_keeps_grahams_bound(name, data, workers):
    """At most work / p + (1 - 1/p) path, and so at most 2 - 1/p times the best."""
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    path = graph.longest_path(seconds).max(initial=0.0)
    found = simulate(graph, policy_named(name)(graph, seconds, workers), seconds, free(workers)).makespan
    assert found <= (seconds.sum() / workers + (1 - 1 / workers) * path) * (1 + EXACT)


@pytest.mark.parametrize("name", ["levels", "ie-nxtval"])
@settings(max_examples=30)
@given(st.data(), WORKERS)
def test_counters_keep_grahams_bound_in_each_level(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    found = simulate(graph, policies[name](graph, seconds, workers), seconds, free(workers)).makespan
    levels = [seconds[tasks] for tasks in tasks_by_level(graph)]
    bound = sum(s.sum() / workers + (1 - 1 / workers) * s.max(initial=0.0) for s in levels)
    assert found <= bound * (1 + EXACT)


@pytest.mark.parametrize(
    "name", ["lpt(barriers=true)", "block(barriers=true)", "interleaved", "proportional(barriers=true)"]
)
@settings(max_examples=40)
@given(st.data(), WORKERS, st.booleans())
def test_static_lists_take_what_the_schedule_says(name, data, workers, equal):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    model = replace(free(workers), speed=1.0 if equal else tuple(1.0 + 0.5 * w for w in range(workers)))
    schedule = policy_named(name)(graph, seconds, model.team(workers))
    expected = schedule.makespan(graph, seconds, model.team(workers))
    assert simulate(graph, schedule, seconds, model).makespan == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["lpt", "block", "proportional"])
@settings(max_examples=30)
@given(st.data(), WORKERS, st.booleans())
def test_the_same_lists_without_barriers_are_never_slower(name, data, workers, equal):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    model = replace(free(workers), speed=1.0 if equal else tuple(1.0 + 0.5 * w for w in range(workers)))
    team = model.team(workers)
    with_barriers = policy_named(f"{name}(barriers=true)")(graph, seconds, team)
    schedule = replace(with_barriers, waits=True)
    run = simulate(graph, schedule, seconds, model)
    assert run.makespan >= schedule.makespan(graph, seconds, team) * (1 - EXACT)
    assert run.makespan <= simulate(graph, with_barriers, seconds, model).makespan * (1 + EXACT)
    before, after = run.trace["end"][graph.sources], run.trace["start"][graph.targets]
    assert (before <= after + 1).all()  # nanoseconds are rounded


def test_a_task_of_a_list_waits_for_those_that_it_needs_alone():
    graph = bare_graph([0, 0, 1, 1], [(0, 2), (1, 3)])
    seconds = np.array([4.0, 1.0, 1.0, 2.0])
    lists = [[0, 2], [1, 3]]
    phases = tuple(
        Phase(tuple(Queue(np.array([tasks[level]]), (w,), WHOLE) for w, tasks in enumerate(lists)))
        for level in range(2)
    )
    run = simulate(graph, Schedule("hand", 2, phases, waits=True), seconds, free(2))
    assert (run.trace["start"] / 1e9).tolist() == [0.0, 0.0, 4.0, 1.0] and run.makespan == 5.0
    crossed = bare_graph([0, 0, 1, 1], [(0, 3), (1, 2)])
    run = simulate(crossed, Schedule("hand", 2, phases, waits=True), seconds, free(2))
    assert (run.trace["start"] / 1e9).tolist() == [0.0, 0.0, 4.0, 4.0] and run.makespan == 6.0
    assert run.waiting.tolist() == [1.0, 3.0]
