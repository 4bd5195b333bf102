"""The inspector of the TCE's routines: one task per block of a target, which is a chain of products.

The loops, the null tuples and the messages are those of the TCE for a restricted closed shell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewise.errors import InputError, one_of
from tilewise.inspect.records import KINDS, Table, concatenated
from tilewise.spaces import TileSpace
from tilewise.tce.loops import (
    BlockNumbers,
    Loops,
    label_of,
    one_spin,
    opposite,
    signs_of,
    sizes,
)
from tilewise.tce.routines import Indexed, Routine
from tilewise.tce.tasks import TILE_PRODUCT, TILE_TASK, TileGraph, messages, with_edges
from tilewise.tce.trees import cut

GRANULARITIES = ("chain", "product")

INTEGRALS = "v"
"""The tensor whose blocks of one spin are the difference of a direct and an exchange block: two messages."""


def inspect_routines(
    routines: Sequence[Routine], space: TileSpace, *, granularity: str = "chain"
) -> TileGraph:
    """The graph of some routines, given in an order in which they can run.

    A task is a chain of products ("chain"), or one product ("product"): then trees of additions and a task
    that writes the result follow the products of each chain. A task waits for those that write what it reads,
    block by block.
    """
    if granularity not in GRANULARITIES:
        raise one_of("granularity", granularity, GRANULARITIES)
    _check_order(routines)
    numbers = BlockNumbers(space)
    tasks, products, counts, n_products = [], [], [], 0
    for operation, routine in enumerate(routines):
        loops = Loops(routine.loops, space)
        own, chains, _ = _inspected(routine, loops, numbers)
        own["operation"], own["first"] = operation, own["first"] + n_products
        tasks.append(own)
        products.append(chains)
        counts.append(len(loops))
        n_products += len(chains)
    whole, every = concatenated(TILE_TASK, tasks), concatenated(TILE_PRODUCT, products)
    none = np.zeros(0, np.int64)
    graph = TileGraph(tuple(routines), space, tuple(counts), whole, every, none, none)
    if granularity == "product":
        return cut(graph, graph.gemms)
    return with_edges(graph)


def inspect_products(routine: Routine, space: TileSpace) -> tuple[TileGraph, dict[str, np.ndarray]]:
    """The graph of one contraction, and the tile of each index in each of its products."""
    loops = Loops(routine.loops, space)
    tasks, products, tiles = _inspected(routine, loops, BlockNumbers(space))
    none = np.zeros(0, np.int64)
    return TileGraph((routine,), space, (len(loops),), tasks, products, none, none), tiles


def _check_order(routines: Sequence[Routine]) -> None:
    read: set[str] = set()
    for routine in routines:
        read |= {part.name for part in routine.inputs}
        if routine.target.name in read:
            raise InputError(
                f"routine {routine.name} writes to {routine.target.name} after a routine that reads it: "
                "give the routines level by level"
            )


def _inspected(
    routine: Routine, loops: Loops, numbers: BlockNumbers
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The tasks of a routine, their products one chain after the other, and the tiles of these."""
    space = loops.space
    place = loops.non_null(signs_of(routine.target))
    tiles = loops.tiles(place)
    tasks: Table = np.zeros(len(place), TILE_TASK)
    tasks["place"], tasks["writes"], tasks["reads"] = place, numbers(routine.target, tiles), -1
    size = sizes(tiles, space, len(place))
    tasks["puts"] = _puts(routine, tiles, len(place))
    tasks["bytes_put"] = 8.0 * size * tasks["puts"]
    tasks["sorted"] = size * tasks["puts"]
    if routine.is_copy:
        part = routine.inputs[0]
        tasks["kind"] = KINDS.index("sort")
        tasks["reads"] = numbers(part, tiles)
        tasks["gets"] = gets_of(part, tiles, space)
        tasks["bytes_got"] = 8.0 * size * tasks["gets"]
        return tasks, np.zeros(0, TILE_PRODUCT), {}
    chains, owner, every = _products(routine, tiles, len(place), numbers)
    tasks["count"] = np.bincount(owner, minlength=len(place))
    tasks["first"] = np.cumsum(tasks["count"]) - tasks["count"]
    for key, values in messages(chains).items():
        tasks[key] = tasks[key] + np.bincount(owner, weights=values, minlength=len(place)).astype(
            TILE_TASK[key]
        )
    return tasks, chains, every


def _products(
    routine: Routine, tiles: dict[str, np.ndarray], n_tasks: int, numbers: BlockNumbers
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """All products of a routine, the task of each and its tiles: whatever sums both operands allow."""
    space = numbers.space
    one, other = routine.inputs
    sums = Loops(routine.sums, space)
    signs = signs_of(one)
    free = {index: tiles[index] for index in one.indices if index in tiles}
    wanted = np.broadcast_to(opposite(label_of(free, signs, space)), n_tasks)
    labels = sums.labels(signs)
    order = np.argsort(labels, kind="stable")
    low = np.searchsorted(labels[order], wanted)
    count = np.searchsorted(labels[order], wanted, side="right") - low
    owner = np.repeat(np.arange(n_tasks), count)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    summed = sums.tiles(order[low[owner] + position])
    every = {index: tile[owner] for index, tile in tiles.items()} | summed
    found: Table = np.zeros(len(owner), TILE_PRODUCT)
    for key, part in (("m", one), ("n", other)):
        outer = {index: every[index] for index in part.indices if index in tiles}
        found[key] = sizes(outer, space, len(owner))
    found["k"] = sizes(summed, space, len(owner))
    for key, part in (("a", one), ("b", other)):
        found[key] = numbers(part, every)
        found[f"gets_{key}"] = gets_of(part, every, space)
    return found, owner, every


def gets_of(part: Indexed, tiles: dict[str, np.ndarray], space: TileSpace) -> np.ndarray:
    """Messages that bring a block."""
    single = np.ones(len(next(iter(tiles.values()))), np.int64)
    return single + one_spin(part, tiles, space) if part.name == INTEGRALS else single


def _puts(routine: Routine, tiles: dict[str, np.ndarray], n_tasks: int) -> np.ndarray:
    """Messages that bring a result home: one for each order of its indices in which blocks are stored."""
    total = np.zeros(n_tasks, np.int64)
    for _, order in routine.permutations:
        moved = dict(zip(routine.target.indices, order, strict=True))
        stored = np.ones(n_tasks, bool)
        for group in routine.target.groups:
            run = np.array([tiles[moved[index]] for index in group])
            stored &= (np.diff(run, axis=0) >= 0).all(axis=0)
        total += stored
    return total
