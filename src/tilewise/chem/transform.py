"""From integrals over basis functions to integrals over orbitals, with the symmetry used.

Symmetric orbitals make (pq|rs) a sum over *symmetry-unique* pairs of shells: an operation takes the
pair (M, N) to another one, whose part of the sum is the same number. With w the number of pairs that a
unique pair stands for,

    (pq|rs) = sum over unique (M, N)   w sum over mu in M, nu in N   C_mu,p C_nu,q (mu nu|rs)   + (p <-> q)

1. For each unique pair the matrix (mu nu|..) is transformed on the right, on all cores: to symmetry-adapted
   functions first (a sparse step), where the coefficients are block diagonal. Pairs (rs) are kept as
   columns in the order that the caller wants. The Fock matrix is summed from the same matrices.
2. For some columns (rs) of one irrep at a time, nu becomes q, then mu becomes p, for p of the one irrep that
   makes the integral totally symmetric. The result is added to its place in the sectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tilewise.config import thread_limits
from tilewise.core import core

# Some neighbouring columns of one irrep for step 2, and the products to make for them, as the native core has
# them; `Columns` says what the fields mean.
COLUMNS = np.dtype(
    [(name, np.int64) for name in ("first", "count", "first_job", "n_jobs", "table", "target_column")]
    + [(name, np.int64) for name in ("symmetric", "sector_offset", "row_length", "last")]
)
# Orbitals p and q, as ranges in the order of the coefficients.
JOB = np.dtype([(name, np.int64) for name in ("first_p", "n_p", "first_q", "n_q")])

PAGE = 512
"""Numbers on a page of memory."""

RUN_BYTES = 1 << 26
"""Integrals over basis functions that are transformed at a time."""


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


@dataclass(frozen=True)
class Kets:
    """Symmetric matrices over basis functions, packed lower triangles: rows of `values`, in any strides.

    With `numbers`, `values` is one row that is itself a packed triangle, a matrix of pairs, and they are
    rows of this matrix.
    """

    values: np.ndarray
    numbers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values) if self.numbers is None else len(self.numbers)

    def dense(self, which: np.ndarray) -> np.ndarray:
        """Some of them as a matrix."""
        if self.numbers is None:
            return np.ascontiguousarray(self.values[which])
        rows, packed = self.numbers[which][:, None], self.values[0]
        every = np.arange(int(np.sqrt(2 * len(packed))))
        high, low = np.maximum(rows, every), np.minimum(rows, every)
        return packed[high * (high + 1) // 2 + low]


@dataclass(frozen=True)
class Field:
    """What a Fock matrix is made of besides the integrals, over basis functions."""

    density: np.ndarray
    core: np.ndarray  # the core Hamiltonian


AoRows = Callable[[int, int, int], Kets]
"""rows(M, N0, N1): (mu nu|..) for mu in shell M and nu in shells N0..N1."""


def transformed(orbitals: Orbitals, kets: np.ndarray, workers: int) -> np.ndarray:
    """C^T M C for each packed symmetric matrix M."""
    n = orbitals.coefficients.shape[1]
    pairs = n * (n + 1) // 2
    out = np.empty((len(kets), pairs))
    places = np.arange(pairs), np.full(pairs, pairs)
    _half_transform(orbitals, Kets(kets), places, np.arange(len(kets)), out.reshape(-1), workers)
    return out


def _half_transform(
    orbitals: Orbitals,
    kets: Kets,
    places: tuple[np.ndarray, np.ndarray],
    row: np.ndarray,
    out: np.ndarray,
    workers: int,
    fock: dict[str, np.ndarray] | None = None,
) -> None:
    nothing = np.zeros(0)
    none = np.zeros(0, np.int64)
    fock = fock or {
        "density": np.zeros((0, 0)),
        "mu": none,
        "nu": none,
        "ket_weight": nothing,
        "coulomb": nothing,
        "exchange": np.zeros((0, 0)),
    }
    with thread_limits(1):  # one BLAS thread per worker
        core.half_transform(
            **orbitals.arguments,
            column=places[0],
            step=places[1],
            kets=kets.values,
            numbers=none if kets.numbers is None else kets.numbers,
            row=row,
            out=out,
            n_workers=workers,
            **fock,
        )


def half_transformed(
    orbitals: Orbitals,
    shells: Shells,
    rows: AoRows,
    pairs: list[np.ndarray],
    workers: int,
    field: Field | None = None,
) -> HalfTransformed:
    """Step 1, for the given sets of pairs r >= s of orbitals; with a field, also the Fock matrix."""
    with thread_limits(1):  # not to depend on the number of threads in the last bit
        _ = orbitals.arguments
    n_basis, n = orbitals.coefficients.shape
    mu, nu, weight, counts = _unique_functions(shells)
    column, step = np.full((2, n * (n + 1) // 2), -1)
    first = 0
    for some in pairs:
        column[some], step[some] = first * len(mu) + np.arange(len(some)), len(some)
        first += len(some)
    order = np.argsort(mu, kind="stable")
    place = np.argsort(order)
    out = _touched(len(mu) * first, workers)
    coulomb, exchange = np.zeros(len(mu)), np.zeros((n_basis, n_basis))
    for part, kets in _batches(shells, rows, counts):
        fock = None
        if field:
            fock = {"density": np.ascontiguousarray(field.density)}
            fock |= {"coulomb": coulomb[part], "exchange": exchange}
            fock |= {"mu": mu[part], "nu": nu[part], "ket_weight": weight[part]}
        _half_transform(orbitals, kets, (column, step), place[part], out, workers, fock)
    found = None
    if field:
        c, half_field = orbitals.coefficients, weight * coulomb
        with thread_limits(1):
            direct = c[mu].T @ (c[nu] * half_field[:, None])
            found = c.T @ (field.core - 0.25 * (exchange + exchange.T)) @ c + direct + direct.T
        found *= orbitals.irreps[:, None] == orbitals.irreps
    return HalfTransformed(orbitals, out, mu[order], nu[order], weight[order], found)


def _touched(length: int, workers: int) -> np.ndarray:
    """Fresh memory, each part touched by one worker: later they would wait for each other's pages."""
    out = np.empty(length)
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda part: part[::PAGE].fill(0.0), np.array_split(out, workers)):
            pass
    return out


