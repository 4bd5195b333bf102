"""Gates, and carriers: which strips are taken, who is told of them, and who is woken."""

import threading
import time

import numpy as np
import pytest

from random_programs import ccsd_case
from random_spaces import LETTERS
from tilewise import Space, native
from tilewise.core import core
from tilewise.execute.store import BOX
from tilewise.inspect import PanelRule, inspect
from tilewise.schedule import policy_named

AWAITED = 2
"""The number in a box that counts ranks with workers that wait."""

SPACES = {LETTERS["o"]: Space.spatial("o", [3], tile=2), LETTERS["v"]: Space.spatial("v", [5], tile=2)}


def carriers(one, other):
    """Two ranks: the first has a strip of four numbers that the second takes, and hears of it."""
    boxes = [np.zeros(BOX + 1, np.int64) for _ in range(2)]
    nothing = [np.zeros((0, n), np.int64) for n in (10, 2, 3)]
    giving = np.array([[-1, 0]]), np.array([[0, 1, 0]])
    taking = np.array([[0, 0, 0, 1, 0, 2, 4, 0, -1, 1]])
    gates = [0, 1], [0], [0], []
    first = core.Carrier(*gates, boxes, 0, 7, nothing[0], [], [], *giving)
    second = core.Carrier(*gates, boxes, 1, 7, taking, [one], [other], *nothing[1:])
    return boxes, first, second


def test_a_strip_is_taken_when_its_home_has_told():
    one, other = np.arange(6.0), np.zeros(6)
    boxes, first, second = carriers(one, other)
    boxes[1][AWAITED] = 1  # some worker waits, so the thread that is none takes strips
    assert not second.watch(0.0)
    assert second.gets == 0 and not other.any()
    first.start()
    assert not second.watch(0.0)
    assert (second.gets, second.bytes, second.told, first.told) == (1, 32, 1, 1)
    assert other.tolist() == [0, 0, 1, 2, 3, 4]
    with pytest.raises(ValueError):
        second.open([0])  # it is open
    boxes[0][AWAITED] = 1
    first.watch(0.0)
    with pytest.raises(ValueError):
        first.open([0])


def test_while_nobody_waits_strips_are_left_to_workers():
    _, first, second = carriers(np.ones(6), np.zeros(6))
    first.start()
    assert not second.watch(0.0)
    assert second.gets == 0


def test_who_waits_is_told_of_strips_at_once():
    boxes, first, second = carriers(np.ones(6), np.zeros(6))
    boxes[1][AWAITED] = 1
    begin = threading.Timer(0.05, first.start)
    begin.start()
    assert not second.watch(1.0)  # for all of that time: nothing runs, and so nothing ends
    begin.join()
    assert second.gets == 1  # or it would have slept


def test_others_are_told_how_long_workers_wait():
    _, program, _, _ = ccsd_case(SPACES)
    graph = inspect(program, PanelRule(6, 20))
    arrays = policy_named("dataflow")(graph, np.ones(len(graph)), 1).arrays(graph)
    first = int(np.flatnonzero(arrays["n_needed"] == 0)[0])
    arrays["n_needed"] = arrays["n_needed"] + (np.arange(len(graph)) == first)
    boxes = [np.zeros(BOX, np.int64) for _ in range(2)]
    nothing = [np.zeros((0, n), np.int64) for n in (10, 2, 3)]
    gates = core.Carrier([0, 1], [first], [0], [], boxes, 0, 1, nothing[0], [], [], *nothing[1:])
    buffers = [np.ones(graph.length_of(name)) for name in graph.buffers]
    scratch = np.zeros(native.scratch_size(graph))
    given = (graph, native.tables(graph), arrays, buffers, scratch, 1, (), 0.0, gates)
    run = threading.Thread(target=native.run, args=given)
    run.start()
    while boxes[1][AWAITED] == 0:  # all is done but what waits at the gate
        time.sleep(1e-3)
    assert boxes[1][AWAITED] == 1 and boxes[0][AWAITED] == 0
    gates.open([0])
    run.join()
    assert boxes[1][AWAITED] == 0
    assert gates.watch(60.0)


@pytest.mark.parametrize("wrong", [([0], [1], [0], []), ([0, 1], [-1], [0], []), ([0], [], [], [])])
def test_gates_and_groups_need_whole_lists(wrong):
    with pytest.raises(ValueError):
        core.Gates(*wrong)


WRONG = {
    "a column is missing": ("inbound", np.zeros((1, 9), np.int64)),
    "no such gate": ("inbound", np.array([[0, 0, 0, 0, 0, 0, 6, 1, -1, 1]])),
    "no such group": ("inbound", np.array([[0, 0, 0, 0, 0, 0, 6, 0, 0, 1]])),
    "no such transfer": ("inbound", np.array([[0, 1, 0, 0, 0, 0, 6, 0, -1, 1]])),
    "no such rank": ("inbound", np.array([[2, 0, 0, 0, 0, 0, 6, 0, -1, 1]])),
    "too many elements": ("inbound", np.array([[0, 0, 0, 1, 0, 0, 6, 0, -1, 1]])),
    "no such strip": ("ways", np.array([[1, 0, 0]])),
    "no room for a bell": ("boxes", [np.zeros(3, np.int64), np.zeros(9, np.int64)]),
}


@pytest.mark.parametrize("case", WRONG)
def test_strips_have_to_fit(case):
    given = {
        "boxes": [np.zeros(BOX + 1, np.int64) for _ in range(2)],
        "inbound": np.array([[0, 0, 0, 0, 0, 0, 6, 0, -1, 1]]),
        "ways": np.zeros((0, 3), np.int64),
    }

    def carrier(boxes, inbound, ways):
        tensors = [np.zeros(6)], [np.zeros(6)]
        return core.Carrier(
            *([0, 1], [0], [0], []), boxes, 1, 1, inbound, *tensors, np.full((1, 2), -1), ways
        )

    carrier(**given)
    name, wrong = WRONG[case]
    with pytest.raises((ValueError, IndexError)):
        carrier(**given | {name: wrong})
