"""Costs of tasks over tiles."""

from __future__ import annotations

import numpy as np

from tilewise.cost import estimate, load_or_calibrate
from tilewise.spaces import TileSpace
from tilewise.tce import inspect_routines
from tilewise.tce.routines import routine_named, tce_routines


def test_every_task_takes_time_and_work_tells() -> None:
    model = load_or_calibrate()[0]
    graph = inspect_routines(tce_routines(), TileSpace((4,), (12,), 4))
    seconds = estimate(graph, model)
    assert seconds.shape == (len(graph),) and (seconds > 0).all()
    larger = inspect_routines([routine_named("t2_8")], TileSpace((40,), (120,), 40))
    rate = larger.flops.sum() / estimate(larger, model).sum()
    assert 1e9 < rate < 1e12


def test_products_cost_as_much_wherever_they_stand() -> None:
    model = load_or_calibrate()[0]
    space, routines = TileSpace((20,), (60,), 20), [routine_named("t2_8")]
    chains, products = (inspect_routines(routines, space, granularity=g) for g in ("chain", "product"))
    whole, parts = estimate(chains, model), estimate(products, model)
    assert whole.sum() < parts.sum() < 1.4 * whole.sum()  # results are added instead of kept in place
    of_products = parts[products.gemms == 1]
    assert np.ptp(of_products) / of_products.mean() < 1e-9
