"""Whether all records of a graph stay inside of their buffers: looked at once, before anything runs."""

from __future__ import annotations

import numpy as np

from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.operations import kinds


def first_outside(graph: TaskGraph, lengths: np.ndarray) -> int:
    """The first task with a record that points outside of its buffer, or -1."""
    found = []
    for name, kind in kinds.items():
        wrong = kind.outside(graph, lengths)
        if wrong.any():
            found += np.flatnonzero(graph.per_task(name, wrong.astype(np.float64)))[:1].tolist()
    return min(found, default=-1)
