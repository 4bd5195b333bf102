"""Levels: operations that do not wait for each other, as the TCE runs them."""

from __future__ import annotations

import numpy as np

from tilewise.inspect import TaskGraph


def tasks_by_level(graph: TaskGraph) -> list[np.ndarray]:
    """Task numbers of each level, in the order of the program."""
    levels = graph.levels
    count = int(levels.max()) + 1 if len(levels) else 0
    return [np.flatnonzero(levels == level) for level in range(count)]
