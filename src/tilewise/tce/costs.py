"""Seconds of tasks over tiles: products as `dgemm` does them, and sorts of all operands and results."""

from __future__ import annotations

import numpy as np

from tilewise.cost.model import CostModel, estimate, far_share
from tilewise.inspect.operations.gemm import GEMM, product_features
from tilewise.inspect.operations.sort import FEATURES
from tilewise.inspect.records import Table
from tilewise.tce.tasks import TileGraph


@estimate.register
def _of_tiles(graph: TileGraph, model: CostModel, cache: int | None = None) -> np.ndarray:
    far = far_share(int(graph.operands[2].sum()), cache)
    seconds = graph.per_task(tile_product_seconds(graph, model.coefficients("gemm"), far))
    seconds += tile_sort_features(graph, far) @ model.coefficients("sort")
    return seconds + model.stream["task"]


def tile_product_seconds(graph: TileGraph, coefficients: np.ndarray, far: float) -> np.ndarray:
    """Of each product; `far` is the share of its operands that comes from memory.

    There are few different shapes. Each is looked at twice: as the first product of a chain, and as a later
    one, which finds its result in place.
    """
    p = graph.products
    if not len(p):
        return np.zeros(0)
    shapes, which = np.unique(np.stack([p["m"], p["n"], p["k"]]), axis=1, return_inverse=True)
    records: Table = np.zeros(2 * shapes.shape[1], GEMM)
    records["transpose_a"] = 1
    records["c_offset"] = np.arange(len(records)) // 2
    for key, values in zip(("m", "n", "k"), shapes, strict=True):
        records[key] = np.repeat(values, 2)
    seconds = product_features(records, far) @ coefficients
    later = np.ones(len(p), np.int64)
    later[graph.tasks["first"][graph.gemms > 0]] = 0
    return seconds[2 * which.ravel() + later]


def tile_sort_features(graph: TileGraph, far: float) -> np.ndarray:
    """(tasks, features): whole blocks are gone through with long strides."""
    words = graph.sorted_words
    sorts = 2.0 * graph.gemms + graph.traffic.puts
    features = np.zeros((len(graph), len(FEATURES)))
    for feature, values in {
        "block": sorts,
        "view": sorts,
        "plane": words / graph.space.tile**2,
        "run": words / graph.space.tile,
        "strided": words,
        "combined": words,
        "written": words,
        "far": 3.0 * far * words,
    }.items():
        features[:, FEATURES.index(feature)] = values
    return features