def _batches(shells: Shells, rows: AoRows, counts: list[int]) -> Iterator[tuple[slice, Kets]]:
    """The rows run by run, or, if they are rows of one array, all at once."""
    starts = np.cumsum([0, *counts])
    numbered: list[np.ndarray] = []
    for k, (m, n0, n1, _) in enumerate(_runs(shells)):
        kets = rows(m, n0, n1)
        if kets.numbers is None:
            yield slice(starts[k], starts[k + 1]), kets
        else:
            numbered.append(kets.numbers)
    if numbered:
        yield slice(0, starts[-1]), Kets(kets.values, np.concatenate(numbered))


def _unique_functions(shells: Shells) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """(mu, nu, weight) of all rows, run by run, and the number of rows in each run."""
    size = np.diff(shells.first)
    mu, nu, weight, counts = [], [], [], []
    for m, n0, n1, weights in _runs(shells):
        width = shells.first[n1] - shells.first[n0]
        mu.append(np.repeat(np.arange(shells.first[m], shells.first[m + 1]), width))
        nu.append(np.tile(np.arange(shells.first[n0], shells.first[n1]), size[m]))
        # (p <-> q) is added later: a pair of one shell with itself is then counted twice.
        per_shell = np.where(np.arange(n0, n1) == m, 0.5, 1.0) * weights
        weight.append(np.tile(np.repeat(per_shell, size[n0:n1]), size[m]))
        counts.append(len(mu[-1]))
    return (
        np.concatenate(mu).astype(np.int64),
        np.concatenate(nu).astype(np.int64),
        np.concatenate(weight),
        counts,
    )


