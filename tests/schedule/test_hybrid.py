"""What `hybrid` decides from the runs it has seen: tables, without threads."""

from dataclasses import replace

import numpy as np
import pytest

from random_programs import bare_graph
from tilewise.schedule import Phase, Queue, Schedule, Team, policies
from tilewise.schedule.hybrid import COUNTER, Hybrid, chosen, long_operations, with_run
from tilewise.schedule.observation import LevelRun, Observation
from tilewise.schedule.schedule import NULL, WHOLE

FIRST, SECOND, BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})

# Operation 0 is long, 1 is short; operation 2 is a level of its own.
GRAPH = bare_graph([0] * 4 + [1] * 2 + [2] * 2, [(0, 6), (4, 7)])
SECONDS = np.array([9.0, 9, 9, 9, 2, 1, 4, 4])


def seen(policy, phases, measured=SECONDS, expected=SECONDS):
    """A run by the schedule of a policy, in which each phase took so many seconds."""
    schedule = policy(GRAPH, SECONDS, 2)
    return Observation(schedule, np.asarray(expected), np.asarray(measured), np.array(phases, float))


def after(*runs, policy=policies["hybrid"]):
    """The policy after runs that are given by the seconds of their phases."""
    for phases in runs:
        policy = policy.learn(GRAPH, seen(policy, phases))
    return policy


# Pieces of the decision


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, set()), (0.5, {2}), (0.6, {2, 0}), (0.9, {2, 0}), (1.0, {0, 1, 2})]
)
def test_long_operations_take_most_of_the_time(share, expected):
    operation, seconds = np.array([0, 0, 1, 2, 2]), np.array([2.0, 2, 1, 3, 2])
    assert long_operations(operation, seconds, share) == expected


@pytest.mark.parametrize(
    ("runs", "candidates", "expected"),
    [
        ({}, FIRST, COUNTER),  # what a counter takes is to be known first
        ({COUNTER: 10}, COUNTER, COUNTER),
        ({COUNTER: 10}, FIRST, FIRST),  # a trial
        ({COUNTER: 10, FIRST: 9.7}, FIRST, FIRST),
        ({COUNTER: 10, FIRST: 9.9}, FIRST, COUNTER),  # not clearly faster
        ({COUNTER: 10, FIRST: 12}, FIRST, COUNTER),
        ({COUNTER: 10, FIRST: 12}, BOTH, BOTH),  # another operation deserves a trial
        ({COUNTER: 10, BOTH: 9}, SECOND, BOTH),  # those that lost trust had their trial
        ({COUNTER: 10, FIRST: 9, BOTH: 8}, BOTH, BOTH),
        ({COUNTER: 10, FIRST: 8, BOTH: 9}, BOTH, FIRST),
        ({COUNTER: 10, FIRST: 8}, COUNTER, FIRST),
    ],
)
def test_a_level_tries_lists_once_and_keeps_what_was_clearly_fastest(runs, candidates, expected):
    known = [LevelRun(lists, seconds) for lists, seconds in runs.items()]
    assert chosen(known, candidates, 0.02, known[-1].lists if known else COUNTER, 0.0) == expected


@pytest.mark.parametrize(
    ("runs", "now", "expected"),
    [
        ({COUNTER: 3}, COUNTER, COUNTER),  # no trial could gain as much
        ({COUNTER: 5}, COUNTER, FIRST),
        ({COUNTER: 10, FIRST: 7}, COUNTER, COUNTER),
        ({COUNTER: 10, FIRST: 7}, FIRST, FIRST),
        ({COUNTER: 10, FIRST: 6}, COUNTER, FIRST),
        ({COUNTER: 10, FIRST: 13}, FIRST, FIRST),
        ({COUNTER: 10, FIRST: 14}, FIRST, COUNTER),
    ],
)
def test_a_level_stays_as_it_is_if_a_change_would_not_pay(runs, now, expected):
    known = [LevelRun(lists, seconds) for lists, seconds in runs.items()]
    assert chosen(known, FIRST, 0.02, now, price=4.0) == expected


