"""Whether all records of a graph stay inside of their buffers: looked at once, before anything runs."""

from __future__ import annotations

import numpy as np

from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.records import KINDS, MAX_AXES, MAX_SUMS


def first_outside(graph: TaskGraph, lengths: np.ndarray) -> int:
    """The first task with a record that points outside of its buffer, or -1."""
    bad = {"gemm": _gemm(graph, lengths), "sort": _sort(graph, lengths)}
    for kind, buffers in (("update", ("amplitude", "residual", "new", "step")), ("dot", ("a", "b"))):
        r = graph.records[kind]
        bad[kind] = np.zeros(len(r), bool)
        for key in buffers:
            bad[kind] |= _outside(
                lengths, r[key], r["offset"], r["offset"] + (r["rows"] - 1) * r["ld"] + r["cols"]
            )
    r = graph.records["update"]
    for key, extent in (("row_energy", "rows"), ("col_energy", "cols")):
        bad["update"] |= _outside(lengths, r["energies"], r[key], r[key] + r[extent])
    found = [
        int(t)
        for kind, wrong in bad.items()
        if wrong.any()
        for t in np.flatnonzero(graph.per_task(kind, wrong.astype(np.float64)))[:1]
        if KINDS[graph.tasks["kind"][t]] in (kind, "chain")
    ]
    return min(found, default=-1)


def _outside(lengths: np.ndarray, buffer: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    known = (buffer >= 0) & (buffer < len(lengths))
    length = np.append(lengths, 0)[np.where(known, buffer, -1)]
    return ~known | (first < 0) | (last > length)


def _gemm(graph: TaskGraph, lengths: np.ndarray) -> np.ndarray:
    g = graph.records["gemm"]
    bad = _outside(lengths, g["c"], g["c_offset"], g["c_offset"] + (g["m"] - 1) * g["ldc"] + g["n"])
    for key, rows, cols in (("a", g["m"], g["k"]), ("b", g["k"], g["n"])):
        flip = g[f"transpose_{key}"] != 0
        rows, cols = np.where(flip, cols, rows), np.where(flip, rows, cols)
        first = g[f"{key}_offset"]
        bad |= (g["k"] > 0) & _outside(lengths, g[key], first, first + (rows - 1) * g[f"ld{key}"] + cols)
    return bad


def _sort(graph: TaskGraph, lengths: np.ndarray) -> np.ndarray:
    blocks, reads, views, outs = (graph.records[key] for key in ("sort", "read", "view", "out"))
    bad = np.zeros(len(blocks), bool)
    axes = np.arange(MAX_AXES)
    extent = np.where(axes < blocks["n_axes"][:, None], blocks["extent"], 1)
    # Outputs.
    owner = np.repeat(np.arange(len(blocks)), blocks["n_out"])
    out = outs.take(_runs(blocks["first_out"], blocks["n_out"]))
    is_row = axes < blocks["n_row_axes"][:, None]
    rows, cols = (
        np.where(is_row, extent, 1).prod(axis=1)[owner],
        np.where(is_row, 1, extent).prod(axis=1)[owner],
    )
    for key in ("row_triangle", "col_triangle"):  # a triangle of an n by n square
        size, sign = (rows, cols)[key == "col_triangle"], out[key]
        n = np.sqrt(size).round().astype(np.int64)
        size[sign != 0] = (n * (n + sign) // 2)[sign != 0]
    last = out["offset"] + (rows - 1) * out["ld"] + cols
    far = out["offset"] + ((extent[owner] - 1) * out["stride"]).sum(axis=1) + 1  # of a diagonal
    last = np.where(out["stride"].any(axis=1), far, last)
    wrong = _outside(lengths, out["buffer"], out["offset"], last) & (out["buffer"] != -1)
    bad[owner[wrong & (rows > 0) & (cols > 0)]] = True
    # Views of reads.
    owner = np.repeat(np.arange(len(blocks)), blocks["n_read"])
    read = reads.take(_runs(blocks["first_read"], blocks["n_read"]))
    owner, sums = np.repeat(owner, read["n_view"]), np.repeat(read, read["n_view"])
    view = views.take(_runs(read["first_view"], read["n_view"]))
    summed = np.where(np.arange(MAX_SUMS) < sums["n_sum"][:, None], sums["sum_extent"], 1)
    extents = np.concatenate([extent[owner], summed], axis=1)
    last = view["offset"] + ((extents - 1) * view["stride"]).sum(axis=1)
    for k in range(2):
        n = extents[np.arange(len(view)), view["p_axis"][:, k]]
        size = n * (n + view["sign"][:, k]) // 2
        last += np.where(view["n_pair"] > k, view["unit"][:, k] * np.maximum(size - 1, 0), 0)
    bad[owner[_outside(lengths, view["buffer"], view["offset"], last + 1)]] = True
    return bad


def _runs(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """first[0], first[0] + 1, ... (count[0] numbers), first[1], ..."""
    before = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(before, count) + np.repeat(first, count)
