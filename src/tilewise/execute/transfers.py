"""Transfers: which rows of which tensors go from one rank to another in a run, and when.

A *strip* is all columns of a row panel of one sector: what is moved at a time. A strip has a *version*
after each of its writers; tasks that read it elsewhere need the version that all writers before them, in
the order of the program, have made. A transfer moves one version of a strip from its home to one other
rank, once, whoever reads it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.rebuilding import strips_of_cells
from tilewise.inspect.records import I8
from tilewise.inspect.spans import CellTouches
from tilewise.lazy import cached_property
from tilewise.schedule.placement import Placement
from tilewise.tensor.shard import Cells

# A version of a strip on its way; strips are numbered over all tensors.
TRANSFER = np.dtype(
    [(name, I8) for name in ("tensor", "strip", "version", "source", "target", "first", "elements")]
)


@dataclass(frozen=True)
class Strips:
    """The strips of all tensors of a graph that have a home, numbered one after the other."""

    tensor: np.ndarray
    """Of each strip the number of its tensor."""
    first: np.ndarray
    """Its first element in the whole tensor, and in `last` the one behind the last."""
    last: np.ndarray
    home: np.ndarray
    of_cell: dict[int, np.ndarray]
    """Of each tensor, by its number, the strip of each cell."""

    @classmethod
    def of(cls, graph: TaskGraph, homes: Mapping[str, np.ndarray]) -> Strips:
        """`homes` are the ranks of the cells of each tensor that has one."""
        columns: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(4)]
        of_cell, count = {}, 0
        for number, name in enumerate(graph.buffers):
            if name not in homes:
                continue
            panels = graph.panels[name]
            cells, strip = Cells.of(panels.layout), strips_of_cells(panels)
            new = np.flatnonzero(np.append(True, np.diff(strip) != 0)[: len(strip)])
            last = np.append(new[1:], len(strip)) - 1
            of_cell[number] = count + strip
            count += len(new)
            found = np.full(len(new), number), cells.bounds[new], cells.bounds[last + 1], homes[name][new]
            for column, values in zip(columns, found, strict=True):
                column.append(values)
        tensor, first, end, home = (np.concatenate(column) for column in columns)
        return cls(tensor, first, end, home, of_cell)

    def touched(self, touches: CellTouches) -> tuple[np.ndarray, np.ndarray]:
        """(task, strip), each pair once, sorted by strip and task."""
        parts = [np.zeros((2, 0), np.int64)]
        for number, of_cell in self.of_cell.items():
            task, cell = touches.of_tensor(number)
            parts.append(np.stack([of_cell[cell], task]))
        strip, task = np.unique(np.concatenate(parts, axis=1), axis=1)
        return task, strip


@dataclass(frozen=True)
class Transfers:
    """All transfers of a run, on all ranks, and who reads and writes their strips."""

    table: np.ndarray
    """Records of type TRANSFER."""
    readers: tuple[np.ndarray, np.ndarray]
    """(transfer, task): tasks that need a transfer, sorted by transfer."""
    writers: tuple[np.ndarray, np.ndarray, np.ndarray]
    """(strip, task, version that it makes), of all strips, sorted by strip and task."""

    @classmethod
    def of(cls, placement: Placement, strips: Strips, read: CellTouches, written: CellTouches) -> Transfers:
        n = len(placement.task_rank)
        writer, written_strip = strips.touched(written)
        keys = written_strip * n + writer
        begin = np.searchsorted(written_strip, np.arange(len(strips.tensor) + 1))
        version = np.arange(len(keys)) - begin[written_strip] + 1
        reader, strip = strips.touched(read)
        target = placement.task_rank[reader]
        far = np.flatnonzero(target != strips.home[strip])
        reader, strip, target = reader[far], strip[far], target[far]
        needed = np.searchsorted(keys, strip * n + reader) - begin[strip]
        ranks = placement.ranks
        code = (strip * (n + 1) + needed) * ranks + target
        found, which = np.unique(code, return_inverse=True)
        table = np.zeros(len(found), TRANSFER)
        table["target"] = found % ranks
        table["version"] = found // ranks % (n + 1)
        table["strip"] = s = found // ranks // (n + 1)
        table["tensor"], table["source"], table["first"] = strips.tensor[s], strips.home[s], strips.first[s]
        table["elements"] = strips.last[s] - strips.first[s]
        order = np.argsort(which.ravel(), kind="stable")
        return cls(table, (which.ravel()[order], reader[order]), (written_strip, writer, version))

    @cached_property
    def channel(self) -> np.ndarray:
        """Of each transfer its number among those from the same rank to the same rank.

        Messages are told apart by it, in whatever order they are sent and received.
        """
        source, target = self.table["source"], self.table["target"]
        order = np.lexsort((target, source))
        new = np.append(True, (np.diff(source[order]) != 0) | (np.diff(target[order]) != 0))[: len(order)]
        first = np.flatnonzero(new)
        channel = np.zeros(len(order), np.int64)
        channel[order] = np.arange(len(order)) - first[np.cumsum(new) - 1]
        return channel

    def bytes(self) -> int:
        """Moved in a run, by all ranks."""
        return 8 * int(self.table["elements"].sum())
