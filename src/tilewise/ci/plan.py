"""What a calculation would take, before any integral: determinants, elements, memory, seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.ci.columns import Columns, element_bytes
from tilewise.ci.cost import ColumnCosts
from tilewise.ci.determinants import Determinants
from tilewise.ci.orbitals import PairNumbers
from tilewise.config import format_bytes, resident_memory
from tilewise.errors import MemoryBudgetError
from tilewise.inspect.records import TRACE
from tilewise.wording import counted

EXPECTED_CYCLES = 14
"""Of Davidson, for the prediction."""

_SLACK = 1.05
"""Segments are not filled to the last place."""


@dataclass(frozen=True, eq=False)
class CIPlan:
    """A plan is made once, and never changed by a run. Bytes and seconds."""

    determinants: Determinants = field(repr=False)
    counts: np.ndarray = field(repr=False)
    costs: ColumnCosts
    threads: int
    """Of each rank."""
    ranks: int
    policy: str
    budget: int
    roots: int
    max_space: int
    memory: dict[str, int]
    """At the peak of each stage."""
    stored_bytes: int
    """That columns may take, on each rank: all of them, or what the budget leaves."""

    @property
    def n_determinants(self) -> int:
        return len(self.determinants)

    @property
    def n_strings(self) -> tuple[int, int]:
        return len(self.determinants.alpha), len(self.determinants.beta_strings)

    @property
    def elements(self) -> int:
        """Below the diagonal, at most: some are zero by symmetry of another kind."""
        return int(self.counts[:, 0].sum())

    @property
    def column_seconds(self) -> np.ndarray:
        """Predicted, of each column."""
        return self.costs.seconds(self.counts, self.stored_share)

    @property
    def stored_share(self) -> float:
        """Of the columns, by their elements."""
        needed = _SLACK * element_bytes(self.n_determinants) * self.elements
        return min(1.0, self.ranks * self.stored_bytes / max(1.0, needed))

    @property
    def seconds(self) -> dict[str, float]:
        """Predicted, of the columns and of all products."""
        workers = self.threads * self.ranks
        building, making = (float(self.costs.seconds(self.counts, s).sum()) / workers for s in (1.0, 0.0))
        products = EXPECTED_CYCLES * (self.roots + 1)
        stored = self.stored_share * self.elements * self.costs.product / workers
        direct = (1.0 - self.stored_share) * making
        return {"columns": self.stored_share * building, "iterations": products * (stored + direct)}

    @property
    def how(self) -> str:
        """Whether columns are stored, in words."""
        if self.stored_share == 1.0:
            return "all columns are stored"
        if self.stored_bytes == 0:
            return "no column is stored: each product makes them all again"
        share = f"{100 * self.stored_share:.0f} %"
        return f"about {share} of the columns are stored, the others made again in each product"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "determinants": self.n_determinants,
            "strings": list(self.n_strings),
            "elements": self.elements,
            "threads": self.threads,
            "ranks": self.ranks,
            "policy": self.policy,
            "memory": {"budget": self.budget, "stored": self.stored_bytes, **self.memory},
            "stored_share": self.stored_share,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        most = max(self.memory.values())
        return (
            f"{counted(self.n_determinants, 'determinant')}, at most {self.elements} elements below the "
            f"diagonal, {format_bytes(most)}, {sum(self.seconds.values()):.2g} s predicted on "
            f"{counted(self.threads, 'thread')}; {self.how}"
        )


def make_plan(
    columns: Columns,
    costs: ColumnCosts,
    *,
    budget: int,
    roots: int,
    max_space: int,
    integral_bytes: int,
    direct: bool | None = None,
    ranks: int = 1,
) -> CIPlan:
    """Counts the columns and divides the memory. `direct`: True to store none, False to insist on all.

    `budget` and all that is said of memory are those of each rank; the first one has the most vectors. A rank
    that is faster than others makes more columns than they: up to twice its equal part is allowed for.
    """
    determinants, counts = columns.determinants, columns.count()
    n = len(determinants)
    fixed = {
        "before": resident_memory(),
        "integrals": _operator_bytes(columns.numbers),
        "tables": determinants.first.nbytes + counts.nbytes + n * TRACE.itemsize + 9 * 8 * n,
    }
    vectors = 8 * n * (2 * max_space + 4 * (roots + 1) + 2 * columns.workers * (roots + 1) + 6)
    needed = int(_SLACK * element_bytes(n) * int(counts[:, 0].sum())) + 16 * n
    needed += 2 * columns.workers * (3 << 20)
    always = sum(fixed.values())
    left = budget - always - vectors
    if left < 0:
        enough = format_bytes(1.05 * (always + vectors))
        raise MemoryBudgetError(
            f"{counted(n, 'determinant')} need {format_bytes(always + vectors)} without any column, and "
            f"{format_bytes(budget)} are allowed: allow {enough}, lower the rank, or freeze orbitals",
            enough,
        )
    needed = min(needed, 2 * needed // ranks)
    if direct is False and needed > left:
        enough = format_bytes(1.05 * (always + vectors + needed))
        raise MemoryBudgetError(
            f"all columns take {format_bytes(needed)}, and {format_bytes(left)} are left of "
            f"{format_bytes(budget)}: allow {enough}, or let columns be made again (direct=None)",
            enough,
        )
    stored = 0 if direct else min(needed, left)
    return CIPlan(
        determinants,
        counts,
        costs,
        columns.workers,
        ranks,
        str(columns.policy),
        budget,
        roots,
        max_space,
        {
            "integrals": always + integral_bytes,
            "iterations": always + vectors + stored,
        },
        stored,
    )


def _operator_bytes(numbers: PairNumbers) -> int:
    """Of the integrals by label, as `operators.hamiltonian` makes them."""
    _, hops = np.unique(numbers.hop_label, return_counts=True)
    _, twos = np.unique(numbers.two_label, return_counts=True)
    n = len(numbers.hop)
    return int(8 * ((hops * hops).sum() + (twos * twos).sum() + 2 * numbers.n_even * n))
