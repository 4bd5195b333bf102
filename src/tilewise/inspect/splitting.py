"""Operations that are shared out between ranks, by where the data lies that they read.

A product with a tensor that is stored by half reads each block for its rows and for its columns. So that
every band can lie on one rank, `R = V tau` becomes `R@p = V tau` for each rank p, of which the products
with the bands of p are kept, and a sum. Sums over the rows of large tensors that make a small one (traces)
are shared out alike. So is what adds tensors over other rows than the target's, as D(ia|jb) to R(ab|ij): of
whole rows of D the home of R would need some columns. Here the home adds its own rows to R at once, and
only others have parts.

In order (deterministic) each rank goes on with what the one before has summed: the sum of a panel then goes
through the bands in the same order for every number of ranks, and all other operations are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewise.equations.program import Contract, Operation, Program, Read, Sort
from tilewise.equations.terms import Factor
from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.operations.sort import SORT_READ
from tilewise.inspect.rebuilding import rebuilt_graph
from tilewise.inspect.records import KINDS, READ, concatenated
from tilewise.tensor import Layout
from tilewise.tensor.shard import Cells

LETTERS = "abcdefgh"

SMALL = 8
"""A trace is shared out if it reads a tensor that is larger than its target by more than this factor."""


@dataclass(frozen=True)
class Split:
    """An operation with a copy for each rank; numbers of operations, and names of tensors."""

    target: str
    parts: tuple[str, ...]
    """The tensor of each rank."""
    copies: tuple[int, ...]
    carried: tuple[int, ...]
    """In order: of each rank but the first, what takes over the sum of the rank before."""
    total: int
    halved: str = ""
    """The tensor that is stored by half, if it is the reason."""
    own: int = -1
    """What the home of a panel does to the target itself: it has no part then."""


def part_name(target: str, rank: int) -> str:
    """The tensor that holds a rank's part of a sum."""
    return f"{target}@{rank}"


def split_program(program: Program, ranks: int, ordered: bool = False) -> tuple[Program, list[Split]]:
    """The program with copies of what is to be shared out; what they do then is said by `share_out`."""
    layouts, kinds = dict(program.layouts), dict(program.kinds)
    operations: list[Operation] = []
    splits: list[Split] = []
    written = {name for op in program.operations for name in op.outputs}
    for op in program.operations:
        halved = op.a if isinstance(op, Contract) and layouts[op.a].half else ""
        crosses = not ordered and _crosses_rows(op, program, written)
        if not halved and not crosses and (ordered or not _is_trace(op, program, written)):
            operations.append(op)
            continue
        (target,) = op.outputs
        names = [part_name(f"{target}.{len(operations)}", p) for p in range(ranks)]
        layouts |= dict.fromkeys(names, layouts[target])
        kinds |= dict.fromkeys(names, "intermediate")
        copies, carried = [], []
        for p, name in enumerate(names):
            if ordered and p:
                carried.append(len(operations))
                operations.append(
                    _sum(f"{name} = {names[p - 1]}", name, False, (names[p - 1],), layouts[name])
                )
            copies.append(len(operations))
            operations.append(_copy(op, name, p))
        own = len(operations) if crosses else -1
        if crosses:
            operations.append(op)
        accumulate = op.outputs[target]
        text = f"{target} {'+=' if accumulate else '='} parts of {op.text}"
        splits.append(
            Split(target, tuple(names), tuple(copies), tuple(carried), len(operations), halved, own)
        )
        operations.append(_sum(text, target, accumulate, tuple(names), layouts[target]))
    return replace(program, layouts=layouts, kinds=kinds, operations=tuple(operations)), splits


def _is_trace(op: Operation, program: Program, written: set[str]) -> bool:
    """Whether it sums over large tensors that tasks make, to one small matrix."""
    if not isinstance(op, Sort) or len(op.targets) != 1 or len(set(op.letters)) != len(op.letters):
        return False
    layout = program.layouts[op.targets[0]]
    large = [n for n in op.reads if n in written and program.layouts[n].size > SMALL * layout.size]
    return layout.rows.rank <= 1 and layout.cols.rank <= 1 and bool(large)


def _crosses_rows(op: Operation, program: Program, written: set[str]) -> bool:
    """Whether it adds tensors that tasks make, over other orbitals in their rows than those of its target."""
    if not isinstance(op, Sort) or op.accumulate != (True,) or len(set(op.letters)) != len(op.letters):
        return False
    target = program.layouts[op.targets[0]]
    read = [program.layouts[name] for name in op.reads if name in written]
    across = sum(
        layout.size for layout in read if layout.rank > 2 and _row_spaces(layout) != _row_spaces(target)
    )
    return target.rank > 2 and across >= target.size


