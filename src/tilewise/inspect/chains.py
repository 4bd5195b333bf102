"""Long chains of products as reduction trees.

A task sums all products that an operation adds to one panel. Where one such chain would keep a worker busy
while others wait, it is cut along the summed index: the first part goes to the panel as before, the others
to panels of their own, which are then added pairwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import singledispatch
from itertools import accumulate, pairwise
from typing import cast

import numpy as np

from tilewise.equations.program import Contract
from tilewise.inspect.dependencies import AnyGraph, Graph
from tilewise.inspect.graph import NO_TASKS, TaskGraph
from tilewise.inspect.operations.sort import SORT_BLOCK, SORT_OUT, SORT_READ, SORT_VIEW, scratch_of
from tilewise.inspect.records import ACCUMULATE, ASSIGN, KINDS, READ, TASK, Table, concatenated
from tilewise.inspect.tasks import unique_pairs
from tilewise.lazy import cached_property

SUMS = "partial sums"
"""Name of the vector that the parts of chains are summed in."""

LARGEST_SHARE = 0.25
"""Of what each worker has to do: a chain that takes more is cut."""

MOST_PARTS = 8
LEAST_DEPTH = 64
"""Terms of the sum in a part, at least: with fewer the additions would cost as much as the products."""


def with_trees(graph: AnyGraph, seconds: np.ndarray, workers: int) -> AnyGraph:
    """The graph with its longest chains cut, or the same graph if none is too long."""
    limit = LARGEST_SHARE * float(seconds.sum()) / workers
    if workers < 2 or limit <= 0:
        return graph
    return cast(AnyGraph, with_chains_cut(graph, seconds, limit))


@singledispatch
def with_chains_cut(graph: Graph, seconds: np.ndarray, limit: float) -> Graph:
    """The graph with the chains cut that take longer than `limit`, as its kind registers it, or as it is."""
    return graph


@with_chains_cut.register
def _of_records(graph: TaskGraph, seconds: np.ndarray, limit: float) -> TaskGraph:
    if graph.arena or SUMS in graph.vectors:
        return graph
    plain = np.array([isinstance(op, Contract) for op in graph.operations], bool)
    long = np.flatnonzero(plain[graph.tasks["operation"]] & (seconds > limit))
    chains = [_Chain.of(graph, int(t), float(seconds[t]), limit) for t in long]
    chains = [chain for chain in chains if len(chain.parts) > 1]
    return _Rebuilt(graph, chains).graph() if chains else graph


@dataclass(frozen=True)
class _Chain:
    """A task, and the products of each of its parts."""

    task: int
    rows: int
    cols: int
    parts: list[np.ndarray]

    @classmethod
    def of(cls, graph: TaskGraph, task: int, seconds: float, limit: float) -> _Chain:
        first, count = graph.tasks["first"][task], graph.tasks["count"][task]
        records = graph.records["gemm"][first : first + count]
        depth = int(records["k"].sum())
        wanted = min(MOST_PARTS, int(np.ceil(seconds / limit)), depth // LEAST_DEPTH)
        one_panel = all((records[key] == records[key][0]).all() for key in ("c", "c_offset", "m", "n"))
        cuts = (
            np.linspace(0, depth, max(wanted, 1) + 1).astype(np.int64) if one_panel else np.array([0, depth])
        )
        parts = [_between(records, low, high) for low, high in pairwise(cuts.tolist())]
        return cls(task, int(records["m"][0]), int(records["n"][0]), parts)


def _between(records: Table, low: int, high: int) -> np.ndarray:
    """Terms low:high of the sum that the records make one after the other."""
    end = np.cumsum(records["k"])
    start = end - records["k"]
    chosen = (start < high) & (end > low) | ((records["k"] == 0) & (low == 0))
    part = records[chosen].copy()
    skipped = np.maximum(low - start[chosen], 0)
    part["k"] = np.minimum(high, end[chosen]) - np.maximum(low, start[chosen])
    part["a_offset"] += skipped * np.where(part["transpose_a"] != 0, part["lda"], 1)
    part["b_offset"] += skipped * np.where(part["transpose_b"] != 0, 1, part["ldb"])
    return part


def _across(ends: np.ndarray, others: np.ndarray, tasks: list[int]) -> dict[int, np.ndarray]:
    """Of each of some tasks the `others` on the far side of the edges at whose `ends` it stands."""
    chosen = np.zeros(int(ends.max(initial=-1)) + 1, bool)
    chosen[[task for task in tasks if task < len(chosen)]] = True
    edges = np.flatnonzero(chosen[ends])
    edges = edges[np.argsort(ends[edges], kind="stable")]
    found, first = np.unique(ends[edges], return_index=True)
    parts = np.split(others[edges], first[1:])  # one empty part if there is no edge at all
    return dict(zip(found.tolist(), parts, strict=False))


@dataclass
class _Rebuilt:
    """A graph in the making: tasks and edges are numbered anew, records are appended."""

    old: TaskGraph
    chains: list[_Chain]
    gemms: list[np.ndarray] = field(default_factory=list)
    n_gemms: int = 0
    sorts: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    length: int = 0
    made: list[tuple[int, int, bool]] = field(default_factory=list)
    """Of each new task its chain, its number, and whether it writes what the chain wrote."""

    def graph(self) -> TaskGraph:
        old = self.old
        operation = old.tasks["operation"]
        depth = np.zeros(len(old.operations), np.int64)  # levels of the tree after each operation
        for chain in self.chains:
            levels = (len(chain.parts) - 1).bit_length()
            depth[operation[chain.task]] = max(depth[operation[chain.task]], levels)
        slot = np.arange(len(depth)) + np.cumsum(depth) - depth
        tasks = old.tasks.copy()
        tasks["operation"] = slot[operation]
        made: list[np.ndarray] = [tasks]
        locks: list[np.ndarray] = [old.locks]
        edges = [np.stack([old.sources, old.targets])]
        count, n_locks = len(tasks), len(old.locks)
        for chain in self.chains:
            new, own_locks, links = self._cut(chain, tasks, count, n_locks)
            made.append(new)
            locks.append(own_locks)
            edges += links
            count, n_locks = count + len(new), n_locks + len(own_locks)
        return self._numbered(
            concatenated(TASK, made), np.concatenate(locks), np.concatenate(edges, axis=1), depth
        )

    def _cut(
        self, chain: _Chain, tasks: Table, first_task: int, first_lock: int
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Tasks of the further parts and of the additions, the locks of these, and all their edges."""
        old, task, size = self.old, chain.task, chain.rows * chain.cols
        buffer = len(old.buffers)
        own = tasks[task]
        lock = self._lock(task)
        target = old.records["gemm"][old.tasks["first"][task]]
        places = [(int(target["c"]), int(target["c_offset"]), int(target["ldc"]))]
        new: list[np.void] = []
        locks: list[int] = []
        edges: list[tuple[int, int]] = []
        own["first"], own["count"] = self._keep(chain.parts[0]), len(chain.parts[0])
        last = [task]  # who wrote last to each part
        for part in chain.parts[1:]:
            place = (buffer, self.length, chain.cols)
            self.length += size
            part["c"], part["c_offset"], part["ldc"] = place
            part["beta"] = np.where(np.arange(len(part)) == 0, 0.0, 1.0)
            record = own.copy()
            record["first"], record["count"], record["n_lock"] = self._keep(part), len(part), 0
            last.append(first_task + len(new))
            self.made.append((task, first_task + len(new), False))
            places.append(place)
            new.append(record)
        before, after = self._before.get(task, NO_TASKS), self._after.get(task, NO_TASKS)
        every = np.array(last[1:])  # a part waits for whatever its chain waited for
        waits = np.stack([np.tile(before, len(every)), np.repeat(every, len(before))])
        level, step = 0, 1
        while step < len(places):
            for left in range(0, len(places) - step, 2 * step):
                record = own.copy()
                record["kind"], record["operation"] = KINDS.index("sort"), own["operation"] + 1 + level
                record["first"], record["count"] = self._addition(chain, places[left + step], places[left]), 1
                record["first_lock"], record["n_lock"] = first_lock + len(locks), int(left == 0)
                locks += [lock] if left == 0 else []
                number = first_task + len(new)
                edges += [(last[left], number), (last[left + step], number)]
                last[left] = number
                if left == 0:
                    self.made.append((task, number, True))
                new.append(record)
            level, step = level + 1, 2 * step
        followed = np.stack([np.full(len(after), last[0]), after])
        tree = np.array(edges, np.int64).reshape(-1, 2).T
        return np.array(new, TASK), np.array(locks, np.int64), [waits, tree, followed]

    @cached_property
    def _before(self) -> dict[int, np.ndarray]:
        """The tasks that each chain waits for."""
        return _across(self.old.targets, self.old.sources, [chain.task for chain in self.chains])

    @cached_property
    def _after(self) -> dict[int, np.ndarray]:
        """The tasks that wait for each chain."""
        return _across(self.old.sources, self.old.targets, [chain.task for chain in self.chains])

    def _lock(self, task: int) -> int:
        """The lock of the panel that a task writes to."""
        op = self.old.operations[self.old.tasks["operation"][task]]
        return self._first_locks[next(iter(op.outputs))] + int(self.old.tasks["panel"][task])

    @cached_property
    def _first_locks(self) -> dict[str, int]:
        """The lock of the first panel of each tensor."""
        firsts = accumulate(map(len, self.old.panels.values()), initial=0)
        return dict(zip(self.old.panels, firsts, strict=False))

    def _keep(self, records: Table) -> int:
        """Where the records of a part will lie."""
        at = len(self.old.records["gemm"]) + self.n_gemms
        self.gemms.append(records)
        self.n_gemms += len(records)
        return at

    def _addition(self, chain: _Chain, source: tuple[int, int, int], target: tuple[int, int, int]) -> int:
        """A sort block that adds one matrix to another; where it will lie."""
        records, number = self.old.records, len(self.sorts)
        block, out, read, view = (np.zeros(1, t) for t in (SORT_BLOCK, SORT_OUT, SORT_READ, SORT_VIEW))
        block["n_axes"], block["n_row_axes"] = 2, 1
        block["extent"][:, :2] = chain.rows, chain.cols
        block["first_out"], block["n_out"] = len(records["out"]) + number, 1
        block["first_read"], block["n_read"] = len(records["read"]) + number, 1
        block["first_coefficient"] = len(records["coefficients"])
        out["buffer"], out["offset"], out["ld"] = target
        out["accumulate"] = 1
        read["first_view"], read["n_view"] = len(records["view"]) + number, 1
        view["buffer"], view["offset"] = source[:2]
        view["stride"][:, 0], view["stride"][:, 1] = source[2], 1
        self.sorts.append((block, out, read, view))
        return len(records["sort"]) + number

    def _numbered(self, tasks: Table, locks: np.ndarray, edges: np.ndarray, depth: np.ndarray) -> TaskGraph:
        """Tasks in the order of the operations, the additions of a chain as operations of their own."""
        old = self.old
        order = np.argsort(tasks["operation"], kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        sources, targets = unique_pairs(number[edges[0]], number[edges[1]])
        added = dict(zip(("sort", "out", "read", "view"), zip(*self.sorts, strict=True), strict=True))
        records = old.records | {
            name: concatenated(old.records[name].dtype, [old.records[name], *new])
            for name, new in ({"gemm": self.gemms} | added).items()
        }
        records["coefficients"] = np.append(old.records["coefficients"], 1.0)
        repeated = [op for op, levels in zip(old.operations, depth, strict=True) for _ in range(1 + levels)]
        return replace(
            old,
            operations=tuple(repeated),
            buffers=(*old.buffers, SUMS),
            tasks=tasks[order],
            records=records,
            locks=locks,
            scratch=max(old.scratch, scratch_of(records["sort"][len(old.records["sort"]) :])),
            sources=sources,
            targets=targets,
            vectors=old.vectors | {SUMS: self.length},
            find_accesses=lambda: self._accesses(number),
        )

    def _accesses(self, number: np.ndarray) -> np.ndarray:
        """Those of the old graph, its tasks numbered anew. All parts of a chain read what the chain read; the
        first one and the additions to it write what it wrote. `number` is the new one of each task."""
        known = self.old.accesses
        parts = [known.copy()]
        for task, made, writes in self.made:
            own = known[slice(*np.searchsorted(known["task"], [task, task + 1]))]
            own = own[(own["kind"] != READ) == writes].copy()
            own["task"] = made
            own["kind"] = np.where(own["kind"] == ASSIGN, ACCUMULATE, own["kind"])
            parts.append(own)
        every = np.concatenate(parts)
        every["task"] = number[every["task"]]
        return every[np.argsort(every["task"], kind="stable")]
