"""Communication patterns: the counts of the paper, and of plain loops for other tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tile_loops import PlainLoops
from tilewise.errors import InputError
from tilewise.spaces import TileSpace, orbitals_named
from tilewise.tce.patterns import PATTERNS, cache, inverted, original
from tilewise.tce.routines import Routine, parse_routine, routine_named

LADDER = routine_named("t2_8")
MATRIX = parse_routine("product", "c(p1|p2) += a(p1|p3) b(p3|p2)")
SPACES = [TileSpace((4,), (7,), 2), TileSpace((3,), (5,), 1), TileSpace((2, 1), (2, 1), 1)]


@pytest.mark.parametrize(
    ("molecule", "pattern", "counts"),
    [
        ("water-8", "original", (84_700, 682)),
        ("water-8", "inverted", (32_065, 71_632)),
        ("water-8", "cache", (23_353, 21_582)),
        ("water-9", "original", (119_448, 810)),
        ("water-9", "inverted", (45_072, 101_196)),
        ("water-9", "cache", (32_904, 25_650)),
    ],
)
def test_counts_of_the_paper(molecule: str, pattern: str, counts: tuple[int, int]) -> None:
    found = PATTERNS[pattern](LADDER, orbitals_named(molecule, frozen=True).tiles(27))
    assert (found.gets, found.accumulates) == counts


def plain_products(routine: Routine, space: TileSpace) -> list[tuple[dict, dict]]:
    """(task, all tiles) of each product."""
    plain = PlainLoops(space)
    return [
        (tiles, tiles | summed)
        for task in plain.tasks(routine)
        for tiles in [task.tiles]
        for summed in plain.tuples(routine.sums)
        if plain.symmetric(routine.inputs[0], tiles | summed)
    ]


def plain_counts(routine: Routine, space: TileSpace, pattern: str, unroll: int = 2) -> tuple[int, int]:
    plain, second = PlainLoops(space), routine.inputs[1]
    products = plain_products(routine, space)
    if pattern == "original":
        outputs = {tuple(task.items()) for task, _ in products}
        return sum(plain.gets(second, tiles) for _, tiles in products), len(outputs)
    if pattern == "inverted":
        gets = sum(plain.gets(second, t) for t in plain.tuples(second.groups) if plain.symmetric(second, t))
        return gets, len(products)
    gets, puts = set(), set()
    for task, tiles in products:
        step = tuple(tile // unroll for tile in tiles.values())
        block = tuple((i, tiles[i]) for i in second.indices)
        gets.add((step, block, plain.gets(second, tiles)))
        puts.add((step, tuple(task.items())))
    return sum(number for _, _, number in gets), len(puts)


@pytest.mark.parametrize("space", SPACES, ids=["C1", "single", "Cs"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_counts_equal_plain_loops(pattern: str, space: TileSpace) -> None:
    found = PATTERNS[pattern](LADDER, space)
    assert (found.gets, found.accumulates) == plain_counts(LADDER, space, pattern)


@pytest.mark.parametrize("unroll", [1, 3, 5])
def test_other_steps(unroll: int) -> None:
    found = cache(LADDER, SPACES[0], unroll=unroll)
    assert (found.gets, found.accumulates) == plain_counts(LADDER, SPACES[0], "cache", unroll)


@pytest.mark.parametrize("routine", [LADDER, MATRIX, routine_named("t2_7")], ids=lambda r: r.name)
@pytest.mark.parametrize("unroll", [1, 2, 3])
def test_the_counter_of_the_cache_runs_over_all_steps(routine: Routine, unroll: int) -> None:
    space = SPACES[0]
    every = set()
    for tiles in PlainLoops(space).tuples(routine.loops + routine.sums):
        every.add(tuple(tile // unroll for tile in tiles.values()))
    steps = {tuple(tile // unroll for tile in tiles.values()) for _, tiles in plain_products(routine, space)}
    graph = cache(routine, space, unroll=unroll).graph
    place, counts = graph.tuples
    assert counts.tolist() == [len(every)] and len(graph) == len(steps)
    in_order = sorted(every)
    assert [in_order[k] for k in place] == sorted(steps)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_words_are_those_of_the_second_operand(pattern: str) -> None:
    """With tiles of one orbital every Get brings one word."""
    found = PATTERNS[pattern](LADDER, SPACES[1])
    assert len(found.words) == len(found.graph) and found.words.sum() == found.gets
    larger = PATTERNS[pattern](LADDER, SPACES[0])
    got = larger.graph.traffic.bytes_got / 8
    assert (larger.words <= got).all() and larger.words.sum() > larger.gets


@pytest.mark.parametrize("routine", [LADDER, MATRIX, routine_named("t2_7")], ids=lambda r: r.name)
def test_patterns_do_the_same_work(routine: Routine) -> None:
    space = TileSpace((2, 1), (4, 2), 1)
    graphs = [pattern(routine, space).graph for pattern in PATTERNS.values()]
    assert len({graph.flops.sum() for graph in graphs}) == 1
    shapes = [np.sort(graph.products[["m", "n", "k", "a", "b"]]) for graph in graphs]
    assert all((shape == shapes[0]).all() for shape in shapes)
    for graph in graphs:
        assert graph.gemms.sum() == len(graph.products)
        assert (graph.owners >= 0).all() and (np.diff(graph.owners) >= 0).all()
    gets = [graph.traffic.gets.sum() for graph in graphs]
    bytes_got = [graph.traffic.bytes_got.sum() for graph in graphs]
    assert gets[2] < gets[1] < gets[0] and bytes_got[2] < bytes_got[1] < bytes_got[0]


def test_a_product_of_matrices() -> None:
    n, space = 5, TileSpace((0,), (20,), 4)
    found = {name: pattern(MATRIX, space) for name, pattern in PATTERNS.items()}
    assert [len(found["original"].graph), found["original"].gets] == [n**2, n**3]
    assert found["original"].accumulates == n**2
    plain = inverted(MATRIX, space, skipped=False)
    assert (len(plain.graph), plain.gets, plain.accumulates) == (n**2, n**2, n**3)
    single = inverted(MATRIX, space, skipped=False, buffered=True)
    assert (len(single.graph), single.gets, single.accumulates) == (n**3, n**2, n**3)
    assert single.graph.traffic.gets.sum() == plain.graph.traffic.gets.sum()
    assert single.graph.traffic.bytes_got.sum() == plain.graph.traffic.bytes_got.sum()
    assert found["inverted"].gets == 2 * plain.gets  # blocks of beta spin are got in vain
    assert cache(MATRIX, space, unroll=2 * n).gets == n**2
    assert original(MATRIX, space).graph.flops.sum() == 2 * 20**3


def test_loops_do_not_stand_still() -> None:
    with pytest.raises(InputError, match="unroll=0"):
        cache(LADDER, SPACES[0], unroll=0)
