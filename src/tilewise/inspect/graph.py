"""The task graph: all tasks of a program as arrays, with who needs whom.

Tasks that accumulate into one panel have no order among themselves; they take the panel's lock
(unless the graph is built `ordered`, which makes every bit of the result repeatable).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from tilewise.equations.program import (
    Contract,
    Dot,
    FormedContract,
    Operation,
    Program,
    RowContract,
    RowInner,
    Sort,
    Update,
)
from tilewise.inspect.dependencies import Graph, Traffic
from tilewise.inspect.formed import inspect_formed
from tilewise.inspect.panels import PanelRule, Panels
from tilewise.inspect.products import inspect_contract, inspect_row_contract, inspect_row_inner
from tilewise.inspect.records import EXTRAS, KINDS, RECORDS, TASK, concatenated
from tilewise.inspect.sorts import inspect_sort
from tilewise.inspect.tasks import Found, Output, Touch, unique_pairs
from tilewise.inspect.traffic import bytes_moved
from tilewise.inspect.updates import gap_name, gap_offsets, inspect_dot, inspect_update
from tilewise.tensor import Layout

FEW_PAIRS = 2000
"""Pairs of tasks and panels that it does not pay to make unique before the end."""


@dataclass
class TaskGraph(Graph):
    """The tasks of a program, with their records."""

    operations: tuple[Operation, ...]
    buffers: tuple[str, ...]  # names of the tensors and vectors that records refer to
    panels: dict[str, Panels]
    tasks: np.ndarray
    records: dict[str, np.ndarray]
    coefficients: np.ndarray
    locks: np.ndarray
    n_locks: int
    scratch: int
    sources: np.ndarray  # edges: sources[e] must end before targets[e] begins
    targets: np.ndarray
    vectors: dict[str, int] = field(default_factory=dict)  # buffers that are no tensors, with lengths
    arena: int = 0  # elements of each worker's own buffer

    @cached_property
    def flops(self) -> np.ndarray:
        g = self.records["gemm"]
        return self.per_task("gemm", 2.0 * g["m"] * g["n"] * g["k"])

    @cached_property
    def bytes(self) -> np.ndarray:
        """Bytes that each task reads and writes, every operand counted once per record."""
        g = self.records["gemm"]
        total = self.per_task("gemm", 8.0 * (g["m"] * g["k"] + g["k"] * g["n"] + 2 * g["m"] * g["n"]))
        total += self.per_task("sort", 8.0 * self.block_sizes * self.block_traffic)
        for kind, streams in (("update", 4.0), ("dot", 2.0)):
            r = self.records[kind]
            total += self.per_task(kind, 8.0 * streams * r["rows"] * r["cols"])
        return total

    @cached_property
    def sorted_words(self) -> np.ndarray:
        """Words that each task puts into another place, a read and a write each."""
        total = self.per_task("sort", 0.5 * self.block_sizes * self.block_traffic)
        for kind, words in (("update", 2.0), ("dot", 1.0)):
            r = self.records[kind]
            total += self.per_task(kind, words * r["rows"] * r["cols"])
        return total

    @cached_property
    def block_sizes(self) -> np.ndarray:
        """Elements of each sort block, triangles counted as squares."""
        b = self.records["sort"]
        size = np.ones(len(b))
        for axis in range(b["extent"].shape[1]):
            size *= np.where(b["n_axes"] > axis, b["extent"][:, axis], 1)
        return size

    @cached_property
    def block_traffic(self) -> np.ndarray:
        """Reads and writes of each sort block, in blocks."""
        b = self.records["sort"]
        views = np.concatenate([[0], np.cumsum(self.records["read"]["n_view"])])
        return b["n_out"] + views[b["first_read"] + b["n_read"]] - views[b["first_read"]]

    def per_task(self, kind: str, values: np.ndarray) -> np.ndarray:
        """Sums values of the records of a kind over each task."""
        mine = np.flatnonzero(self.tasks["kind"] == KINDS.index(kind))
        total = np.zeros(len(self))
        before = np.concatenate([[0.0], np.cumsum(values)])
        first, count = self.tasks["first"][mine], self.tasks["count"][mine]
        total[mine] = before[first + count] - before[first]
        steps = self.records["chain"]
        if len(steps):
            chains = np.flatnonzero(self.tasks["kind"] == KINDS.index("chain"))
            owner = np.repeat(chains, self.tasks["count"][chains])  # steps lie in the order of the tasks
            mine = np.flatnonzero(steps["kind"] == KINDS.index(kind))
            first, count = steps["first"][mine], steps["count"][mine]
            np.add.at(total, owner[mine], before[first + count] - before[first])
        return total

    def owners(self, kind: str) -> np.ndarray:
        """The task of each record of a kind, or -1."""
        owner = np.full(len(self.records[kind]), -1, np.int64)
        number, steps = KINDS.index(kind), self.records["chain"]
        mine = np.flatnonzero(self.tasks["kind"] == number)
        chains = np.flatnonzero(self.tasks["kind"] == KINDS.index("chain"))
        step_owner = np.repeat(chains, self.tasks["count"][chains])
        part = np.flatnonzero(steps["kind"] == number)
        for task, first, count in (
            (mine, self.tasks["first"][mine], self.tasks["count"][mine]),
            (step_owner[part], steps["first"][part], steps["count"][part]),
        ):
            position = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            owner[np.repeat(first, count) + position] = np.repeat(task, count)
        return owner

    @cached_property
    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        """A tuple is a run of rows with a run of columns; symmetry makes most of them zero."""
        operation, panel = self.tasks["operation"], self.tasks["panel"]
        place, count = np.zeros(len(self), np.int64), np.zeros(len(self.operations), np.int64)
        for number, op in enumerate(self.operations):
            mine = np.flatnonzero(operation == number)
            place[mine], count[number] = np.arange(len(mine)), len(mine)
            if op is not None and len(np.unique(panel[mine])) == len(mine):  # else chains were cut
                panels = self.panels[_place_of(op)]
                rows, cols = panels.shape
                place[mine] = (
                    panels.table["row_cut"][panel[mine]] * cols + panels.table["col_cut"][panel[mine]]
                )
                count[number] = rows * cols
        return place, count

    @cached_property
    def traffic(self) -> Traffic:
        """One Get and one Accumulate at most: operands count once per record, results once per task."""
        got, put = bytes_moved(self)
        return Traffic((got > 0).astype(np.int64), (put > 0).astype(np.int64), got, put)

    @cached_property
    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A block is a panel of an operand of a product."""
        g, owner = self.records["gemm"], self.owners("gemm")
        keys = np.concatenate([np.stack([owner, g[x], g[f"{x}_offset"]]) for x in "ab"], axis=1)
        size = np.concatenate([g["k"] * g["m"], g["k"] * g["n"]])
        task, buffer, offset = keys[:, keys[0] >= 0]
        names, block = np.unique(np.stack([buffer, offset]), axis=1, return_inverse=True)
        largest = np.zeros(names.shape[1])
        np.maximum.at(largest, block.ravel(), 8.0 * size[keys[0] >= 0])
        block, task = np.unique(np.stack([block.ravel(), task]), axis=1)
        return task, block, largest

    def describe(self, task: int) -> str:
        record = self.tasks[task]
        operation = self.operations[record["operation"]]
        name = _place_of(operation)
        panels = self.panels[name]
        t, panel = panels.table, record["panel"]
        h, spin, parity = panels.layout.labels[t["sector"][panel]]
        label = f"irrep {h}" + (f", 2 m_s {spin:+d}" if spin else "")
        label += {1: ", parity +", -1: ", parity -"}.get(parity, "")
        r0, c0 = int(t["row0"][panel]), int(t["col0"][panel])
        r1, c1 = r0 + int(t["nrows"][panel]), c0 + int(t["ncols"][panel])
        return f"operation '{operation.text}', block {name}({label}; rows {r0}:{r1}, columns {c0}:{c1})"

    def length_of(self, name: str) -> int:
        """Elements of a buffer."""
        return self.vectors[name] if name in self.vectors else self.panels[name].layout.size

    @cached_property
    def touched(self) -> set[str]:
        """Buffers that some operation reads or writes."""
        used = {name for op in self.operations for name in (*op.reads, *op.outputs)}
        return used | set(self.vectors)

    def check(self) -> None:
        """Raises if a dependency points backwards or a record is out of its buffer's bounds."""
        if len(self.sources) and not (self.sources < self.targets).all():
            raise AssertionError("a dependency points from a later task to an earlier one")
        limit = len(self.buffers) + (self.arena > 0)
        for kind, table in (("gemm", "c"), ("update", "new")):
            r = self.records[kind]
            if len(r) and not ((r[table] >= 0) & (r[table] < limit)).all():
                raise AssertionError(f"a {kind} record names no buffer")


