"""Bytes that tasks would move if all tensors lay elsewhere: what is got before and accumulated after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewise.inspect.operations import kinds

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph


def bytes_moved(graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
    """(got, put) of each task: operands once per record, results once per task, arenas not at all."""
    got, put = np.zeros((2, len(graph)))
    for name, kind in kinds.items():
        if len(graph.records[name]):
            per_record = kind.moved(graph)
            got += graph.per_task(name, per_record[0])
            put += graph.per_task(name, per_record[1])
    return got, put
