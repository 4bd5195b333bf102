"""Everything that the report of a run shows, computed from its trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.inspect.records import KINDS
from tilewise.trace.reader import Trace, TracedIteration

BINS_PER_DECADE = 4
SHORTEST = 1e-9
"""Resolution of the clock in seconds: shorter tasks are counted as this long in logarithms."""

CLOSE = 2.0
"""A prediction within this factor of the measured time is called close."""


@dataclass(frozen=True)
class WorkerRow:
    """Seconds of one worker, which add up to the makespan, and what it counted."""

    compute: float
    sort: float
    counter: float
    idle: float
    counter_calls: int
    steals: int
    arena_bytes: int
    allocations: int


@dataclass(frozen=True)
class RankRow:
    """What one of several ranks moved in an iteration, and how much of that its workers did not wait for."""

    gets: int
    adds: int
    bytes: int
    messages: int
    seconds: float
    """In which something was under way."""
    hidden: float
    """Seconds of these in which the average worker of the rank computed."""


@dataclass(frozen=True)
class LevelRow:
    """From the begin of the first to the end of the last task of one level."""

    level: int
    tasks: int
    start: float
    end: float


@dataclass(frozen=True)
class Bin:
    """Tasks that took from `low` up to `high` seconds, and the seconds of all of them."""

    low: float
    high: float
    tasks: int
    seconds: float


@dataclass(frozen=True)
class OperationRow:
    """`imbalance` is the most seconds that a worker spent in the operation over the mean of all workers."""

    text: str
    kind: str
    tasks: int
    seconds: float
    share: float
    longest: float
    imbalance: float
    gigaflops: float
    predicted: float
    ratio: float | None
    """Measured over predicted seconds; none if nothing was predicted."""


@dataclass(frozen=True)
class IterationReport:
    """One iteration in numbers; times in seconds, shares from 0 to 1."""

    number: int
    tasks: int
    makespan: float
    critical_path: float
    work: float
    imbalance: float
    predicted: float
    close: float
    """Share of the tasks whose prediction was close."""
    workers: tuple[WorkerRow, ...]
    levels: tuple[LevelRow, ...]
    histogram: tuple[Bin, ...]
    operations: tuple[OperationRow, ...]
    ranks: tuple[RankRow, ...] = ()
    """Empty for one process."""


def report(trace: Trace, iteration: TracedIteration) -> IterationReport:
    """Of one iteration of a trace."""
    runs, makespan = iteration.runs, iteration.makespan
    work = float(runs["seconds"].sum())
    available = trace.workers * makespan
    return IterationReport(
        number=iteration.number,
        tasks=len(runs),
        makespan=makespan,
        critical_path=iteration.critical_path,
        work=work,
        imbalance=max(0.0, 1.0 - work / available) if available > 0 else 0.0,
        predicted=float(runs["predicted"].sum()),
        close=close_predictions(runs),
        workers=worker_rows(iteration, trace.workers),
        levels=level_rows(runs),
        histogram=histogram(runs["seconds"]),
        operations=operation_rows(runs, trace.operations, trace.workers),
        ranks=rank_rows(iteration),
    )


def worker_rows(iteration: TracedIteration, workers: int) -> tuple[WorkerRow, ...]:
    """What neither a task nor a counter took is idle: waiting for others, at a barrier or for a lock."""
    runs, counts = iteration.runs, iteration.counts
    sorting = runs["kind"] == KINDS.index("sort")
    sort = np.bincount(runs["worker"], runs["seconds"] * sorting, workers)
    compute = np.bincount(runs["worker"], runs["seconds"] * ~sorting, workers)
    counter = np.array(counts["counter_seconds"])
    idle = np.maximum(iteration.makespan - compute - sort - counter, 0.0)
    return tuple(
        WorkerRow(
            compute=float(compute[w]),
            sort=float(sort[w]),
            counter=float(counter[w]),
            idle=float(idle[w]),
            counter_calls=int(counts["counter_calls"][w]),
            steals=int(counts["steals"][w]),
            arena_bytes=int(counts["arena_bytes"][w]),
            allocations=int(counts["allocations"][w]),
        )
        for w in range(workers)
    )


def rank_rows(iteration: TracedIteration) -> tuple[RankRow, ...]:
    """One for each rank, if there are several."""
    return tuple(
        RankRow(
            gets=int(row["gets"]),
            adds=int(row["adds"]),
            bytes=int(row["bytes"]),
            messages=int(row["messages"]),
            seconds=row["seconds"],
            hidden=row["hidden"],
        )
        for row in iteration.moved
    )


def level_rows(runs: np.ndarray) -> tuple[LevelRow, ...]:
    """By level. With barriers, each starts after the end of the one before."""
    rows = []
    for level in np.unique(runs["level"]).tolist():
        those = runs[runs["level"] == level]
        end = float((those["start"] + those["seconds"]).max())
        rows.append(LevelRow(level, len(those), float(those["start"].min()), end))
    return tuple(rows)


def histogram(seconds: np.ndarray) -> tuple[Bin, ...]:
    """Of the logarithm of the time: bins without a gap from the shortest to the longest task."""
    where = np.floor(BINS_PER_DECADE * np.log10(np.maximum(seconds, SHORTEST))).astype(np.int64)
    first = int(where.min())
    tasks = np.bincount(where - first)
    spent = np.bincount(where - first, seconds)
    edges = 10.0 ** (np.arange(first, first + len(tasks) + 1) / BINS_PER_DECADE)
    return tuple(
        Bin(float(edges[k]), float(edges[k + 1]), int(tasks[k]), float(spent[k])) for k in range(len(tasks))
    )


def close_predictions(runs: np.ndarray) -> float:
    """Share of the tasks whose prediction is within a factor CLOSE of what they took."""
    ratio = np.maximum(runs["seconds"], SHORTEST) / np.maximum(runs["predicted"], SHORTEST)
    return float(((ratio <= CLOSE) & (ratio >= 1 / CLOSE)).mean())


def operation_rows(runs: np.ndarray, operations: tuple[str, ...], workers: int) -> tuple[OperationRow, ...]:
    """Those that ran, the longest first."""
    total = float(runs["seconds"].sum())
    rows = []
    for number in np.unique(runs["operation"]).tolist():
        those = runs[runs["operation"] == number]
        by_worker = np.bincount(those["worker"], those["seconds"], workers)
        seconds, predicted = float(those["seconds"].sum()), float(those["predicted"].sum())
        rows.append(
            OperationRow(
                text=operations[number],
                kind=", ".join(KINDS[k] for k in np.unique(those["kind"])),
                tasks=len(those),
                seconds=seconds,
                share=seconds / total if total > 0 else 0.0,
                longest=float(those["seconds"].max()),
                imbalance=float(by_worker.max() / by_worker.mean()) if seconds > 0 else 1.0,
                gigaflops=1e-9 * float(those["flops"].sum()) / seconds if seconds > 0 else 0.0,
                predicted=predicted,
                ratio=seconds / predicted if predicted > 0 else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.seconds))
