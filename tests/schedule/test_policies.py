"""All policies of the registry on random graphs and costs; the bounds that the static ones keep."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import bare_graph, random_program
from random_spaces import RULES, SEEDS, WORKERS, worlds
from schedule_cases import bare_graphs, costs
from tilewise import policies
from tilewise.errors import InputError
from tilewise.inspect import inspect
from tilewise.schedule import Team, policy_named
from tilewise.schedule.block import contiguous_runs
from tilewise.schedule.lpt import longest_first
from tilewise.schedule.policies import DEFAULT_POLICY


@pytest.mark.parametrize("name", policies)
@settings(max_examples=80)
@given(st.data(), st.integers(1, 40))
def test_every_task_runs_once_and_no_dependency_is_broken(name, data, workers):
    graph = data.draw(bare_graphs())
    speeds = data.draw(st.sampled_from([(), tuple(np.linspace(1.0, 0.1, workers))]))
    schedule = policies[name](graph, data.draw(costs(len(graph))), Team(workers, speeds))
    schedule.check(graph)
    assert schedule.workers == workers and schedule.policy == name
    assert str(schedule).startswith(name)


@pytest.mark.parametrize("name", policies)
@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("n_tasks", [0, 1, 2])
def test_fewer_tasks_than_workers(name, workers, n_tasks):
    graph = bare_graph(list(range(n_tasks)), [(0, 1)] if n_tasks == 2 else [])
    for seconds in (np.zeros(n_tasks), np.ones(n_tasks)):
        policies[name](graph, seconds, workers).check(graph)


@pytest.mark.parametrize("name", policies)
@settings(max_examples=15)
@given(worlds(largest=3, spin=False), SEEDS, st.sampled_from(RULES), WORKERS)
def test_real_graphs(name, world, seed, rule, workers):
    _, program, _ = random_program(world, seed, 4)
    graph = inspect(program, rule)
    policies[name](graph, graph.flops + graph.bytes, workers).check(graph)


@pytest.mark.parametrize("name", policies)
@settings(max_examples=20)
@given(st.data(), WORKERS)
def test_a_policy_decides_alike_from_the_same_input_and_leaves_it_alone(name, data, workers):
    graph = data.draw(bare_graphs())
    seconds = data.draw(costs(len(graph)))
    before = seconds.copy()
    first, second = (policies[name](graph, seconds, workers).arrays(graph) for _ in range(2))
    assert np.array_equal(seconds, before)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[key], second[key]) for key in first)


def test_an_unknown_policy_lists_the_valid_ones():
    with pytest.raises(InputError) as caught:
        policy_named("dataflo")
    assert "unknown policy 'dataflo': did you mean dataflow?" in str(caught.value)
    assert all(name in str(caught.value) for name in policies)
    assert policy_named(DEFAULT_POLICY) == policies[DEFAULT_POLICY]


# Bounds

SMALL_COSTS = st.lists(st.one_of(st.integers(0, 9).map(float), st.floats(0, 10)), max_size=8)


@settings(max_examples=50)
@given(SMALL_COSTS, st.integers(1, 5), st.lists(st.integers(0, 9), min_size=5, max_size=5))
def test_contiguous_runs_are_optimal(cost, parts, before):
    cost, before = np.array(cost, float), np.array(before[:parts], float)
    cuts = contiguous_runs(cost, np.ones(parts), before)
    assert len(cuts) == parts + 1 and cuts[0] == 0 and cuts[-1] == len(cost) and (np.diff(cuts) >= 0).all()

    def end(cuts):
        runs = zip(before, pairwise(cuts), strict=True)
        return max((start + cost[a:b].sum() for start, (a, b) in runs if cost[a:b].any()), default=0.0)

    found = end(cuts)
    best = min(
        end((0, *inner, len(cost)))
        for inner in product(range(len(cost) + 1), repeat=parts - 1)
        if list(inner) == sorted(inner)
    )
    assert found <= best * (1 + 1e-9) + 1e-12


@settings(max_examples=50)
@given(st.lists(st.floats(0, 10), max_size=7), st.integers(1, 4))
def test_longest_first_keeps_grahams_bound(cost, parts):
    cost = np.array(cost, float)
    chosen = longest_first(cost, parts)
    assert sorted(np.concatenate([np.zeros(0, int), *chosen]).tolist()) == list(range(len(cost)))
    for part in chosen:
        assert (np.diff(cost[part]) <= 0).all()
    found = max(cost[part].sum() for part in chosen)
    loads = (np.bincount(where, cost, parts).max() for where in product(range(parts), repeat=len(cost)))
    best = min(loads, default=0.0) if len(cost) else 0.0
    assert found <= (4 / 3 - 1 / (3 * parts)) * best + 1e-12


@settings(max_examples=50)
@given(
    st.lists(st.floats(0, 10), max_size=6), st.lists(st.sampled_from([0.1, 0.5, 1.0]), min_size=1, max_size=4)
)
def test_longest_first_on_uneven_workers_takes_at_most_twice_the_best(cost, speeds):
    """The bound of Gonzalez, Ibarra and Sahni for uniform machines."""
    cost, speeds = np.array(cost, float), np.array(speeds)
    parts = longest_first(cost, speeds)
    assert sorted(np.concatenate([np.zeros(0, int), *parts]).tolist()) == list(range(len(cost)))
    found = max(cost[part].sum() / speed for part, speed in zip(parts, speeds, strict=True))
    ways = product(range(len(speeds)), repeat=len(cost))
    best = min((np.bincount(way, cost, len(speeds)) / speeds).max() for way in ways) if len(cost) else 0.0
    assert found <= 2 * best + 1e-12


def test_longest_first_on_grahams_own_example():
    parts = longest_first(np.array([3.0, 3, 2, 2, 2]), 2)
    assert sorted(np.array([3.0, 3, 2, 2, 2])[part].sum() for part in parts) == [5.0, 7.0]


@settings(max_examples=40)
@given(st.data(), st.integers(1, 6))
def test_block_keeps_the_order_of_the_program_in_each_phase(data, workers):
    graph = data.draw(bare_graphs())
    schedule = policies["block"](graph, data.draw(costs(len(graph))), workers)
    for phase in schedule.phases:
        tasks = np.concatenate([np.zeros(0, int), *(queue.tasks for queue in phase.queues)])
        assert (np.diff(tasks) > 0).all()