def inspect(program: Program, rule: PanelRule | None = None, ordered: bool = False) -> TaskGraph:
    """The graph of the operations of every call."""
    return inspect_operations(program, program.operations, rule or PanelRule(), ordered)


def inspect_operations(
    program: Program, operations: tuple[Operation, ...], rule: PanelRule, ordered: bool = False
) -> TaskGraph:
    layouts = program.layouts
    panels = {name: _panels(layout, rule) for name, layout in layouts.items()}
    vectors = {
        gap_name(op.amplitude): gap_offsets(layouts[op.amplitude])[2]
        for op in operations
        if isinstance(op, Update)
    }
    names = (*layouts, *vectors)
    return _Builder(operations, names, panels, vectors, ordered).graph(layouts)


@lru_cache(maxsize=256)
def _panels(layout: Layout, rule: PanelRule) -> Panels:
    """Kept: the set-up and the iterations have most of their layouts in common."""
    return Panels(layout, rule)


class _Builder:
    def __init__(
        self,
        operations: tuple[Operation, ...],
        names: tuple[str, ...],
        panels: dict[str, Panels],
        vectors: dict[str, int],
        ordered: bool,
    ) -> None:
        self.operations, self.names, self.panels, self.vectors = operations, names, panels, vectors
        self.ordered = ordered
        self.written = {name for op in operations for name in op.outputs}
        self.buffers = {name: k for k, name in enumerate(names)}
        bases = np.cumsum([0, *(len(panels[name]) for name in panels)])
        self.base = dict(zip(panels, bases.tolist(), strict=False))
        self.n_locks = int(bases[-1])
        self.chunks: dict[str, list[np.ndarray]] = {key: [] for key in (*RECORDS, *EXTRAS)}
        self.lengths = dict.fromkeys(self.chunks, 0)
        self.coefficients: list[np.ndarray] = []
        self.n_coefficients = 0
        self.tasks: list[np.ndarray] = []
        self.n_tasks = 0
        self.locks: list[np.ndarray] = []
        self.n_lock_entries = 0
        self.scratch = self.arena = 0
        self.edges = [np.zeros((2, 0), np.int64)]
        pairs = np.zeros((2, 0), np.int64)
        self.assigned = dict.fromkeys(panels, pairs)  # (task, panel) of the last assignment
        self.added = dict.fromkeys(panels, pairs)  # accumulations since then
        self.readers = dict.fromkeys(panels, pairs)

    def graph(self, layouts: dict) -> TaskGraph:
        for number, op in enumerate(self.operations):
            found = self.inspected(op, layouts)
            outputs = found.outputs or [
                (name, found.tasks, found.tasks, acc) for name, acc in op.outputs.items()
            ]
            found.outputs = outputs
            self.append(number, found)
        records = {key: concatenated(dtype, self.chunks[key]) for key, dtype in (RECORDS | EXTRAS).items()}
        edges = unique_pairs(*np.concatenate(self.edges, axis=1))
        return TaskGraph(
            self.operations,
            self.names,
            self.panels,
            concatenated(TASK, self.tasks),
            records,
            np.concatenate([np.zeros(0), *self.coefficients]),
            np.concatenate([np.zeros(0, np.int64), *self.locks]),
            self.n_locks,
            self.scratch,
            edges[0],
            edges[1],
            self.vectors,
            self.arena,
        )

    def inspected(self, op: Operation, layouts: dict) -> Found:
        match op:
            case Contract():
                return inspect_contract(op, layouts, self.buffers, self.panels)
            case FormedContract():
                return inspect_formed(op, layouts, self.buffers, self.panels, len(self.names))
            case RowContract():
                return inspect_row_contract(op, layouts, self.buffers, self.panels)
            case RowInner():
                return inspect_row_inner(op, layouts, self.buffers, self.panels)
            case Sort():
                return inspect_sort(op, layouts, self.buffers, self.panels)
            case Update():
                return inspect_update(op, layouts[op.amplitude], self.buffers, self.panels[op.amplitude])
            case Dot():
                return inspect_dot(op, layouts[op.a], self.buffers, self.panels[op.a])
        raise TypeError(f"no inspector for {type(op).__name__}")

    def append(self, number: int, found: Found) -> None:
        if found.kind == "chain":
            for kind in ("gemm", "sort"):
                mine = found.records["kind"] == KINDS.index(kind)
                found.records["first"][mine] += self.lengths[kind]
            self.keep("gemm", found.parts["gemm"])
        blocks = found.parts["sort"] if found.kind == "chain" else found.records
        if found.kind in ("sort", "chain"):
            blocks["first_out"] += self.lengths["out"]
            blocks["first_read"] += self.lengths["read"]
            blocks["first_coefficient"] += self.n_coefficients
            found.extras["read"]["first_view"] += self.lengths["view"]
            for key, extra in found.extras.items():
                self.keep(key, extra)
            self.coefficients.append(found.coefficients)
            self.n_coefficients += len(found.coefficients)
        if found.kind == "chain":
            self.keep("sort", blocks)
        tasks = np.zeros(len(found.tasks), TASK)
        tasks["kind"], tasks["operation"], tasks["panel"] = KINDS.index(found.kind), number, found.tasks
        tasks["first"] = np.searchsorted(found.panel, found.tasks) + self.lengths[found.kind]
        tasks["count"] = np.bincount(np.searchsorted(found.tasks, found.panel), minlength=len(tasks))
        self.keep(found.kind, found.records)
        self.scratch = max(self.scratch, found.scratch)
        self.arena = max(self.arena, found.arena)
        task_of = _Numbers(found.tasks, self.n_tasks)
        for name, touches in _by_name(found.touches, self.written).items():
            task, panel = np.concatenate([np.stack(touch.find()) for touch in touches], axis=1)
            self.read(name, task_of(task), panel)
        locks = [np.zeros((2, 0), np.int64)]
        for name, (task, panel, accumulate) in _by_target(found.outputs).items():
            self.write(name, task_of(task), panel, accumulate)
            if accumulate:
                locks.append(np.stack([task_of(task), panel + self.base[name]]))
        pairs = unique_pairs(*np.concatenate(locks, axis=1))
        own = np.arange(self.n_tasks, self.n_tasks + len(tasks))
        tasks["first_lock"] = np.searchsorted(pairs[0], own) + self.n_lock_entries
        tasks["n_lock"] = np.searchsorted(pairs[0], own, side="right") - np.searchsorted(pairs[0], own)
        self.locks.append(pairs[1])
        self.n_lock_entries += pairs.shape[1]
        self.tasks.append(tasks)
        self.n_tasks += len(tasks)

    def keep(self, key: str, table: np.ndarray) -> None:
        self.chunks[key].append(table)
        self.lengths[key] += len(table)

    # Dependencies

    def read(self, name: str, task: np.ndarray, panel: np.ndarray) -> None:
        pairs = _thinned(task, panel)
        self.join(self.assigned[name], pairs)
        self.join(self.added[name], pairs)
        self.readers[name] = np.concatenate([self.readers[name], pairs], axis=1)

    def write(self, name: str, task: np.ndarray, panel: np.ndarray, accumulate: bool) -> None:
        pairs = np.stack([task, panel])
        self.join(self.assigned[name], pairs)
        self.join(self.readers[name], pairs)
        if accumulate:
            if self.ordered:
                self.join(self.added[name], pairs)
            self.added[name] = np.concatenate([self.added[name], pairs], axis=1)
        else:
            self.join(self.added[name], pairs)
            self.assigned[name] = pairs
            self.added[name] = self.readers[name] = np.zeros((2, 0), np.int64)

    def join(self, before: np.ndarray, after: np.ndarray) -> None:
        """Edges between all tasks of `before` and `after` that meet in a panel."""
        if not before.size or not after.size:
            return
        order = np.argsort(before[1], kind="stable")
        task, panel = before[:, order]
        low, high = np.searchsorted(panel, after[1]), np.searchsorted(panel, after[1], side="right")
        count = high - low
        which = np.repeat(np.arange(after.shape[1]), count)
        position = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
        edges = _thinned(task[position], after[0][which])
        self.edges.append(edges[:, edges[0] != edges[1]])


