"""Memory that serves twice: no piece lies on what is still needed, and what is left is given back."""

import numpy as np
import pytest

from tilewise.chem.pages import HUGE, LAST_WAVE, WAVE, Pages, places_of, waves_of


def test_what_lies_before_stays_when_the_rest_is_given_back():
    pages = Pages(4 * HUGE // 8)
    pages.numbers[:] = 1.0
    for kept in (3 * HUGE // 8 + 7, HUGE // 8 + 7, HUGE // 8 + 7):
        pages.give_back(kept)
        assert (pages.numbers[:kept] == 1.0).all()
    pages.give_back(0)


def test_waves_are_all_columns_and_the_last_ones_are_short():
    for n in (0, 1, 31, 200, 512, 513, 7626):
        waves = list(waves_of(n))
        assert [k for begin, end in waves for k in range(begin, end)] == list(range(n))
        sizes = [end - begin for begin, end in waves]
        assert all(size <= WAVE for size in sizes) and (not n or sizes[-1] <= LAST_WAVE)


@pytest.mark.parametrize("n", [1, 40, 700, 1300])
def test_pieces_lie_apart_and_on_nothing_that_is_read(n):
    rows, waves = [7, 30, 1, 2], list(waves_of(n))
    places, again, own = places_of(rows, waves)
    used = {True: np.zeros(n * (n + 1) // 2, int), False: np.zeros(own[-1], int)}
    for count, of_part, *ends in zip(rows, places, again[1:], own[1:], strict=True):
        for (begin, end), (has_served, at) in zip(waves, of_part, strict=True):
            last = at + count * (end - begin)
            assert not has_served or last <= begin * (begin + 1) // 2  # what this wave reads comes behind
            assert last <= ends[not has_served]
            used[has_served][at:last] += 1
    assert (used[False] == 1).all()
    assert (used[True][: again[-1]] == 1).all() and not used[True][again[-1] :].any()
    assert again[-1] + own[-1] == sum(rows) * n
    assert again[-1] or n < 700
