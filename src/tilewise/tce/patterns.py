"""Communication patterns: the same products of a contraction in other loops, with other Gets and Accumulates.

As in the TCE, the second operand (the integrals) is the one that a pattern saves Gets of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect.records import KINDS, Table
from tilewise.spaces import TileSpace
from tilewise.tce.inspector import gets_of, inspect_products
from tilewise.tce.loops import NULL_LABEL, Loops, all_beta, canonical_tuples, signs_of, sizes
from tilewise.tce.routines import Group, Routine
from tilewise.tce.tasks import TILE_TASK, TileGraph

UNROLL = 2
"""Tiles in one step of the loops of the cache."""


@dataclass(frozen=True)
class Pattern:
    """The tasks of a pattern, in the order of its loops, and what it asks of the network in all."""

    name: str
    graph: TileGraph
    gets: int
    """Of blocks of the second operand."""
    accumulates: int
    words: np.ndarray
    """Of the second operand, that each task gets."""
    targets: np.ndarray
    """Of each product of the graph: the block that it adds to, by the number of its task in the original."""


def original(routine: Routine, space: TileSpace) -> Pattern:
    """A task for each block of the target: both operands are got for each product, one Accumulate follows."""
    graph, _ = inspect_products(routine, space)
    gets = int(graph.products["gets_b"].sum())
    words = graph.per_task(_second(graph.products))
    return Pattern("original", graph, gets, int(graph.traffic.puts.sum()), words, graph.owners)


def inverted(routine: Routine, space: TileSpace, *, skipped: bool = True, buffered: bool = False) -> Pattern:
    """A task for each block of the second operand, got once; every product makes an Accumulate.

    With `skipped`, as it was published, blocks of beta spin alone are got too, and nothing is done with them.
    With `buffered` every product is a task of its own: a machine that takes tasks ahead then computes while
    the last result is under way.
    """
    graph, _ = inspect_products(routine, space)
    p, owner = graph.products, graph.owners
    _, first, group = np.unique(p["b"], return_index=True, return_inverse=True)
    if buffered:
        group = np.argsort(np.argsort(group, kind="stable"))
    tasks = _tasks(int(group.max(initial=-1)) + 1)
    _count_products(tasks, group)
    _add_operand(tasks, graph, "b", group, first)
    _add_operand(tasks, graph, "a", group, np.arange(len(p)))
    _add_results(tasks, graph, group, owner)
    words = np.bincount(group[first], weights=_second(p[first]), minlength=len(tasks))
    if skipped:
        in_vain = _skipped(routine, space)
        tasks = np.concatenate([tasks, in_vain])
        words = np.concatenate([words, in_vain["bytes_got"] / 8.0])
    order = np.argsort(group, kind="stable")
    made = replace(graph, counts=(0,), tasks=tasks, products=p[order])
    gets = int(p["gets_b"][first].sum() + tasks["gets"][tasks["count"] == 0].sum())
    return Pattern("inverted", made, gets, int(tasks["puts"].sum()), words, owner[order])


def cache(routine: Routine, space: TileSpace, *, unroll: int = UNROLL) -> Pattern:
    """All loops in steps of `unroll` tiles: a task gets each block that it needs once, and keeps it.

    It makes one Accumulate for each block of the target that it adds to. Where there is no product there is
    no task, but the counter is asked all the same.
    """
    if unroll < 1:
        raise InputError(f"unroll={unroll}: loops go forward by at least one tile")
    graph, tiles = inspect_products(routine, space)
    p, owner = graph.products, graph.owners
    number, total = _steps(routine.loops + routine.sums, tiles, space, unroll)
    place, group = np.unique(number, return_inverse=True)
    tasks = _tasks(len(place))
    tasks["place"] = place
    _count_products(tasks, group)
    second = _first_of(group, p["b"])
    _add_operand(tasks, graph, "b", group, second)
    _add_operand(tasks, graph, "a", group, _first_of(group, p["a"]))
    results = _first_of(group, owner)
    _add_results(tasks, graph, group[results], owner[results])
    words = np.bincount(group[second], weights=_second(p[second]), minlength=len(tasks))
    order = np.argsort(group, kind="stable")
    made = replace(graph, counts=(total,), tasks=tasks, products=p[order])
    gets = int(p["gets_b"][second].sum())
    return Pattern("cache", made, gets, int(tasks["puts"].sum()), words, owner[order])


PATTERNS: dict[str, Callable[[Routine, TileSpace], Pattern]] = {
    "original": original,
    "inverted": inverted,
    "cache": cache,
}


def _tasks(count: int) -> np.ndarray:
    tasks: Table = np.zeros(count, TILE_TASK)
    tasks["kind"], tasks["reads"], tasks["writes"] = KINDS.index("gemm"), -1, -1
    return tasks


def _count_products(tasks: Table, group: np.ndarray) -> None:
    """The products of each task, when they are sorted by task."""
    tasks["count"] = np.bincount(group, minlength=len(tasks))
    tasks["first"] = np.cumsum(tasks["count"]) - tasks["count"]


def _second(products: Table) -> np.ndarray:
    """Words of the second operand that come with the Gets of products."""
    return products["k"] * products["n"] * products["gets_b"]


def _steps(
    groups: tuple[Group, ...], tiles: dict[str, np.ndarray], space: TileSpace, unroll: int
) -> tuple[np.ndarray, int]:
    """The step of all loops that each product belongs to, and how many steps there are."""
    number, total = np.zeros(len(next(iter(tiles.values()))), np.int64), 1
    for group in groups:
        each = -(-len(space.of(group[0][0])) // unroll)
        codes = _code(canonical_tuples(each, len(group)).T, each)
        own = np.searchsorted(codes, _code(np.stack([tiles[index] // unroll for index in group]), each))
        number, total = number * len(codes) + own, total * len(codes)
    return number, total


def _code(steps: np.ndarray, each: int) -> np.ndarray:
    """One number for each tuple of steps, of which a loop has `each`."""
    code = np.zeros(steps.shape[1], np.int64)
    for step in steps:
        code = code * each + step
    return code


def _first_of(group: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Products that are the first of their task to touch a block."""
    pairs = group.astype(np.int64) * (int(block.max(initial=0)) + 1) + block
    return np.unique(pairs, return_index=True)[1]