@pytest.mark.parametrize(
    ("seconds", "spread", "ideal", "expected"),
    [
        (10, 0, 9, COUNTER),  # no lists could gain as much as a change costs
        (10, 0, 5, FIRST),
        (10, 2, 5, COUNTER),  # the next run may well be as fast
        (10, 0.5, 5, FIRST),
    ],
)
def test_a_trial_must_promise_more_than_it_costs_and_more_than_noise(seconds, spread, ideal, expected):
    runs = [LevelRun(COUNTER, seconds, spread)]
    assert chosen(runs, FIRST, 0.02, COUNTER, price=4.0, ideal=ideal) == expected


@pytest.mark.parametrize(
    ("counter", "lists", "now", "expected"),
    [
        ((10, 1), (8, 0.5), COUNTER, FIRST),
        ((10, 1), (8, 1.5), COUNTER, COUNTER),
        ((10, 3), (8, 0), FIRST, FIRST),
        ((10, 0), (12, 1), FIRST, COUNTER),
        ((10, 0), (12, 3), FIRST, FIRST),
    ],
)
def test_a_level_stays_as_it_is_if_runs_differ_as_much_by_themselves(counter, lists, now, expected):
    assert chosen([LevelRun(COUNTER, *counter), LevelRun(FIRST, *lists)], FIRST, 0.02, now, 0.0) == expected


def test_runs_of_random_length_make_few_changes():
    """What waits a hundredth of the price of a change is left alone; what waits long soon stays as it is."""
    random = np.random.default_rng(5)
    for scale, most in ((0.01, 0), (1.0, 4), (100.0, 8)):
        policy, changed = Hybrid(), 0
        for _ in range(200):
            lengths = np.array([19.5, 4.0]) + scale * random.exponential([4, 4])
            observed = seen(policy, _phases(policy, lengths), expected=SECONDS * random.uniform(0.7, 1.3, 8))
            new = policy.learn(GRAPH, replace(observed, worth=4.0))
            changed, policy = changed + (new != policy), new
        assert changed <= most


def _phases(policy, lengths):
    """Seconds of the phases of both levels: half for the lists, if there are some beside a counter."""
    first = [lengths[0] / 2] * 2 if 0 in policy.lists and 1 not in policy.lists else [lengths[0]]
    return [*first, lengths[1]]


def test_of_runs_with_the_same_lists_the_newest_counts_most():
    runs = ()
    for lists, seconds in ((COUNTER, 8.0), (FIRST, 4.0), (COUNTER, 4.0), (COUNTER, 2.0)):
        runs = with_run(runs, LevelRun(lists, seconds))
    assert runs == (LevelRun(COUNTER, 4.0, 3.0), LevelRun(FIRST, 4.0))


# What runs show


def test_errors_are_parts_of_the_time_of_an_operation():
    measured = np.array([10.0, 10, 10, 10, 2, 2, 0, 0])
    expected = np.array([11.0, 9, 10, 10, 1, 2, 0, 0])
    assert seen(Hybrid(), [1, 1], measured, expected).errors(GRAPH).tolist() == [0.05, 0.25, 0.0]


def test_the_phases_of_a_level_are_told_apart_by_their_queues():
    run = seen(Hybrid(lists=frozenset({0, 2})), [5, 2, 3])
    assert run.levels(GRAPH) == [LevelRun(FIRST, 7.0), LevelRun(frozenset({2}), 3.0)]
    assert seen(Hybrid(), [6, 4]).levels(GRAPH) == [LevelRun(COUNTER, 6.0), LevelRun(COUNTER, 4.0)]


def test_null_tuples_and_empty_phases_belong_to_no_level():
    phases = (
        Phase((Queue(np.array([NULL, 0, NULL]), (0, 1)),)),
        Phase((Queue(np.zeros(0, int), (0,), WHOLE),)),
    )
    run = Observation(Schedule("test", 2, phases), np.ones(1), np.ones(1), np.array([2.0, 0.5]))
    assert run.levels(bare_graph([0], [])) == [LevelRun(COUNTER, 2.0)]


