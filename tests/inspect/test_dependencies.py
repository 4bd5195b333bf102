"""Dependencies from accesses, native and their twin, against a search through all pairs of tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewise.core import core
from tilewise.inspect.dependencies import dependencies
from tilewise.inspect.records import ACCUMULATE, ASSIGN, READ

N_PANELS = 4


@st.composite
def task_lists(draw):
    """Of each task, {panel: accesses}; some read a panel twice."""
    kinds = st.sampled_from([(READ,), (READ, READ), (ASSIGN,), (ACCUMULATE,)])
    return draw(st.lists(st.dictionaries(st.integers(0, N_PANELS - 1), kinds, max_size=3), max_size=12))


def waits(earlier, between, later, ordered):
    """Whether a task waits for an earlier one, given what both and those between them do to one panel."""
    if earlier is None or later is None or any(kind == (ASSIGN,) for kind in between):
        return False
    commuting = {earlier, later} == {(ACCUMULATE,)} and not ordered
    return not commuting and {*earlier, *later} != {READ}


def accesses(tasks, rng):
    """Arrays of accesses in any order, as long as a task reads before it writes."""
    rows = [
        (t, panel, kind)
        for t, touched in enumerate(tasks)
        for panel, kinds in touched.items()
        for kind in kinds
    ]
    rng.shuffle(rows)
    rows.sort(key=lambda row: row[2] != READ)
    task, panel, kind = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    return task, panel, kind.astype(np.uint8)


@given(task_lists(), st.booleans(), st.randoms(use_true_random=False))
def test_a_task_waits_for_all_that_it_must_not_overtake_and_for_no_other(tasks, ordered, rng):
    expected = [
        (s, t)
        for s in range(len(tasks))
        for t in range(s + 1, len(tasks))
        if any(
            waits(tasks[s].get(p), [x.get(p) for x in tasks[s + 1 : t]], tasks[t].get(p), ordered)
            for p in range(N_PANELS)
        )
    ]
    given_accesses = accesses(tasks, rng)
    for find in (core.dependencies, dependencies):
        found = find(*given_accesses, len(tasks), N_PANELS, ordered)
        assert found.T.tolist() == [list(pair) for pair in expected]


@given(st.integers(0, 40), st.booleans(), st.integers(0, 1 << 16))
def test_dependencies_of_any_accesses_are_those_of_the_twin(count, ordered, seed):
    """A task may read, assign and add to the same panel."""
    rng = np.random.default_rng(seed)
    task, panel = rng.integers(0, 10, count), rng.integers(0, N_PANELS, count)
    kind = rng.choice([READ, ASSIGN, ACCUMULATE], count).astype(np.uint8)
    order = np.argsort(kind != READ, kind="stable")
    arguments = task[order], panel[order], kind[order], 10, N_PANELS, ordered
    assert core.dependencies(*arguments).tolist() == dependencies(*arguments).tolist()


@pytest.mark.parametrize(("task", "panel"), [(2, 0), (-1, 0), (0, N_PANELS), (0, -1)])
def test_an_access_to_what_does_not_exist_is_refused(task, panel):
    with pytest.raises(ValueError, match="does not exist"):
        core.dependencies(np.array([task]), np.array([panel]), np.zeros(1, np.uint8), 2, N_PANELS, False)
