"""Bytes that tasks would move if all tensors lay elsewhere: what is got before and accumulated after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph


def bytes_moved(graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
    """(got, put) of each task: operands once per record, results once per task, arenas not at all."""
    g, arena = graph.records["gemm"], len(graph.buffers)
    m, n, k = (g[key].astype(np.float64) for key in ("m", "n", "k"))
    got = graph.per_task("gemm", 8.0 * (m * k * (g["a"] != arena) + k * n * (g["b"] != arena)))
    put = graph.per_task("gemm", 8.0 * m * n * (_first_of_result(graph) & (g["c"] != arena)))
    outputs = graph.records["sort"]["n_out"]
    got += graph.per_task("sort", 8.0 * graph.block_sizes * (graph.block_traffic - outputs))
    put += graph.per_task("sort", 8.0 * graph.block_sizes * outputs)
    # An update reads amplitudes and residuals and writes new amplitudes and steps.
    for kind, reads, writes in (("update", 2, 2), ("dot", 2, 0)):
        r = graph.records[kind]
        size = graph.per_task(kind, 8.0 * r["rows"] * r["cols"])
        got += reads * size
        put += writes * size
    return got, put


def _first_of_result(graph: TaskGraph) -> np.ndarray:
    """Of each product: whether its task has not written to the same place before."""
    g = graph.records["gemm"]
    place = np.stack([graph.owners("gemm"), g["c"], g["c_offset"]], axis=1)
    first = np.zeros(len(g), bool)
    first[np.unique(place, axis=0, return_index=True)[1]] = True
    return first