def _add(tasks: Table, key: str, task: np.ndarray, values: np.ndarray) -> None:
    tasks[key] += np.bincount(task, weights=values, minlength=len(tasks)).astype(tasks.dtype[key])


def _add_operand(tasks: Table, graph: TileGraph, side: str, group: np.ndarray, got: np.ndarray) -> None:
    """Gets of the operand a or b, for some of the products."""
    p, task = graph.products[got], group[got]
    words, gets = p["k"] * p["m" if side == "a" else "n"], p[f"gets_{side}"]
    _add(tasks, "gets", task, gets)
    _add(tasks, "bytes_got", task, 8.0 * words * gets)
    _add(tasks, "sorted", task, words)


def _add_results(tasks: Table, graph: TileGraph, task: np.ndarray, chain: np.ndarray) -> None:
    """Accumulates of the results of chains, one for each pair of a task and a chain."""
    put = graph.tasks["bytes_put"][chain]
    _add(tasks, "puts", task, graph.tasks["puts"][chain])
    _add(tasks, "bytes_put", task, put)
    _add(tasks, "sorted", task, put / 8.0)


def _skipped(routine: Routine, space: TileSpace) -> np.ndarray:
    """Tasks that get a block of beta spin alone, and nothing else."""
    part = routine.inputs[1]
    loops = Loops(part.groups, space)
    tiles = loops.tiles(np.flatnonzero(loops.labels(signs_of(part)) == NULL_LABEL))
    beta = all_beta(part, tiles, space)
    tiles = {index: tile[beta] for index, tile in tiles.items()}
    tasks = _tasks(int(beta.sum()))
    tasks["gets"] = gets_of(part, tiles, space)
    tasks["bytes_got"] = 8.0 * tasks["gets"] * sizes(tiles, space, len(tasks))
    return tasks
