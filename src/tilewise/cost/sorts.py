"""What a sort's time is made of: blocks, the planes and runs of their innermost loops, rows and elements.

Where a view begins, nothing has been fetched ahead: that takes longer if its elements are far.
"""

from __future__ import annotations

import numpy as np

from tilewise.inspect import TaskGraph
from tilewise.inspect.records import MAX_AXES, MAX_SUMS
from tilewise.inspect.sorts import CHUNK

FEATURES = (
    "block",
    "view",
    "far view",
    "plane",
    "run",
    "ordered",
    "strided",
    "scattered",
    "triangle",
    "summed",
    "combined",
    "row",
    "written",
    "far",
)

LINE = 8  # elements of a cache line: longer strides read one line for each element


def sort_features(graph: TaskGraph, far: float) -> np.ndarray:
    """(blocks, features); `far` is the share of the elements that comes from memory."""
    blocks, reads = graph.records["sort"], graph.records["read"]
    features = np.zeros((len(blocks), len(FEATURES)))
    if not len(blocks):
        return features
    block_of_read, read = _expanded(blocks["first_read"], blocks["n_read"])
    owner, view_number = _expanded(reads["first_view"][read], reads["n_view"][read])
    block = block_of_read[owner]
    times = np.prod(np.where(np.arange(2) < reads["n_sum"][:, None], reads["sum_extent"], 1), axis=1)[read]
    size, chunks = graph.block_sizes, _chunks(blocks)
    view = graph.records["view"].take(view_number)
    inner, second, inside = _innermost(blocks.take(block), view)
    each = np.arange(len(view))
    extents = _extents(blocks)[block]
    run, rows = extents[each, inner], np.where(second < 0, 1, extents[each, second])
    from_step, to_step = view["stride"][each, inner], _steps(blocks)[block, inner]
    amount = times[owner] * size[block]
    kinds = {
        "triangle": inside,
        "ordered": ~inside & (np.abs(from_step) <= 1) & (to_step == 1),
        "strided": ~inside & (np.abs(from_step) >= LINE),
        "scattered": ~inside & (to_step != 1) & (np.abs(from_step) < LINE),
    }
    kinds["ordered"] |= ~inside & ~kinds["strided"] & ~kinds["scattered"]

    def add(feature: str, where: np.ndarray, values: np.ndarray) -> None:
        features[:, FEATURES.index(feature)] += np.bincount(where, weights=values, minlength=len(blocks))

    views = times[owner] * chunks[block]
    add("view", block, views)
    add("far view", block, far * views)
    add("plane", block, amount / (run * rows))
    add("run", block, amount / run)
    for kind, chosen in kinds.items():
        add(kind, block, amount * chosen)
    add("summed", block_of_read, (times - 1) * size[block_of_read])
    add("combined", block_of_read, size[block_of_read] * blocks["n_out"][block_of_read])
    written = size * blocks["n_out"]
    features[:, FEATURES.index("block")] = 1.0
    features[:, FEATURES.index("row")] = _rows(blocks) * blocks["n_out"]
    features[:, FEATURES.index("written")] = written
    features[:, FEATURES.index("far")] = far * (np.bincount(block, amount, len(blocks)) + 2 * written)
    return features


def _expanded(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(owner, item) of the items first .. first + count of each owner."""
    owner = np.repeat(np.arange(len(count)), count)
    return owner, np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(owner))


def _extents(blocks: np.ndarray) -> np.ndarray:
    """Extents of the axes of a chunk; axes that a block lacks have extent 1."""
    extents = np.where(np.arange(MAX_AXES) < blocks["n_axes"][:, None], blocks["extent"], 1)
    rest = np.maximum(1, extents[:, 1:].prod(axis=1))
    cut = np.clip(CHUNK // rest, 1, np.maximum(1, extents[:, 0]))
    extents[:, 0] = np.where(blocks["n_row_axes"] > 0, cut, extents[:, 0])
    return np.maximum(extents, 1)


def _rows(blocks: np.ndarray) -> np.ndarray:
    return np.where(np.arange(MAX_AXES) < blocks["n_row_axes"][:, None], blocks["extent"], 1).prod(axis=1)


def _chunks(blocks: np.ndarray) -> np.ndarray:
    first = np.where(blocks["n_axes"] > 0, blocks["extent"][:, 0], 1)
    return np.maximum(1, np.ceil(first / _extents(blocks)[:, 0]))


def _steps(blocks: np.ndarray) -> np.ndarray:
    """Of each axis, the distance of neighbours in the gathered chunk."""
    extents = _extents(blocks)
    after = np.cumprod(extents[:, :0:-1], axis=1)[:, ::-1]
    return np.concatenate([after, np.ones((len(blocks), 1), np.int64)], axis=1)


def _innermost(blocks: np.ndarray, view: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The axes of the two innermost loops as the native `gather` has them, and whether they are a triangle's.

    There is no second one (-1) where one axis alone lies in no triangle.
    """
    extents, steps, each = _extents(blocks), _steps(blocks), np.arange(len(blocks))
    in_pair = np.zeros((len(blocks), MAX_AXES + MAX_SUMS), bool)  # a pair may have a summed axis
    for pair in range(2):
        has = view["n_pair"] > pair
        for key in ("p_axis", "q_axis"):
            in_pair[np.flatnonzero(has), view[key][has, pair]] = True
    strides = np.abs(view["stride"][:, :MAX_AXES])
    contiguous = (view["stride"][:, :MAX_AXES] == 1) & (steps == 1)
    inner = second = np.full(len(blocks), -1)
    longest = longest_second = np.ones(len(blocks), np.int64)
    for axis in reversed(range(MAX_AXES)):
        extent = np.where(in_pair[:, axis], 1, extents[:, axis])
        first = (extent > longest) & ~((inner >= 0) & contiguous[each, inner])
        other = ~first & (extent > longest_second)
        second = np.where(first, inner, np.where(other, axis, second))
        longest_second = np.where(first, longest, np.where(other, extent, longest_second))
        inner, longest = np.where(first, axis, inner), np.where(first, extent, longest)
    nearer = (second >= 0) & ~contiguous[each, inner] & (strides[each, second] < strides[each, inner])
    inner, second = np.where(nearer, second, inner), np.where(nearer, inner, second)
    inside = (inner < 0) & (view["n_pair"] > 0)
    last = np.maximum(view["n_pair"] - 1, 0)
    p, q = (np.minimum(view[key][each, last], MAX_AXES - 1) for key in ("p_axis", "q_axis"))
    return np.where(inside, q, np.maximum(inner, 0)), np.where(inside, p, second), inside
