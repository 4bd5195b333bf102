"""The floor: what the products of an iteration take as bare dgemm calls, and the machine's dgemm rate."""

from __future__ import annotations

import time

import numpy as np

from tilewise import native
from tilewise.config import thread_limits
from tilewise.cost import estimate, load_or_calibrate
from tilewise.equations.program import Program
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import KINDS
from tilewise.schedule.lpt import longest_first


def floor_seconds(graph: TaskGraph, program: Program, workers: int, repeats: int = 5) -> float:
    """All products of a graph back to back, one BLAS thread on each worker, without dependencies.

    The tasks are shared out by their measured times. A scratch of one element keeps our own kernels out.
    """
    needed = {name for op in program.operations for name in (*op.reads, *op.outputs)}
    lengths = {name: layout.size if name in needed else 0 for name, layout in program.layouts.items()}
    rng = np.random.default_rng(0)
    buffers = [1e-3 * rng.random({**lengths, **graph.vectors}[name]) for name in graph.buffers]
    tables, scratch = native.tables(graph), np.zeros(workers)
    products = np.flatnonzero(graph.tasks["kind"] == KINDS.index("gemm"))
    seconds, best = estimate(graph, load_or_calibrate()[0])[products], np.inf
    with thread_limits(1):
        for _ in range(repeats):
            parts = [products[part] for part in longest_first(seconds, workers)]
            schedule = native.static_lists(parts)
            began = time.perf_counter()
            trace = native.run(graph, tables, schedule, buffers, scratch, workers).trace
            best = min(best, time.perf_counter() - began)
            seconds = 1e-9 * (trace["end"] - trace["start"])[products]
    return best


class Dgemm:
    """One large product, for the flops per second that the machine has."""

    def __init__(self, threads: int, size: int = 1536) -> None:
        self.threads = threads
        self.a, self.b = (np.asfortranarray(np.random.default_rng(k).random((size, size))) for k in range(2))

    def rate(self) -> float:
        from scipy.linalg.blas import dgemm

        with thread_limits(self.threads):
            began = time.perf_counter()
            dgemm(1.0, self.a, self.b)
            return 2.0 * len(self.a) ** 3 / (time.perf_counter() - began)


def dgemm_rate(threads: int, repeats: int = 5) -> float:
    """The best of a few."""
    product = Dgemm(threads)
    return max(product.rate() for _ in range(repeats))
