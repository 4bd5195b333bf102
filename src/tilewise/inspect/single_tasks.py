"""Graphs of one task: its records alone, so that it can be moved to wherever it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewise.inspect.graph import NO_TASKS, TaskGraph
from tilewise.inspect.operations import kinds
from tilewise.inspect.records import KINDS

_PARTS = (("out", "first_out", "n_out"), ("read", "first_read", "n_read"))


def single_task(graph: TaskGraph, task: int) -> TaskGraph:
    """The graph of one task, with copies of its records."""
    record = graph.tasks[task : task + 1].copy()
    ranges = _ranges(graph, record[0])
    tables = {name: graph.records[name][slice(*ranges.get(name, (0, 0)))].copy() for name in graph.records}
    back = {name: -first for name, (first, _) in ranges.items()}
    for kind in kinds.values():
        kind.relocate(tables, {name: back.get(name, 0) for name in graph.records})
    record["first"] += back[KINDS[record["kind"][0]]]
    record["first_lock"] = record["n_lock"] = 0
    none = np.zeros(0, np.int64)
    return replace(
        graph, tasks=record, records=tables, locks=none, n_locks=0, sources=NO_TASKS, targets=NO_TASKS
    )


def _ranges(graph: TaskGraph, task: np.void) -> dict[str, tuple[int, int]]:
    """Of each table the records that a task has, from the first to behind the last."""
    name, first = KINDS[task["kind"]], int(task["first"])
    found = {name: (first, first + int(task["count"]))}
    if name == "chain":
        steps = graph.records["chain"][slice(*found["chain"])]
        for number in np.unique(steps["kind"]).tolist():
            mine = steps[steps["kind"] == number]
            found[KINDS[number]] = _hull(mine["first"], mine["count"])
    if "sort" in found:
        blocks = graph.records["sort"][slice(*found["sort"])]
        for table, start, count in _PARTS:
            found[table] = _hull(blocks[start], blocks[count])
        found["coefficients"] = _hull(blocks["first_coefficient"], blocks["n_read"] * blocks["n_out"])
        reads = graph.records["read"][slice(*found["read"])]
        found["view"] = _hull(reads["first_view"], reads["n_view"])
    return found


def _hull(first: np.ndarray, count: np.ndarray) -> tuple[int, int]:
    return int(first.min(initial=1 << 60)), int((first + count).max(initial=0))
