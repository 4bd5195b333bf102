"""`ie-nxtval`: one shared counter over the inspected list, a barrier after each level."""

from __future__ import annotations

import numpy as np

from tilewise.inspect import TaskGraph
from tilewise.schedule.levels import tasks_by_level
from tilewise.schedule.schedule import Queue, Schedule


def ie_nxtval(graph: TaskGraph, seconds: np.ndarray, workers: int) -> Schedule:
    """Every worker draws the next task of the list, null tasks having been left out by the inspector."""
    everyone = tuple(range(workers))
    phases = tuple((Queue(tasks, everyone),) for tasks in tasks_by_level(graph))
    return Schedule("ie-nxtval", workers, phases or ((),))
