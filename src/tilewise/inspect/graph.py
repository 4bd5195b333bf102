"""The task graph: all tasks of a program as arrays, with who needs whom.

Tasks that accumulate into one panel have no order among themselves; they take the panel's lock
(unless the graph is built `ordered`, which makes every bit of the result repeatable).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tilewise.core import core
from tilewise.equations.program import Operation, Program
from tilewise.inspect.dependencies import Graph, Traffic, numbered
from tilewise.inspect.operations import TABLES, Kind, Setting, empty_tables, inspector_of, kinds
from tilewise.inspect.operations.kind import WORD
from tilewise.inspect.panels import PanelRule, Panels, runs
from tilewise.inspect.records import ACCESS, ACCUMULATE, ASSIGN, KINDS, READ, TASK, Table, concatenated
from tilewise.inspect.tasks import Found, Touch, unique_pairs
from tilewise.inspect.traffic import bytes_moved
from tilewise.lazy import cached_property
from tilewise.tensor import Layout
from tilewise.tensor.compound import changes

NO_TASKS = np.zeros(0, np.int64)


@dataclass
class TaskGraph(Graph):
    """The tasks of a program, with their records."""

    operations: tuple[Operation, ...]
    buffers: tuple[str, ...]  # names of the tensors and vectors that records refer to
    panels: dict[str, Panels]
    tasks: Table
    records: dict[str, Table]  # of all kinds, and what they point into
    locks: np.ndarray
    n_locks: int
    scratch: int
    sources: np.ndarray  # edges: sources[e] must end before targets[e] begins
    targets: np.ndarray
    vectors: dict[str, int] = field(default_factory=dict)  # buffers that are no tensors, with lengths
    arena: int = 0  # elements of each worker's own buffer
    find_accesses: Callable[[], np.ndarray] = field(default=lambda: np.zeros(0, ACCESS), repr=False)

    @classmethod
    def bare(
        cls,
        tasks: Table,
        records: dict[str, Table] | None = None,
        operations: tuple[Operation, ...] = (),
        sources: np.ndarray = NO_TASKS,
        targets: np.ndarray = NO_TASKS,
    ) -> TaskGraph:
        """Tasks without a program, and the records that they have."""
        tables = empty_tables() | (records or {})
        return cls(operations, (), {}, tasks, tables, NO_TASKS, 0, 0, sources, targets)

    @cached_property
    def accesses(self) -> Table:
        """Which task reads, assigns or adds to which panel of which tensor, constants included.

        Records of type ACCESS in the order of the tasks; a tensor is a number in `buffers`. They are found
        when they are first asked for: threads share their memory and never ask.
        """
        return self.find_accesses()

    @cached_property
    def flops(self) -> np.ndarray:
        return self.summed(lambda kind: kind.flops(self))

    @cached_property
    def bytes(self) -> np.ndarray:
        """Bytes that each task reads and writes, every operand counted once per record."""
        return self.summed(lambda kind: kind.bytes(self))

    @cached_property
    def sorted_words(self) -> np.ndarray:
        """Words that each task puts into another place, a read and a write each."""
        return self.summed(lambda kind: kind.words(self))

    @cached_property
    def operand_words(self) -> np.ndarray:
        """Words of the operands and results of each task's products, every one counted once per product."""
        return self.per_task("gemm", kinds["gemm"].bytes(self) / WORD)

    def summed(self, measure: Callable[[Kind], np.ndarray]) -> np.ndarray:
        """A measure of the records of every kind, over each task."""
        total = np.zeros(len(self))
        for name, kind in kinds.items():
            if len(self.records[name]):
                total += self.per_task(name, measure(kind))
        return total

    def per_task(self, kind: str, values: np.ndarray) -> np.ndarray:
        """Sums values of the records of a kind, or rows of them, over each task."""
        mine = np.flatnonzero(self.tasks["kind"] == KINDS.index(kind))
        total = np.zeros((len(self), *values.shape[1:]))
        before = np.zeros((len(values) + 1, *values.shape[1:]))
        np.cumsum(values, axis=0, out=before[1:])
        first, count = self.tasks["first"][mine], self.tasks["count"][mine]
        total[mine] = before[first + count] - before[first]
        steps = self.records["chain"]
        if len(steps):
            owner = self._step_owners
            mine = np.flatnonzero((steps["kind"] == KINDS.index(kind)) & (owner >= 0))
            first, count = steps["first"][mine], steps["count"][mine]
            np.add.at(total, owner[mine], before[first + count] - before[first])
        return total

    @property
    def _step_owners(self) -> np.ndarray:
        """The task of each step of a chain, -1 where the task belongs to another part of the graph."""
        owner = np.full(len(self.records["chain"]), -1, np.int64)
        chains = np.flatnonzero(self.tasks["kind"] == KINDS.index("chain"))
        task, step = runs(self.tasks["first"][chains], self.tasks["count"][chains])
        owner[step] = chains[task]
        return owner

    def owners(self, kind: str) -> np.ndarray:
        """The task of each record of a kind, or -1."""
        owner = np.full(len(self.records[kind]), -1, np.int64)
        number, steps = KINDS.index(kind), self.records["chain"]
        mine = np.flatnonzero(self.tasks["kind"] == number)
        step_owner = self._step_owners
        part = np.flatnonzero((steps["kind"] == number) & (step_owner >= 0))
        for task, first, count in (
            (mine, self.tasks["first"][mine], self.tasks["count"][mine]),
            (step_owner[part], steps["first"][part], steps["count"][part]),
        ):
            position = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            owner[np.repeat(first, count) + position] = np.repeat(task, count)
        return owner

    @cached_property
    def chains(self) -> np.ndarray:
        """A panel of an operation, with the additions into which the operation may be cut."""
        known: dict[int, int] = {}
        number = np.array([known.setdefault(id(op), len(known)) for op in self.operations], np.int64)
        return numbered(number[self.tasks["operation"]], self.tasks["panel"])

    @cached_property
    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        """A tuple is a run of rows with a run of columns; symmetry makes most of them zero."""
        operation, panel = self.tasks["operation"], self.tasks["panel"]
        place, count = np.zeros(len(self), np.int64), np.zeros(len(self.operations), np.int64)
        for number, op in enumerate(self.operations):
            mine = np.flatnonzero(operation == number)
            place[mine], count[number] = np.arange(len(mine)), len(mine)
            if op is not None and len(np.unique(panel[mine])) == len(mine):  # else chains were cut
                panels = self.panels[place_of(op)]
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
        found = [(self.owners(name), *part) for name, kind in kinds.items() for part in kind.operands(self)]
        *columns, size = (np.concatenate(column) for column in zip(*found, strict=True))
        keys = np.stack(columns)
        task, buffer, offset = keys[:, keys[0] >= 0]
        names, block = np.unique(np.stack([buffer, offset]), axis=1, return_inverse=True)
        largest = np.zeros(names.shape[1])
        np.maximum.at(largest, block.ravel(), 8.0 * size[keys[0] >= 0])
        block, task = np.unique(np.stack([block.ravel(), task]), axis=1)
        return task, block, largest

    def describe(self, task: int) -> str:
        record = self.tasks[task]
        operation = self.operations[record["operation"]]
        name = place_of(operation)
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
        for name, kind in kinds.items():
            for field_name in kind.buffers:
                number = self.records[name][field_name]
                if not ((number >= 0) & (number < limit)).all():
                    raise AssertionError(f"a {name} record names no buffer")


