"""Seconds of columns: a fit finds the coefficients that columns were made with, and keeps them."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from tilewise.ci import cost
from tilewise.ci.cost import ColumnCosts, keep_costs, known_costs

TRUE = ColumnCosts(300e-9, 3e-9, 2e-9, 5e-9, 0.5e-9, 4e-9, 10e-9)


def counts(n=20000):
    """Of columns whose kinds of elements vary independently."""
    rng = np.random.default_rng(3)
    pairs, rest, walked = (rng.integers(0, most, n) for most in (400, 100, 50))
    runs, looked, prepared = rng.integers(0, 60, n), rng.integers(0, 200, n), rng.integers(0, 30, n)
    return np.stack([pairs + rest + walked, pairs, runs, looked, walked, prepared], axis=1)


def test_a_fit_finds_coefficients_and_what_new_pages_take():
    of = counts()
    seconds = TRUE.seconds(of)
    seconds[::400] += 300e-6  # a new page
    found = ColumnCosts().fitted(of, seconds)
    for name in ("column", "same_beta", "pair", "run", "walked", "prepared"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=0.02)
    assert found.seconds(of, 1.0).sum() == pytest.approx(seconds.sum(), rel=0.02)
    assert found.seconds(of).sum() == pytest.approx(TRUE.seconds(of).sum(), rel=0.02)


def test_an_interrupted_column_does_not_count_as_memory():
    of = counts()
    seconds = TRUE.seconds(of)
    seconds[77] += 3.0
    assert ColumnCosts().fitted(of, seconds).touched < 1e-9


def test_few_columns_change_nothing():
    of = counts(500)
    assert ColumnCosts().fitted(of, TRUE.seconds(of)) == ColumnCosts()


def test_costs_are_kept_and_wrong_ones_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "cache_dir", lambda: tmp_path)
    assert known_costs() == ColumnCosts()
    keep_costs(TRUE)
    assert known_costs() == TRUE
    keep_costs(replace(TRUE, pair=-1.0))
    assert known_costs() == ColumnCosts()
    (tmp_path / "columns.json").write_text('{"other": ' + str(list(asdict(TRUE))).replace("'", '"') + "}")
    assert known_costs() == ColumnCosts()
