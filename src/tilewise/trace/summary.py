"""A run in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.inspect import Graph
from tilewise.inspect.records import KINDS


@dataclass(frozen=True)
class Summary:
    """Seconds; `imbalance` is the share of the makespan in which the average worker was not busy."""

    makespan: float
    busy: tuple[float, ...]
    by_kind: dict[str, float]
    waiting: float

    @property
    def imbalance(self) -> float:
        if self.makespan <= 0.0:
            return 0.0
        return max(0.0, 1.0 - sum(self.busy) / (len(self.busy) * self.makespan))


def summarize(graph: Graph, trace: np.ndarray, workers: int) -> Summary:
    """Of one run of a graph."""
    seconds = 1e-9 * (trace["end"] - trace["start"])
    busy = (
        np.bincount(trace["worker"], weights=seconds, minlength=workers) if len(trace) else np.zeros(workers)
    )
    makespan = (
        1e-9 * float(trace["end"].max(initial=0) - trace["start"].min(initial=0)) if len(trace) else 0.0
    )
    kinds = {kind: float(seconds[graph.tasks["kind"] == k].sum()) for k, kind in enumerate(KINDS)}
    waiting = 1e-9 * float((trace["start"] - trace["ready"]).sum())
    return Summary(makespan, tuple(float(b) for b in busy), kinds, waiting)
