"""The reads of a sort, expanded by the pairs of its targets and by the parities in which factors are stored.

Letters alone are handled here; which blocks there are is found later.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np

from tilewise.equations.program import Sort
from tilewise.equations.terms import Factor
from tilewise.tensor import Compound, Layout

Key = tuple[tuple[Factor, ...], str]


@dataclass(frozen=True)
class Stored:
    """One parity of a factor, as it is stored."""

    name: str
    indices: str
    row_parity: int
    col_parity: int


def parity_of(compound: Compound, version: int) -> int:
    return version if compound.packing == "+-" else compound.parities[0]


@dataclass(frozen=True)
class Reads:
    """Of one set of parities of the targets; `kept`: letters and packed pairs that are axes of a block."""

    op: Sort
    layouts: dict[str, Layout]
    parities: tuple[int, ...]
    kept: frozenset[str]

    @property
    def groups(self) -> tuple[tuple[str, Compound, bool], tuple[str, Compound, bool]]:
        """Letters, compound, and whether its pair stays packed: of the rows and columns of the targets."""
        layout = self.layouts[self.op.targets[0]]
        n = layout.rows.rank
        return (
            (self.op.letters[:n], layout.rows, self.op.joined[0]),
            (self.op.letters[n:], layout.cols, self.op.joined[1]),
        )

    def expanded(self) -> dict[Key, np.ndarray]:
        """Reads by factors and sums; coefficients for (target, parity)."""
        merged: dict[Key, np.ndarray] = {}
        for v, version in enumerate(self.parities):
            options = []
            for letters, compound, joined in self.groups:
                choice: list[tuple[dict[str, str], float]]
                choice = [({}, 1.0)] if joined or not compound.packing else []
                if not choice:
                    p, q = letters[0], letters[1]
                    sign = parity_of(compound, version)
                    choice = [({}, sqrt(0.5)), ({p: q, q: p}, sign * sqrt(0.5))]
                options.append(choice)
            for read in self.op.terms:
                for (row_map, row_factor), (col_map, col_factor) in product(*options):
                    renamed = tuple(f.renamed(row_map | col_map) for f in read.factors)
                    key = (tuple(sorted(map(self.canonical, renamed), key=str)), read.sums)
                    table = merged.setdefault(key, np.zeros((len(self.op.targets), len(self.parities))))
                    table[:, v] += row_factor * col_factor * np.array(read.coefficients)
        return {key: c for key, c in merged.items() if np.abs(c).max() > 0}

    def canonical(self, factor: Factor) -> Factor:
        """x(pq|rs) = x(qp|sr) for a tensor packed as exchange pairs on both sides."""
        layout = self.layouts[factor.name]
        if layout.rows.packing == layout.cols.packing == "+-":
            other = factor.indices[1::-1] + factor.indices[:1:-1]
            return Factor(factor.name, min(factor.indices, other))
        return factor

    def by_parity(self) -> dict[tuple[tuple[Stored, ...], str], np.ndarray]:
        """The expanded reads, a packed factor once for each parity in which it is stored.

        Exchanging the letters of a pair then is a sign, so that reads which differ in that alone are one.
        """
        merged: dict[tuple[tuple[Stored, ...], str], np.ndarray] = {}
        for (factors, sums), coefficients in self.expanded().items():
            if not all(self.layouts[factor.name].size for factor in factors):
                continue
            for choice in product(*(self.stored_forms(factor) for factor in factors)):
                sign = np.prod([s for _, s in choice])
                key = (tuple(stored for stored, _ in choice), sums)
                merged[key] = merged.get(key, 0.0) + sign * coefficients
        return {key: c for key, c in merged.items() if np.abs(c).max() > 0}

    def stored_forms(self, factor: Factor) -> list[tuple[Stored, int]]:
        layout = self.layouts[factor.name]
        n = layout.rows.rank
        found = []
        for parities in product(layout.rows.parities, layout.cols.parities):
            if layout.rows.packing == layout.cols.packing == "+-" and parities[0] != parities[1]:
                continue
            sign, letters = 1, []
            for group, parity in zip((factor.indices[:n], factor.indices[n:]), parities, strict=True):
                if parity and group not in self.kept and group[0] > group[1]:
                    sign, group = sign * parity, group[::-1]
                letters.append(group)
            found.append((Stored(factor.name, "".join(letters), *parities), sign))
        return found
