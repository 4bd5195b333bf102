"""From integrals over basis functions to integrals over orbitals, with the symmetry used.

Symmetric orbitals make (pq|rs) a sum over *symmetry-unique* pairs of shells: an operation takes the
pair (M, N) to another one, whose part of the sum is the same number. With w the number of pairs that a
unique pair stands for,

    (pq|rs) = sum over unique (M, N)   w sum over mu in M, nu in N   C_mu,p C_nu,q (mu nu|rs)   + (p <-> q)

1. For each unique pair the matrix (mu nu|..) is transformed on the right, on all cores: to symmetry-adapted
   functions first (a sparse step), where the orbitals' coefficients are block diagonal.
2. For some columns (rs) of one irrep at a time, nu becomes q, then mu becomes p, for p of the one irrep that
   makes the integral totally symmetric. The result is written to its place in the sectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewise.config import thread_limits
from tilewise.core import core

CHUNK_BYTES = 1 << 25
"""Memory for the intermediates of step 2: each core takes as many columns at a time."""


@dataclass(frozen=True)
class Orbitals:
    """Active orbitals: a column per orbital, with its irrep, and symmetry-adapted functions per irrep."""

    coefficients: np.ndarray
    irreps: np.ndarray
    functions: list[np.ndarray]  # per irrep (basis functions, adapted functions), orthonormal columns

    @cached_property
    def arguments(self) -> dict[str, np.ndarray | bool]:
        """What the native half transformation takes."""
        first_entry, entry, weight, blocks, position = [0], [], [], [], []
        first_function, first_orbital = [0], [0]
        for irrep, functions in enumerate(self.functions):
            for column in functions.T:
                used = np.flatnonzero(np.abs(column) > 1e-14)
                entry.append(used)
                weight.append(column[used])
                first_entry.append(first_entry[-1] + len(used))
            mine = np.flatnonzero(self.irreps == irrep)
            position.append(mine)
            blocks.append((functions.T @ self.coefficients[:, mine]).ravel())
            first_function.append(first_function[-1] + functions.shape[1])
            first_orbital.append(first_orbital[-1] + len(mine))
        identity = len(self.functions) == 1 and np.array_equal(
            self.functions[0], np.eye(len(self.coefficients))
        )
        return {
            "first_entry": np.array(first_entry, np.int64),
            "entry": np.concatenate(entry).astype(np.int64),
            "weight": np.concatenate(weight),
            "plain": identity,
            "first_function": np.array(first_function, np.int64),
            "first_orbital": np.array(first_orbital, np.int64),
            "position": np.concatenate(position).astype(np.int64),
            "coefficients": np.concatenate(blocks),
        }


@dataclass(frozen=True)
class Shells:
    """Shells of basis functions, and what each operation of the group makes of them."""

    first: np.ndarray  # (shells + 1,) first function of each
    images: np.ndarray  # (operations, shells)

    @cached_property
    def unique_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(M, N, w): unique pairs of shells M >= N, sorted, and how many pairs each stands for."""
        n = self.images.shape[1]
        high, low = np.tril_indices(n)
        code = high * n + low
        smallest = code.copy()
        for image in self.images:
            a, b = image[high], image[low]
            np.minimum(smallest, np.maximum(a, b) * n + np.minimum(a, b), out=smallest)
        representatives, counts = np.unique(smallest, return_counts=True)
        return representatives // n, representatives % n, counts.astype(np.float64)

    @property
    def n_functions(self) -> int:
        return int(self.first[-1])

    def count_pairs(self) -> int:
        """Pairs of functions in the unique pairs of shells."""
        size = np.diff(self.first)
        high, low, _ = self.unique_pairs
        return int((size[high] * size[low]).sum())


AoRows = Callable[[int, int, int], np.ndarray]
"""rows(M, N0, N1): (mu nu|..) for mu in shell M and nu in shells N0..N1, each a packed lower triangle."""


