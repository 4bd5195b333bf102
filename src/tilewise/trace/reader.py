"""Reads a trace file back, and refuses what `tilewise ccsd --trace` has not written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import InputError
from tilewise.inspect.records import KINDS
from tilewise.trace.chrome import COUNTS, FORMAT, MOVED

# A task as it ran; times in seconds, counted from the begin of its iteration.
RUN = np.dtype(
    [(name, np.int64) for name in ("worker", "kind", "operation", "level", "block", "iteration")]
    + [(name, np.float64) for name in ("start", "seconds", "wait", "predicted", "flops")]
)

LARGEST = 1e30
"""Seconds or operations that are no number any more: the page has them in single precision."""

_ORIGIN = "a file written by 'tilewise ccsd --trace' is expected"
_KIND_NUMBER = {kind: k for k, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class TracedIteration:
    """One run of the graph: `runs` are RUN records by worker and start, `counts` lists over the workers."""

    number: int
    makespan: float
    critical_path: float
    counts: dict[str, tuple[float, ...]]
    runs: np.ndarray
    moved: tuple[dict[str, float], ...] = ()
    """Of each rank, where there are several, what MOVED names."""


@dataclass(frozen=True)
class Trace:
    """What a trace file says; operations and blocks are numbers into the two lists of names."""

    title: str
    policy: str
    decision: str
    workers: int
    operations: tuple[str, ...]
    blocks: tuple[str, ...]
    iterations: tuple[TracedIteration, ...]
    ranks: int = 1
    """Between which the workers are shared, the same number for each."""

    def iteration(self, number: int | None = None) -> TracedIteration:
        """The one with this number, or the last."""
        if number is None:
            return self.iterations[-1]
        for iteration in self.iterations:
            if iteration.number == number:
                return iteration
        numbers = [iteration.number for iteration in self.iterations]
        raise InputError(f"there is no iteration {number} in the trace: it has {_range(numbers)}")


def read_trace(path: Path) -> Trace:
    """Raises InputError, with one sentence about what is wrong, unless the file is a whole trace."""
    document = _document(path)
    about = document["otherData"]
    try:
        workers, ranks = int(about["workers"]), int(about.get("ranks", 1))
        if ranks < 1 or workers % ranks:
            raise ValueError(f"{workers} workers cannot be those of {ranks} ranks")
        heads = [_head(entry, workers) for entry in about["iterations"]]
        moved = {int(entry["number"]): _moved(entry, ranks) for entry in about["iterations"]}
        words = [str(about[key]) for key in ("title", "policy", "decision")]
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: 'otherData' of the trace is damaged ({_reason(error)}); {_ORIGIN}"
        ) from None
    runs, operations, blocks = _runs(path, document["traceEvents"])
    starts = {number: start for number, start, *_ in heads}
    _check(path, runs, workers, starts)
    iterations = []
    for number, start, makespan, critical_path, counts in heads:
        of_this = runs[runs["iteration"] == number]
        if not len(of_this):
            raise InputError(f"{path}: iteration {number} of the trace has no tasks; {_ORIGIN}")
        of_this["start"] = np.maximum(of_this["start"] - start, 0.0)
        of_this = of_this[np.lexsort((of_this["start"], of_this["worker"]))]
        iterations.append(TracedIteration(number, makespan, critical_path, counts, of_this, moved[number]))
    return Trace(words[0], words[1], words[2], workers, operations, blocks, tuple(iterations), ranks)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {_ORIGIN}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: it is a folder; {_ORIGIN}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); {_ORIGIN}") from None
    except (ValueError, RecursionError):  # bytes that are no text, numbers of thousands of digits
        raise InputError(f"{path}: not JSON; {_ORIGIN}") from None
    about = document.get("otherData") if isinstance(document, dict) else None
    if not isinstance(about, dict) or "policy" not in about or "traceEvents" not in document:
        raise InputError(f"{path}: not a trace of tilewise; {_ORIGIN}")
    if about.get("format") != FORMAT:
        raise InputError(f"{path}: a trace of format {about.get('format')}, but this version reads {FORMAT}")
    return document


def _head(
    entry: dict[str, Any], workers: int
) -> tuple[int, float, float, float, dict[str, tuple[float, ...]]]:
    """Number, start, makespan, critical path and counts of an iteration."""
    times = [float(entry[key]) for key in ("start", "makespan", "critical_path")]
    counts = {key: tuple(float(count) for count in entry[key]) for key in COUNTS}
    if any(len(count) != workers for count in counts.values()):
        raise ValueError(f"the counts are not those of {workers} workers")
    numbers = np.array([*times, *(value for count in counts.values() for value in count)])
    if not ((numbers >= 0) & (numbers < LARGEST)).all():
        raise ValueError("a number is negative or not finite")
    return int(entry["number"]), times[0], times[1], times[2], counts


def _moved(entry: dict[str, Any], ranks: int) -> tuple[dict[str, float], ...]:
    """What each rank moved in an iteration; nothing in files of one process, and of older versions."""
    rows = tuple({key: float(row[key]) for key in MOVED} for row in entry.get("moved", ()))
    if len(rows) not in (0, ranks):
        raise ValueError(f"what was moved is not that of {ranks} ranks")
    if not all(0 <= value < LARGEST for row in rows for value in row.values()):
        raise ValueError("a number is negative or not finite")
    return rows


def _runs(path: Path, events: Any) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """All tasks of the file in its order, and the names of operations and blocks."""
    if not isinstance(events, list):
        raise InputError(f"{path}: 'traceEvents' is not a list; {_ORIGIN}")
    names: dict[int, str] = {}
    blocks: dict[str, int] = {}
    rows = []
    for at, event in enumerate(events):
        try:
            if event["ph"] != "X":
                continue
            more = event["args"]
            names.setdefault(int(more["operation"]), event["name"])
            rows.append(
                (
                    event["tid"],
                    _KIND_NUMBER[event["cat"]],
                    more["operation"],
                    more["level"],
                    blocks.setdefault(more["block"], len(blocks)),
                    more["iteration"],
                    1e-6 * event["ts"],
                    1e-6 * event["dur"],
                    1e-6 * more["wait_us"],
                    1e-6 * more["predicted_us"],
                    float(more["flops"]),
                )
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"{path}: event {at} is damaged ({_reason(error)}); {_ORIGIN}") from None
    if not rows:
        raise InputError(f"{path}: the trace has no tasks; {_ORIGIN}")
    try:
        runs = np.array(rows, RUN)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{path}: an event has a word where a number belongs; {_ORIGIN}") from None
    known = sorted(names)
    runs["operation"] = np.searchsorted(known, runs["operation"])
    return runs, tuple(str(names[k]) for k in known), tuple(str(block) for block in blocks)


def _check(path: Path, runs: np.ndarray, workers: int, starts: dict[int, float]) -> None:
    times = [runs[key] for key in ("start", "seconds", "wait", "predicted", "flops")]
    if not all((np.abs(column) < LARGEST).all() for column in times) or (runs["seconds"] < 0).any():
        raise InputError(f"{path}: a task has a time that is negative or not finite; {_ORIGIN}")
    if (runs["worker"] < 0).any() or (runs["worker"] >= workers).any():
        raise InputError(f"{path}: a task ran on a worker outside of 0 to {workers - 1}; {_ORIGIN}")
    if not np.isin(runs["iteration"], list(starts)).all():
        raise InputError(f"{path}: a task is of an iteration that 'otherData' does not list; {_ORIGIN}")


def _reason(error: Exception) -> str:
    return f"{error.args[0]!r} is missing or unknown" if isinstance(error, KeyError) else str(error)


def _range(numbers: list[int]) -> str:
    return f"iteration {numbers[0]}" if len(numbers) == 1 else f"iterations {numbers[0]} to {numbers[-1]}"
