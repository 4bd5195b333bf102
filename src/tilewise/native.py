"""The way into the C++ core: a whole task list in one call, on threads, with the GIL released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from tilewise.chem.exchange import EXCHANGE
from tilewise.chem.orbital_pairs import PAIR_RUN
from tilewise.chem.transform import DESTINATION
from tilewise.core import core
from tilewise.inspect import TaskGraph
from tilewise.inspect.operations import TABLES
from tilewise.inspect.operations.sort import CHUNK, SORT_WALK
from tilewise.inspect.records import TASK, TRACE, Table

RECORDS = {name: dtype for name, dtype in TABLES.items() if dtype.names} | {
    "task": TASK,
    "trace": TRACE,
    "walk": SORT_WALK,
    "destination": DESTINATION,
    "exchange": EXCHANGE,
    "pair_run": PAIR_RUN,
}
"""All records that both languages know."""

Fields = list[tuple[str, int, str, int]]
"""(name, offset in bytes, "i" for whole numbers or "f", count) of each field of a record."""


def fields_of(dtype: np.dtype) -> Fields:
    found = []
    for name in dtype.names or ():
        base, offset = dtype.fields[name][:2]  # type: ignore[index]
        number, shape = base.subdtype or (base, (1,))
        found.append((name, offset, number.kind, int(np.prod(shape))))
    return found


def check_records(native: dict[str, Fields], ours: dict[str, np.dtype]) -> None:
    """Raises if the native core has other records, and names the first field that differs."""
    for name in {**ours, **native}:
        expected, told = fields_of(ours[name]) if name in ours else [], native.get(name, [])
        for mine, theirs in zip_longest(expected, told):
            if mine != theirs:
                raise ImportError(
                    "the native library does not fit this version of tilewise: "
                    f"its record '{name}' has {_told(theirs)} in the place of {_told(mine)}; install it again"
                )


def _told(field: tuple[str, int, str, int] | None) -> str:
    if field is None:
        return "no field"
    name, offset, kind, count = field
    number = {"i": "whole number", "f": "float"}.get(kind, kind)
    return f"the field '{name}' ({count} {number}{'s' * (count != 1)} at byte {offset})"


check_records(core.record_layouts(), RECORDS)


def tables(graph: TaskGraph) -> dict[str, np.ndarray]:
    """The graph as the arrays that the native executor takes: records as bytes, numbers as they are."""
    arrays = {key: np.ascontiguousarray(table) for key, table in graph.records.items()}
    arrays["task"] = np.ascontiguousarray(graph.tasks)
    result = {key: array.view(np.uint8) if array.dtype.names else array for key, array in arrays.items()}
    result["locks"] = np.ascontiguousarray(graph.locks, dtype=np.int64)
    return result


def scratch_size(graph: TaskGraph) -> int:
    """Doubles that a worker needs: for its sorts, and for the packed right-hand side of its products."""
    return graph.arena + max(1, graph.scratch, core.streamed_scratch if len(graph.records["gemm"]) else 0)


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


def shared_lists(phases: Sequence[np.ndarray], workers: int) -> dict[str, np.ndarray]:
    """Lists of tasks, one after the other, from each of which all workers take the next one."""
    phases = phases or [np.zeros(0, np.int64)]  # no list at all would mean data flow
    n = len(phases)
    return {
        "first_queue": np.arange(n + 1),
        "first_task": np.cumsum([0, *(len(phase) for phase in phases)]),
        "tasks": np.concatenate([np.zeros(0, np.int64), *phases]),
        "worker_queue": np.repeat(np.arange(n), workers),
        "quantum": np.ones(n, np.int64),
        "steal": np.zeros(n, np.int64),
        "taking": np.zeros(n, np.int64),
    }


def without(arrays: dict[str, np.ndarray], graph: TaskGraph, done: np.ndarray) -> dict[str, np.ndarray]:
    """The same schedule if some tasks have been done before: nobody takes them, and nobody waits for them."""
    is_done = np.zeros(len(graph), bool)
    is_done[done] = True
    left = dict(arrays)
    if "tasks" in arrays:
        tasks = arrays["tasks"]
        left["tasks"] = np.where((tasks >= 0) & is_done[tasks], NULL, tasks)
    if "n_needed" in arrays:
        met = np.bincount(graph.targets[is_done[graph.sources]], minlength=len(graph))
        left["n_needed"] = np.where(is_done, DONE, arrays["n_needed"] - met)
    return left


NULL = -1
"""In place of a task: it is taken in vain."""
DONE = -1
"""In place of the number of tasks that one waits for: it has been done."""

COUNTS: tuple[str, ...] = core.worker_counts
"""What each worker counts; its memory in doubles."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run; `failed` is the number of a task, or -1."""

    failed: int
    reason: str
    partial: np.ndarray
    """A number for each task: its part of a scalar."""
    trace: Table
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
    gates: core.Gates | None = None,
) -> Outcome:
    """Runs a schedule; workers are bound to the given processors, if any; Jacobi steps have the shift.

    With gates, another thread opens them while tasks run.
    """
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
        gates,
    )
    table = np.array(counts, np.int64).reshape(workers, len(COUNTS))
    return Outcome(failed, reason, partial, trace, table)
