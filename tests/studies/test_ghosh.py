"""Runs of Ghosh et al.: who wins depends on what messages cost, and the studies show it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.figure import Figure

from tilewise.schedule.schedule import NULL
from tilewise.spaces import TileSpace
from tilewise.studies import Findings, ghosh_ccsd, ghosh_proxy, studies
from tilewise.studies.pattern_runs import (
    CACHE,
    INVERTED,
    LADDER,
    ORIGINAL,
    SCOPES,
    SPENT,
    Costs,
    PatternedMolecule,
)
from tilewise.studies.tukey import ADDED, FREE, RATES, Tukey
from tilewise.tce.patterns import PATTERNS
from tilewise.tce.routines import levels_of, tce_routines

SMALL = PatternedMolecule(TileSpace((4,), (12,), 3))
EVERYWHERE = "all contractions"
ROUTINES = tce_routines("ccsd")


@pytest.fixture(scope="module")
def iterations() -> Iterator[Findings]:
    """Of 8 H2O on 256 processes alone."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(ghosh_ccsd, "NODES", (32,))
        changed.setattr(ghosh_ccsd, "FIGURES", {"8 H2O": "Figure 1"})
        yield studies["ghosh-fig1"]()


@pytest.fixture(scope="module")
def proxy() -> Iterator[Findings]:
    """Of figure 6 alone."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(ghosh_proxy, "FIGURES", ghosh_proxy.FIGURES[-1:])
        yield studies["ghosh-proxy"]()


def table_of(findings: Findings, title: str) -> dict[str, tuple]:
    (table,) = (table for table in findings.tables if table.title.startswith(title))
    return {row.label: row.values for row in table.rows}


# The proxy


def test_the_faster_accumulates_are_the_fewer_runs_the_original_loops_win(proxy: Findings) -> None:
    assert len(RATES) == 4 and RATES[0] == ADDED and RATES[-1] == FREE
    pair, *others = table_of(proxy, "Runs in which")["all"]
    assert pair.derived and pair.paper == 6
    wins = [pair.ours, *others]
    assert wins == sorted(wins, reverse=True) and wins[0] >= 5 and wins[-1] == 0


@pytest.mark.parametrize("name", ["ghosh-proxy", "ghosh-fig1"])
def test_the_rate_of_accumulates_is_listed_as_fitted(name: str) -> None:
    (constant,) = (constant for constant in studies[name].constants() if constant.name == "ADDED")
    assert constant.value.startswith(f"{ADDED / 1e6:g} MB/s") and constant.origin.startswith("fitted")


# Whole iterations


def test_the_sign_of_the_inverted_loops_depends_on_barriers_and_accumulates(iterations: Findings) -> None:
    ratios = table_of(iterations, "Time over that of the original, by GB/s")
    inverted = {label: values[0] for label, values in ratios.items()}
    assert inverted["0.8, a barrier after each routine"] < 1
    assert inverted["0.8, a barrier after each level"] > 1
    assert inverted["free, a barrier after each level"] < 1
    assert all(cache < 1 and cache < other for other, cache in ratios.values())


def test_inverting_every_contraction_does_not_pay(iterations: Findings) -> None:
    ratios = table_of(iterations, "Time over that of the original, by the contractions")
    for barriers in ghosh_ccsd.BARRIERS.values():
        assert min(ratios[f"{INVERTED}, {EVERYWHERE}, {barriers}"]) > 1


def test_what_the_inverted_loops_gain_is_waiting_for_others(iterations: Findings) -> None:
    by_routine, _ = (table for table in iterations.tables if table.title.startswith("Where the seconds"))
    spent = {row.label: row.values for row in by_routine.rows}
    gained = {what: original - inverted for what, (original, inverted, _) in spent.items()}
    assert max(gained, key=lambda what: gained[what]) == "waiting for others"
    assert gained["adding Accumulates"] < 0


def test_the_original_loops_wait_where_tasks_are_few_or_long(iterations: Findings) -> None:
    for tasks, seconds, even, longest, more_tasks, _ in table_of(iterations, "Where the original").values():
        assert seconds > even and seconds > 0.8 * longest
        assert tasks < 256 or longest > 0.1 * even
        assert more_tasks >= tasks or tasks > 2000


def test_iterations_can_be_drawn(iterations: Findings) -> None:
    figure = Figure()
    assert iterations.draw is not None
    iterations.draw(figure)
    assert len(figure.axes) == 2 and all(axis.has_data() for axis in figure.axes)


# The model


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_iterations_do_the_same_work_in_all_patterns(pattern: str, scope: str) -> None:
    whole, plain = SMALL.run(pattern, scope).graph, SMALL.run(ORIGINAL, scope).graph
    assert whole.flops.sum() == pytest.approx(plain.flops.sum(), rel=1e-12)
    operation = whole.tasks["operation"]
    work = [graph.per_task(2.0 * graph.m * graph.n * graph.k) for graph in (whole, plain)]
    by_routine = [
        np.bincount(graph.tasks["operation"], weights=flops)
        for graph, flops in zip((whole, plain), work, strict=True)
    ]
    assert np.allclose(*by_routine) and (np.diff(operation) >= 0).all()


def test_other_contractions_stay_as_they_were() -> None:
    inverted, plain = (SMALL.run(pattern, f"{LADDER} alone") for pattern in (INVERTED, ORIGINAL))
    changed = {
        routine.name
        for routine, one, other in zip(ROUTINES, inverted.parts, plain.parts, strict=True)
        if one is not other
    }
    assert changed == {LADDER}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("by_level", [False, True])
def test_every_task_is_drawn_once_and_levels_follow_each_other(pattern: str, by_level: bool) -> None:
    run = SMALL.run(pattern, EVERYWHERE)
    schedule = run.schedule(5, by_level=by_level)
    draws = [phase.queues[0].tasks for phase in schedule.phases]
    tasks = np.concatenate(draws)
    assert np.array_equal(np.sort(tasks[tasks != NULL]), np.arange(len(run.graph)))
    assert len(tasks) == sum(int(part.graph.tuples[1][0]) for part in run.parts)
    level = np.array([levels_of(ROUTINES)[routine.name] for routine in ROUTINES])
    levels = [level[np.unique(run.graph.tasks["operation"][d[d != NULL]])] for d in draws]
    assert len(draws) == (level.max() if by_level else len(ROUTINES))
    assert np.array_equal(np.concatenate(levels), np.sort(np.concatenate(levels)))


def test_what_is_spent_adds_up_and_follows_the_rates() -> None:
    run = SMALL.run(INVERTED, EVERYWHERE)
    tukey = Tukey(4)
    spent = dict(zip(SPENT, run.spent(Costs(tukey, 2), 2), strict=True))
    free = dict(zip(SPENT, run.spent(Costs(Tukey(4, FREE), 0), 2), strict=True))
    assert free["adding Accumulates"] == free["summing Gets"] == 0 < spent["summing Gets"]
    assert sum(free.values()) < sum(spent.values())
    # Noise aside, eight processes share the work.
    assert 8 * spent["products"] == pytest.approx(run.graph.flops.sum() / tukey.rates.gemm, rel=0.05)
    added = run.graph.traffic.bytes_put.sum() * tukey.per_node / ADDED
    assert 8 * spent["adding Accumulates"] == pytest.approx(added, rel=0.05)
    integrals = 2 * run.integrals.sum() / tukey.rates.sort
    assert 8 * spent["summing Gets"] == pytest.approx(integrals, rel=0.05)


def test_times_of_routines_add_up_to_the_iteration() -> None:
    run, costs = SMALL.run(ORIGINAL, EVERYWHERE), Costs(Tukey(4), 1)
    times = run.by_routine(costs, 2)
    assert list(times) == [routine.name for routine in ROUTINES]
    assert sum(one.tasks for one in times.values()) == len(run.graph)
    assert sum(one.seconds for one in times.values()) == pytest.approx(run.spent(costs, 2).sum())
    with pytest.raises(ValueError, match="each level"):
        run.by_routine(Costs(Tukey(4), 1, by_level=True), 2)


def test_integrals_are_those_of_contractions_with_integrals() -> None:
    run = SMALL.run(CACHE, EVERYWHERE)
    with_integrals = np.array([SCOPES["all with integrals"](r) and not r.is_copy for r in ROUTINES])
    words = np.array([part.integrals.sum() for part in run.parts])
    assert ((words > 0) == with_integrals).all()
