"""Sorts: tensors permuted, packed, unpacked, multiplied, summed and added, block by block.

A block has `n_out` outputs and `n_read` reads over the same axes, of which the first `n_row_axes` make the
rows of the outputs. Coefficients: (n_read, n_out) from first_coefficient.

A sort's time is made of blocks, of the planes and runs of their innermost loops, of rows and elements. How
the loops run is asked of the native core. Where a view begins, nothing has been fetched ahead: that takes
longer if its elements are far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewise.core import core
from tilewise.inspect.operations.kind import WORD, Kind, Spans, Tables, Work, finite
from tilewise.inspect.panels import runs
from tilewise.inspect.records import ACCUMULATE, ASSIGN, F8, I8, READ, Table

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph

MAX_AXES, MAX_SUMS, MAX_PAIRS = core.max_axes, core.max_sums, core.max_pairs

CHUNK = 2048
"""Elements that a worker sorts at a time: a few such chunks fit its second-level cache."""

SORT_BLOCK = np.dtype(
    [("n_axes", I8), ("n_row_axes", I8), ("extent", I8, (MAX_AXES,))]
    + [(name, I8) for name in ("first_out", "n_out", "first_read", "n_read", "first_coefficient")]
)

# Where a block goes. A triangle (+1 with, -1 without its diagonal) keeps the pairs p >= q of two
# equal axes; buffer -1: this output has no such block. A block on a diagonal, which is added to, has a
# stride for each axis; of all others the strides are 0.
SORT_OUT = np.dtype(
    [(name, I8) for name in ("buffer", "offset", "ld", "accumulate", "row_triangle", "col_triangle")]
    + [("stride", I8, (MAX_AXES,))]
)

# A product of views, summed over up to MAX_SUMS further axes.
SORT_READ = np.dtype([("first_view", I8), ("n_view", I8), ("n_sum", I8), ("sum_extent", I8, (MAX_SUMS,))])

# A block of a tensor as a strided view; axes are those of the block, then the summed ones. Some pairs of
# axes lie in a triangle of a packed tensor: their position is unit * triangle(p, q), with a factor sign for
# p < q and sqrt(2) (or 0) for p = q.
SORT_VIEW = np.dtype(
    [("buffer", I8), ("offset", I8), ("stride", I8, (MAX_AXES + MAX_SUMS,)), ("n_pair", I8)]
    + [(name, I8, (MAX_PAIRS,)) for name in ("p_axis", "q_axis", "unit", "sign")]
)

# How the two innermost loops over a view run: their extents, the inner one first, the steps of the inner one
# in the tensor and in the chunk, and whether the two run over a triangle.
SORT_WALK = np.dtype([(name, I8) for name in ("run", "rows", "from", "to", "in_triangle")])

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


class SortKind(Kind):
    """Blocks of sorts."""

    name: ClassVar[str] = "sort"
    record: ClassVar[np.dtype] = SORT_BLOCK
    tables: ClassVar[Mapping[str, np.dtype]] = {
        "out": SORT_OUT,
        "read": SORT_READ,
        "view": SORT_VIEW,
        "coefficients": np.dtype(F8),
    }
    pointers: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "sort": {"first_out": "out", "first_read": "read", "first_coefficient": "coefficients"},
        "read": {"first_view": "view"},
    }
    part: ClassVar[str] = "sort"
    features: ClassVar[tuple[str, ...]] = FEATURES

    def bytes(self, graph: TaskGraph) -> np.ndarray:
        return WORD * block_sizes(graph.records["sort"]) * block_traffic(graph.records)

    def words(self, graph: TaskGraph) -> np.ndarray:
        return 0.5 * block_sizes(graph.records["sort"]) * block_traffic(graph.records)

    def moved(self, graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
        blocks = graph.records["sort"]
        size, written = WORD * block_sizes(blocks), blocks["n_out"]
        return size * (block_traffic(graph.records) - written), size * written

    def counted(self, graph: TaskGraph, far: float) -> np.ndarray:
        return sort_features(graph.records, far)

    def spans(self, graph: TaskGraph) -> Iterator[Spans]:
        yield _written(graph.records)
        yield _read(graph.records)

    def twin(self, work: Work, record: np.void) -> float:
        return sort_block(work, record)


def block_sizes(blocks: Table) -> np.ndarray:
    """Elements of each block, triangles counted as squares."""
    size = np.ones(len(blocks))
    for axis in range(MAX_AXES):
        size *= np.where(blocks["n_axes"] > axis, blocks["extent"][:, axis], 1)
    return size


def block_traffic(records: Tables) -> np.ndarray:
    """Reads and writes of each block, in blocks."""
    blocks = records["sort"]
    views = np.concatenate([[0], np.cumsum(records["read"]["n_view"])])
    return blocks["n_out"] + views[blocks["first_read"] + blocks["n_read"]] - views[blocks["first_read"]]


def scratch_of(blocks: Table) -> int:
    """Doubles that a worker needs: an accumulator per output and two gathered views."""
    chunks = core.sort_chunks(np.ascontiguousarray(blocks).view(np.uint8), CHUNK)
    return int((chunks * (blocks["n_out"] + 2)).max(initial=0))


# Bounds


def _extents(blocks: Table) -> np.ndarray:
    """Extents of all axes; those that a block lacks have extent 1."""
    return np.where(np.arange(MAX_AXES) < blocks["n_axes"][:, None], blocks["extent"], 1)


def _written(records: Tables) -> Spans:
    """What blocks write; empty triangles and outputs that a block lacks are left out."""
    blocks = records["sort"]
    owner, number = runs(blocks["first_out"], blocks["n_out"])
    out, extent = records["out"].take(number), _extents(blocks)
    is_row = np.arange(MAX_AXES) < blocks["n_row_axes"][:, None]
    rows, cols = (
        np.where(is_row, extent, 1).prod(axis=1)[owner],
        np.where(is_row, 1, extent).prod(axis=1)[owner],
    )
    for size, sign in ((rows, out["row_triangle"]), (cols, out["col_triangle"])):
        n = np.sqrt(size).round().astype(np.int64)
        size[sign != 0] = (n * (n + sign) // 2)[sign != 0]  # a triangle of an n by n square
    last = out["offset"] + (rows - 1) * out["ld"] + cols
    far = out["offset"] + ((extent[owner] - 1) * out["stride"]).sum(axis=1) + 1  # of a diagonal
    on_diagonal = out["stride"].any(axis=1)
    last = np.where(on_diagonal, far, last)
    some = np.flatnonzero((out["buffer"] != -1) & (rows > 0) & (cols > 0))
    out, access = out[some], np.where(on_diagonal | (out["accumulate"] != 0), ACCUMULATE, ASSIGN)[some]
    number, owner, first, last = number[some], owner[some], out["offset"], last[some]
    return Spans("out", "offset", "buffer", number, owner, out["buffer"], first, last, access)


def _read(records: Tables) -> Spans:
    blocks, reads = records["sort"], records["read"]
    owner, number = runs(blocks["first_read"], blocks["n_read"])
    read = reads.take(number)
    of_read, number = runs(read["first_view"], read["n_view"])
    owner, sums, view = owner[of_read], read.take(of_read), records["view"].take(number)
    summed = np.where(np.arange(MAX_SUMS) < sums["n_sum"][:, None], sums["sum_extent"], 1)
    extents = np.concatenate([_extents(blocks)[owner], summed], axis=1)
    last = view["offset"] + ((extents - 1) * view["stride"]).sum(axis=1)
    for k in range(MAX_PAIRS):
        n = extents[np.arange(len(view)), view["p_axis"][:, k]]
        size = n * (n + view["sign"][:, k]) // 2
        last += np.where(view["n_pair"] > k, view["unit"][:, k] * np.maximum(size - 1, 0), 0)
    return Spans("view", "offset", "buffer", number, owner, view["buffer"], view["offset"], last + 1, READ)


# Features


def sort_features(records: Tables, far: float) -> np.ndarray:
    """(blocks, features); `far` is the share of the elements that comes from memory."""
    blocks, reads = records["sort"], records["read"]
    features = np.zeros((len(blocks), len(FEATURES)))
    if not len(blocks):
        return features
    block_of_read, read = runs(blocks["first_read"], blocks["n_read"])
    owner, _ = runs(0, reads["n_view"][read])
    block = block_of_read[owner]
    times = np.prod(np.where(np.arange(2) < reads["n_sum"][:, None], reads["sum_extent"], 1), axis=1)[read]
    size, walk = block_sizes(blocks), walks(records)
    amount, views = times[owner] * size[block], times[owner] * _chunks(blocks, size)[block]

    def add(feature: str, where: np.ndarray, values: np.ndarray) -> None:
        features[:, FEATURES.index(feature)] += np.bincount(where, weights=values, minlength=len(blocks))

    add("view", block, views)
    add("far view", block, far * views)
    add("plane", block, amount / (walk["run"] * walk["rows"]))
    add("run", block, amount / walk["run"])
    for kind, chosen in _ways(walk).items():
        add(kind, block, amount * chosen)
    add("summed", block_of_read, (times - 1) * size[block_of_read])
    add("combined", block_of_read, size[block_of_read] * blocks["n_out"][block_of_read])
    written = size * blocks["n_out"]
    features[:, FEATURES.index("block")] = 1.0
    features[:, FEATURES.index("row")] = _rows(blocks) * blocks["n_out"]
    features[:, FEATURES.index("written")] = written
    features[:, FEATURES.index("far")] = far * (np.bincount(block, amount, len(blocks)) + 2 * written)
    return features


def walks(records: Tables) -> np.ndarray:
    """How the native core walks over each view, block after block and read after read; of type SORT_WALK."""
    blocks, reads, views = (
        np.ascontiguousarray(records[key]).view(np.uint8) for key in ("sort", "read", "view")
    )
    return core.sort_walks(blocks, reads, views, CHUNK).view(SORT_WALK)


def _ways(walk: np.ndarray) -> dict[str, np.ndarray]:
    """The feature that the elements of each view count for."""
    step, inside = np.abs(walk["from"]), walk["in_triangle"] != 0
    strided, scattered = step >= LINE, (walk["to"] != 1) & (step < LINE)
    return {
        "triangle": inside,
        "ordered": ~inside & ~strided & ~scattered,
        "strided": ~inside & strided,
        "scattered": ~inside & scattered,
    }


def _rows(blocks: Table) -> np.ndarray:
    return np.where(np.arange(MAX_AXES) < blocks["n_row_axes"][:, None], blocks["extent"], 1).prod(axis=1)


def _chunks(blocks: Table, size: np.ndarray) -> np.ndarray:
    """How many chunks each block is sorted in."""
    return np.ceil(size / core.sort_chunks(np.ascontiguousarray(blocks).view(np.uint8), CHUNK))


# Twins of the native functions of the same names


def sort_block(work: Work, block: np.void) -> float:
    shape = tuple(int(n) for n in block["extent"][: block["n_axes"]])
    n_out = int(block["n_out"])
    first = int(block["first_coefficient"])
    coefficients = work.records["coefficients"][first : first + block["n_read"] * n_out].reshape(-1, n_out)
    sums = np.zeros((n_out, *shape))
    reads = work.records["read"][block["first_read"] : block["first_read"] + block["n_read"]]
    for read, coefficient in zip(reads, coefficients, strict=True):
        extents = tuple(int(n) for n in read["sum_extent"][: read["n_sum"]])
        gathered = np.ones(shape + extents)
        for view in work.records["view"][read["first_view"] : read["first_view"] + read["n_view"]]:
            gathered = gathered * gather(view, work.buffers, shape, extents)
        gathered = gathered.sum(axis=tuple(range(len(shape), len(shape) + len(extents))))
        sums += coefficient.reshape((n_out,) + (1,) * len(shape)) * gathered
    outs = work.records["out"][block["first_out"] : block["first_out"] + n_out]
    check = 0.0
    for total, out in zip(sums, outs, strict=True):
        if out["buffer"] >= 0:
            write_out(work, out, total, int(block["n_row_axes"]))
            check += finite(total)
    return check


def gather(
    view: np.void, buffers: list[np.ndarray], shape: tuple[int, ...], sums: tuple[int, ...]
) -> np.ndarray:
    """The values of a view over the axes of the block and the summed ones."""
    index = np.indices(shape + sums)
    axes = [*range(len(shape)), *range(MAX_AXES, MAX_AXES + len(sums))]
    at = np.full(shape + sums, view["offset"], np.int64)
    for k, axis in enumerate(axes):
        at += view["stride"][axis] * index[k]
    factor = np.ones(shape + sums)
    for pair in range(view["n_pair"]):
        p, q = index[axes.index(view["p_axis"][pair])], index[axes.index(view["q_axis"][pair])]
        sign = view["sign"][pair]
        high, low = np.maximum(p, q), np.minimum(p, q)
        factor *= np.where(p == q, np.sqrt(2.0) if sign > 0 else 0.0, np.where(p < q, sign, 1))
        stored = (p != q) | (sign > 0)
        at += np.where(stored, view["unit"][pair] * (high * (high + sign) // 2 + low), 0)
    at = np.where(factor != 0, at, view["offset"])
    return factor * buffers[view["buffer"]][at]


def write_out(work: Work, out: np.void, values: np.ndarray, n_row_axes: int) -> None:
    if out["stride"].any():  # a diagonal
        index = np.indices(values.shape)
        at = out["offset"] + np.tensordot(out["stride"][: values.ndim], index, axes=1)
        work.buffers[out["buffer"]][at] += values
        return
    groups = []
    for axes, triangle in (
        (values.shape[:n_row_axes], int(out["row_triangle"])),
        (values.shape[n_row_axes:], int(out["col_triangle"])),
    ):
        if triangle:
            p, q = np.tril_indices(axes[0], 0 if triangle > 0 else -1)
            groups.append((p * axes[0] + q, np.where(p == q, np.sqrt(0.5), 1.0)))
        else:
            size = int(np.prod(axes, dtype=np.int64))
            groups.append((np.arange(size), np.ones(size)))
    (rows, row_factor), (cols, col_factor) = groups
    flat = values.reshape(int(np.prod(values.shape[:n_row_axes], dtype=np.int64)), -1)
    block = flat[np.ix_(rows, cols)] * row_factor[:, None] * col_factor
    target = work.matrix(out["buffer"], out["offset"], len(rows), len(cols), out["ld"])
    target[...] = target + block if out["accumulate"] else block


def sort_chunks(blocks: Table, chunk: int) -> np.ndarray:
    """Elements of each block that are sorted at a time: some planes of the first axis, if that is of rows."""
    found = []
    for block in blocks:
        first, *others = block["extent"][: block["n_axes"]].tolist() or [1]
        rest = prod(others)
        length = first if block["n_row_axes"] == 0 else min(max(chunk // max(rest, 1), 1), first)
        found.append(length * rest)
    return np.array(found, np.int64)


def sort_walks(blocks: Table, reads: Table, views: Table, chunk: int) -> np.ndarray:
    """How the innermost loops over each view of each read of each block run; records of type SORT_WALK."""
    found = []
    for block, size in zip(blocks, sort_chunks(blocks, chunk).tolist(), strict=True):
        extent = block["extent"][: block["n_axes"]].tolist()
        if extent:
            extent[0] = size // prod(extent[1:])
        for read in reads[block["first_read"] : block["first_read"] + block["n_read"]]:
            for view in views[read["first_view"] : read["first_view"] + read["n_view"]]:
                found.append(_walk(extent, view))
    return np.array(found, SORT_WALK)


def _walk(extent: list[int], view: np.void) -> tuple[int, int, int, int, int]:
    """(run, rows, from, to, in_triangle) of one view, of a chunk of the given extents."""
    stride, steps = view["stride"].tolist(), [prod(extent[k + 1 :]) for k in range(len(extent))]
    pairs = list(zip(view["p_axis"].tolist(), view["q_axis"].tolist(), strict=True))[: view["n_pair"]]

    def contiguous(axis: int) -> bool:
        return stride[axis] == steps[axis] == 1

    def length(axis: int | None) -> int:
        return 1 if axis is None else extent[axis]

    inner: int | None = None
    second: int | None = None
    for axis in reversed(range(len(extent))):
        if any(axis in pair for pair in pairs):
            continue
        if length(axis) > length(inner) and not (inner is not None and contiguous(inner)):
            inner, second = axis, inner
        elif length(axis) > length(second):
            second = axis
    if inner is not None and second is not None and not contiguous(inner):
        inner, second = sorted((inner, second), key=lambda axis: (abs(stride[axis]), axis != inner))
    if inner is not None:
        return extent[inner], length(second), stride[inner], steps[inner], 0
    if pairs and pairs[-1][0] != pairs[-1][1] and max(pairs[-1]) < MAX_AXES:
        p, q = pairs[-1]
        return extent[q], extent[p], stride[q], steps[q], 1
    return 1, 1, 0, 1, 0
