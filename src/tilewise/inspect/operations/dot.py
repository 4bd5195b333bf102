"""Scalar products of two tensors: factor * sum of a * b over a rectangle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewise.equations.program import Dot
from tilewise.inspect.operations.inspector import Inspector, Setting
from tilewise.inspect.operations.kind import (
    WORD,
    Kind,
    Spans,
    Work,
    fill_rectangles,
    rectangle_sizes,
    rectangle_spans,
)
from tilewise.inspect.records import F8, I8, READ, Table
from tilewise.inspect.tasks import Found, Touch

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph

DOT = np.dtype(
    [(name, I8) for name in ("a", "b", "a_offset", "b_offset", "rows", "cols", "ld")] + [("factor", F8)]
)


class DotKind(Kind):
    """Scalar products."""

    name: ClassVar[str] = "dot"
    record: ClassVar[np.dtype] = DOT
    buffers: ClassVar[tuple[str, ...]] = ("a", "b")
    features: ClassVar[tuple[str, ...]] = ("dot", "far")

    def bytes(self, graph: TaskGraph) -> np.ndarray:
        return 2 * WORD * rectangle_sizes(graph, self.name)

    def words(self, graph: TaskGraph) -> np.ndarray:
        return rectangle_sizes(graph, self.name)

    def moved(self, graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
        size = rectangle_sizes(graph, self.name)
        return 2 * WORD * size, 0 * size

    def counted(self, graph: TaskGraph, far: float) -> np.ndarray:
        size = rectangle_sizes(graph, self.name)
        return np.stack([size, far * 2 * size], axis=1)

    def spans(self, graph: TaskGraph) -> Iterator[Spans]:
        for key in self.buffers:
            yield rectangle_spans(graph, self.name, key, f"{key}_offset", READ)

    def twin(self, work: Work, record: np.void) -> float:
        r, rows, cols = record, int(record["rows"]), int(record["cols"])
        a, b = (work.matrix(r[x], r[f"{x}_offset"], rows, cols, r["ld"]) for x in ("a", "b"))
        return float(r["factor"] * (a * b).sum())


def inspect_dot(op: Dot, setting: Setting) -> Found:
    """One task, of one record, for each panel."""
    grid, buffers = setting.panels[op.a], setting.buffers
    records: Table = np.zeros(len(grid), DOT)
    fill_rectangles(records, setting.layouts[op.a], grid, ("a_offset", "b_offset"))
    records["a"], records["b"] = buffers[op.a], buffers[op.b]
    records["factor"] = np.array(op.factors)[grid.table["parity"] + 1]
    every = np.arange(len(grid))
    found = Found("dot", every, {"dot": records}, every, False)
    found.touches = [Touch.of(op.a, every, every), Touch.of(op.b, every, every)]
    return found


INSPECTOR = Inspector(inspect_dot)
