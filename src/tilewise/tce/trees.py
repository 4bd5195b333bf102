"""Chains of products over tiles, cut into parts that a tree of additions puts together again."""

from __future__ import annotations

import numpy as np

from tilewise.inspect.chains import MOST_PARTS, with_chains_cut
from tilewise.inspect.records import KINDS, Table, concatenated
from tilewise.tce.tasks import TILE_TASK, TileGraph, messages, with_edges


@with_chains_cut.register
def _of_tiles(graph: TileGraph, seconds: np.ndarray, limit: float) -> TileGraph:
    parts = np.minimum(np.ceil(seconds / limit).astype(np.int64), MOST_PARTS)
    return cut(graph, np.where((parts > 1) & (graph.gemms > 1), parts, 0))


def cut(graph: TileGraph, parts: np.ndarray) -> TileGraph:
    """The graph with each chain in this many parts of equal length, 0 to leave it as it is.

    The parts of a chain are tasks that put nothing. Additions move the right-hand one of two parts and add
    it to the left-hand one; a task that sorts and puts the sum comes last. Additions and this one follow the
    routine as operations of their own, so that no task waits for another one of its operation.
    """
    parts = np.minimum(np.asarray(parts, np.int64), graph.gemms)
    chains = np.flatnonzero(parts > 0)
    if not len(chains):
        return graph
    count = parts[chains]
    operation = graph.tasks["operation"]
    depth = np.zeros(len(graph.operations), np.int64)  # operations that follow each one
    np.maximum.at(depth, operation[chains], _levels(count) + 1)
    slot = np.arange(len(depth)) + np.cumsum(depth) - depth
    first = np.cumsum(count) - count
    made = [_kept(graph, parts == 0, slot), _parts(graph, chains, count, slot)]
    last = len(made[0]) + np.arange(int(count.sum()))  # who has the sum of each part so far
    edges: list[np.ndarray] = []
    at = len(made[0]) + len(made[1])
    for level in range(int(_levels(count).max(initial=0))):
        step = 1 << level
        pairs = np.maximum(-(-(count - step) // (2 * step)), 0)
        chain = np.repeat(np.arange(len(chains)), pairs)
        position = np.arange(len(chain)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        left = first[chain] + 2 * step * position
        number = at + np.arange(len(chain))
        edges += [np.stack([last[left], number]), np.stack([last[left + step], number])]
        last[left] = number
        made.append(_additions(graph, chains[chain], slot, level))
        at += len(chain)
    edges.append(np.stack([last[first], at + np.arange(len(chains))]))
    made.append(_writers(graph, chains, slot + depth))
    return _numbered(graph, concatenated(TILE_TASK, made), np.concatenate(edges, axis=1), depth)


def _levels(parts: np.ndarray) -> np.ndarray:
    """Levels of a tree over so many parts."""
    return np.ceil(np.log2(np.maximum(parts, 1))).astype(np.int64)


def _kept(graph: TileGraph, whole: np.ndarray, slot: np.ndarray) -> np.ndarray:
    tasks = graph.tasks[whole]
    tasks["operation"] = slot[tasks["operation"]]
    return tasks


def _parts(graph: TileGraph, chains: np.ndarray, count: np.ndarray, slot: np.ndarray) -> np.ndarray:
    owner = np.repeat(np.arange(len(chains)), count)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    old = graph.tasks[chains]
    length, pieces = old["count"][owner], count[owner]
    low, high = length * position // pieces, length * (position + 1) // pieces
    tasks: Table = np.zeros(len(owner), TILE_TASK)
    tasks["kind"], tasks["operation"] = KINDS.index("gemm"), slot[old["operation"]][owner]
    tasks["place"], tasks["reads"], tasks["writes"] = old["place"][owner], -1, -1
    tasks["first"], tasks["count"] = old["first"][owner] + low, high - low
    for key, values in messages(graph.products).items():
        before = np.concatenate([[0], np.cumsum(values)])
        tasks[key] = before[tasks["first"] + tasks["count"]] - before[tasks["first"]]
    return tasks


def _sums(graph: TileGraph, chains: np.ndarray, operation: np.ndarray) -> np.ndarray:
    """Tasks without products that have to do with the results of chains."""
    tasks: Table = np.zeros(len(chains), TILE_TASK)
    tasks["kind"], tasks["operation"] = KINDS.index("sort"), operation
    tasks["place"], tasks["reads"], tasks["writes"] = graph.tasks["place"][chains], -1, -1
    return tasks


def _additions(graph: TileGraph, chains: np.ndarray, slot: np.ndarray, level: int) -> np.ndarray:
    tasks = _sums(graph, chains, slot[graph.tasks["operation"][chains]] + 1 + level)
    product = graph.products[graph.tasks["first"][chains]]
    tasks["sorted"] = product["m"] * product["n"]
    tasks["gets"], tasks["bytes_got"] = 1, 8.0 * tasks["sorted"]
    return tasks


def _writers(graph: TileGraph, chains: np.ndarray, last: np.ndarray) -> np.ndarray:
    old = graph.tasks[chains]
    tasks = _sums(graph, chains, last[old["operation"]])
    for key in ("writes", "puts", "bytes_put"):
        tasks[key] = old[key]
    tasks["sorted"] = old["bytes_put"] / 8.0
    return tasks


def _numbered(graph: TileGraph, tasks: Table, tree: np.ndarray, depth: np.ndarray) -> TileGraph:
    """Tasks in the order of the operations; edges of the trees beside those between blocks."""
    order = np.argsort(tasks["operation"], kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    repeated = zip(graph.operations, graph.counts, depth.tolist(), strict=True)
    slots = [(op, count if levels == 0 else 0) for op, count, levels in repeated for _ in range(1 + levels)]
    operations, counts = zip(*slots, strict=True)
    none = np.zeros(0, np.int64)
    made = with_edges(TileGraph(operations, graph.space, counts, tasks[order], graph.products, none, none))
    made.sources = np.concatenate([made.sources, number[tree[0]]])
    made.targets = np.concatenate([made.targets, number[tree[1]]])
    return made
