"""Columns of an operator over determinants: counted, stored by the workers that make them, multiplied.

Each column is a task of a loop. Whoever makes it keeps it; what memory does not hold is made again in each
product, by the same policy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from tilewise.ci.determinants import Determinants
from tilewise.ci.operators import Operator
from tilewise.ci.orbitals import PairNumbers
from tilewise.core import core
from tilewise.errors import TaskError
from tilewise.inspect.loop import LoopGraph
from tilewise.inspect.records import TRACE, Table
from tilewise.native import COUNTS
from tilewise.schedule import Policy, Schedule, Team

SEGMENT_BYTES = 4 << 20
"""Of a segment: two huge pages of 2 MB, so that a worker's last one wastes little."""

COLUMN_COUNTS: tuple[str, ...] = core.column_counts
"""What is counted of a column: elements at most; those with a hop of each spin; alpha strings that have such,
and that were looked at for them; beta strings two orbitals apart that were looked at; and what was looked up
if the column before has another alpha string."""


def element_bytes(n_determinants: int) -> int:
    """Of a stored element: its value as float64, and its row in as few bytes as the last row needs."""
    return 8 + (2 if n_determinants <= 1 << 16 else 3 if n_determinants <= 1 << 24 else 4)


@dataclass
class Built:
    """What came of making columns."""

    trace: Table
    counts: np.ndarray
    """A row for each worker, with the columns `native.COUNTS`."""
    seconds: float
    stored: np.ndarray
    """Whether each column is kept."""
    schedule: Schedule
    predicted: np.ndarray

    def by_worker(self) -> dict[str, list[float]]:
        """What each worker counted, in seconds and bytes."""
        of = {name: self.counts[:, k] for k, name in enumerate(COUNTS)}
        return {
            "counter_calls": of["counter_calls"].tolist(),
            "steals": of["steals"].tolist(),
            "counter_seconds": (1e-9 * of["counter_nanoseconds"]).tolist(),
            "arena_bytes": (8 * of["most_memory"]).tolist(),
            "allocations": of["allocations"].tolist(),
        }


