"""Studies that count: the papers' numbers come out, and they change with the tiles as plain loops say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from tile_loops import PlainLoops
from tilewise.spaces import TileSpace
from tilewise.studies import Findings, studies
from tilewise.studies.ghosh_proxy import INVERTED, ORIGINAL, pattern_of, run_pattern
from tilewise.studies.jagode_routines import carotene
from tilewise.studies.ozog_tasks import CASES, Case
from tilewise.tce import inspect_routines
from tilewise.tce.routines import routine_named


@pytest.fixture(scope="module")
def found() -> dict[str, Findings]:
    names = ("ozog-table1", "ozog-fig3", "ghosh-table1", "jagode-fig2", "jagode-fig7")
    return {name: studies[name]() for name in names}


def test_ozog_table_1(found: dict[str, Findings]) -> None:
    table = found["ozog-table1"].tables[0]
    rows = {row.label: row for row in table.rows}
    pairs = table.pairs
    for case in CASES:
        assert pairs[case.name, "tasks"].deviation == 0
        assert rows[case.name].values[3] == len(case.graph)
        if "H2O" in case.name:
            assert abs(pairs[case.name, "mk + kn"].deviation) < 0.01
    assert [len(case.graph) for case in CASES[1:]] == [532, 565, 1099]


@pytest.mark.parametrize("tile", [9, 12, 18])
def test_tasks_of_other_tiles_equal_plain_loops(tile: int) -> None:
    case = Case("small", "water-1", "ccsd", tile)
    plain = PlainLoops(case.space)
    tasks = plain.tasks(case.routine)
    assert case.tuples == len(plain.tuples(case.routine.loops))
    assert len(case.graph) == len(tasks)
    inputs = [m * k + k * n for task in tasks for m, n, k in task.shapes]
    assert case.average_input == pytest.approx(np.mean(inputs))


def test_tasks_with_irreps_equal_plain_loops() -> None:
    """Benzene's irreps with tiles of one orbital each for few of them."""
    space = TileSpace((2, 1, 1, 1), (2, 1, 2, 1), 5)
    routine = routine_named("t2_8")
    assert len(inspect_routines([routine], space)) == len(PlainLoops(space).tasks(routine))
    halved = replace(space, tile=1)
    assert len(inspect_routines([routine], halved)) > len(inspect_routines([routine], space))


def test_work_of_the_tasks_of_water(found: dict[str, Findings]) -> None:
    values = {row.label: row.values[0] for row in found["ozog-fig3"].tables[0].rows}
    assert values["tuples"] > values["tasks"] > 50
    assert values["smallest, MFLOP"] < values["mean, MFLOP"] < values["largest, MFLOP"]


def test_all_twelve_numbers_of_ghosh(found: dict[str, Findings]) -> None:
    pairs = found["ghosh-table1"].tables[0].pairs
    assert len(pairs) == 12
    assert all(pair.deviation == 0 for pair in pairs.values())


def test_graph_of_the_routines(found: dict[str, Findings]) -> None:
    pairs = found["jagode-fig2"].tables[0].pairs
    assert len(pairs) == 8
    assert all(pair.deviation == 0 for pair in pairs.values())


def test_load_and_chains_of_carotene(found: dict[str, Findings]) -> None:
    load, ladder, chains = found["jagode-fig7"].tables
    assert all(pair.deviation == 0 for pair in ladder.pairs.values())
    shares = np.array([row.values for row in load.rows], float)
    assert (shares.sum(axis=0) > 0.99).all() and (shares.max(axis=1) >= 0.001).all()
    assert {row.label for row in load.rows[:4]} == {"t2_7", "t2_7_3", "t2_2_5", "t2_8"}
    lengths = {row.label: row.values[1] for row in chains.rows}
    assert lengths["t2_8, 296 electrons"] == "360 of 36, 1024 of 64"
    graph = carotene(False)
    operation = [routine.name for routine in graph.operations].index("t2_8")
    assert (graph.tasks["operation"] == operation).sum() == 360 + 1024


def test_figures_can_be_drawn(found: dict[str, Findings]) -> None:
    for name, one in found.items():
        if one.draw is None:
            assert name == "ozog-table1"
            continue
        figure = Figure()
        one.draw(figure)
        assert figure.axes and all(axis.has_data() or axis.texts for axis in figure.axes)


def test_a_product_of_matrices_in_two_patterns() -> None:
    """With a fifth of the papers' rows: all the work is done, and no run beats its processes."""
    for name in (ORIGINAL, INVERTED):
        pattern = pattern_of(name, 4800, 600, 600)
        one, four = (run_pattern(pattern, nodes, dynamic=True) for nodes in (1, 4))
        # 7 Gflop/s for each of four processes on a node
        assert one > 2 * 4800**3 / (4 * 7e9) > 0.8 * one
        assert one / 4 < four * 1.01 < one
    strips = pattern_of(ORIGINAL, 4800, 600, 300)
    assert strips.accumulates == 16 * 8
    assert run_pattern(strips, 4, dynamic=False) == pytest.approx(
        run_pattern(pattern_of(ORIGINAL, 4800, 1200, 300), 4, dynamic=False), rel=0.1
    )
