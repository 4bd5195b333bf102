"""The way into the C++ core: a whole task list in one call, on threads, with the GIL released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewise.core import core
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import EXTRAS, RECORDS, TASK, TRACE
from tilewise.inspect.sorts import CHUNK


def check_records() -> None:
    """Raises if the native library was built with other record types."""
    expected = {
        key: dtype.itemsize for key, dtype in (RECORDS | EXTRAS | {"task": TASK, "trace": TRACE}).items()
    }
    if expected != core.record_sizes():
        raise ImportError("the native library does not fit this version of tilewise: install it again")


check_records()


def tables(graph: TaskGraph) -> dict[str, np.ndarray]:
    """The graph as the arrays that the native executor takes."""
    result = {key: np.ascontiguousarray(table).view(np.uint8) for key, table in graph.records.items()}
    result["task"] = np.ascontiguousarray(graph.tasks).view(np.uint8)
    result["coefficients"] = np.ascontiguousarray(graph.coefficients)
    result["locks"] = np.ascontiguousarray(graph.locks, dtype=np.int64)
    return result


def scratch_size(graph: TaskGraph) -> int:
    """Doubles that a worker needs: for its sorts, and for the packed right-hand side of its products."""
    return graph.arena + max(1, graph.scratch, core.narrow_scratch if len(graph.records["gemm"]) else 0)


KERNELS = ("dgemm", "few rows", "narrow")
"""What computes a product, in the order of the numbers that `product_kernels` gives."""


def product_kernels(gemms: np.ndarray) -> np.ndarray:
    """The kernel that each product goes to, as the native executor decides."""
    numbers = np.zeros(len(gemms), np.int64)
    core.product_kernels(np.ascontiguousarray(gemms).view(np.uint8), numbers)
    return numbers


def static_lists(parts: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The simplest of schedules: a list of tasks for each worker, in one phase."""
    n = len(parts)
    return {
        "first_queue": np.array([0, n]),
        "first_task": np.cumsum([0, *(len(part) for part in parts)]),
        "tasks": np.concatenate(parts).astype(np.int64),
        "worker_queue": np.arange(n),
        "quantum": np.zeros(n, np.int64),
        "steal": np.zeros(1, np.int64),
        "taking": np.zeros(n, np.int64),
    }


COUNTS = ("counter_calls", "steals", "counter_nanoseconds", "most_memory", "allocations")
"""What each worker counts; its memory in doubles."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run; `failed` is the number of a task, or -1."""

    failed: int
    reason: str
    partial: np.ndarray
    """A number for each task: its part of a scalar."""
    trace: np.ndarray
    """A record of each task, of type `inspect.records.TRACE`."""
    counts: np.ndarray
    """A row for each worker, with the columns COUNTS."""


def run(
    graph: TaskGraph,
    task_tables: dict[str, np.ndarray],
    schedule_arrays: dict[str, np.ndarray],
    buffers: list[np.ndarray],
    scratch: np.ndarray,
    workers: int,
    processors: Sequence[int] = (),
    shift: float = 0.0,
) -> Outcome:
    """Runs a schedule; workers are bound to the given processors, if any; Jacobi steps have the shift."""
    partial, trace = np.zeros(len(graph)), np.zeros(len(graph), TRACE)
    failed, reason, counts = core.run(
        task_tables,
        schedule_arrays,
        buffers,
        partial,
        scratch,
        trace.view(np.uint8),
        workers,
        graph.n_locks,
        CHUNK,
        graph.arena,
        list(processors),
        shift,
    )
    table = np.array(counts, np.int64).reshape(workers, len(COUNTS))
    return Outcome(failed, reason, partial, trace, table)