@dataclass
class Columns:
    """The columns of operators over determinants, on the threads of this machine."""

    determinants: Determinants
    numbers: PairNumbers
    workers: int
    policy: Policy
    processors: tuple[int, ...] = ()
    _matrix: core.ColumnMatrix = field(init=False, repr=False)
    _operator: Operator = field(init=False, repr=False)
    _diagonal: np.ndarray = field(init=False, repr=False)
    _own: np.ndarray = field(init=False, repr=False)
    _direct: np.ndarray = field(init=False, repr=False)
    _seconds: np.ndarray = field(init=False, repr=False)
    _direct_schedule: Schedule | None = field(init=False, repr=False, default=None)
    table_bytes: int = field(init=False, default=0)
    """Of the strings and their lists."""
    direct_trace: Table | None = field(init=False, repr=False, default=None)
    """Of the columns that the last product made."""

    def __post_init__(self) -> None:
        determinants = self.determinants
        alpha, beta = determinants.alpha, determinants.beta_strings
        tables = [alpha.tables(self.numbers, self.workers)]
        if not alpha.equals(beta):
            tables.append(beta.tables(self.numbers, self.workers))
        self.table_bytes = sum(array.nbytes for side in tables for array in side.values())
        self._matrix = core.ColumnMatrix(tables[0], tables[-1], determinants.pairing(), self.workers)

    def count(self, columns: np.ndarray | None = None) -> np.ndarray:
        """COLUMN_COUNTS of each column (columns, 6), without any integral."""
        chosen = np.arange(len(self.determinants)) if columns is None else columns
        counted: np.ndarray = self._matrix.count(chosen.astype(np.int64))
        return counted.reshape(len(chosen), len(COLUMN_COUNTS))

    def use(self, operator: Operator) -> None:
        """Takes an operator; columns of the one before are forgotten."""
        self._set(operator)
        self._seconds = np.ones(len(self.determinants))
        self.forget()

    def _set(self, operator: Operator) -> None:
        self._operator = operator
        self._matrix.set_operator(operator.tables())
        self._diagonal = self._matrix.diagonal()

    @property
    def diagonal(self) -> np.ndarray:
        return self._diagonal

    def forget(self) -> None:
        """Nothing is stored any more: all columns would be made again."""
        self._matrix.clear()
        self._direct = self._own = np.arange(len(self.determinants))
        self._direct_schedule = None

    def build(self, room: np.ndarray, seconds: np.ndarray, budget: int) -> Built:
        """Makes all columns by the policy and keeps them while `budget` bytes last.

        `room` are the elements of each column at most, `seconds` what each is expected to take.
        """
        self.forget()
        everything = np.arange(len(self.determinants))
        built = self.make(everything, room, seconds, budget)
        self.own(everything, everything[~built.stored], seconds)
        return built

    def make(self, columns: np.ndarray, room: np.ndarray, seconds: np.ndarray, budget: int) -> Built:
        """Makes some columns beside those that are there; `room` and `seconds` are those of these columns."""
        graph = LoopGraph(len(columns), "column")
        schedule = self.policy(graph, seconds, Team(self.workers))
        schedule.check(graph)
        stored, trace = np.zeros(len(graph), np.uint8), np.zeros(len(graph), TRACE)
        size = min(SEGMENT_BYTES, budget // (8 * self.workers))
        # One element less, since a byte behind the last row is read, too.
        segment = max(1024, size // element_bytes(len(self.determinants)) - 1)
        began = time.perf_counter()
        outcome = self._matrix.build(
            schedule.arrays(graph),
            columns,
            room.astype(np.int64),
            int(budget),
            segment,
            stored,
            trace.view(np.uint8),
            list(self.processors),
        )
        took = time.perf_counter() - began
        return Built(trace, _checked(outcome, graph), took, stored.astype(bool), schedule, seconds)

    def own(self, columns: np.ndarray, direct: np.ndarray, seconds: np.ndarray) -> None:
        """Says which columns are multiplied here, and which of them are made again in each product.

        `seconds` are those of all columns, whoever has them.
        """
        self._own, self._direct, self._seconds = columns, direct, seconds
        self._direct_schedule = None

    def multiply(self, x: np.ndarray, *, with_diagonal: bool = True) -> np.ndarray:
        """The operator times vectors (k, n); columns that are not stored are made on the way."""
        if self._direct_schedule is None:
            self._direct_schedule = self._shared(self._direct)
        return self._multiplied(x, self._direct, self._direct_schedule, True, with_diagonal)

    def multiply_by(self, operator: Operator, x: np.ndarray, *, with_diagonal: bool = True) -> np.ndarray:
        """Another operator times vectors (k, n), all of whose columns are made on the way.

        Stored columns of the operator in use stay.
        """
        in_use = self._operator
        self._set(operator)
        try:
            return self._multiplied(x, self._own, self._shared(self._own), False, with_diagonal)
        finally:
            self._set(in_use)

    def _shared(self, columns: np.ndarray) -> Schedule:
        """How the workers share some columns in a product."""
        return self.policy(LoopGraph(len(columns), "column"), self._seconds[columns], Team(self.workers))

    def expectation(self, operator: Operator, x: np.ndarray) -> np.ndarray:
        """<x|operator|x> of each vector (k, n)."""
        return np.einsum("ki,ki->k", x, self.multiply_by(operator, x))

    def spin_squared(self, x: np.ndarray) -> np.ndarray:
        """<S^2> of each vector (k, n); of few elements, so that rank 0 needs no help."""
        squares: np.ndarray = self._matrix.spin_squared(np.ascontiguousarray(x, dtype=np.float64).ravel())
        return squares

    def _multiplied(
        self, x: np.ndarray, columns: np.ndarray, schedule: Schedule, with_stored: bool, with_diagonal: bool
    ) -> np.ndarray:
        x = np.ascontiguousarray(x, dtype=np.float64)
        y = np.empty_like(x)
        graph = LoopGraph(len(columns), "column times vector")
        trace = np.zeros(len(graph), TRACE)
        outcome = self._matrix.multiply(
            x.ravel(),
            y.ravel(),
            self._diagonal if with_diagonal else np.zeros_like(self._diagonal),
            schedule.arrays(graph),
            columns,
            trace.view(np.uint8),
            list(self.processors),
            with_stored,
        )
        if len(graph):
            _checked(outcome, graph)
            self.direct_trace = trace
        return y

    def density(self, x: np.ndarray) -> np.ndarray:
        """The spin-summed density matrix (n, n) of a vector, between orbitals of the same label."""
        by_pair = self._matrix.density(np.ascontiguousarray(x), self.numbers.n_even)
        n = len(self.numbers.hop)
        half = np.zeros((n, n))
        even = slice(0, self.numbers.n_even)
        half[self.numbers.new[even], self.numbers.old[even]] = by_pair
        return half + half.T - np.diag(np.diag(half))

    @property
    def elements(self) -> np.ndarray:
        """Stored by each worker."""
        return np.array([self._matrix.elements(w) for w in range(self.workers)])

    @property
    def bytes(self) -> int:
        """Allocated for stored columns by all workers."""
        return sum(self._matrix.bytes(w) for w in range(self.workers))

    @property
    def n_direct(self) -> int:
        """Columns that are made again in each product."""
        return len(self._direct)

    def stored_columns(self, worker: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """(column, rows, values) in the order in which a worker made them; copies, for small matrices."""
        return list(self._matrix.columns(worker))

    def dense(self) -> np.ndarray:
        """The whole matrix, of small spaces whose columns are stored."""
        full = np.diag(self._diagonal)
        for worker in range(self.workers):
            for column, rows, values in self.stored_columns(worker):
                full[rows, column] = full[column, rows] = values
        return full


def _checked(outcome: tuple[int, str, list[tuple[int, ...]]], graph: LoopGraph) -> np.ndarray:
    """What each worker counted; raises if a task has failed."""
    failed, reason, counts = outcome
    if failed >= 0:
        raise TaskError(f"{reason} in {graph.describe(failed)}")
    return np.array(counts, np.int64).reshape(-1, len(COUNTS))