def _row_spaces(layout: Layout) -> list[str]:
    return sorted(space.name for space in layout.rows.spaces)


def _copy(op: Operation, target: str, rank: int) -> Operation:
    text = f"{op.text} (part {rank})"
    if isinstance(op, Sort):
        return replace(op, text=text, targets=(target,), accumulate=(False,))
    assert isinstance(op, Contract)
    return replace(op, text=text, target=target, accumulate=False)


def _sum(text: str, target: str, accumulate: bool, names: tuple[str, ...], layout: Layout) -> Sort:
    letters = LETTERS[: layout.rank]
    terms = tuple(Read((Factor(name, letters),), "", (1.0,)) for name in names)
    joined = bool(layout.rows.packing), bool(layout.cols.packing)
    return Sort(text, (target,), (accumulate,), letters, terms, True, joined)


# What each copy does


def share_out(
    graph: TaskGraph,
    splits: list[Split],
    owner_of_cell: dict[str, np.ndarray],
    home_of_panel: dict[str, np.ndarray],
    ordered: bool = False,
) -> tuple[TaskGraph, np.ndarray]:
    """The graph in which each copy does the part of its rank, and the old number of each of its tasks.

    `owner_of_cell` says whose the cells of tensors stored by half and of all written tensors are,
    `home_of_panel` whose the panels of the targets are. Dependencies are found anew.
    """
    work = _Work(graph, owner_of_cell, home_of_panel, ordered)
    for split in splits:
        work.share(split)
    return work.rebuilt()