def _thinned(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(2, n): pairs, without repetitions if there are many."""
    return unique_pairs(first, second) if len(first) > FEW_PAIRS else np.stack([first, second])


def _place_of(op: Operation) -> str:
    """The tensor whose panels the tasks of an operation are named by."""
    return next(iter(op.outputs), op.reads[0])


def _by_name(touches: list[Touch], written: set[str]) -> dict[str, list[Touch]]:
    """Touches of each tensor; on one that nobody writes nothing depends."""
    found: dict[str, list[Touch]] = {}
    for touch in touches:
        if touch.name in written:
            found.setdefault(touch.name, []).append(touch)
    return found


def _by_target(outputs: list[Output]) -> dict[str, tuple[np.ndarray, np.ndarray, bool]]:
    """Outputs of one operation, those of both parities of a target together."""
    merged: dict[str, tuple[np.ndarray, np.ndarray, bool]] = {}
    for name, task, panel, accumulate in outputs:
        before = merged.get(name, (task[:0], panel[:0], accumulate))
        merged[name] = (np.append(before[0], task), np.append(before[1], panel), accumulate)
    return merged


class _Numbers:
    """Task numbers of one operation, by output panel."""

    def __init__(self, panels: np.ndarray, first: int) -> None:
        self.panels, self.first = panels, first

    def __call__(self, panel: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.panels, panel) + self.first
