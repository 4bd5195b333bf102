"""Sets of orbitals, their pairs in order, and where integrals over pairs go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.chem.pair_classes import PairClasses
from tilewise.lazy import cached_property

ALL, FROM_R, ABOVE_R, UP_TO_R = 0, 1, 2, 3
"""Which p a destination takes for a column (rs): all, p >= r, p > r, or p <= r. Ranks are compared."""

# Pairs (p, q) of two irreps, that of q being `right`: a run of p by a run of q, counted in their irreps.
PAIR_RUN = np.dtype([(name, np.int64) for name in ("right", "first_p", "last_p", "first_q", "last_q")])


@dataclass(frozen=True, eq=False)
class OrbitalSet:
    """Orbitals with a number each, in the order of the columns of `coefficients`.

    `irreps` are those of the operations on functions, `labels` those of the group that the results are
    sorted by, which may be larger. Orbitals of one `kind` (occupied ones before virtual ones, frozen ones
    last) are wanted for the same places. By *rank* they are ordered by irrep, then kind, then number.
    """

    coefficients: np.ndarray
    irreps: np.ndarray
    kinds: np.ndarray
    labels: np.ndarray
    n_irreps: int
    n_kinds: int

    def __len__(self) -> int:
        return len(self.irreps)

    @property
    def frozen(self) -> int:
        """The kind of orbitals that only the Fock matrix needs."""
        return self.n_kinds - 1

    @cached_property
    def by_rank(self) -> np.ndarray:
        """The number of the orbital of each rank."""
        return np.lexsort([np.arange(len(self)), self.kinds, self.irreps])

    @cached_property
    def rank(self) -> np.ndarray:
        """Of each orbital."""
        return np.argsort(self.by_rank)

    @cached_property
    def first(self) -> np.ndarray:
        """(irreps, kinds + 1): the rank of the first orbital of each kind, and behind the last one."""
        code = self.irreps * self.n_kinds + self.kinds
        counts = np.bincount(code, minlength=self.n_irreps * self.n_kinds).reshape(self.n_irreps, -1)
        ends = counts.cumsum().reshape(counts.shape)
        return np.hstack([ends[:, :1] - counts[:, :1], ends])

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ranks p and q of each pair, and the number of the first pair of each irrep."""
        p, q, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [0]
        start, size = self.first[:, 0], self.first[:, -1] - self.first[:, 0]
        for irrep in range(self.n_irreps):
            for right in range(self.n_irreps):
                left = right ^ irrep
                if left < right:
                    continue
                if left == right:
                    a, b = np.tril_indices(size[left])
                else:
                    a, b = (x.ravel() for x in np.indices((size[left], size[right])))
                p.append(start[left] + a)
                q.append(start[right] + b)
            first.append(sum(map(len, p)))
        return np.concatenate(p), np.concatenate(q), np.array(first)

    @property
    def p(self) -> np.ndarray:
        """The rank of the orbital of each pair that ranks higher."""
        return self._pairs[0]

    @property
    def q(self) -> np.ndarray:
        """The rank of the other one."""
        return self._pairs[1]

    @property
    def first_pair(self) -> np.ndarray:
        """(irreps + 1,): the pairs of one irrep are neighbours."""
        return self._pairs[2]

    @cached_property
    def _numbers(self) -> np.ndarray:
        table = np.zeros((len(self), len(self)), np.int64)
        table[self.p, self.q] = table[self.q, self.p] = np.arange(len(self.p))
        return table

    def pairs(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Numbers of pairs of orbitals, which are given by their numbers."""
        return self._numbers[self.rank[p], self.rank[q]]

    def runs(self, irrep: int, wanted: np.ndarray) -> np.ndarray:
        """Records PAIR_RUN that have all wanted pairs of an irrep, which are given by their numbers.

        Neighbours p with the same q make one run.
        """
        start, of = self.first[:, 0], self.irreps[self.by_rank]
        p, q = self.p[wanted], self.q[wanted]
        right, p, q = of[q], p - start[of[p]], q - start[of[q]]
        rows, place = np.unique(right * len(self) + p, return_inverse=True)
        low, high = np.full(len(rows), len(self)), np.zeros(len(rows), np.int64)
        np.minimum.at(low, place, q)
        np.maximum.at(high, place, q + 1)
        right, p = np.divmod(rows, max(1, len(self)))
        whole = (high > p) & (irrep == 0)  # up to the diagonal
        new = np.ones(len(p), bool)
        new[1:] = (np.diff(right) != 0) | (np.diff(p) != 1) | (np.diff(low) != 0)
        new[1:] |= (whole[1:] != whole[:-1]) | (~whole[1:] & (np.diff(high) != 0))
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(p))[: len(first)] - 1
        made = np.zeros(len(first), PAIR_RUN)
        made["right"], made["first_p"], made["last_p"] = right[first], p[first], p[last] + 1
        made["first_q"], made["last_q"] = low[first], high[last]
        return made

    @cached_property
    def pair_labels(self) -> np.ndarray:
        labels = self.labels[self.by_rank]
        return labels[self.p] ^ labels[self.q]

    @cached_property
    def pair_kinds(self) -> tuple[np.ndarray, np.ndarray]:
        kinds = self.kinds[self.by_rank]
        return kinds[self.p], kinds[self.q]

    def in_functions(self, classes: PairClasses) -> np.ndarray:
        """Coefficients of the symmetry-adapted functions: per irrep (functions, orbitals), one after the
        other."""
        parts = []
        for irrep in range(self.n_irreps):
            mine = self.by_rank[self.first[irrep, 0] : self.first[irrep, -1]]
            parts.append((classes.adapted(irrep).T @ self.coefficients[:, mine]).ravel())
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Side:
    """Where each pair of a set stands in a tensor: an offset, or -1, and a factor."""

    offset: np.ndarray
    factor: np.ndarray

    @classmethod
    def nowhere(cls, orbitals: OrbitalSet) -> Side:
        return cls(np.full(len(orbitals.p), -1), np.ones(len(orbitals.p)))


@dataclass(frozen=True, eq=False)
class Destination:
    """(pq|rs) goes to left.offset[pq] + right.offset[rs] of the buffer, times both factors.

    `left_set` and `right_set` are the sets of orbitals of p, q and of r, s. `takes` says for which p. With
    `by_rows` neighbours among the pairs (pq), rather than (rs), are neighbours in memory.
    """

    buffer: np.ndarray
    left: Side
    right: Side
    left_set: int = 0
    right_set: int = 0
    takes: int = ALL
    by_rows: bool = False

    def wanted(self, orbitals: OrbitalSet) -> int:
        """Bits of the kinds of p and q that have a place."""
        a, b = orbitals.pair_kinds
        cells = np.unique((a * orbitals.n_kinds + b)[self.left.offset >= 0])
        return int((1 << cells).sum())
