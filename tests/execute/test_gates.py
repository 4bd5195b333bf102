"""Gates: groups of tasks whose end is told, and bells that wake the thread that waits for it."""

import threading
import time

import numpy as np
import pytest

from random_programs import ccsd_case
from random_spaces import LETTERS
from tilewise import Space, native
from tilewise.core import core
from tilewise.inspect import PanelRule, inspect
from tilewise.schedule import policy_named

SPACES = {LETTERS["o"]: Space.spatial("o", [3], tile=2), LETTERS["v"]: Space.spatial("v", [5], tile=2)}


def test_a_bell_wakes_the_thread_that_waits():
    place = np.zeros(3, np.int64)
    gates = core.Gates([0], [], [0], [], place)
    ringing = threading.Timer(0.01, core.ring, (place,))
    ringing.start()
    assert gates.ended(60.0, 0) == []  # or the test would take a minute
    ringing.join()
    assert place[0] == 1
    assert gates.ended(60.0, 0) == []  # it rang more often than was heard


def test_other_bells_are_told_how_long_workers_wait():
    _, program, _, _ = ccsd_case(SPACES)
    graph = inspect(program, PanelRule(6, 20))
    arrays = policy_named("dataflow")(graph, np.ones(len(graph)), 1).arrays(graph)
    first = int(np.flatnonzero(arrays["n_needed"] == 0)[0])
    arrays["n_needed"] = arrays["n_needed"] + (np.arange(len(graph)) == first)
    own, other = np.zeros(3, np.int64), np.zeros(3, np.int64)
    gates = core.Gates([0, 1], [first], [0], [], own, [other])
    buffers = [np.ones(graph.length_of(name)) for name in graph.buffers]
    scratch = np.zeros(native.scratch_size(graph))
    given = (graph, native.tables(graph), arrays, buffers, scratch, 1, (), 0.0, gates)
    run = threading.Thread(target=native.run, args=given)
    run.start()
    while other[2] == 0:  # all is done but what waits at the gate
        time.sleep(1e-3)
    assert other[2] == 1 and own[2] == 0
    gates.open([0])
    run.join()
    assert other[2] == 0


@pytest.mark.parametrize("wrong", [([0], [1], [0], []), ([0, 1], [-1], [0], []), ([0], [], [], [])])
def test_gates_and_groups_need_whole_lists(wrong):
    with pytest.raises(ValueError):
        core.Gates(*wrong)


def test_a_bell_is_three_numbers():
    with pytest.raises(ValueError):
        core.ring(np.zeros(1, np.int64))
