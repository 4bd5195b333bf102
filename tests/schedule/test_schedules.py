"""Schedule.check finds what is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from random_programs import bare_graph
from tilewise.schedule import Phase, Queue, ReadyQueues, Rule, Schedule

GRAPH = bare_graph([0, 0, 1, 1], [(0, 2), (1, 3)])


def queue(tasks, *workers, quantum=1):
    return Queue(np.array(tasks, np.int64), workers, quantum)


def schedule(*phases, workers=2, steal=False):
    return Schedule("test", workers, tuple(Phase(queues, steal) for queues in phases), work=np.ones(4))


@pytest.mark.parametrize(
    "good",
    [
        schedule((queue([0, 1], 0, 1),), (queue([2, 3], 0, 1),)),
        schedule((queue([0, 2], 0), queue([1, 3], 1))),
        schedule((queue([1, 0, 3, 2], 0),)),
        schedule((queue([1], 0), queue([0], 1)), (queue([3, 2], 0, 1, quantum=2),)),
        Schedule("test", 2, (), np.zeros(4)),
        schedule((queue([0, -1, 1, -1], 0, 1),), (queue([-1, 2, 3], 0, 1),)),
        schedule((queue([0], 0), queue([1], 1)), (queue([2, 3], 0), queue([], 1)), steal=True),
        replace(schedule((queue([0, 1], 0, quantum=0),), (queue([2, 3], 1, quantum=0),)), waits=True),
    ],
)
def test_good_schedules_pass(good):
    good.check(GRAPH)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (schedule((queue([0, 1], 0, 1),), (queue([2], 0, 1),)), "task 3 is never run"),
        (schedule(()), "task 0 is never run"),
        (replace(schedule((queue([0, 1, 2, 3], 0),)), waits=True), "only tasks of static lists"),
        (
            replace(schedule((queue([0, 3], 0, quantum=0), queue([1, 2], 1, quantum=0))), waits=True),
            "task 2 may run before task 0, which it needs",
        ),
        (schedule((queue([0, 1, 1], 0, 1),), (queue([2, 3], 0),)), "phase 0: a task stands twice"),
        (schedule((queue([0, 1], 0), queue([1], 1)), (queue([2, 3], 0),)), "phase 0: a task stands twice"),
        (schedule((queue([0, 1], 0),), (queue([2, 3, 0], 0),)), "phase 1: a task stands twice"),
        (schedule((queue([2, 3], 0, 1),), (queue([0, 1], 0, 1),)), "task 2 may run before task 0"),
        (schedule((queue([0, 1, 2, 3], 0, 1),)), "task 2 may run before task 0"),
        (schedule((queue([2, 0], 0), queue([1, 3], 1))), "task 2 may run before task 0"),
        (schedule((queue([0, 1], 0), queue([2, 3], 1))), "task 2 may run before task 0"),
        (schedule((queue([0], 0), queue([1], 0)), (queue([2, 3], 0),)), "phase 0: a worker has two queues"),
        (schedule((queue([0, 1]),), (queue([2, 3], 0),)), "phase 0: a queue has tasks and no worker"),
        (Schedule("test", 2, (), np.zeros(3)), "3 priorities for 4 tasks"),
        (schedule((queue([0, 2], 0), queue([1, 3], 1)), steal=True), "task 2 may run before task 0"),
        (schedule((queue([0, 1], 0, 1, quantum=0),), (queue([2, 3], 0),)), "phase 0: nobody knows how much"),
        (schedule((queue([0, 1], 0, quantum=-1),), (queue([2, 3], 0),)), "phase 0: nobody knows how much"),
        (
            schedule((Queue(np.arange(4), (0,), rule=Rule("guided")),), steal=True),
            "phase 0: a loop needs the work of each task, and no thieves",
        ),
    ],
)
def test_bad_schedules_are_found(bad, message):
    with pytest.raises(AssertionError, match=message):
        bad.check(GRAPH)


@pytest.mark.parametrize(
    ("of_worker", "group", "home", "message"),
    [
        ([0], [0], [0, 0, 0, 0], "queues of 1 workers and homes of 4 tasks for 2 workers and 4 tasks"),
        ([0, 0], [0], [0, 0, 0], "queues of 2 workers and homes of 3 tasks for 2 workers and 4 tasks"),
        ([0, 1], [0], [0, 0, 0, 0], "a worker takes from a queue that does not exist"),
        ([0, 0], [0, 1], [0, 0, 1, 0], "task 2 would be ready where nobody takes it"),
        ([0, 0], [0], [0, 0, 0, 7], "task 3 would be ready where nobody takes it"),
    ],
)
def test_queues_of_ready_tasks_that_do_not_fit_are_found(of_worker, group, home, message):
    ready = ReadyQueues(*(np.array(numbers, np.int64) for numbers in (of_worker, group, home)))
    with pytest.raises(AssertionError, match=message):
        Schedule("test", 2, (), np.zeros(4), ready=ready).check(GRAPH)


@pytest.mark.parametrize("worker", [2, -1])
def test_a_queue_of_a_worker_that_does_not_exist_is_found(worker):
    bad = schedule((queue([0, 1], 0),), (queue([2, 3], worker),))
    with pytest.raises(AssertionError):
        bad.check(GRAPH)


@pytest.mark.parametrize("task", [4, -2])
def test_a_task_that_does_not_exist_is_found(task):
    bad = schedule((queue([0, 1], 0),), (queue([2, 3, task], 0),))
    with pytest.raises((AssertionError, IndexError)):
        bad.check(GRAPH)


def test_schedules_print_what_they_are():
    assert str(schedule((queue([0, 1], 0, 1),))) == "test: 1 phase, 1 queue, 2 workers"
    assert str(Schedule("test", 2, (Phase(),), decision="as it should be")) == "test: as it should be"
    assert str(Schedule("test", 2, (), np.zeros(4))) == "test: 4 tasks by data flow on 2 workers"


def test_the_makespan_of_a_schedule_is_that_of_its_slowest_queue_in_each_phase():
    seconds = np.array([3.0, 1.0, 2.0, 5.0])
    assert schedule((queue([0, 1], 0, 1),), (queue([2, 3], 0, 1),)).makespan(GRAPH, seconds) == 2.0 + 3.5
    assert schedule((queue([0, 2], 0), queue([1, 3], 1))).makespan(GRAPH, seconds) == 6.0
    both = schedule((queue([0], 0), queue([1], 1)), (queue([2, 3], 0), queue([], 1)), steal=True)
    assert both.makespan(GRAPH, seconds) == 2.0 + 3.5
    assert Schedule("test", 2, (), np.zeros(4)).makespan(GRAPH, seconds) == 6.0  # the path 1, 3