class _Work:
    def __init__(
        self,
        graph: TaskGraph,
        owner_of_cell: dict[str, np.ndarray],
        home_of_panel: dict[str, np.ndarray],
        ordered: bool,
    ) -> None:
        self.graph, self.owner, self.home, self.ordered = graph, owner_of_cell, home_of_panel, ordered
        self.tasks, self.gemms = graph.tasks.copy(), graph.records["gemm"].copy()
        self.sorts = graph.records["sort"].copy()
        self.views = graph.records["view"]
        self.kept = np.ones(len(graph), bool)
        self.kept_gemm = np.ones(len(self.gemms), bool)
        self.kept_sort = np.ones(len(self.sorts), bool)
        self.reads, self.n_reads = [graph.records["read"]], len(graph.records["read"])
        self.coefficients = [graph.records["coefficients"]]
        self.n_coefficients = len(graph.records["coefficients"])
        self.numbers = {name: k for k, name in enumerate(graph.buffers)}
        self.changed = np.zeros(len(graph), bool)  # tasks that read less than before

    def of_operation(self, number: int) -> np.ndarray:
        return np.flatnonzero(self.tasks["operation"] == number)

    def share(self, split: Split) -> None:
        n_panels, ranks = len(self.graph.panels[split.target]), len(split.parts)
        has = np.zeros((ranks, n_panels), bool)  # whether a rank has a part of a panel
        home = self.home[split.target]
        for number in (*split.copies, *split.carried, split.own, split.total):
            self.changed[self.of_operation(number)] = True
        for rank, copy in enumerate(split.copies):
            for task in self.of_operation(copy):
                keep = self.products if split.halved else self.blocks
                panel = self.tasks["panel"][task]
                left = (split.own < 0 or home[panel] != rank) and keep(int(task), rank, split)
                self.kept[task] = left
                has[rank, self.written_by(task)] |= left
        for task in self.of_operation(split.own):
            self.kept[task] = self.blocks(int(task), int(home[self.tasks["panel"][task]]), split)
        for rank, number in enumerate(split.carried, start=1):
            for task in self.of_operation(number):
                panel = self.tasks["panel"][task]
                before = np.flatnonzero(has[:rank, panel])
                self.kept[task] = bool(has[rank, panel] and len(before))
                if self.kept[task]:
                    self.choose(int(task), {self.numbers[split.parts[before[-1]]]}, split.parts[rank - 1])
        for task in self.of_operation(split.total):
            panel = self.tasks["panel"][task]
            there = np.flatnonzero(has[:, panel])
            if not len(there):
                self.kept[task] = split.own < 0
                there = home[panel : panel + 1]
            elif split.carried:
                there = there[-1:]
            self.choose(int(task), {self.numbers[split.parts[p]] for p in there})

    def written_by(self, task: int) -> np.ndarray:
        """The panels that a task writes: those of both parities of a pair."""
        known = self.graph.accesses
        first, last = np.searchsorted(known["task"], [task, task + 1])
        mine = known[first:last]
        panels: np.ndarray = mine["panel"][mine["kind"] != READ]
        return panels

    def products(self, task: int, rank: int, split: Split) -> bool:
        """Keeps the products with bands of this rank; the first of each group of rows assigns."""
        first, count = int(self.tasks["first"][task]), int(self.tasks["count"][task])
        g = self.gemms[first : first + count]
        cells = Cells.of(self.graph.panels[split.halved].layout)
        low, _ = cells.touched(g["a_offset"], g["a_offset"] + 1)
        mine = self.owner[split.halved][low] == rank
        self.kept_gemm[first : first + count] = mine
        if not split.carried:
            chosen = np.flatnonzero(mine)
            _, begin = np.unique(g["c_offset"][chosen], return_index=True)
            g["beta"][chosen[begin]] = 0.0
        return bool(mine.any())

    def blocks(self, task: int, rank: int, split: Split) -> bool:
        """Keeps the reads of what this rank has; those of small tensors go with the home of the panel."""
        first, count = int(self.tasks["first"][task]), int(self.tasks["count"][task])
        home = int(self.home[split.target][self.tasks["panel"][task]])
        left = False
        for b in range(first, first + count):
            mine = self.owners_of_reads(self.sorts[b], home) == rank
            self.kept_sort[b] = mine.any()
            left |= bool(mine.any())
            if not mine.all() and mine.any():
                self.keep_reads(b, mine)
        return left

    def owners_of_reads(self, block: np.void, home: int) -> np.ndarray:
        views, reads = self.graph.records["view"], self.graph.records["read"]
        owners = np.full(int(block["n_read"]), home)
        for k in range(len(owners)):
            read = reads[block["first_read"] + k]
            for view in views[read["first_view"] : read["first_view"] + read["n_view"]]:
                name = self.graph.buffers[view["buffer"]]
                if name in self.owner and self.graph.panels[name].layout.rank > 2:
                    low, _ = Cells.of(self.graph.panels[name].layout).touched(
                        view["offset"], view["offset"] + 1
                    )
                    owners[k] = self.owner[name][low]
                    break
        return owners

    def choose(self, task: int, buffers: set[int], instead: str = "") -> None:
        """Keeps the reads of these tensors in a task that sums; `instead`: it read that one."""
        first, count = int(self.tasks["first"][task]), int(self.tasks["count"][task])
        views, reads = self.graph.records["view"], self.graph.records["read"]
        for b in range(first, first + count):
            block = self.sorts[b]
            mine = reads[block["first_read"] : block["first_read"] + block["n_read"]]
            read = views["buffer"][mine["first_view"]]
            if instead:
                (wanted,) = buffers
                if wanted != self.numbers[instead]:
                    self.redirect(int(mine["first_view"][0]), wanted)
                continue
            chosen = np.isin(read, list(buffers))
            if not chosen.all():
                self.keep_reads(b, chosen)

    def redirect(self, view: int, buffer: int) -> None:
        if self.views is self.graph.records["view"]:
            self.views = self.views.copy()
        self.views["buffer"][view] = buffer

    def keep_reads(self, b: int, mine: np.ndarray) -> None:
        """Gives a block some of its reads."""
        block, old = self.sorts[b], self.graph.records
        first, n_out = int(block["first_coefficient"]), int(block["n_out"])
        rows = (
            old["coefficients"][first : first + int(block["n_read"]) * n_out].reshape(-1, n_out)[mine].ravel()
        )
        reads = old["read"][block["first_read"] : block["first_read"] + block["n_read"]][mine]
        block["first_read"], block["n_read"], block["first_coefficient"] = (
            self.n_reads,
            len(reads),
            self.n_coefficients,
        )
        self.reads.append(reads)
        self.coefficients.append(rows)
        self.n_reads += len(reads)
        self.n_coefficients += len(rows)

    def rebuilt(self) -> tuple[TaskGraph, np.ndarray]:
        tables = dict(self.graph.records)
        tables["view"] = self.views
        tables["read"] = concatenated(SORT_READ, self.reads)
        tables["coefficients"] = np.concatenate(self.coefficients)
        tasks = self.tasks
        for kind, kept, table in (("gemm", self.kept_gemm, self.gemms), ("sort", self.kept_sort, self.sorts)):
            mine = np.flatnonzero(tasks["kind"] == KINDS.index(kind))
            before = np.append(0, np.cumsum(kept))
            first, end = tasks["first"][mine], tasks["first"][mine] + tasks["count"][mine]
            tasks["first"][mine], tasks["count"][mine] = before[first], before[end] - before[first]
            if len(tables["chain"]):
                steps = tables["chain"] = tables["chain"].copy()
                part = np.flatnonzero(steps["kind"] == KINDS.index(kind))
                low, high = steps["first"][part], steps["first"][part] + steps["count"][part]
                steps["first"][part], steps["count"][part] = before[low], before[high] - before[low]
            tables[kind] = table[kept]
        kept = np.flatnonzero(self.kept)
        return rebuilt_graph(self.graph, tasks, tables, kept, self.changed, self.ordered), kept
