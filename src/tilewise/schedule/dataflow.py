"""`dataflow`: no barriers; of the tasks that are ready, the one with the longest way to the end."""

from __future__ import annotations

import numpy as np

from tilewise.inspect import TaskGraph
from tilewise.schedule.schedule import Schedule


def dataflow(graph: TaskGraph, seconds: np.ndarray, workers: int) -> Schedule:
    return Schedule("dataflow", workers, (), graph.longest_path(seconds))