def inspect(program: Program, rule: PanelRule | None = None, ordered: bool = False) -> TaskGraph:
    """The graph of the operations of every call."""
    return inspect_operations(program, program.operations, rule or PanelRule(), ordered)


def inspect_operations(
    program: Program, operations: tuple[Operation, ...], rule: PanelRule, ordered: bool = False
) -> TaskGraph:
    layouts = program.layouts
    panels = {name: _panels(layout, rule) for name, layout in layouts.items()}
    vectors: dict[str, int] = {}
    for op in operations:
        vectors |= inspector_of(op).vectors(op, layouts)
    names = (*layouts, *vectors)
    numbers = {name: k for k, name in enumerate(names)}
    setting = Setting(layouts, panels, numbers, len(names))
    return _Builder(operations, names, setting, vectors, ordered).graph()


@lru_cache(maxsize=256)
def _panels(layout: Layout, rule: PanelRule) -> Panels:
    """Kept: the set-up and the iterations have most of their layouts in common."""
    return Panels(layout, rule)


class _Builder:
    def __init__(
        self,
        operations: tuple[Operation, ...],
        names: tuple[str, ...],
        setting: Setting,
        vectors: dict[str, int],
        ordered: bool,
    ) -> None:
        self.operations, self.names, self.setting, self.vectors = operations, names, setting, vectors
        self.panels, self.ordered = setting.panels, ordered
        self.written = {name for op in operations for name in op.outputs}
        bases = np.cumsum([0, *map(len, self.panels.values())]).tolist()
        self.base = dict(zip(self.panels, bases, strict=False))
        self.n_panels = bases[-1]
        self.chunks: dict[str, list[np.ndarray]] = {key: [] for key in TABLES}
        self.lengths = dict.fromkeys(self.chunks, 0)
        self.scratch = self.arena = 0
        self.owners = [NO_TASKS]  # panels that the tasks of records are named by
        self.origins: list[tuple[int, int, int]] = []  # of each operation: records, their kind, the first
        self.tasks, self.touched = [NO_TASKS], [NO_TASKS]  # named by panels, and panels that they touch
        self.accesses: list[tuple[int, int, int, int]] = []  # number, operation, first panel, access
        self.numbers: Callable[[int, np.ndarray], np.ndarray]  # tasks of an operation by their panels
        self.unwritten: list[tuple[int, Touch]] = []  # what operations read of tensors that nobody writes

    def graph(self) -> TaskGraph:
        for number, op in enumerate(self.operations):
            self.append(number, op, inspector_of(op).inspect(op, self.setting))
        records = {key: concatenated(dtype, self.chunks[key]) for key, dtype in TABLES.items()}
        tasks, task, panel, access = self.numbered()
        adding = np.flatnonzero(access == ACCUMULATE)
        adder, lock = unique_pairs(task[adding], panel[adding])
        tasks["n_lock"] = np.bincount(adder, minlength=len(tasks))
        tasks["first_lock"] = np.cumsum(tasks["n_lock"]) - tasks["n_lock"]
        edges = core.dependencies(task, panel, access, len(tasks), self.n_panels, self.ordered)
        return TaskGraph(
            self.operations,
            self.names,
            self.panels,
            tasks,
            records,
            lock,
            self.n_panels,
            self.scratch,
            edges[0],
            edges[1],
            self.vectors,
            self.arena,
            self.finder(task, panel, access),
        )

    def finder(self, task: np.ndarray, panel: np.ndarray, access: np.ndarray) -> Callable[[], np.ndarray]:
        """Finds all accesses: the known ones, and reads of what nobody writes."""
        numbers, unwritten = self.numbers, self.unwritten
        firsts = np.array([self.base[name] for name in self.panels], np.int64)
        buffers = self.setting.buffers

        def find() -> np.ndarray:
            tensor = np.searchsorted(firsts, panel, side="right") - 1
            parts = [np.stack([task, tensor, panel - firsts[tensor], access.astype(np.int64)])]
            for number, touch in unwritten:
                name, (mine, read) = touch.name, touch.find()
                tensors, kinds = np.full(len(read), buffers[name]), np.full(len(read), READ)
                parts.append(np.stack([numbers(number, mine), tensors, read, kinds]))
            found = np.unique(np.concatenate(parts, axis=1), axis=1)
            return np.rec.fromarrays(found, dtype=ACCESS).view(np.ndarray)

        return find

    def append(self, number: int, op: Operation, found: Found) -> None:
        for name, kind in kinds.items():
            if name in found.tables:
                kind.relocate(found.tables, self.lengths)
        self.owners.append(found.panel)
        self.origins.append((len(found.panel), KINDS.index(found.kind), self.lengths[found.kind]))
        for name, table in found.tables.items():
            self.keep(name, table)
        self.scratch = max(self.scratch, found.scratch)
        self.arena = max(self.arena, found.arena)
        for touch in found.touches:
            if touch.name in self.written:
                self.touch(number, touch.name, READ, *touch.find())
            else:  # on a constant nothing depends
                self.unwritten.append((number, touch))
        outputs = found.outputs or [(name, found.tasks, found.tasks, acc) for name, acc in op.outputs.items()]
        for name, task, panel, accumulate in outputs:
            self.touch(number, name, ACCUMULATE if accumulate else ASSIGN, task, panel)

    def keep(self, key: str, table: Table) -> None:
        self.chunks[key].append(table)
        self.lengths[key] += len(table)

    def touch(self, number: int, name: str, access: int, task: np.ndarray, panel: np.ndarray) -> None:
        self.tasks.append(task)
        self.touched.append(panel)
        self.accesses.append((len(task), number, self.base[name], access))

    def numbered(self) -> tuple[Table, np.ndarray, np.ndarray, np.ndarray]:
        """All tasks, and of each access its task, its panel among those of all tensors, and its kind."""
        # Places: a range for each operation, with one for each panel that its tasks can be named by.
        ends = np.cumsum([0, *(len(self.panels[place_of(op)]) for op in self.operations)])
        count, kind, first = np.array(self.origins, np.int64).reshape(-1, 3).T
        panel = np.concatenate(self.owners)
        place = panel + ends[:-1].repeat(count)
        start = np.flatnonzero(changes(place))
        operation = np.arange(len(count)).repeat(count)[start]
        tasks: Table = np.zeros(len(start), TASK)
        tasks["operation"], tasks["kind"], tasks["panel"] = operation, kind[operation], panel[start]
        tasks["first"] = start + (first - count.cumsum() + count)[operation]
        tasks["count"] = np.diff(start, append=len(place))
        number = np.full(ends[-1], -1)  # what no task is named by must not be touched
        number[place[start]] = np.arange(len(tasks))
        self.numbers = lambda operation, names: number[ends[operation] + names]
        count, operation, base, access = np.array(self.accesses, np.int64).reshape(-1, 4).T
        task = number[np.concatenate(self.tasks) + ends[operation].repeat(count)]
        panel = np.concatenate(self.touched) + base.repeat(count)
        return tasks, task, panel, access.astype(np.uint8).repeat(count)


def place_of(op: Operation) -> str:
    """The tensor whose panels the tasks of an operation are named by."""
    return next(iter((*op.outputs, *op.reads)))
