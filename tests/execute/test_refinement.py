"""Measured times take the place of the model, smoothed, and a schedule is renewed only when that pays."""

from types import SimpleNamespace

import numpy as np
import pytest

from random_programs import bare_graph
from tilewise import policies
from tilewise.execute.refinement import Refinement
from tilewise.native import TRACE
from tilewise.schedule import Team


class Recorder:
    """Stands for a machine: remembers its schedules."""

    def __init__(self, graph, schedule):
        self.graph, self.schedule, self.renewed = graph, schedule, 0

    def reschedule(self, schedule):
        self.schedule, self.renewed = schedule, self.renewed + 1


def result(seconds, worker):
    trace = np.zeros(len(seconds), TRACE)
    trace["worker"], trace["end"] = worker, np.rint(1e9 * np.asarray(seconds))
    return SimpleNamespace(trace=trace, seconds=1e-9 * trace["end"])


def refinement(graph, policy, model, workers=2):
    machine = Recorder(graph, policies[policy](graph, np.array(model, float), workers))
    return machine, Refinement(machine, policies[policy], Team(workers), np.array(model, float))


@pytest.fixture
def graph():
    return bare_graph([0] * 4, [])


def test_a_wrong_model_is_corrected_after_the_first_run(graph):
    machine, refined = refinement(graph, "lpt", [1, 1, 1, 1])
    refined.observe(result([3, 3, 1, 1], [0, 0, 1, 1]))
    # Worker 1 did as much in a third of the time: it is taken for the faster one.
    assert refined.team.speeds == pytest.approx((1 / 3, 1.0))
    machine, refined = refinement(graph, "lpt", [1, 1, 1, 1])
    refined.observe(result([3, 1, 1, 3], [0, 1, 0, 1]))
    assert refined.team.speeds == (1.0, 1.0) and machine.renewed == 0  # as even as it can be


def test_an_operation_that_the_model_underestimates_is_no_slow_worker():
    two_operations = bare_graph([0, 0, 1, 1], [])
    machine, refined = refinement(two_operations, "lpt", [3, 1, 1, 3])
    refined.observe(result([3, 1, 2, 6], [0, 1, 0, 1]))
    assert refined.team.speeds == (1.0, 1.0) and machine.renewed == 1
    assert machine.schedule.makespan(two_operations, refined.seconds) == 6


def test_measurements_are_smoothed(graph):
    _, refined = refinement(graph, "ie-nxtval", [1, 1, 1, 1])
    refined.observe(result([2, 2, 2, 2], [0, 1, 0, 1]))
    assert refined.seconds.tolist() == [2, 2, 2, 2]
    refined.observe(result([2, 2, 2, 2.4], [0, 1, 1, 0]))
    assert refined.seconds.tolist() == pytest.approx([2, 2, 2, 2.2])


def test_small_differences_of_speed_are_noise(graph):
    _, refined = refinement(graph, "proportional", [1, 1, 1, 1])
    refined.observe(result([1.0, 1.0, 0.9, 0.9], [0, 0, 1, 1]))
    assert refined.team.speeds == (1.0, 1.0)


def test_a_schedule_that_cannot_get_better_is_left_alone(graph):
    machine, refined = refinement(graph, "lpt", [4, 3, 2, 1])
    for _ in range(3):
        refined.observe(result([4, 3, 2, 1], [0, 1, 1, 0]))
    assert machine.renewed == 0 == refined.renewed


def test_priorities_are_renewed_once(graph):
    machine, refined = refinement(graph, "dataflow", [1, 1, 1, 1])
    for _ in range(3):
        refined.observe(result([4, 3, 2, 1], [0, 1, 1, 0]))
    assert machine.renewed == 1 and machine.schedule.priority.tolist() == pytest.approx([4, 3, 2, 1])


def test_static_blocks_follow_the_speeds(graph):
    machine, refined = refinement(graph, "proportional", [1, 1, 1, 1])
    refined.observe(result([3.1, 3.1, 1, 1], [0, 0, 1, 1]))
    assert [len(queue.tasks) for queue in machine.schedule.queues] == [1, 3]
