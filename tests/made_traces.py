"""A small trace made by hand: two iterations of four tasks on two workers."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

NAMES = ("C[ab] += A[ac] B[cb]", "D[ba] = +1 C[ab]", "solve t[ab] : D[ab] / (a - b)")
MS = 1e-3


def event(iteration: int, base: float, row: tuple) -> dict[str, Any]:
    """`row`: worker, kind, operation, level, then start, time and prediction in milliseconds, and flops."""
    worker, kind, operation, level, start, spent, predicted, flops = row
    return {
        "name": NAMES[operation],
        "cat": kind,
        "ph": "X",
        "pid": 0,
        "tid": worker,
        "ts": 1e6 * (base + MS * start),
        "dur": 1000.0 * spent,
        "args": {
            "task": 0,
            "operation": operation,
            "level": level,
            "iteration": iteration,
            "block": f"{NAMES[operation][0]}(irrep {worker}; rows 0:3, columns 0:4)",
            "wait_us": 5.0,
            "predicted_us": 1000.0 * predicted,
            "flops": flops,
        },
    }


FIRST = [
    (0, "gemm", 0, 0, 0.0, 4.0, 2.5, 8e6),
    (1, "gemm", 0, 0, 0.0, 1.2, 1.0, 2e6),
    (1, "update", 2, 1, 5.0, 4.5, 0.0, 0.0),
    (0, "sort", 1, 1, 5.0, 2.0, 2.0, 0.0),
]
SECOND = [(w, kind, op, level, s / 2, t / 2, p, f) for w, kind, op, level, s, t, p, f in FIRST]


def iteration(number: int, start: float, makespan: float) -> dict[str, Any]:
    return {
        "number": number,
        "start": start,
        "makespan": makespan,
        "critical_path": 0.9 * makespan,
        "counter_calls": [7, 3],
        "steals": [0, 2],
        "counter_seconds": [1.0 * MS, 0.5 * MS],
        "arena_bytes": [4096, 8192],
        "allocations": [0, 1],
    }


DOCUMENT: dict[str, Any] = {
    "traceEvents": [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "worker 0"}},
        *(event(1, 0.5, row) for row in FIRST),
        *(event(2, 0.6, row) for row in SECOND),
    ],
    "displayTimeUnit": "ms",
    "otherData": {
        "format": 1,
        "title": "CCSD of <made> & co, sto-3g",
        "policy": "lpt",
        "decision": "lpt: 2 levels, static lists, 2 workers",
        "workers": 2,
        "iterations": [iteration(1, 0.5, 10 * MS), iteration(2, 0.6, 6 * MS)],
    },
}


def made_document() -> dict[str, Any]:
    """A copy to change."""
    return copy.deepcopy(DOCUMENT)


def write_trace(path: Path, document: Any = DOCUMENT) -> Path:
    path.write_text(json.dumps(document))
    return path
