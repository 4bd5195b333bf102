"""A runner owns the buffers and the schedule of a graph, and has an executor run it again and again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewise.errors import InputError, TaskError, one_of
from tilewise.execute.executor import Executor, Job
from tilewise.execute.serial import Serial
from tilewise.execute.threads import Threads
from tilewise.inspect import TaskGraph
from tilewise.inspect.bounds import first_outside
from tilewise.inspect.chains import SUMS
from tilewise.inspect.records import Table
from tilewise.lazy import cached_property
from tilewise.native import COUNTS, Outcome
from tilewise.schedule import Schedule

EXECUTORS = {executor.name: executor for executor in (Threads, Serial)}
"""Those that compute, by name."""


@dataclass
class Result:
    """What a run gives besides the tensors: scalars, and a record per task."""

    scalars: dict[str, float]
    trace: Table
    counts: np.ndarray
    """A row for each worker, with the columns COUNTS."""
    partial: np.ndarray
    """Of each task its part of a scalar."""
    tasks: np.ndarray | None = None
    """Those that ran, if not all."""

    @property
    def seconds(self) -> np.ndarray:
        """Seconds that each task took."""
        return 1e-9 * (self.trace["end"] - self.trace["start"])

    def count(self, what: str) -> np.ndarray:
        """Of each worker, one of the columns COUNTS."""
        return self.counts[:, COUNTS.index(what)]

    @property
    def counter_calls(self) -> int:
        return int(self.count("counter_calls").sum())

    @property
    def steals(self) -> int:
        return int(self.count("steals").sum())

    @property
    def by_worker(self) -> dict[str, list[float]]:
        """What each worker counted, in seconds and bytes."""
        return {
            "counter_calls": self.count("counter_calls").tolist(),
            "steals": self.count("steals").tolist(),
            "counter_seconds": (1e-9 * self.count("counter_nanoseconds")).tolist(),
            "arena_bytes": (8 * self.count("most_memory")).tolist(),
            "allocations": self.count("allocations").tolist(),
        }


@dataclass
class Runner:
    """Runs one graph. Tensors can be exchanged between runs with `bind`, the schedule with `reschedule`."""

    graph: TaskGraph
    schedule: Schedule
    tensors: dict[str, np.ndarray]
    executor: str = "threads"
    processors: tuple[int, ...] = ()
    """The processor that each worker is bound to; none by default."""
    _executor: Executor = field(init=False)
    _checked: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise one_of("executor", self.executor, EXECUTORS)
        if SUMS in self.graph.vectors:
            self.tensors = self.tensors | {SUMS: np.zeros(self.graph.vectors[SUMS])}
        missing = [name for name in self.graph.buffers if name not in self.tensors]
        if missing:
            raise InputError(f"no buffer is given for tensor {missing[0]}")
        for name in self.graph.buffers:
            self._check_buffer(name, self.tensors[name])
        self._executor = EXECUTORS[self.executor](self.graph, self.processors)
        self.reschedule(self.schedule)

    def reschedule(self, schedule: Schedule) -> None:
        """Uses another schedule from the next run on."""
        schedule.check(self.graph)
        self.schedule = schedule
        self._executor.prepare(schedule)

    def bind(self, name: str, data: np.ndarray) -> None:
        """Uses another buffer for a tensor from the next run on."""
        if name not in self.tensors:
            raise one_of("tensor", name, self.tensors)
        self._check_buffer(name, data)
        self.tensors[name] = data

    def _check_buffer(self, name: str, data: np.ndarray) -> None:
        """Raises unless a buffer is what the records take it for; one that nobody touches may be empty."""
        length = self.graph.length_of(name)
        if data.dtype != np.float64 or data.ndim != 1 or not data.flags.c_contiguous:
            raise InputError(f"tensor {name}: its buffer must be a contiguous float64 vector")
        if len(data) != length and (len(data) or name in self.graph.touched):
            raise InputError(f"tensor {name}: its buffer has {len(data)} elements instead of {length}")

    def run(
        self,
        tasks: np.ndarray | None = None,
        shift: float = 0.0,
        shared: bool = False,
        after: Result | None = None,
    ) -> Result:
        """Runs all tasks by the schedule, or only the given ones: on one worker, or `shared` by all.

        `shift` is the level shift of Jacobi steps, in hartree. `after` a run of some tasks, whose tensors are
        as it left them, the others run; the result is that of both.
        """
        buffers = [self.tensors[name] for name in self.graph.buffers]
        if not self._checked:
            outside = first_outside(self.graph, np.array([*map(len, buffers), self.graph.arena]))
            if outside >= 0:
                raise TaskError(f"a record points outside of its buffer in {self.graph.describe(outside)}")
            self._checked = True
        before = None if after is None else after.tasks
        done = self._executor.run(Job(buffers, self.schedule, shift, tasks, shared, before))
        if done.failed >= 0:
            raise TaskError(f"{done.reason} in {self.graph.describe(done.failed)}")
        if after is not None and before is not None:
            _begin_with(after, before, done)
        return Result(self._scalars(done.partial), done.trace, done.counts, done.partial, tasks)

    def _scalars(self, partial: np.ndarray) -> dict[str, float]:
        totals: dict[str, float] = {}
        for name, tasks in self._parts:
            totals[name] = totals.get(name, 0.0) + float(partial[tasks].sum())
        return totals

    @cached_property
    def _parts(self) -> list[tuple[str, np.ndarray]]:
        """Scalars, and the tasks of each operation that adds to one."""
        operation = self.graph.tasks["operation"]
        found = [(op.scalar, np.flatnonzero(operation == k)) for k, op in enumerate(self.graph.operations)]
        return [(name, tasks) for name, tasks in found if name]


def _begin_with(first: Result, tasks: np.ndarray, then: Outcome) -> None:
    """Takes over what came of `tasks`, as if the other ones had begun when the last of these had ended."""
    length = first.trace["end"].max(initial=0)
    for moment in ("ready", "start", "end"):
        then.trace[moment] += length
    then.trace[tasks], then.partial[tasks] = first.trace[tasks], first.partial[tasks]
    used, most = len(first.counts), COUNTS.index("most_memory")
    then.counts[:used, most] = np.maximum(then.counts[:used, most], first.counts[:, most])