def _runs(shells: Shells) -> Iterator[tuple[int, int, int, np.ndarray]]:
    """Unique pairs as runs of consecutive N for one M; their integrals take about RUN_BYTES at the most."""
    high, low, weights = shells.unique_pairs
    size, n = np.diff(shells.first), shells.n_functions
    limit = RUN_BYTES / (4 * n * (n + 1))
    taken = np.cumsum(size[high] * size[low]) // max(limit, 1)
    breaks = np.flatnonzero((np.diff(high) != 0) | (np.diff(low) != 1) | (np.diff(taken) != 0)) + 1
    for part in np.split(np.arange(len(high)), breaks):
        yield int(high[part[0]]), int(low[part[0]]), int(low[part[-1]]) + 1, weights[part]


@dataclass(frozen=True)
class Columns:
    """Neighbouring columns (rs) of one irrep, the orbitals (p, q) wanted for them, and where these go."""

    first: int
    count: int
    orbitals: tuple[tuple[np.ndarray, np.ndarray], ...]  # runs of neighbours by irrep, p and q
    table: int
    target_column: int
    # A tensor that is symmetric in its two pairs (or -1): these columns are its rows.
    symmetric: int = -1
    sector_offset: int = 0
    row_length: int = 0
    last: bool = True  # nobody needs these half-transformed integrals later


@dataclass(frozen=True)
class Places:
    """For each pair (p, q) of active orbitals: a buffer, the place of its row there, and a factor or 0.

    For a symmetric tensor the place is the column in the sector.
    """

    buffer: np.ndarray
    offset: np.ndarray
    factor: np.ndarray


def _table(rows: Sequence[tuple[int, ...]], dtype: np.dtype) -> np.ndarray:
    """Records as rows of whole numbers."""
    return np.array(rows, dtype).view(np.int64).reshape(-1, dtype.itemsize // 8)


@dataclass(frozen=True)
class HalfTransformed:
    """(mu nu|rs) for the unique (mu, nu), ordered by mu, and the wanted pairs of active orbitals.

    Each set of pairs has a matrix (rows, pairs of the set); step 2 lets go of them one by one.

    `fock` is the Fock matrix over the active orbitals, where it was asked for.
    """

    orbitals: Orbitals
    values: np.ndarray
    mu: np.ndarray
    nu: np.ndarray
    weight: np.ndarray
    fock: np.ndarray | None = None

    def finish(
        self,
        columns: Sequence[Columns],
        scale: np.ndarray,
        places: Sequence[Places],
        buffers: list[np.ndarray],
        workers: int,
    ) -> None:
        """Step 2: adds factor * scale(rs) * (pq|rs) to the places of (pq), once for pq and once for qp.

        Z_pq, the sum over mu and nu in one order, is added for (p, q) wanted: (pq|rs) = Z_pq + Z_qp.
        """
        unique, starts = np.unique(self.mu, return_index=True)
        first_row = np.append(starts, len(self.mu))
        by_irrep = np.argsort(self.orbitals.irreps, kind="stable")
        place_of = np.argsort(by_irrep)
        coefficients = np.ascontiguousarray(self.orbitals.coefficients[:, by_irrep])
        weighted = coefficients[self.nu] * self.weight[:, None]
        right = np.concatenate([weighted[a:b].T.ravel() for a, b in pairwise(first_row)])
        table: list[tuple[int, ...]] = []
        jobs: list[tuple[int, int, int, int]] = []
        for c in columns:
            runs = [
                (place_of[p[0]], len(p), place_of[q[0]], len(q)) for p, q in c.orbitals if len(p) and len(q)
            ]
            place = (c.table, c.target_column, c.symmetric, c.sector_offset, c.row_length, int(c.last))
            table.append((c.first, c.count, len(jobs), len(runs), *place))
            jobs += runs
        reordered = np.ix_(by_irrep, by_irrep)
        with thread_limits(1):
            core.second_half(
                values=self.values,
                first_row=first_row.astype(np.int64),
                left=np.ascontiguousarray(coefficients[unique].T).ravel(),
                right=right,
                column_scale=scale,
                columns=_table(table, COLUMNS),
                jobs=_table(jobs, JOB),
                buffer=np.concatenate([t.buffer[reordered].ravel() for t in places]),
                offset=np.concatenate([t.offset[reordered].ravel() for t in places]),
                factor=np.concatenate([t.factor[reordered].ravel() for t in places]),
                buffers=buffers,
                n_workers=workers,
            )
