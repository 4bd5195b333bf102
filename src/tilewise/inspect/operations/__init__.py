"""The operations: a module for each kind of record and for each operation that makes such records.

A kind's module has its record, what is counted and checked of it, and a NumPy twin of its native kernel; an
operation's module finds its tasks. A new one is a module here, a line below, and a native file with its
kernel.
"""

from __future__ import annotations

import numpy as np

from tilewise.equations.program import (
    Contract,
    Dot,
    FormedContract,
    Operation,
    RowContract,
    RowInner,
    Sort,
    Update,
)
from tilewise.inspect.operations import contract, dot, formed, row_contract, row_inner, sort_blocks, update
from tilewise.inspect.operations.chain import Chain
from tilewise.inspect.operations.gemm import Gemm
from tilewise.inspect.operations.inspector import Inspector, Setting
from tilewise.inspect.operations.kind import Kind, Work
from tilewise.inspect.operations.sort import SortKind
from tilewise.inspect.operations.triples import TriplesKind
from tilewise.inspect.records import KINDS

__all__ = ["TABLES", "Inspector", "Kind", "Setting", "Work", "empty_tables", "inspector_of", "kinds"]

kinds: dict[str, Kind] = {
    kind.name: kind
    for kind in (Gemm(), SortKind(), update.UpdateKind(), dot.DotKind(), Chain(), TriplesKind())
}
"""All kinds of records, in the order of their numbers."""

if tuple(kinds) != KINDS:
    raise ImportError(f"the native core knows the kinds of records {KINDS}, not {tuple(kinds)}")

TABLES: dict[str, np.dtype] = {
    name: dtype for kind in kinds.values() for name, dtype in {kind.name: kind.record, **kind.tables}.items()
}
"""Types of all tables of a graph, by name."""

inspectors: dict[type[Operation], Inspector] = {
    Contract: contract.INSPECTOR,
    FormedContract: formed.INSPECTOR,
    RowContract: row_contract.INSPECTOR,
    RowInner: row_inner.INSPECTOR,
    Sort: sort_blocks.INSPECTOR,
    Update: update.INSPECTOR,
    Dot: dot.INSPECTOR,
}


def inspector_of(op: Operation) -> Inspector:
    if type(op) not in inspectors:
        raise TypeError(f"no inspector for {type(op).__name__}")
    return inspectors[type(op)]


def empty_tables() -> dict[str, np.ndarray]:
    """Tables without a record."""
    return {name: np.zeros(0, dtype) for name, dtype in TABLES.items()}
