"""Fits the cost model to short measurements of the native kernels on one core."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from tilewise import native
from tilewise.config import thread_limits
from tilewise.cost.model import (
    GEMM_FEATURES,
    SORT_FEATURES,
    STREAM_FEATURES,
    CostModel,
    gemm_features,
    sort_features,
    stream_sizes,
)
from tilewise.equations import parse, plan_program
from tilewise.inspect import PanelRule, TaskGraph, inspect
from tilewise.inspect.records import GEMM, KINDS, RECORDS, TASK
from tilewise.spaces import Space

REPEATS = 3
SAMPLE_SHAPES = (
    [(m, n, k) for m in (2, 16, 96) for n in (8, 64, 320) for k in (4, 48, 320)]
    + [(192, n, 400) for n in (4, 12, 40, 120, 400)]
    + [(24, 900, 24), (8, 4000, 16), (300, 300, 300), (2, 2000, 12), (64, 64, 2000)]
)
"""(m, n, k) of the products that are timed: narrow, short and square ones, about 1 GFlop in all."""

SAMPLE_SORTS = """
input T[ab+-|ij+-]
input t[i|a]
tau[ab+-|ij+-] = T[ab|ij] + t[i|a] t[j|b]
U[ia|jb] = 2 T[ab|ij] - T[ba|ij] + t[i|b] t[j|a]
X[ia|jb] = T[ba|ij]
R[ab+-|ij+-] = U[ia|jb] + U[jb|ia] - X[ib|ja] - X[ja|ib]
M[ab|ij+-] = R[ba|ij]
E[a|c] = U[ia|ic]
e[] = tau[ab|ij] T[ab|ij]
solve T[ab|ij] : R[ab|ij] / (i + j - a - b)
"""
"""Sorts of all kinds, timed in three spaces with blocks of different sizes."""


def calibrate() -> CostModel:
    """Measures and fits; takes about a second."""
    with thread_limits(1):
        gemm = _fit(*_gemm_sample())
        features, stream_features, sort_times, stream_times = _sort_sample()
    return CostModel(
        dict(zip(GEMM_FEATURES, gemm, strict=True)),
        dict(zip(SORT_FEATURES, _fit(features, sort_times), strict=True)),
        dict(zip(STREAM_FEATURES, _fit(stream_features, stream_times), strict=True)),
    )


def _fit(features: np.ndarray, seconds: np.ndarray) -> list[float]:
    """Non-negative least squares of relative errors."""
    scale = 1.0 / np.maximum(seconds, 1e-7)
    weighted = features * scale[:, None]
    norms = np.maximum(np.abs(weighted).max(axis=0), 1e-300)
    solution, _ = nnls(weighted / norms, seconds * scale)
    return [float(x) for x in solution / norms]


def _gemm_sample() -> tuple[np.ndarray, np.ndarray]:
    shapes = np.array(SAMPLE_SHAPES, np.int64)
    m, n, k = shapes.T
    length = int(max((m * k).max(), (k * n).max(), (m * n).max()))
    buffers = [np.ones(length) for _ in range(3)]
    records = np.zeros(len(shapes), GEMM)
    records["a"], records["b"], records["c"] = 0, 1, 2
    records["m"], records["n"], records["k"] = m, n, k
    records["lda"], records["ldb"], records["ldc"] = k, n, n
    records["alpha"] = 1e-3
    seconds = _time(_task_list(records), buffers)
    return gemm_features(m, n, k), seconds


def _task_list(gemms: np.ndarray) -> TaskGraph:
    """A graph of independent products, one per task."""
    tasks = np.zeros(len(gemms), TASK)
    tasks["kind"], tasks["first"], tasks["count"] = KINDS.index("gemm"), np.arange(len(gemms)), 1
    empty = {key: np.zeros(0, dtype) for key, dtype in (RECORDS | native.EXTRAS).items()}
    none = np.zeros(0, np.int64)
    return TaskGraph((), (), {}, tasks, empty | {"gemm": gemms}, np.zeros(0), none, 0, 0, none, none)


def _time(graph: TaskGraph, buffers: list[np.ndarray]) -> np.ndarray:
    """Seconds of each task on one worker, the least of several runs."""
    schedule = native.static_lists([np.arange(len(graph))])
    tables = native.tables(graph)
    scratch = np.zeros(native.scratch_size(graph))
    best = np.full(len(graph), np.inf)
    for _ in range(REPEATS + 1):  # the first run warms up
        trace = native.run(tables, schedule, graph, buffers, scratch, 1).trace
        best = np.minimum(best, 1e-9 * (trace["end"] - trace["start"]))
    return best


def _sort_sample() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    features, sort_times, streams, stream_times = [], [], [], []
    equation = parse(SAMPLE_SORTS)
    for occ, vir, tile in (((2, 1, 1, 2), (8, 6, 5, 7), 16), ((8,), (40,), 16), ((3, 3), (12, 10), 4)):
        spaces = {"ij": Space.spatial("o", occ, tile), "abc": Space.spatial("v", vir, tile)}
        program = plan_program(equation, spaces)
        graph = inspect(program, PanelRule(64))
        rng = np.random.default_rng(0)
        lengths = {**{name: layout.size for name, layout in program.layouts.items()}, **graph.vectors}
        buffers = [rng.random(lengths[name]) + 1.0 for name in graph.buffers]
        seconds = _time(graph, buffers)
        block_features = sort_features(graph)
        per_task = np.stack([graph.per_task("sort", column) for column in block_features.T], axis=1)
        sorts = graph.tasks["kind"] == KINDS.index("sort")
        features.append(per_task[sorts])
        sort_times.append(seconds[sorts])
        sizes = stream_sizes(graph)[~sorts]
        streams.append(np.stack([np.ones_like(sizes), sizes], axis=1))
        stream_times.append(seconds[~sorts])
    return tuple(np.concatenate(x) for x in (features, streams, sort_times, stream_times))  # type: ignore[return-value]
