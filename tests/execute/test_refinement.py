"""Measured times take the place of the model, smoothed, and a schedule is renewed only when that pays."""

from types import SimpleNamespace

import numpy as np
import pytest

from random_programs import bare_graph
from tilewise import policies
from tilewise.execute.refinement import Refinement, misplaced, phase_seconds
from tilewise.native import TRACE
from tilewise.schedule import Phase, Queue, Schedule, Team


class Recorder:
    """Stands for a machine: remembers its schedules."""

    def __init__(self, graph, schedule):
        self.graph, self.schedule, self.renewed = graph, schedule, 0

    def reschedule(self, schedule):
        self.schedule, self.renewed = schedule, self.renewed + 1


def result(seconds, worker, start=0.0):
    trace = np.zeros(len(seconds), TRACE)
    trace["worker"], trace["start"] = worker, np.rint(1e9 * np.asarray(start))
    trace["end"] = trace["start"] + np.rint(1e9 * np.asarray(seconds)).astype(np.int64)
    return SimpleNamespace(trace=trace, seconds=1e-9 * (trace["end"] - trace["start"]))


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


def test_static_blocks_follow_the_speeds(graph):
    machine, refined = refinement(graph, "proportional", [1, 1, 1, 1])
    refined.observe(result([3.1, 3.1, 1, 1], [0, 0, 1, 1]))
    assert [len(queue.tasks) for queue in machine.schedule.queues] == [1, 3]


def test_deques_follow_the_speeds(graph):
    machine, refined = refinement(graph, "steal", [1, 1, 1, 1])
    assert [len(queue.tasks) for queue in machine.schedule.queues] == [2, 2]
    refined.observe(result([3.1, 3.1, 1, 1], [0, 0, 1, 1]))
    assert [len(queue.tasks) for queue in machine.schedule.queues] == [1, 3]
    assert machine.schedule.phases[0].steal


def test_deques_stay_where_thieves_make_up_for_the_difference(graph):
    machine, refined = refinement(graph, "steal", [1, 1, 1, 1])
    refined.observe(result([1.03, 1, 1.03, 1], [0, 1, 0, 1]))
    assert machine.renewed == 0


# Priorities


def waited(seconds):
    """A run on two workers, one of which waits while the other does the tasks one after the other."""
    start = np.cumsum([0.0, *seconds[:-1]])
    return result(seconds, 0, start)


def order(machine):
    """The tasks in the order of their priorities."""
    return np.argsort(-machine.schedule.priority, kind="stable").tolist()


def test_priorities_are_renewed_whenever_their_order_is_wrong(graph):
    machine, refined = refinement(graph, "dataflow", [4, 3, 2, 1])
    refined.observe(waited([1, 2, 3, 4]))
    assert machine.renewed == 1 and order(machine) == [3, 2, 1, 0]
    refined.observe(waited([9, 2, 3, 4]))  # 5, 2, 3, 4 on average
    assert machine.renewed == 2 and order(machine) == [0, 3, 2, 1]
    refined.observe(waited([1, 8, 3, 4]))  # 3, 5, 3, 4
    assert machine.renewed == 3 and order(machine) == [1, 3, 0, 2]


@pytest.mark.parametrize(
    "seconds",
    [
        [4, 3, 2, 1],  # as expected
        [8, 6, 4, 2],  # all of them slower
        [40, 3, 2, 1],  # a change that leaves the order
        [4, 3.2, 3.3, 1],  # ways that are as good as alike
    ],
)
def test_priorities_in_the_right_order_stay(graph, seconds):
    machine, refined = refinement(graph, "dataflow", [4, 3, 2, 1])
    for _ in range(3):
        refined.observe(waited(seconds))
    assert machine.renewed == 0 == refined.renewed


def test_priorities_stay_where_nobody_waits(graph):
    machine, refined = refinement(graph, "dataflow", [4, 3, 2, 1])
    refined.observe(result([1, 4, 4, 1], [0, 0, 1, 1], start=[0, 1, 0, 4]))
    assert machine.renewed == 0 and order(machine) == [0, 1, 2, 3]


def test_priorities_are_not_made_again_and_again_in_vain(graph):
    made = []

    class Counted:
        first_runs = 0

        def __call__(self, *args):
            made.append(1)
            return policies["dataflow"](*args)

        def learn(self, graph, seen):
            return self

    machine, _ = refinement(graph, "dataflow", [4, 3, 2, 1])
    refined = Refinement(machine, Counted(), Team(2), np.array([4.0, 3, 2, 1]))
    refined._making = 1.0  # an attempt has to promise 1 s in ten runs, then 2, 4, 8, 16, 32 and 64 s
    for _ in range(20):
        refined.observe(waited([4, 3, 2, 1]))  # waits for 10 - 5 s
    assert len(made) == 6 and machine.renewed == 0


def test_priorities_stay_where_the_longest_path_decides():
    chain = bare_graph([0, 1, 2, 3], [(0, 1), (1, 2)])
    machine, refined = refinement(chain, "dataflow", [1, 1, 1, 1])
    run = result([3, 3, 3, 1], [0, 0, 0, 1], start=[0, 3, 6, 0])
    refined.observe(run)
    looked = refined._making
    refined.observe(run)
    assert refined._making == looked and machine.renewed == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([3, 2, 1], [3, 2, 1], 0),
        ([3, 2, 1], [30, 20, 10], 0),
        ([3, 2, 1], [1, 2, 3], 2),
        ([3, 2, 1], [3, 1, 2], 1),
        ([1, 1, 1], [1, 2, 5], 4),  # of those with the same priority the first comes first
        ([1, 2, 1], [7, 5, 1], 2),
        ([], [], 0),
    ],
)
def test_how_much_longer_a_way_may_be_than_one_that_is_preferred(old, new, expected):
    assert misplaced(np.array(old, float), np.array(new, float)) == expected


# Policies that learn


def test_phases_last_from_the_end_of_the_one_before():
    phases = tuple(Phase((Queue(np.array(tasks, int), (0, 1)),)) for tasks in ([0, 1], [], [2, -1]))
    assert phase_seconds(Schedule("test", 2, phases), np.array([1.0, 3, 7])).tolist() == [3, 0, 4]
    assert phase_seconds(Schedule("test", 2), np.array([1.0])).tolist() == []


def test_a_policy_that_learns_gets_its_trial_and_the_schedule_that_it_chose():
    """The second worker is late for its draw: a counter that takes 6 s, against lists that take 4."""
    graph = bare_graph([0] * 4, [])
    machine, refined = refinement(graph, "hybrid", [1, 1, 1, 1])
    drawn = result([2, 2, 2, 2], [0, 1, 0, 1], start=[0, 1, 2, 4])
    listed = result([2, 2, 2, 2], [0, 0, 1, 1], start=[0, 2, 0, 2])
    shown = []
    for run in (drawn, drawn, listed, listed):
        refined.observe(run)
        shown.append([queue.tasks.tolist() for queue in machine.schedule.queues])
    assert shown == [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[0, 1], [2, 3]], [[0, 1], [2, 3]]]
    assert machine.renewed == 1
    late = result([2, 2, 2, 2], [0, 0, 1, 1], start=[0, 2, 6, 8])
    refined.observe(late)
    assert machine.renewed == 1  # which may happen
    refined.observe(late)
    refined.observe(late)
    assert [queue.tasks.tolist() for queue in machine.schedule.queues] == [[0, 1, 2, 3]]