# The course of the first runs


def test_counters_first_then_a_trial_of_lists_then_what_was_faster():
    assert after().lists == after([25, 8]).lists == COUNTER
    assert after([25, 8], [20, 8]).lists == {0, 2}  # both levels try lists for their long operation
    assert after([25, 8], [20, 8], [17, 2, 8]).lists == {0}  # only the first level gained
    assert after([25, 8], [20, 8], [19, 2, 6]).lists == {2}
    assert after([25, 8], [20, 8], [20, 2, 9]).lists == COUNTER


def test_three_runs_are_enough_to_decide():
    settled = after([25, 8], [20, 8], [17, 2, 8])
    assert Hybrid.first_runs == 3
    assert settled.learn(GRAPH, seen(settled, [17, 2, 8])) == settled


def test_a_level_turns_back_when_its_lists_become_slow():
    settled = after([25, 8], [20, 8], [17, 2, 8])
    assert after([17, 2, 8], policy=settled).lists == {0}
    assert after([30, 2, 8], policy=settled).lists == {0}  # which may be noise
    assert after([30, 2, 8], [30, 2, 8], policy=settled).lists == COUNTER


def test_operations_that_are_not_trusted_have_to_wait_for_their_trial():
    policy, vague = after([25, 8]), SECONDS * np.array([1, 1, 1, 1, 1, 1, 1.5, 0.5])
    policy = policy.learn(GRAPH, seen(policy, [20, 8], expected=vague))
    assert policy.lists == {0}
    policy = policy.learn(GRAPH, seen(policy, [17, 2, 8]))
    assert policy.lists == {0, 2}  # the times of operation 2 were right now: its turn
    assert replace(after([25, 8]), trust=0.5).learn(GRAPH, seen(after(), [20, 8], expected=vague)).lists == {
        0,
        2,
    }


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"long": 1.0}, {0, 1, 2}),
        ({"long": 0.0}, set()),
        ({"trust": 0.0}, {0, 2}),  # the times were just as expected
        ({"gain": 1.0}, {0, 2}),  # a trial there is in any case
    ],
)
def test_parameters_decide_which_operations_are_tried(changed, expected):
    assert after([25, 8], [20, 8], policy=Hybrid(**changed)).lists == expected


def test_nothing_gains_enough_if_all_is_asked_for():
    assert after([25, 8], [20, 8], [1, 1, 1], policy=Hybrid(gain=1.0)).lists == COUNTER


# Schedules and texts


def test_lists_are_contiguous_runs_by_speed_and_the_rest_has_a_counter():
    schedule = Hybrid(lists=FIRST)(GRAPH, SECONDS, Team(2, (1.0, 0.34)))
    schedule.check(GRAPH)
    assert [[q.tasks.tolist() for q in phase.queues] for phase in schedule.phases] == [
        [[0, 1, 2], [3]],
        [[4, 5]],
        [[6, 7]],
    ]
    assert [phase.queues[0].quantum for phase in schedule.phases] == [WHOLE, 1, 1]
    decided = "2 levels, static lists for 1 of 3 operations, counters for the others, 2 workers"
    assert str(schedule) == f"hybrid: {decided}"


def test_two_that_decide_alike_are_equal_and_what_was_learned_is_no_text():
    assert after([25, 8]) == after() == policies["hybrid"]
    assert after([25, 8], [20, 8]) != after()
    assert str(after([25, 8], [20, 8], policy=Hybrid(gain=0.1))) == "hybrid(gain=0.1)"


@pytest.mark.parametrize("name", [name for name in policies if name != "hybrid"])
def test_policies_that_do_not_learn_stay_what_they_are(name):
    policy = policies[name]
    phases = np.ones(len(policy(GRAPH, SECONDS, 2).phases))
    assert policy.first_runs == 0 and policy.learn(GRAPH, seen(policy, phases)) is policy
