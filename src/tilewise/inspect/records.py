"""Records that every graph has: tasks, accesses and traces, as NumPy structured types.

The records that tasks are made of are defined by the modules of `operations`. All are passed to the native
core as they are; `native` compares their fields with those of `src/native/records.hpp`. All numbers are
eight bytes wide. Offsets and strides count elements of float64 buffers; a buffer is a number in the
program's list of tensors, and the one behind the last is the arena of the worker that runs the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tilewise.core import core

Table: TypeAlias = Any
"""A NumPy array of records. NumPy's types know nothing of fields: to check them is slow and tells nothing."""

I8, F8 = np.int64, np.float64

KINDS: tuple[str, ...] = core.kinds
"""Kinds of records; a kind's number is its place."""

# A task: records first .. first + count of its kind, and the panels that it accumulates into.
TASK = np.dtype(
    [(name, I8) for name in ("kind", "operation", "first", "count", "first_lock", "n_lock", "panel")]
)
# An access of a task to a panel of a tensor, both by their numbers; `kind` is READ, ASSIGN or ACCUMULATE.
ACCESS = np.dtype([(name, I8) for name in ("task", "tensor", "panel", "kind")])
READ, ASSIGN, ACCUMULATE = (core.accesses.index(name) for name in ("read", "assign", "accumulate"))

# What a run leaves of each task: its worker, when it was taken, began and ended, in nanoseconds.
TRACE = np.dtype([(name, I8) for name in ("worker", "ready", "start", "end")])


def concatenated(dtype: np.dtype, parts: Sequence[Table]) -> Table:
    """Records of one type, one after the other; NumPy's own concatenation compares types field by field."""
    return np.frombuffer(bytearray().join(parts), dtype)
