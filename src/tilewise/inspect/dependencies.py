"""What every graph of tasks has: operations, tasks as arrays, and who needs whom.

Task numbers follow the operations, so every dependency points from a lower to a higher number, and never
from one task of an operation to another. Policies, schedules, the simulator and traces need no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast

import numpy as np

from tilewise.inspect.records import ACCUMULATE, READ, Table
from tilewise.lazy import cached_property


@dataclass(frozen=True)
class Traffic:
    """What each task moves if all tensors lie elsewhere: numbers of messages, and bytes.

    The names are those of the arguments of `simulate`.
    """

    gets: np.ndarray
    puts: np.ndarray
    bytes_got: np.ndarray
    bytes_put: np.ndarray


class Graph(ABC):
    """Tasks and their dependencies. Subclasses are dataclasses with these fields and more.

    A task is a record with at least its `operation` and its `kind`, a number in `records.KINDS`.
    """

    operations: Sequence[Any]  # each with a `text`
    tasks: Table
    sources: np.ndarray  # edges: sources[e] must end before targets[e] begins
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.tasks)

    @cached_property
    def successors(self) -> tuple[np.ndarray, np.ndarray]:
        """(first, list): the tasks that wait for task t are list[first[t] : first[t + 1]]."""
        order = np.argsort(self.sources, kind="stable")
        first = np.searchsorted(self.sources[order], np.arange(len(self) + 1))
        return first.astype(np.int64), self.targets[order].astype(np.int64)

    @cached_property
    def n_needed(self) -> np.ndarray:
        """How many tasks each task waits for."""
        return np.bincount(self.targets, minlength=len(self)).astype(np.int64)

    @cached_property
    def operation_levels(self) -> np.ndarray:
        """Level of each operation: one more than the highest level that it waits for."""
        op, n = self.tasks["operation"], len(self.operations)
        pairs = np.unique(op[self.targets] * n + op[self.sources])
        level = np.zeros(n, np.int64)
        for pair in pairs.tolist():
            after, before = divmod(pair, n)
            level[after] = max(level[after], level[before] + 1)
        return level

    @cached_property
    def levels(self) -> np.ndarray:
        return self.operation_levels[self.tasks["operation"]]

    def longest_path(
        self, cost: np.ndarray, way: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    ) -> np.ndarray:
        """Cost of the most expensive path from each task to the end, its own cost included.

        `way` gives the cost of edges, from their sources and targets.
        """
        after = np.zeros(len(self))
        first, following = self.successors
        bounds = np.searchsorted(self.tasks["operation"], np.arange(len(self.operations) + 1))
        source = np.repeat(np.arange(len(self)), np.diff(first))
        total = np.zeros(len(self))
        for op in reversed(range(len(self.operations))):
            low, high = bounds[op], bounds[op + 1]
            edges = slice(first[low], first[high])
            extra = way(source[edges], following[edges]) if way else 0.0
            np.maximum.at(after, source[edges], total[following[edges]] + extra)
            total[low:high] = cost[low:high] + after[low:high]
        return total

    def part(self, tasks: np.ndarray) -> Self:
        """Some of the tasks, with the dependencies among them."""
        number = np.full(len(self), -1, np.int64)
        number[tasks] = np.arange(len(tasks))
        kept = (number[self.sources] >= 0) & (number[self.targets] >= 0)
        changed = {
            "tasks": self.tasks[tasks],
            "sources": number[self.sources[kept]],
            "targets": number[self.targets[kept]],
        }
        return cast(Self, replace(cast(Any, self), **changed))

    @property
    def chains(self) -> np.ndarray:
        """The number of each task's chain: products that are summed, and the tasks that sum them.

        Numbers follow the tasks. Unless chains were cut, each task is one.
        """
        return np.arange(len(self))

    @property
    @abstractmethod
    def flops(self) -> np.ndarray:
        """Floating-point operations of the products in each task (a multiply-add counts two)."""

    @property
    def sorted_words(self) -> np.ndarray:
        """Words that each task puts into another order; none unless a kind of graph has them."""
        return np.zeros(len(self))

    @property
    def operand_words(self) -> np.ndarray:
        """Words of the operands and results of each task's products; none unless a kind of graph has them."""
        return np.zeros(len(self))

    @property
    @abstractmethod
    def traffic(self) -> Traffic:
        """What each task gets before it computes and accumulates after that."""

    @property
    @abstractmethod
    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        """Tuples that each operation would visit without an inspector, null ones included.

        (place, count): where each task stands among the tuples of its operation, and how many there are
        of each operation.
        """

    @property
    @abstractmethod
    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which data the products of each task read.

        (task, block, size): different pairs of tasks and blocks, in the order of the blocks, and the bytes of
        each block.
        """

    @abstractmethod
    def describe(self, task: int) -> str:
        """Operation and block of a task, for people: "operation '...', block ..."."""


def numbered(major: np.ndarray, minor: np.ndarray) -> np.ndarray:
    """Numbers from 0 up, the same for tasks with the same two keys, in the order in which they come first."""
    keys = major * (1 + int(minor.max(initial=0))) + minor
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]


AnyGraph = TypeVar("AnyGraph", bound=Graph)
"""For functions that change a graph and keep its kind."""


def dependencies(
    task: np.ndarray, panel: np.ndarray, access: np.ndarray, n_tasks: int, n_panels: int, ordered: bool
) -> np.ndarray:
    """The twin of the native function: pairs (2, n) of tasks of which the second waits for the first, sorted.

    Of what happened to a panel since it was assigned last, a reader waits for all that was written, who
    assigns for everything, and who accumulates for the assignment and the readers (and, if `ordered`, for
    other accumulations).
    """
    assigned: dict[int, set[int]] = defaultdict(set)
    added: dict[int, set[int]] = defaultdict(set)
    read: dict[int, set[int]] = defaultdict(set)
    edges: set[tuple[int, int]] = set()
    in_order = np.argsort(task, kind="stable")
    for t, p, kind in zip(task[in_order].tolist(), panel[in_order].tolist(), access[in_order], strict=True):
        needed = set(assigned[p])
        if kind != ACCUMULATE or ordered:
            needed |= added[p]
        if kind != READ:
            needed |= read[p]
        edges |= {(source, t) for source in needed - {t}}
        if kind == READ:
            read[p].add(t)
        elif kind == ACCUMULATE:
            added[p].add(t)
        else:
            assigned[p], added[p], read[p] = {t}, set(), set()
    return np.array(sorted(edges), np.int64).reshape(-1, 2).T
