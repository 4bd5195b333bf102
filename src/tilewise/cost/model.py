"""Seconds per task, as sums of non-negative coefficients times features of its records.

GEMM: a call, the multiply-adds, and the traffic of each of the three matrices (packing the right-hand
side is the term k n, which is what makes short row panels slow). SORT: a block, a view, and elements
gathered in order, gathered with a stride, gathered from a triangle, combined and written.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from tilewise.inspect import TaskGraph

GEMM_FEATURES = ("call", "mnk", "mn", "mk", "kn")
SORT_FEATURES = ("block", "view", "ordered", "strided", "triangle", "combined", "written")
STREAM_FEATURES = ("task", "element")


@dataclass(frozen=True)
class CostModel:
    """Coefficients in seconds, by feature."""

    gemm: dict[str, float]
    sort: dict[str, float]
    stream: dict[str, float]

    def gemm_seconds(self, m: np.ndarray, n: np.ndarray, k: np.ndarray) -> np.ndarray:
        return gemm_features(m, n, k) @ np.array([self.gemm[f] for f in GEMM_FEATURES])

    def to_dict(self) -> dict[str, dict[str, float]]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, dict[str, float]]) -> CostModel:
        """Raises KeyError, TypeError or ValueError if the coefficients are not all there."""
        parts = {}
        for part, features in (("gemm", GEMM_FEATURES), ("sort", SORT_FEATURES), ("stream", STREAM_FEATURES)):
            parts[part] = {feature: float(data[part][feature]) for feature in features}
            if not all(np.isfinite(x) and x >= 0 for x in parts[part].values()):
                raise ValueError(f"a {part} coefficient is negative or not a number")
        return cls(**parts)


def gemm_features(m: np.ndarray, n: np.ndarray, k: np.ndarray) -> np.ndarray:
    m, n, k = (np.asarray(x, np.float64) for x in (m, n, k))
    return np.stack([np.ones_like(m), m * n * k, m * n, m * k, k * n], axis=-1)


def sort_features(graph: TaskGraph) -> np.ndarray:
    """(blocks, features) of the sort blocks of a graph."""
    blocks, reads, views = (graph.records[key] for key in ("sort", "read", "view"))
    size = graph.block_sizes
    # Of each read: elements, of which kind, per view.
    sums = np.prod(np.where(np.arange(2) < reads["n_sum"][:, None], reads["sum_extent"], 1), axis=1)
    read_of_view = np.repeat(np.arange(len(reads)), reads["n_view"])
    view_order = np.concatenate([np.zeros(0, np.int64), np.repeat(reads["first_view"], reads["n_view"])]) + (
        np.arange(len(read_of_view))
        - np.repeat(np.cumsum(reads["n_view"]) - reads["n_view"], reads["n_view"])
    )
    view = views[view_order]
    # An elementwise block shares its reads with nobody; others point to consecutive reads.
    block_of_read = np.repeat(np.arange(len(blocks)), blocks["n_read"])
    read_order = np.repeat(blocks["first_read"], blocks["n_read"]) + (
        np.arange(len(block_of_read))
        - np.repeat(np.cumsum(blocks["n_read"]) - blocks["n_read"], blocks["n_read"])
    )
    per_read = np.zeros((len(reads), 4))  # views, ordered, strided, triangle per element of the block
    last = np.zeros(len(reads), np.int64)
    last[read_order] = blocks["n_axes"][block_of_read] - 1
    stride = view["stride"][np.arange(len(view)), np.maximum(last[read_of_view], 0)]
    kind = np.where(view["n_pair"] > 0, 3, np.where(np.abs(stride) <= 1, 1, 2))
    np.add.at(per_read, (read_of_view, kind), 1.0)
    per_read[:, 0] = reads["n_view"]
    per_read *= sums[:, None]
    features = np.zeros((len(blocks), len(SORT_FEATURES)))
    features[:, 0] = 1.0
    totals = np.zeros((len(blocks), 4))
    np.add.at(totals, block_of_read, per_read[read_order])
    features[:, 1] = totals[:, 0]
    features[:, 2:5] = totals[:, 1:] * size[:, None]
    features[:, 5] = size * blocks["n_read"] * blocks["n_out"]
    features[:, 6] = size * blocks["n_out"]
    return features


def stream_sizes(graph: TaskGraph) -> np.ndarray:
    """Elements of the update and dot records of each task."""
    total = np.zeros(len(graph))
    for kind, streams in (("update", 4.0), ("dot", 2.0)):
        r = graph.records[kind]
        total += graph.per_task(kind, streams * r["rows"] * r["cols"])
    return total


def estimate(graph: TaskGraph, model: CostModel) -> np.ndarray:
    """Seconds of each task by the model."""
    g = graph.records["gemm"]
    seconds = graph.per_task("gemm", model.gemm_seconds(g["m"], g["n"], g["k"]))
    seconds += graph.per_task("sort", sort_features(graph) @ np.array([model.sort[f] for f in SORT_FEATURES]))
    return seconds + model.stream["task"] + model.stream["element"] * stream_sizes(graph)
