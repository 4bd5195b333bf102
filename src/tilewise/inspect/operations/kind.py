"""What a kind of record is: the protocol that all of them follow, and what their modules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewise.inspect.panels import Panels
from tilewise.inspect.records import KINDS, Table
from tilewise.lazy import cached_property
from tilewise.tensor import Layout

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph

Tables = dict[str, Table]
"""Records of all kinds, and what they point into, by the name of the table."""

WORD = 8
"""Bytes of a number."""


class Spans(NamedTuple):
    """Elements first:last of buffers that records of a kind touch, as parallel arrays.

    Where they begin is said by the field `offset` of `table`, in the given rows, and in which buffer by its
    field `name`. A span may skip elements.
    """

    table: str
    offset: str
    name: str
    row: np.ndarray
    record: np.ndarray
    buffer: np.ndarray
    first: np.ndarray
    last: np.ndarray
    access: int | np.ndarray
    """READ, ASSIGN or ACCUMULATE."""


class Kind(ABC):
    """Records of one type. All measures give a number for each record of a graph.

    A native kernel of the same name computes what `twin` computes.
    """

    name: ClassVar[str]
    record: ClassVar[np.dtype]
    tables: ClassVar[Mapping[str, np.dtype]] = {}
    """Further tables, which the records point into."""
    pointers: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Of each table, its fields that are places in a table, and the name of that table."""
    buffers: ClassVar[tuple[str, ...]] = ()
    """Fields that name a buffer."""
    part: ClassVar[str] = "stream"
    """The part of the cost model that its features belong to."""
    features: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def number(self) -> int:
        return KINDS.index(self.name)

    def relocate(self, tables: Tables, lengths: Mapping[str, int]) -> None:
        """Tables are about to be appended to others of these lengths: moves what points into them."""
        for table, fields in self.pointers.items():
            for field, target in fields.items():
                tables[table][field] += lengths[target]

    def flops(self, graph: TaskGraph) -> np.ndarray:
        """Floating-point operations of products (a multiply-add counts two)."""
        return self._zeros(graph)

    def bytes(self, graph: TaskGraph) -> np.ndarray:
        """Bytes read and written, every operand counted once per record."""
        return self._zeros(graph)

    def words(self, graph: TaskGraph) -> np.ndarray:
        """Words put into another place, a read and a write each."""
        return self._zeros(graph)

    def moved(self, graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
        """Bytes (got, put) if all tensors lay elsewhere: operands once per record, results once per task."""
        return self._zeros(graph), self._zeros(graph)

    def operands(self, graph: TaskGraph) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each operand of the products: its buffer, its offset and its words."""
        return []

    def counted(self, graph: TaskGraph, far: float) -> np.ndarray:
        """(records, features): what the time is made of; `far` is the share of words from memory."""
        return np.zeros((len(graph.records[self.name]), len(self.features)))

    def spans(self, graph: TaskGraph) -> Iterator[Spans]:
        """Which elements of which buffers the records touch; those of every operand together."""
        return iter(())

    def outside(self, graph: TaskGraph, lengths: np.ndarray) -> np.ndarray:
        """Which records point outside of their buffers, whose lengths are given."""
        bad = np.zeros(len(graph.records[self.name]), bool)
        for span in self.spans(graph):
            bad[span.record[outside(lengths, span.buffer, span.first, span.last)]] = True
        return bad

    @abstractmethod
    def twin(self, work: Work, record: np.void) -> float:
        """Does what one record says; its part of a scalar, or NaN if anything is not finite."""

    def _zeros(self, graph: TaskGraph) -> np.ndarray:
        return np.zeros(len(graph.records[self.name]))


@dataclass(frozen=True)
class Work:
    """What the twins compute with: records of all kinds, buffers and the level shift of the run."""

    kinds: Mapping[str, Kind]
    records: Tables
    buffers: list[np.ndarray]
    shift: float = 0.0

    def step(self, part: np.void) -> float:
        """Records first .. first + count of a kind, up to one whose result is not finite."""
        name, first, total = KINDS[part["kind"]], part["first"], 0.0
        for record in self.records[name][first : first + part["count"]]:
            total += self.kinds[name].twin(self, record)
            if not np.isfinite(total):
                break
        return total

    def matrix(self, buffer: int, offset: int, rows: int, cols: int, ld: int) -> np.ndarray:
        return as_strided(self.buffers[buffer][offset:], (rows, cols), (WORD * ld, WORD))


def finite(x: np.ndarray) -> float:
    """Zero, or NaN if anything is not finite."""
    return 0.0 if np.isfinite(x).all() else float("nan")


def outside(lengths: np.ndarray, buffer: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether elements from the first to before the last lie outside of a buffer."""
    known = (buffer >= 0) & (buffer < len(lengths))
    length = np.append(lengths, 0)[np.where(known, buffer, -1)]
    return ~known | (first < 0) | (last > length)


# Records of rectangles, one for each panel: `rows`, `cols` and `ld`, and an offset for each buffer


def fill_rectangles(records: Table, layout: Layout, grid: Panels, offsets: tuple[str, ...]) -> None:
    t = grid.table
    records["ld"] = layout.ncols[t["sector"]]
    for key in offsets:
        records[key] = layout.offsets[t["sector"]] + t["row0"] * records["ld"] + t["col0"]
    records["rows"], records["cols"] = t["nrows"], t["ncols"]


def rectangle_sizes(graph: TaskGraph, kind: str) -> np.ndarray:
    records = graph.records[kind]
    return 1.0 * records["rows"] * records["cols"]


def rectangle_spans(graph: TaskGraph, kind: str, buffer: str, offset: str, access: int) -> Spans:
    records = graph.records[kind]
    every, first = np.arange(len(records)), records[offset]
    last = first + (records["rows"] - 1) * records["ld"] + records["cols"]
    return Spans(kind, offset, buffer, every, every, records[buffer], first, last, access)
