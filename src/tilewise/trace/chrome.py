"""Traces in the JSON form that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.inspect import TaskGraph
from tilewise.inspect.records import KINDS


def trace_events(graph: TaskGraph, trace: np.ndarray, iteration: int, start: float) -> list[dict[str, Any]]:
    """One event per task; `start` is when the iteration began, in seconds."""
    events = []
    for t in np.argsort(trace["start"], kind="stable").tolist():
        task, record = graph.tasks[t], trace[t]
        operation = graph.operations[task["operation"]]
        events.append(
            {
                "name": operation.text.split(";")[0],
                "cat": KINDS[task["kind"]],
                "ph": "X",
                "pid": 0,
                "tid": int(record["worker"]),
                "ts": 1e6 * start + 1e-3 * int(record["start"]),
                "dur": 1e-3 * int(record["end"] - record["start"]),
                "args": {
                    "task": t,
                    "iteration": iteration,
                    "block": graph.describe(t).rsplit("block ", 1)[1],
                    "wait_us": 1e-3 * int(record["start"] - record["ready"]),
                    "flops": float(graph.flops[t]),
                },
            }
        )
    return events


def write_chrome_trace(path: Path, events: list[dict[str, Any]], workers: int) -> None:
    names = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": w, "args": {"name": f"worker {w}"}}
        for w in range(workers)
    ]
    path.write_text(json.dumps({"traceEvents": names + events, "displayTimeUnit": "ms"}))