def transformed(
    orbitals: Orbitals, kets: np.ndarray, workers: int, out: np.ndarray | None = None
) -> np.ndarray:
    """C^T M C for each packed symmetric matrix M."""
    n = orbitals.coefficients.shape[1]
    out = np.empty((len(kets), n * (n + 1) // 2)) if out is None else out
    kets = np.ascontiguousarray(kets, dtype=np.float64)
    with thread_limits(1):  # one BLAS thread per worker
        core.half_transform(**orbitals.arguments, kets=kets, out=out, n_workers=workers)
    return out


def half_transformed(orbitals: Orbitals, shells: Shells, rows: AoRows, workers: int) -> HalfTransformed:
    """Step 1."""
    with thread_limits(1):  # not to depend on the number of threads in the last bit
        _ = orbitals.arguments
    size = np.diff(shells.first)
    n = orbitals.coefficients.shape[1]
    out = np.empty((shells.count_pairs(), n * (n + 1) // 2))
    mu, nu, weight = (np.empty(len(out), dtype) for dtype in (np.int64, np.int64, np.float64))
    at = 0
    for m, n0, n1, weights in _runs(shells):
        width = shells.first[n1] - shells.first[n0]
        kets = rows(m, n0, n1)
        part = slice(at, at + len(kets))
        transformed(orbitals, kets, workers, out[part])
        mu[part] = np.repeat(np.arange(shells.first[m], shells.first[m + 1]), width)
        nu[part] = np.tile(np.arange(shells.first[n0], shells.first[n1]), size[m])
        # (p <-> q) is added later: a pair of one shell with itself is then counted twice.
        per_shell = np.where(np.arange(n0, n1) == m, 0.5, 1.0) * weights
        weight[part] = np.tile(np.repeat(per_shell, size[n0:n1]), size[m])
        at += len(kets)
    return HalfTransformed(orbitals, out, mu, nu, weight)


def _runs(shells: Shells) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """Unique pairs as runs of consecutive N for one M."""
    high, low, weights = shells.unique_pairs
    breaks = np.flatnonzero((np.diff(high) != 0) | (np.diff(low) != 1)) + 1
    for part in np.split(np.arange(len(high)), breaks):
        yield int(high[part[0]]), int(low[part[0]]), int(low[part[-1]]) + 1, weights[part]


@dataclass(frozen=True)
class HalfTransformed:
    """(mu nu|rs) for the unique (mu, nu) and all pairs r >= s of active orbitals."""

    orbitals: Orbitals
    values: np.ndarray
    mu: np.ndarray
    nu: np.ndarray
    weight: np.ndarray

    @cached_property
    def _by_mu(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """The functions mu that occur, and the rows of each."""
        order = np.argsort(self.mu, kind="stable")
        unique, starts = np.unique(self.mu[order], return_index=True)
        return unique, np.split(order, starts[1:])

    @cached_property
    def _factors(self) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """C_p for the mu that occur, w C_q for the nu of each of them, and the place of each q there.

        Orbitals q are ordered by irrep, so that those of one kind and irrep are neighbours.
        """
        unique, rows = self._by_mu
        coefficients = self.orbitals.coefficients
        by_irrep = np.argsort(self.orbitals.irreps, kind="stable")
        weighted = [
            np.ascontiguousarray((coefficients[self.nu[r]][:, by_irrep] * self.weight[r, None]).T)
            for r in rows
        ]
        return np.ascontiguousarray(coefficients[unique].T), weighted, np.argsort(by_irrep)

    @property
    def width(self) -> int:
        """Columns that step 2 should take at a time."""
        n = self.orbitals.coefficients.shape[1]
        return max(16, CHUNK_BYTES // (8 * max(1, len(self._by_mu[0])) * n))

    def blocks(self, pairs: np.ndarray, irrep: int, wanted: Wanted) -> Iterator[Block]:
        """Step 2 for some columns: numbers of pairs rs, all of one irrep.

        The sum of both orders of mu and nu is still to be taken by the caller: (pq|rs) = Z_pq + Z_qp.
        """
        left, weighted, place_of = self._factors
        chosen = self.values[:, pairs]
        half = np.empty((len(weighted), left.shape[0], len(pairs)))
        for k, rows in enumerate(self._by_mu[1]):
            np.matmul(weighted[k], chosen[rows], out=half[k])
        for h_q in range(len(self.orbitals.functions)):
            for p, q in wanted(h_q ^ irrep, h_q):
                if len(p) and len(q):
                    low, high = place_of[q[0]], place_of[q[-1]] + 1
                    values = left[p] @ half[:, low:high].reshape(len(weighted), -1)
                    yield p, q, values.reshape(len(p), len(q), -1)


Wanted = Callable[[int, int], list[tuple[np.ndarray, np.ndarray]]]
"""wanted(h_p, h_q): the orbitals p and q to make, each a run of neighbours of that irrep."""

Block = tuple[np.ndarray, np.ndarray, np.ndarray]
"""(p, q, Z[p, q, column])."""
