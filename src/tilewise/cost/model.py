"""Seconds per task, as sums of non-negative coefficients times features of its records.

What is counted of a record is said by the module of its kind (`inspect.operations`). Records that have no
part of the model of their own stream through their operands. Every kind has a feature "far": the words that
come from memory, because the tensors of a graph do not fit the last-level cache together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import singledispatch

import numpy as np

from tilewise.config import last_level_cache
from tilewise.inspect import Graph, TaskGraph
from tilewise.inspect.operations import kinds

SLOWEST = 1.0
"""Seconds of any unit of work: no machine takes as long."""


def _parts() -> dict[str, tuple[str, ...]]:
    """The features of each part of the model: those of its kinds. Every task counts itself."""
    parts: dict[str, tuple[str, ...]] = {kind.part: () for kind in kinds.values()} | {"stream": ("task",)}
    for kind in kinds.values():
        parts[kind.part] = tuple(dict.fromkeys((*parts[kind.part], *kind.features)))
    return parts


PARTS = _parts()


@dataclass(frozen=True)
class CostModel:
    """Coefficients in seconds, by feature."""

    gemm: dict[str, float]
    sort: dict[str, float]
    stream: dict[str, float]

    def coefficients(self, part: str) -> np.ndarray:
        """Of the products ("gemm"), the sorts or the other records ("stream"), in the features' order."""
        values: dict[str, float] = getattr(self, part)
        return np.array([values[feature] for feature in PARTS[part]])

    def to_dict(self) -> dict[str, dict[str, float]]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, dict[str, float]]) -> CostModel:
        """Raises KeyError, TypeError or ValueError if the coefficients are not all there."""
        parts = {}
        for part, features in PARTS.items():
            parts[part] = {feature: float(data[part][feature]) for feature in features}
            if not all(0 <= x < SLOWEST for x in parts[part].values()):
                raise ValueError(f"a {part} coefficient is negative, not a number, or of no machine")
        return cls(**parts)


def far_share(size: int, cache: int | None = None) -> float:
    """The share of all words that is read from memory, when `size` bytes are gone through again and again.

    `cache` are the bytes of the last-level cache, by default of this machine's.
    """
    cache = last_level_cache() if cache is None else cache
    return max(0.0, 1.0 - cache / size) if size else 0.0


def working_set(graph: TaskGraph) -> int:
    """Bytes of all tensors that the tasks touch."""
    return 8 * sum(graph.length_of(name) for name in graph.touched)


def task_features(graph: TaskGraph, far: float) -> dict[str, np.ndarray]:
    """Of each part of the model, (tasks, features)."""
    found = {part: np.zeros((len(graph), len(features))) for part, features in PARTS.items()}
    found["stream"][:, PARTS["stream"].index("task")] = 1.0
    for name, kind in kinds.items():
        if kind.features and len(graph.records[name]):
            columns = [PARTS[kind.part].index(feature) for feature in kind.features]
            found[kind.part][:, columns] += graph.per_task(name, kind.counted(graph, far))
    return found


@singledispatch
def estimate(graph: Graph, model: CostModel, cache: int | None = None) -> np.ndarray:
    """Seconds of each task by the model; `cache` is the size of the last-level cache in bytes.

    Each kind of graph that has costs registers how they are counted.
    """
    raise TypeError(f"no cost model for a {type(graph).__name__}")


@estimate.register
def _of_records(graph: TaskGraph, model: CostModel, cache: int | None = None) -> np.ndarray:
    far = far_share(working_set(graph), cache)
    features = task_features(graph, far)
    return sum((features[part] @ model.coefficients(part) for part in PARTS), np.zeros(len(graph)))
