"""Gates: groups of tasks whose end is told, and bells that wake the thread that waits for it."""

import threading

import numpy as np
import pytest

from tilewise.core import core


def test_a_bell_wakes_the_thread_that_waits():
    place = np.zeros(2, np.int64)
    gates = core.Gates([0], [], [0], [], place)
    ringing = threading.Timer(0.01, core.ring, (place,))
    ringing.start()
    assert gates.ended(60.0, 0) == []  # or the test would take a minute
    ringing.join()
    assert place[0] == 1
    assert gates.ended(60.0, 0) == []  # it rang more often than was heard


@pytest.mark.parametrize("wrong", [([0], [1], [0], []), ([0, 1], [-1], [0], []), ([0], [], [], [])])
def test_gates_and_groups_need_whole_lists(wrong):
    with pytest.raises(ValueError):
        core.Gates(*wrong)


def test_a_bell_is_two_numbers():
    with pytest.raises(ValueError):
        core.ring(np.zeros(1, np.int64))
