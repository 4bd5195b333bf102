"""The serial executor: NumPy twins of the native kernels, one task after the other.

Slow, and written to be read: the tests hold the native kernels against these.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewise.execute.executor import Job
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import KINDS, MAX_AXES, TRACE
from tilewise.native import COUNTS, Outcome
from tilewise.schedule import Schedule


class Serial:
    """Runs the tasks level by level on one worker, whatever the schedule says."""

    name: ClassVar[str] = "serial"

    def __init__(self, graph: TaskGraph, processors: tuple[int, ...] = ()) -> None:
        self.graph = graph

    def prepare(self, schedule: Schedule) -> None:
        """It needs nothing."""

    def run(self, job: Job) -> Outcome:
        order = np.argsort(self.graph.levels, kind="stable") if job.tasks is None else job.tasks
        failed, reason, partial, seconds = run(self.graph, job.buffers, order, job.shift)
        trace = np.zeros(len(self.graph), TRACE)
        trace["end"] = (1e9 * seconds).astype(np.int64)
        counts = np.zeros((job.schedule.workers, len(COUNTS)), np.int64)
        return Outcome(failed, reason, partial, trace, counts)


def run(
    graph: TaskGraph, buffers: list[np.ndarray], order: np.ndarray, shift: float = 0.0
) -> tuple[int, str, np.ndarray, np.ndarray]:
    """(failed task or -1, reason, partial sums, seconds per task)."""
    partial, seconds = np.zeros(len(graph)), np.zeros(len(graph))

    def step(graph: TaskGraph, buffers: list[np.ndarray], r: np.void) -> float:
        return update(graph, buffers, r, shift)

    kernels = {"gemm": gemm, "sort": sort_block, "update": step, "dot": dot}
    buffers = [*buffers, np.zeros(graph.arena)]
    for t in order:
        task = graph.tasks[t]
        steps = [task]
        if KINDS[task["kind"]] == "chain":
            steps = list(graph.records["chain"][task["first"] : task["first"] + task["count"]])
        began = time.perf_counter()
        with np.errstate(invalid="ignore", over="ignore"):
            for part in steps:
                kind = KINDS[part["kind"]]
                for record in graph.records[kind][part["first"] : part["first"] + part["count"]]:
                    value = kernels[kind](graph, buffers, record)
                    partial[t] += value
                    if not np.isfinite(value):
                        return int(t), "the result is not finite", partial, seconds
        seconds[t] = time.perf_counter() - began
    return -1, "", partial, seconds


def _matrix(buffer: np.ndarray, offset: int, rows: int, cols: int, ld: int) -> np.ndarray:
    return as_strided(buffer[offset:], (rows, cols), (8 * ld, 8))


def _finite(x: np.ndarray) -> float:
    """Zero, or NaN if anything is not finite."""
    return 0.0 if np.isfinite(x).all() else float("nan")


def gemm(graph: TaskGraph, buffers: list[np.ndarray], g: np.void) -> float:
    m, n, k = int(g["m"]), int(g["n"]), int(g["k"])
    c = _matrix(buffers[g["c"]], g["c_offset"], m, n, g["ldc"])
    if k == 0:
        c[...] = g["beta"] * c if g["beta"] else 0.0
        return _finite(c)
    shape_a, shape_b = ((k, m) if g["transpose_a"] else (m, k)), ((n, k) if g["transpose_b"] else (k, n))
    a = _matrix(buffers[g["a"]], g["a_offset"], *shape_a, g["lda"])
    b = _matrix(buffers[g["b"]], g["b_offset"], *shape_b, g["ldb"])
    product = g["alpha"] * ((a.T if g["transpose_a"] else a) @ (b.T if g["transpose_b"] else b))
    c[...] = product + g["beta"] * c if g["beta"] else product
    return _finite(c)


def sort_block(graph: TaskGraph, buffers: list[np.ndarray], block: np.void) -> float:
    shape = tuple(int(n) for n in block["extent"][: block["n_axes"]])
    n_out = int(block["n_out"])
    first = int(block["first_coefficient"])
    coefficients = graph.coefficients[first : first + block["n_read"] * n_out].reshape(-1, n_out)
    sums = np.zeros((n_out, *shape))
    reads = graph.records["read"][block["first_read"] : block["first_read"] + block["n_read"]]
    for read, coefficient in zip(reads, coefficients, strict=True):
        extents = tuple(int(n) for n in read["sum_extent"][: read["n_sum"]])
        gathered = np.ones(shape + extents)
        for view in graph.records["view"][read["first_view"] : read["first_view"] + read["n_view"]]:
            gathered = gathered * gather(view, buffers, shape, extents)
        gathered = gathered.sum(axis=tuple(range(len(shape), len(shape) + len(extents))))
        sums += coefficient.reshape((n_out,) + (1,) * len(shape)) * gathered
    check = 0.0
    for total, out in zip(
        sums, graph.records["out"][block["first_out"] : block["first_out"] + n_out], strict=True
    ):
        if out["buffer"] >= 0:
            write_out(buffers, out, total, int(block["n_row_axes"]))
            check += _finite(total)
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


def write_out(buffers: list[np.ndarray], out: np.void, values: np.ndarray, n_row_axes: int) -> None:
    if out["stride"].any():  # a diagonal
        index = np.indices(values.shape)
        at = out["offset"] + np.tensordot(out["stride"][: values.ndim], index, axes=1)
        buffers[out["buffer"]][at] += values
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
    target = _matrix(buffers[out["buffer"]], out["offset"], len(rows), len(cols), out["ld"])
    target[...] = target + block if out["accumulate"] else block


def update(graph: TaskGraph, buffers: list[np.ndarray], r: np.void, shift: float = 0.0) -> float:
    rows, cols = int(r["rows"]), int(r["cols"])
    names = ("amplitude", "residual", "new", "step")
    amplitude, residual, new, step = (_matrix(buffers[r[x]], r["offset"], rows, cols, r["ld"]) for x in names)
    energies = buffers[r["energies"]]
    row, col = int(r["row_energy"]), int(r["col_energy"])
    gap = energies[row : row + rows, None] + energies[col : col + cols]
    rest = residual - gap * amplitude
    step[...] = rest / (gap - shift)
    new[...] = amplitude + step
    return float((rest**2).sum()) + _finite(new)


def dot(graph: TaskGraph, buffers: list[np.ndarray], r: np.void) -> float:
    a, b = (_matrix(buffers[r[x]], r["offset"], int(r["rows"]), int(r["cols"]), r["ld"]) for x in ("a", "b"))
    return float(r["factor"] * (a * b).sum())
