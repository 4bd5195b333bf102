"""What every rank makes for itself, because less is read for it than is made.

A product C(I|J) = A(I|K) B(K|J) reads all of B, whoever has the rows of C. Where B is made by a sort from
something smaller, as U(ia|jb) and X(ia|jb) from T(ab|ij), each rank gets what the sort reads and makes a B of
its own: rank 0 has it under its name, rank p as `B@p`. Of its B a rank makes only what its tasks read.

A sort that exchanges the orbitals of a row, as of M(ba|ji) in R(ab|ij), reads rows of the other ranks, about
half of all. Where a one-index product has made them from something smaller, N(kb|ij), they are made alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from tilewise.equations.program import Contract, FormedContract, Operation, Program, RowContract, Sort
from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.operations import kinds
from tilewise.inspect.rebuilding import rebuilt_graph
from tilewise.inspect.records import READ

Maker = Sort | RowContract
"""What can be repeated."""


@dataclass(frozen=True)
class Repeated:
    """An operation with a copy for each rank; the first is the operation itself."""

    copies: tuple[Maker, ...]

    @property
    def owners(self) -> dict[str, int]:
        """The rank of each tensor that a copy makes."""
        return {name: rank for rank, copy in enumerate(self.copies) for name in copy.outputs}


def own_name(target: str, rank: int) -> str:
    """The tensor that a rank has instead of `target`."""
    return f"{target}@{rank}" if rank else target


def repeat(program: Program, ranks: int) -> tuple[Program, list[Repeated]]:
    """The program with a copy for each rank of what is worth it; who reads which is said later."""
    layouts, kinds_of = dict(program.layouts), dict(program.kinds)
    chosen = _worth_repeating(program) if ranks > 1 else set()
    operations: list[Operation] = []
    repeated = []
    for op in program.operations:
        operations.append(op)
        if not isinstance(op, Maker) or op not in chosen:
            continue
        copies = [op]
        for rank in range(1, ranks):
            copies.append(_copy(op, rank))
            layouts |= {own_name(name, rank): layouts[name] for name in op.outputs}
            kinds_of |= dict.fromkeys(copies[-1].outputs, "intermediate")
        operations += copies[1:]
        repeated.append(Repeated(tuple(copies)))
    changed = replace(program, layouts=layouts, kinds=kinds_of, operations=tuple(operations))
    return changed, repeated


def _copy(op: Maker, rank: int) -> Maker:
    names = tuple(own_name(name, rank) for name in op.outputs)
    text = f"{op.text} (on rank {rank})"
    if isinstance(op, Sort):
        return replace(op, text=text, targets=names)
    return replace(op, text=text, target=names[0])


def _worth_repeating(program: Program) -> set[Operation]:
    """What makes tensors that would be moved, and reads less that is not on all ranks anyway."""
    whole = set(_read_whole(program.operations))
    exchanged = _read_exchanged(program) - whole
    left = _alone(program)
    grows = True
    chosen: set[Operation] = set()
    while grows:
        grows = False
        for targets, makers in list(left.items()):
            read = {name for op in makers for name in op.reads} - whole
            moved = _size(program, whole & set(targets)) + _size(program, exchanged & set(targets)) / 2
            if _size(program, read) < moved:
                chosen.update(makers)
                whole |= read  # what other sorts read of it costs nothing more
                del left[targets]
                grows = True
    return chosen


def _alone(program: Program) -> dict[tuple[str, ...], list[Maker]]:
    """By their targets: what assigns large tensors and adds to them, where nothing else writes these."""
    makers: dict[tuple[str, ...], list[Operation]] = {}
    for op in program.operations:
        makers.setdefault(tuple(op.outputs), []).append(op)
    found: dict[tuple[str, ...], list[Maker]] = {}
    for targets, operations in makers.items():
        able = [op for op in operations if isinstance(op, RowContract) or _is_plain(op)]
        others = [name for other in makers if other != targets for name in other]
        is_large = targets and all(program.layouts[name].rank > 2 for name in targets)
        if is_large and len(able) == len(operations) and not set(targets) & set(others):
            found[targets] = able
    return found


def _is_plain(op: Operation) -> TypeGuard[Sort]:
    """A sort of whole tensors, not of diagonals."""
    return isinstance(op, Sort) and len(set(op.letters)) == len(op.letters)


def _read_whole(operations: Iterable[Operation]) -> list[str]:
    """Right operands of products with matrices."""
    return [op.b for op in operations if isinstance(op, Contract | FormedContract)]


def _read_exchanged(program: Program) -> set[str]:
    """Tensors of which a sort takes the letters of its rows in another order."""
    found = set()
    for op in program.operations:
        if not _is_plain(op):
            continue
        target = op.letters[: program.layouts[op.targets[0]].rows.rank]
        for factor in (factor for read in op.terms for factor in read.factors):
            own = factor.indices[: program.layouts[factor.name].rows.rank]
            if own != target and sorted(own) == sorted(target):
                found.add(factor.name)
    return found


def _size(program: Program, names: set[str]) -> int:
    return sum(program.layouts[name].size for name in names)


def with_own_copies(graph: TaskGraph, repeated: list[Repeated], rank: np.ndarray, ordered: bool) -> TaskGraph:
    """The graph in which every task reads what its own rank has made, and what nobody reads is not made.

    `rank` is that of each task.
    """
    own = _own_numbers(graph, repeated)
    tables, changed = dict(graph.records), np.zeros(len(graph), bool)
    for name, kind in kinds.items():
        if not len(graph.records[name]):
            continue
        owner = graph.owners(name)
        for span in kind.spans(graph):
            task = owner[span.record]
            reads = np.flatnonzero((np.asarray(span.access) == READ) & (task >= 0))
            reads = reads[np.isin(span.buffer[reads], list(own))]
            if not len(reads):
                continue
            table = tables[span.table] = tables[span.table].copy()
            for number in np.unique(span.buffer[reads]).tolist():
                mine = reads[span.buffer[reads] == number]
                table[span.name][span.row[mine]] = own[number][rank[task[mine]]]
                changed[task[mine]] = True
    kept = np.flatnonzero(_needed(graph, repeated, own, rank))
    return rebuilt_graph(graph, graph.tasks, tables, kept, changed, ordered)


def _own_numbers(graph: TaskGraph, repeated: list[Repeated]) -> dict[int, np.ndarray]:
    """Of each repeated tensor, by its number among the buffers, the numbers of those of all ranks."""
    numbers = {name: number for number, name in enumerate(graph.buffers)}
    found = {}
    for one in repeated:
        for names in zip(*(copy.outputs for copy in one.copies), strict=True):
            found[numbers[names[0]]] = np.array([numbers[name] for name in names])
    return found


def _needed(
    graph: TaskGraph, repeated: list[Repeated], own: dict[int, np.ndarray], rank: np.ndarray
) -> np.ndarray:
    """Whether each task is needed: of the repeated ones, those that make what a task of their rank reads."""
    first = np.arange(len(graph.buffers))
    for number, all_ranks in own.items():
        first[all_ranks] = number
    table = graph.accesses[np.isin(first[graph.accesses["tensor"]], list(own))]
    task, reading = table["task"], table["kind"] == READ
    panels = 1 + int(table["panel"].max(initial=0))
    place = (first[table["tensor"]] * panels + table["panel"]) * (1 + int(rank.max(initial=0))) + rank[task]
    numbers = {op: number for number, op in enumerate(graph.operations)}
    makers = [np.isin(graph.tasks["operation"], [numbers[op] for op in one.copies]) for one in repeated]
    needed: np.ndarray = ~np.any([np.zeros(len(graph), bool), *makers], axis=0)
    for mine in reversed(makers):  # an earlier one may be read by a later one
        wanted = np.unique(place[reading & needed[task]])
        making = np.flatnonzero(~reading & mine[task])
        needed[task[making[np.isin(place[making], wanted)]]] = True
    return needed
