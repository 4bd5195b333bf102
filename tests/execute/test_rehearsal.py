"""Policies that learn on a simulated machine: their first runs come before the one that counts."""

from dataclasses import replace

import numpy as np
import pytest

from random_programs import bare_graph
from simulated_cases import free
from tilewise import policies
from tilewise.execute.rehearsal import rehearsed
from tilewise.execute.simulated import simulate

WORKERS = 8
GRAPH = bare_graph([0] * 400 + [1] * 400, [(k, 400 + k) for k in range(400)])
SECONDS = np.random.default_rng(3).uniform(0.5e-3, 1.5e-3, 800)
CROWDED = replace(free(WORKERS), nodes=2, cores=4, counter_service=5e-4)  # half as long as a task


def schedule_on(machine, policy="hybrid", seed=0):
    seeds = []

    def run(schedule, number):
        seeds.append(number)
        return simulate(GRAPH, schedule, SECONDS, machine, seed=seed + number)

    found = rehearsed(policies[policy], GRAPH, SECONDS, machine.team(WORKERS), run)
    return found, seeds


def static(schedule):
    return [all(queue.quantum == 0 for queue in phase.queues) for phase in schedule.phases]


def test_a_crowded_counter_is_replaced_by_lists():
    schedule, runs = schedule_on(CROWDED)
    assert static(schedule) == [True, True] and runs == [1, 2, 3]
    counter = simulate(GRAPH, policies["ie-nxtval"](GRAPH, SECONDS, WORKERS), SECONDS, CROWDED)
    listed = simulate(GRAPH, schedule, SECONDS, CROWDED)
    assert listed.makespan < 0.5 * counter.makespan and listed.counter_calls == 0


def test_times_that_nobody_can_know_stay_with_the_counter():
    schedule, _ = schedule_on(replace(free(WORKERS), noise=0.5))
    assert static(schedule) == [False, False]


def test_a_counter_that_costs_nothing_stays():
    schedule, _ = schedule_on(free(WORKERS))
    assert static(schedule) == [False, False]


def test_a_rehearsal_depends_on_its_arguments_alone():
    machine = replace(CROWDED, noise=0.1)
    first, second = (schedule_on(machine, seed=5)[0].arrays(GRAPH) for _ in range(2))
    assert all(np.array_equal(first[key], second[key]) for key in first)


def test_lists_know_the_speeds_of_the_machine():
    machine = replace(CROWDED, speed=(1.0,) * 4 + (0.5,) * 4)
    schedule, _ = schedule_on(machine)
    assert static(schedule) == [True, True]
    work = [SECONDS[queue.tasks].sum() for queue in schedule.phases[0].queues]
    assert work[0] == pytest.approx(2 * work[-1], rel=0.1)


@pytest.mark.parametrize("name", [name for name in policies if name != "hybrid"])
def test_policies_that_do_not_learn_need_no_rehearsal(name):
    schedule, runs = schedule_on(free(WORKERS), name)
    assert not runs
    assert schedule.policy == name
