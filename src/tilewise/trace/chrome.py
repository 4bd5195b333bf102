"""Traces in the JSON form that Perfetto and chrome://tracing open; `tilewise report` reads them too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.inspect import Graph
from tilewise.inspect.records import KINDS, Table

FORMAT = 1

COUNTS = ("counter_calls", "steals", "counter_seconds", "arena_bytes", "allocations")
"""What is kept of each worker in each iteration."""

MOVED = ("gets", "adds", "bytes", "messages", "seconds", "hidden")
"""What is kept of each rank in each iteration, where there are several: `seconds` are those in which
something was under way, `hidden` those of them in which the average worker of the rank computed."""


@dataclass
class TraceFile:
    """What is written about a run: an event per task, and a few numbers per iteration."""

    title: str
    policy: str
    decision: str
    workers: int
    ranks: int = 1
    """Between which the workers are shared, the same number for each."""
    events: list[dict[str, Any]] = field(default_factory=list)
    iterations: list[dict[str, Any]] = field(default_factory=list)
    operations: list[tuple[str, ...]] = field(default_factory=list)
    """The texts of the operations of each graph that is in the trace, one graph after the other."""

    def add(
        self,
        graph: Graph,
        trace: Table,
        predicted: np.ndarray,
        counts: dict[str, list[float]],
        number: int,
        start: float,
        moved: Sequence[dict[str, float]] = (),
    ) -> None:
        """One iteration: `start` is when it began (seconds), `predicted` what each task was to take.

        `counts` has a list over the workers for each of COUNTS, `moved` of each rank what MOVED names.
        """
        first = self._first_operation(graph)
        self.events += _events(graph, trace, predicted, number, start, first)
        seconds = 1e-9 * (trace["end"] - trace["start"])
        self.iterations.append(
            {
                "number": number,
                "start": start,
                "makespan": 1e-9 * float(trace["end"].max(initial=0)),
                "critical_path": float(graph.longest_path(seconds).max(initial=0.0)),
                **counts,
                "moved": list(moved),
            }
        )

    @property
    def end(self) -> float:
        """When the last iteration ended, in seconds."""
        return self.iterations[-1]["start"] + self.iterations[-1]["makespan"] if self.iterations else 0.0

    def _first_operation(self, graph: Graph) -> int:
        """Operations of several graphs are counted on."""
        texts = tuple(operation.text for operation in graph.operations)
        if texts not in self.operations:
            self.operations.append(texts)
        return sum(map(len, self.operations[: self.operations.index(texts)]))

    def write(self, path: Path) -> None:
        names = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": w, "args": {"name": self._name_of(w)}}
            for w in range(self.workers)
        ]
        about = {
            "format": FORMAT,
            "title": self.title,
            "policy": self.policy,
            "decision": self.decision,
            "workers": self.workers,
            "ranks": self.ranks,
            "iterations": self.iterations,
        }
        document = {"traceEvents": names + self.events, "displayTimeUnit": "ms", "otherData": about}
        path.write_text(json.dumps(document))

    def _name_of(self, worker: int) -> str:
        if self.ranks == 1:
            return f"worker {worker}"
        rank, own = divmod(worker, self.workers // self.ranks)
        return f"rank {rank}, worker {own}"


def _events(
    graph: Graph,
    trace: Table,
    predicted: np.ndarray,
    iteration: int,
    start: float,
    first_operation: int,
) -> list[dict[str, Any]]:
    """One event per task, in the order in which they began."""
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
                    "operation": first_operation + int(task["operation"]),
                    "level": int(graph.levels[t]),
                    "iteration": iteration,
                    "block": graph.describe(t)
                    .removeprefix(f"operation '{operation.text}', ")
                    .removeprefix("block "),
                    "wait_us": 1e-3 * int(record["start"] - record["ready"]),
                    "predicted_us": 1e6 * float(predicted[t]),
                    "flops": float(graph.flops[t]),
                },
            }
        )
    return events


def _block_of(task: str, operation: str) -> str:
    """What a task is described by, besides its operation."""
    return task.removeprefix(f"operation '{operation}', ").removeprefix("block ")
