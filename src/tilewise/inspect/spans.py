"""Which cells of which tensors the tasks of a graph read and write, as their records tell it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.operations import kinds
from tilewise.inspect.panels import runs
from tilewise.inspect.records import READ
from tilewise.tensor.shard import Cells


@dataclass(frozen=True)
class CellTouches:
    """Different (task, tensor, cell), as parallel arrays; a tensor is a number in the graph's `buffers`."""

    task: np.ndarray
    tensor: np.ndarray
    cell: np.ndarray

    def of_tensor(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(task, cell) of one tensor."""
        mine = self.tensor == number
        return self.task[mine], self.cell[mine]


def cells_of(graph: TaskGraph) -> list[Cells | None]:
    """The cells of each buffer; None for vectors, which are no tensors."""
    return [Cells.of(graph.panels[name].layout) if name in graph.panels else None for name in graph.buffers]


def cell_touches(graph: TaskGraph) -> tuple[CellTouches, CellTouches]:
    """What is read, and what is written; vectors and the arena of the workers are left out."""
    cells = cells_of(graph)
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for name, kind in kinds.items():
        if not len(graph.records[name]):
            continue
        owner = graph.owners(name)
        for span in kind.spans(graph):
            is_read = np.broadcast_to(np.asarray(span.access) == READ, span.row.shape)
            task = owner[span.record]
            for number in np.unique(span.buffer).tolist():
                if not 0 <= number < len(cells) or cells[number] is None:
                    continue
                table = cells[number]
                assert table is not None
                for reading in (True, False):
                    mine = (span.buffer == number) & (is_read == reading) & (task >= 0)
                    low, high = table.touched(span.first[mine], span.last[mine])
                    which, cell = runs(low, high - low)
                    code = _unique(task[mine][which], cell, len(table))
                    found[not reading].append(
                        np.stack([code // len(table), np.full(len(code), number), code % len(table)])
                    )
    read, written = (_together(parts) for parts in found)
    return read, written


def _unique(task: np.ndarray, cell: np.ndarray, count: int) -> np.ndarray:
    return np.unique(task * count + cell)


def _together(parts: list[np.ndarray]) -> CellTouches:
    rows = np.concatenate([np.zeros((3, 0), np.int64), *parts], axis=1)
    return CellTouches(*np.unique(rows, axis=1))
