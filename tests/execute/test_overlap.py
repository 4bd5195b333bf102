"""Communication is hidden as far as workers compute while it is under way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewise.execute.overlap import under_way
from tilewise.native import TRACE


def traced(*tasks):
    """Records of tasks that ran from one nanosecond to another."""
    trace = np.zeros(len(tasks), TRACE)
    for record, (start, end) in zip(trace, tasks, strict=True):
        record["start"], record["end"] = start, end
    return trace


CASES = {
    "nothing moved": ([], [(0, 10)], 1, (0, 0)),
    "all hidden": ([(2, 5)], [(0, 10)], 1, (3, 3)),
    "nobody works": ([(2, 5)], [(6, 10)], 1, (3, 0)),
    "one of two works": ([(2, 6)], [(0, 10)], 2, (4, 2)),
    "spans overlap": ([(2, 6), (4, 9), (5, 7)], [(0, 5), (8, 10)], 1, (7, 4)),
    "spans touch": ([(2, 4), (4, 6)], [(3, 5)], 1, (4, 2)),
    "two spans, one task": ([(1, 2), (8, 9)], [(0, 10)], 1, (2, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_hidden_is_what_workers_computed_meanwhile(case):
    spans, tasks, workers, expected = CASES[case]
    assert under_way(spans, traced(*tasks), workers) == pytest.approx([1e-9 * x for x in expected])


moments = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1]))


@given(st.lists(moments, max_size=6), st.lists(moments, max_size=6), st.integers(1, 3))
def test_it_is_counted_nanosecond_by_nanosecond(spans, tasks, workers):
    moving = {t for begin, end in spans for t in range(begin, end)}
    hidden = sum(t in moving for begin, end in tasks for t in range(begin, end)) / workers
    found = under_way(spans, traced(*tasks), workers)
    assert found == pytest.approx((1e-9 * len(moving), 1e-9 * hidden), abs=1e-15)
