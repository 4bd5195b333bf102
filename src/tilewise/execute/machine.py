"""A machine runs a graph: it owns the buffers, the schedule and the scratch memory of the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tilewise import native
from tilewise.config import thread_limits
from tilewise.equations.program import Dot, Operation, Program, Update
from tilewise.errors import InputError, TaskError, one_of
from tilewise.execute import serial
from tilewise.inspect import TaskGraph
from tilewise.inspect.bounds import first_outside
from tilewise.inspect.chains import SUMS
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.panels import PanelRule
from tilewise.schedule import Policy, Schedule
from tilewise.tensor import Tensor

EXECUTORS = ("threads", "serial")
SMALL_SETUP = 1 << 24
"""Bytes of a constant that it does not pay to let go early."""


@dataclass
class Result:
    """What a run gives besides the tensors: scalars, and a record per task."""

    scalars: dict[str, float]
    trace: np.ndarray
    counts: np.ndarray
    """A row for each worker, with the columns `native.COUNTS`."""

    @property
    def seconds(self) -> np.ndarray:
        """Seconds that each task took."""
        return 1e-9 * (self.trace["end"] - self.trace["start"])

    def count(self, what: str) -> np.ndarray:
        """Of each worker, one of the columns `native.COUNTS`."""
        return self.counts[:, native.COUNTS.index(what)]

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
class Machine:
    """Runs one graph again and again. Tensors can be exchanged between runs with `bind`."""

    graph: TaskGraph
    schedule: Schedule
    tensors: dict[str, np.ndarray]
    executor: str = "threads"
    processors: tuple[int, ...] = ()
    """The processor that each worker is bound to; none by default."""
    _tables: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    _arrays: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    _scratch: np.ndarray = field(init=False, default_factory=lambda: np.zeros(0))
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
        self._tables = native.tables(self.graph)
        self.reschedule(self.schedule)

    def reschedule(self, schedule: Schedule) -> None:
        schedule.check(self.graph)
        self.schedule = schedule
        self._arrays = schedule.arrays(self.graph)
        size = native.scratch_size(self.graph) * schedule.workers
        if len(self._scratch) != size:
            self._scratch = np.zeros(size)  # pages are touched first by the worker that uses them

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

    def set_shift(self, shift: float) -> None:
        """Level shift of all Jacobi steps."""
        self.graph.records["update"]["shift"] = shift
        self.graph_changed()

    def graph_changed(self) -> None:
        """To be called when records of the graph were given other values."""
        self._tables = native.tables(self.graph)

    def run(self, tasks: np.ndarray | None = None) -> Result:
        """Runs all tasks by the schedule, or only the given ones, one after the other on one worker."""
        buffers = [self.tensors[name] for name in self.graph.buffers]
        if not self._checked:
            outside = first_outside(self.graph, np.array([*map(len, buffers), self.graph.arena]))
            if outside >= 0:
                raise TaskError(f"a record points outside of its buffer in {self.graph.describe(outside)}")
            self._checked = True
        if self.executor == "serial":
            order = np.argsort(self.graph.levels, kind="stable") if tasks is None else tasks
            failed, reason, partial, seconds = serial.run(self.graph, buffers, order)
            trace = np.zeros(len(self.graph), native.TRACE)
            trace["end"] = (1e9 * seconds).astype(np.int64)
            counts = np.zeros((self.schedule.workers, len(native.COUNTS)), np.int64)
        else:
            arrays, workers = self._arrays, self.schedule.workers
            if tasks is not None:
                arrays, workers = native.static_lists([tasks]), 1
            with thread_limits(1):  # one BLAS thread per worker
                done = native.run(
                    self._tables,
                    arrays,
                    self.graph,
                    buffers,
                    self._scratch,
                    workers,
                    self.processors[:workers],
                )
            failed, reason, partial, trace, counts = (
                done.failed,
                done.reason,
                done.partial,
                done.trace,
                done.counts,
            )
        if failed >= 0:
            raise TaskError(f"{reason} in {self.graph.describe(failed)}")
        return Result(self._scalars(partial), trace, counts)

    def _scalars(self, partial: np.ndarray) -> dict[str, float]:
        totals: dict[str, float] = {}
        operation = self.graph.tasks["operation"]
        for k, op in enumerate(self.graph.operations):
            if isinstance(op, Dot | Update):
                name = op.target if isinstance(op, Dot) else f"{op.amplitude}.norm2"
                totals[name] = totals.get(name, 0.0) + float(partial[operation == k].sum())
        return totals


def run_once(
    program: Program,
    tensors: Mapping[str, Tensor],
    *,
    setup: bool = False,
    policy: Policy,
    workers: int = 1,
    executor: str = "threads",
    rule: PanelRule | None = None,
) -> dict[str, np.ndarray]:
    """Runs the operations of a program (or its setup) once, with rough costs; all tensors and scalars."""
    buffers = {name: tensor.data for name, tensor in tensors.items()}
    for name, layout in program.layouts.items():
        if name not in buffers:
            buffers[name] = np.zeros(layout.size)
    operations = program.setup if setup else program.operations
    graph = inspect_operations(program, operations, rule or PanelRule())
    graph = policy.prepared(graph, _rough_seconds(graph), workers)
    result = Machine(graph, _roughly(graph, policy, workers), buffers, executor).run()
    return buffers | {name: np.array([value]) for name, value in result.scalars.items()}


def run_setup(
    program: Program, buffers: dict[str, np.ndarray], policy: Policy, workers: int, executor: str = "threads"
) -> None:
    """Makes the tensors that depend on constants alone, and lets go of the constants that only they need."""
    nothing = np.zeros(0)
    later = {name for op in program.operations for name in (*op.reads, *op.outputs)}
    for operations, rest in stages_of(program):
        for name in {name for op in operations for name in op.outputs if name not in buffers}:
            buffers[name] = np.zeros(program.layouts[name].size)
        graph = inspect_operations(program, operations, PanelRule())
        used = {name for op in operations for name in (*op.reads, *op.outputs)}
        stand_in = {name: buffers[name] if name in used else nothing for name in graph.buffers}
        Machine(graph, _roughly(graph, policy, workers), stand_in, executor).run()
        needed = later | {name for op in rest for name in (*op.reads, *op.outputs)}
        for name in [name for name in buffers if name not in needed]:
            buffers[name] = nothing


def stages_of(program: Program) -> list[tuple[tuple[Operation, ...], tuple[Operation, ...]]]:
    """The set-up in two parts, each with what follows: the second one does without the largest constant.

    A small one is done at once.
    """
    setup = program.setup
    later = {name for op in program.operations for name in op.reads}
    passing = {name for op in setup for name in op.reads if name not in later}
    largest = max(passing, key=lambda name: program.layouts[name].size, default="")
    if not largest or program.bytes_of(largest) < SMALL_SETUP:
        return [(setup, ())] if setup else []
    cut = 1 + max(k for k, op in enumerate(setup) if largest in op.reads)
    parts = [(setup[:cut], setup[cut:]), (setup[cut:], ())]
    return [part for part in parts if part[0]]


def _roughly(graph: TaskGraph, policy: Policy, workers: int) -> Schedule:
    """A schedule by flops and bytes, for work that is done once."""
    return policy(graph, _rough_seconds(graph), workers)


def _rough_seconds(graph: TaskGraph) -> np.ndarray:
    return 3e-11 * graph.flops + 1e-10 * graph.bytes
