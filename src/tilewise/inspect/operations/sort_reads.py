"""The reads of a sort, expanded by the pairs of its targets and by the parities in which factors are stored.

Letters alone are handled here; which blocks there are is found later.

1. Targets packed as pairs are projections, <pq+-| = (<pq| +- <qp|) / sqrt 2: every read is expanded
   into the exchanged reads that this asks for, and equal ones are merged.
2. A packed factor gives a read for each parity in which it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod, sqrt
from typing import Any, NamedTuple

from tilewise.equations.program import Sort
from tilewise.lazy import cached_property
from tilewise.tensor import Compound, Layout


class Stored(NamedTuple):
    """One parity of a factor, as it is stored."""

    name: str
    indices: str
    row_parity: int
    col_parity: int


Key = tuple[tuple[tuple[str, str], ...], str]
"""Factors, as name and indices, and summed letters."""

ByParity = list[tuple[tuple[tuple[Stored, ...], str], list[float]]]
"""Factors and summed letters of reads, with a coefficient for each (target, parity)."""


def parity_of(compound: Compound, version: int) -> int:
    return version if compound.packing == "+-" else compound.parities[0]


@dataclass(frozen=True)
class Reads:
    """Of one set of parities of the targets."""

    op: Sort
    layouts: dict[str, Layout]
    parities: tuple[int, ...]

    @cached_property
    def groups(self) -> tuple[tuple[str, Compound, bool], ...]:
        """Letters, compound, and whether its pair stays packed: of the rows and columns of the targets."""
        layout, letters = self.layouts[self.op.targets[0]], self.op.letters
        n = layout.rows.rank
        return (
            (letters[:n], layout.rows, self.op.joined[0]),
            (letters[n:], layout.cols, self.op.joined[1]),
        )

    @cached_property
    def packed(self) -> set[str]:
        """Pairs of letters that are one axis of a block, in either order."""
        return {x for letters, _, joined in self.groups if joined for x in (letters, letters[::-1])}

    def exchanges(self) -> list[tuple[dict[int, int], list[float]]]:
        """Exchanges of letters that the targets ask for, with a factor for each parity."""
        found: list[tuple[dict[int, int], list[float]]] = [({}, [1.0] * len(self.parities))]
        for letters, compound, joined in self.groups:
            if compound.packing and not joined:
                exchange = str.maketrans(letters, letters[::-1])
                half = [sqrt(0.5)] * len(self.parities)
                signed = [parity_of(compound, version) * sqrt(0.5) for version in self.parities]
                none: dict[int, int] = {}
                found = [
                    (names | more, [x * y for x, y in zip(factors, change, strict=True)])
                    for names, factors in found
                    for more, change in ((none, half), (exchange, signed))
                ]
        return found

    def expanded(self) -> dict[Key, list[float]]:
        """Step 1."""
        merged: dict[Key, list[float]] = {}
        exchanges = self.exchanges()
        for read in self.op.terms:
            for names, signs in exchanges:
                factors = [(f.name, self.canonical(f.name, f.indices.translate(names))) for f in read.factors]
                key = (tuple(sorted(factors, key="[".join)), read.sums)
                _add(merged, key, [sign * c for c in read.coefficients for sign in signs])
        return merged

    def canonical(self, name: str, indices: str) -> str:
        """x(pq|rs) = x(qp|sr) for a tensor packed as exchange pairs on both sides."""
        layout = self.layouts[name]
        if layout.rows.packing == layout.cols.packing == "+-":
            return min(indices, indices[1::-1] + indices[:1:-1])
        return indices

    def by_parity(self) -> ByParity:
        """Step 2.

        Exchanging the letters of a pair then is a sign, so that reads which differ in that alone are one.
        """
        merged: dict[tuple[tuple[Stored, ...], str], list[float]] = {}
        for (factors, sums), coefficients in self.expanded().items():
            if any(coefficients) and all(self.layouts[name].size for name, _ in factors):
                for choice in product(*(self.stored_forms(*factor) for factor in factors)):
                    stored, signs = zip(*choice, strict=True)
                    sign = prod(signs)
                    _add(merged, (stored, sums), [sign * c for c in coefficients])
        return [(key, coefficients) for key, coefficients in merged.items() if any(coefficients)]

    def stored_forms(self, name: str, indices: str) -> list[tuple[Stored, int]]:
        layout = self.layouts[name]
        n = layout.rows.rank
        found = []
        for parities in product(layout.rows.parities, layout.cols.parities):
            if layout.rows.packing == layout.cols.packing == "+-" and parities[0] != parities[1]:
                continue
            sign, letters = 1, ""
            for group, parity in zip((indices[:n], indices[n:]), parities, strict=True):
                if parity and group not in self.packed and group[0] > group[1]:
                    sign, group = sign * parity, group[::-1]
                letters += group
            found.append((Stored(name, letters, *parities), sign))
        return found


def _add(merged: dict[Any, list[float]], key: tuple[Any, ...], values: list[float]) -> None:
    before = merged.get(key) or [0.0] * len(values)
    merged[key] = [x + y for x, y in zip(before, values, strict=True)]
