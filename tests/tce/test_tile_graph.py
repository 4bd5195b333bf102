"""Graphs of routines over tiles equal plain loops, whatever the tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tile_loops import PlainLoops
from tilewise.errors import InputError
from tilewise.schedule import policies
from tilewise.spaces import TileSpace
from tilewise.tce import inspect_routines
from tilewise.tce.routines import Routine, family, parse_routine, routine_named, tce_routines

SPACES = {
    "C1": TileSpace((5,), (7,), 3),
    "Cs": TileSpace((2, 1), (2, 4), 2),
    "C2v": TileSpace((2, 0, 1, 1), (3, 1, 1, 2), 4),
}
NAMES = ("t1_2_4", "t2_1", "t2_7_3", "t2_8", "t2_2_5", "t2_5", "t2_4", "t2_7", "t2_6", "t2_2")


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("name", NAMES)
def test_tasks_equal_plain_loops(name: str, space: TileSpace) -> None:
    routine = routine_named(name)
    graph = inspect_routines([routine], space)
    plain, loops = PlainLoops(space), PlainLoops(space).tuples(routine.loops)
    expected = plain.tasks(routine)
    place, count = graph.tuples
    assert [loops[p] for p in place.tolist()] == [task.tiles for task in expected]
    assert count.tolist() == [len(loops)]
    assert graph.gemms.tolist() == [len(task.shapes) for task in expected]
    p = graph.products
    for t, task in enumerate(expected):
        mine = p[graph.owners == t]
        assert sorted(zip(mine["m"], mine["n"], mine["k"], strict=True)) == sorted(task.shapes)
        assert graph.flops[t] == sum(2.0 * m * n * k for m, n, k in task.shapes)
    moved = graph.traffic
    assert moved.gets.tolist() == [task.gets for task in expected]
    assert moved.puts.tolist() == [task.puts for task in expected]


def test_triples_equal_plain_loops() -> None:
    space, routine = TileSpace((1, 1), (1, 1), 2), routine_named("t3_7", "ccsdt")
    graph = inspect_routines([routine], space)
    expected = PlainLoops(space).tasks(routine)
    assert len(graph) == len(expected) > 0
    assert graph.gemms.tolist() == [len(task.shapes) for task in expected]
    assert graph.traffic.puts.tolist() == [task.puts for task in expected]
    assert graph.tuples[1].tolist() == [4 * 10 * 20]


@pytest.mark.parametrize("space", [TileSpace((3,), (4,), 2), SPACES["C2v"]], ids=["C1", "C2v"])
def test_tasks_wait_for_what_they_read(space: TileSpace) -> None:
    routines = family(tce_routines(), "r2")
    graph, plain = inspect_routines(routines, space), PlainLoops(space)
    tasks = [task for routine in routines for task in plain.tasks(routine)]
    writers: dict[tuple, list[int]] = {}
    for t, task in enumerate(tasks):
        writers.setdefault(task.writes, []).append(t)
    expected = {
        (s, t) for t, task in enumerate(tasks) for block in task.reads for s in writers.get(block, [])
    }
    assert set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == expected
    assert len(graph.sources) == len(expected)
    assert (graph.sources < graph.targets).all()


def test_levels_of_the_operations() -> None:
    routines = tce_routines()
    graph = inspect_routines(routines, TileSpace((4,), (6,), 2))
    assert (graph.operation_levels + 1).tolist() == [routine.level for routine in routines]


def test_single_products_add_up_to_the_chains() -> None:
    space, routines = SPACES["Cs"], tce_routines()
    chains = inspect_routines(routines, space)
    graph = inspect_routines(routines, space, granularity="product")
    assert graph.gemms.max() == 1
    assert graph.gemms.sum() == chains.gemms.sum() == len(graph.products)
    assert graph.flops.sum() == chains.flops.sum()
    assert graph.traffic.puts.sum() == chains.traffic.puts.sum()
    additions = int((chains.gemms - 1)[chains.gemms > 0].sum())
    assert graph.traffic.gets.sum() == chains.traffic.gets.sum() + additions
    assert len(graph) == len(chains) + len(graph.products) + additions
    assert (graph.sources < graph.targets).all()
    operation = graph.tasks["operation"]
    assert (operation[graph.sources] < operation[graph.targets]).all()
    # From a chain of n products the longest way to its result has log2 n additions and the writing.
    one = inspect_routines([routine_named("t2_8")], TileSpace((2,), (8,), 1), granularity="product")
    assert one.longest_path(np.ones(len(one))).max() == 1 + 6 + 1


def test_every_product_is_waited_for() -> None:
    """The task that writes a block comes after all products of its chain."""
    graph = inspect_routines([routine_named("t2_8")], TileSpace((2,), (3,), 1), granularity="product")
    before: list[set[int]] = [set() for _ in range(len(graph))]
    for s, t in sorted(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True), key=lambda e: e[1]):
        before[t] |= before[s] | {s}
    place = graph.tasks["place"]
    for t in np.flatnonzero(graph.traffic.puts > 0).tolist():
        products = np.flatnonzero((graph.gemms == 1) & (place == place[t]))
        assert set(products.tolist()) <= before[t]


@pytest.mark.parametrize("granularity", ["chain", "product"])
@pytest.mark.parametrize("name", sorted(policies))
def test_policies_take_tile_graphs(name: str, granularity: str) -> None:
    graph = inspect_routines(tce_routines(), TileSpace((2,), (3,), 2), granularity=granularity)
    seconds = 1e-6 + 1e-9 * graph.flops
    prepared = policies[name].prepared(graph, seconds, 3)
    policies[name](prepared, 1e-6 + 1e-9 * prepared.flops, 3).check(prepared)


def test_long_chains_are_cut_for_data_flow() -> None:
    graph = inspect_routines([routine_named("t2_8")], TileSpace((3,), (24,), 3))
    cut = policies["dataflow"].prepared(graph, graph.flops, 100)
    assert len(cut) > len(graph)
    assert cut.gemms.sum() == graph.gemms.sum()
    assert cut.gemms.max() < graph.gemms.max()
    assert cut.flops.sum() == graph.flops.sum()


def test_a_task_is_described() -> None:
    graph = inspect_routines([routine_named("t2_8")], SPACES["C1"])
    assert graph.describe(0).endswith("block r2(p3=0 p4=0|h1=0 h2=0)")
    assert graph.describe(0).startswith("operation 't2_8: r2(p3 p4|h1 h2) += 1/2 c2(p5 p6|h1 h2)")


def test_part_of_a_graph() -> None:
    graph = inspect_routines(tce_routines(), SPACES["C1"])
    second = graph.part(np.flatnonzero(graph.levels == 1))
    assert second.flops.tolist() == graph.flops[graph.levels == 1].tolist()
    assert len(second.sources) == 0


def test_wrong_orders_and_names() -> None:
    writes = parse_routine("one", "x(p1|h1) += f(p1|h1)")
    reads = parse_routine("two", "r1(p1|h1) += x(p1|h1)")
    routines: list[Routine] = [reads, writes]
    with pytest.raises(InputError, match="routine one writes to x after a routine that reads it"):
        inspect_routines(routines, SPACES["C1"])
    with pytest.raises(InputError, match="valid are chain, product"):
        inspect_routines([writes], SPACES["C1"], granularity="block")
