"""Twins of the native steps of the integral transformation, dense and written to be read.

They take the same arguments and write to the same places; the tests hold the native ones against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.chem.exchange import EXCHANGE
from tilewise.chem.orbital_pairs import ABOVE_R, ALL, PAIR_RUN, UP_TO_R
from tilewise.chem.transform import DESTINATION


def _square(integrals: np.ndarray, n: int) -> np.ndarray:
    """Rows of a matrix over n pairs, which is given whole or as a packed triangle."""
    if integrals.ndim == 2:
        return integrals
    square = np.zeros((n, n))
    square[np.tril_indices(n)] = integrals[: n * (n + 1) // 2]
    return square + np.tril(square, -1).T


def triangle_products(triangle: np.ndarray, vectors: np.ndarray, out: np.ndarray, workers: int) -> None:
    """Products of a symmetric matrix, given as a packed triangle, with each of some vectors."""
    out[:] = vectors @ _square(triangle, vectors.shape[1])


def _combinations(
    first: np.ndarray,
    image: np.ndarray,
    irrep: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    n_pairs: int,
    h: int,
) -> np.ndarray:
    """(pairs, combinations of an irrep): the weights of the images of each class."""
    mine = np.flatnonzero(irrep == h)
    matrix = np.zeros((n_pairs, place[mine].max(initial=-1) + 1))
    for number in range(len(first) - 1):
        entries = np.arange(first[number], first[number + 1])
        for t in np.flatnonzero(irrep[entries] == h):
            signs = [(-1.0) ** (int(t) & j).bit_count() for j in range(len(entries))]
            matrix[image[entries], place[entries[t]]] = signs * weight[entries]
    return matrix


def adapt_pairs(
    *,
    first: np.ndarray,
    image: np.ndarray,
    irrep: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    integrals: np.ndarray,
    n_pairs: int,
    out: Sequence[np.ndarray],
    n_workers: int,
) -> None:
    """The matrix of integrals in the combinations of each irrep, a packed triangle."""
    matrix = _square(integrals, n_pairs)
    for h, target in enumerate(out):
        combined = _combinations(first, image, irrep, place, weight, n_pairs, h)
        values = combined.T @ matrix @ combined
        target[: len(values) * (len(values) + 1) // 2] = values[np.tril_indices(len(values))]


def adapt_quartets(
    *,
    function_image: np.ndarray,
    function_sign: np.ndarray,
    libcint: Any,
    threshold: float,
    first_shell: int,
    last_shell: int,
    start: np.ndarray,
    out: Sequence[np.ndarray],
    n_workers: int,
    **classes: np.ndarray,
) -> None:
    """The same for the rows of some shells; all integrals are computed first, and none is copied.

    `libcint` is a twin (`pyscf_libcint_twins.Libcint`).
    """
    n = libcint.n_functions
    n_pairs, matrix = n * (n + 1) // 2, libcint.mol.intor("int2e", aosym="s4")
    count = np.bincount(classes["irrep"], minlength=len(out))
    whole = [np.zeros(k * (k + 1) // 2) for k in count]
    adapt_pairs(integrals=matrix, n_pairs=n_pairs, out=whole, n_workers=n_workers, **classes)
    functions = libcint.mol.ao_loc[[first_shell, last_shell]]
    ends = functions * (functions + 1) // 2
    representative = classes["image"][classes["first"][:-1]]
    mine = np.repeat((representative >= ends[0]) & (representative < ends[1]), np.diff(classes["first"]))
    for h, (target, values) in enumerate(zip(out, whole, strict=True)):
        for a in classes["place"][mine & (classes["irrep"] == h)]:
            begin = a * (a + 1) // 2
            target[begin - start[h] :][: a + 1] = values[begin : begin + a + 1]


class Scratch:
    """Memory that native workers keep from one step to the next; the twins need none."""

    def __init__(self, n_workers: int) -> None:
        self.count = n_workers


class _Tables:
    """What all steps after the first one know: pairs of orbitals of one irrep as combinations of pairs of
    functions."""

    def __init__(
        self,
        irrep: int,
        n_classes: int,
        n_functions: np.ndarray,
        first_entry: np.ndarray,
        entry: np.ndarray,
        weight: np.ndarray,
        first_orbital: np.ndarray,
        coefficients: np.ndarray,
    ) -> None:
        n_irreps = len(n_functions)
        self.irrep, self.n_classes = irrep, n_classes
        self.first = first_orbital.reshape(n_irreps, -1)
        counts = self.first[:, -1] - self.first[:, 0]
        ends = np.cumsum(n_functions * counts)
        blocks = [
            coefficients[end - n * m : end].reshape(n, m)
            for end, n, m in zip(ends, n_functions, counts, strict=True)
        ]
        rows, at = [np.zeros((0, n_classes))], 0
        self.p: list[int] = []
        self.q: list[int] = []
        for right in range(n_irreps):
            left = right ^ irrep
            if left < right:
                continue
            expanded = np.zeros((n_functions[left], n_functions[right], n_classes))
            for q in range(n_functions[right]):
                for p in range(q if left == right else 0, n_functions[left]):
                    entries = slice(first_entry[at], first_entry[at + 1])
                    np.add.at(expanded[p, q], entry[entries], weight[entries])
                    if left == right:
                        expanded[q, p] = expanded[p, q]
                    at += 1
            made = np.einsum("Pp,PQK,Qq->pqK", blocks[left], expanded, blocks[right])
            square = np.indices(made.shape[:2]).reshape(2, -1)
            a, b = np.tril_indices(counts[left]) if left == right else square
            rows.append(made[a, b])
            self.p += (self.first[left, 0] + a).tolist()
            self.q += (self.first[right, 0] + b).tolist()
        self.pairs = np.vstack(rows)
        """(pairs, combinations): what each pair of orbitals is made of."""


_NAMES = (
    "irrep",
    "n_classes",
    "n_functions",
    "first_entry",
    "entry",
    "weight",
    "first_orbital",
    "coefficients",
)


def _tables(arguments: dict[str, Any]) -> _Tables:
    return _Tables(**{name: arguments[name] for name in _NAMES})


def first_half(
    *,
    integrals: np.ndarray,
    begin: int,
    end: int,
    first: int,
    out: Sequence[np.ndarray],
    column: int,
    density: np.ndarray,
    coulomb: np.ndarray,
    scratch: Any,
    **arguments: Any,
) -> None:
    """Y[pq, K] = sum over L of (pq as combinations L) X[K, L] for the rows K from `begin` to `end`, and for
    the pairs that `out`, in parts, has rows for."""
    tables = _tables(arguments)
    matrix = _square(integrals, tables.n_classes)[begin:end]
    for part in out:
        part[:, column : column + end - begin] = tables.pairs[first : first + len(part)] @ matrix.T
        first += len(part)
    if len(density):
        coulomb[begin:end] = matrix @ density


def first_half_of_runs(
    *,
    integrals: np.ndarray,
    runs: np.ndarray,
    row: np.ndarray,
    out: np.ndarray,
    column: int,
    density: np.ndarray,
    coulomb: np.ndarray,
    scratch: Any,
    **arguments: Any,
) -> None:
    """The same for the pairs of the runs that have a row."""
    tables = _tables(arguments)
    matrix = _square(integrals, tables.n_classes)
    p, q, start = np.array(tables.p, np.int64), np.array(tables.q, np.int64), tables.first[:, 0]
    right = np.searchsorted(tables.first[:, -1], q, side="right")
    p, q = p - start[right ^ tables.irrep], q - start[right]
    for run in runs.view(PAIR_RUN):
        mine = (right == run["right"]) & (p >= run["first_p"]) & (p < run["last_p"]) & (row >= 0)
        mine &= (q >= run["first_q"]) & (q < run["last_q"])
        out[row[mine], column : column + len(matrix)] = tables.pairs[mine] @ matrix.T
    if len(density):
        coulomb[:] = matrix @ density


def second_half(
    *,
    half: Sequence[np.ndarray],
    first_block: np.ndarray,
    column: np.ndarray,
    pair: np.ndarray,
    rank: np.ndarray,
    label: np.ndarray,
    left_label: np.ndarray,
    first_pair: int,
    destinations: np.ndarray,
    offsets: Sequence[np.ndarray],
    factors: Sequence[np.ndarray],
    buffers: Sequence[np.ndarray],
    scratch: Any,
    **arguments: Any,
) -> None:
    """(pq|rs) for all pairs (pq) and the given columns (rs), to all destinations.

    The half-transformed integrals are matrices side by side.
    """
    tables = _tables(arguments)
    values = tables.pairs @ np.concatenate(half, axis=1)[column].T
    labels = np.repeat(label, np.diff(first_block))
    p = np.array(tables.p, np.int64)
    mine = first_pair + np.arange(len(p))
    for to in destinations.view(DESTINATION):
        left, right = offsets[to["left"]][mine], offsets[to["right"]][pair]
        wanted = (left[:, None] >= 0) & (right >= 0) & (left_label[mine][:, None] == labels)
        if to["from"] == UP_TO_R:
            wanted &= p[:, None] <= rank
        elif to["from"] != ALL:
            wanted &= p[:, None] > rank if to["from"] == ABOVE_R else p[:, None] >= rank
        row, col = np.nonzero(wanted)
        scale = factors[to["left"]][mine][row] * factors[to["right"]][pair][col]
        buffers[to["buffer"]][left[row] + right[col]] = scale * values[row, col]


def exchange_half(
    *,
    half: Sequence[np.ndarray],
    groups: np.ndarray,
    column: np.ndarray,
    out: np.ndarray,
    scratch: Any,
    **arguments: Any,
) -> None:
    """(pi|qi) for the columns (q, i) of each i and all p of the irrep of q that are not frozen."""
    tables = _tables(arguments)
    whole = np.concatenate(half, axis=1)
    number = {frozenset(pair): k for k, pair in enumerate(zip(tables.p, tables.q, strict=True))}
    for group in groups.view(EXCHANGE):
        i = tables.first[group["irrep_i"], 0] + group["i"]
        start, end = tables.first[group["irrep_q"], 0], tables.first[group["irrep_q"], -2]
        for x in range(group["first"], group["first"] + group["count"]):
            for p in range(start, end):
                out[x, p - start] = tables.pairs[number[frozenset((p, i))]] @ whole[column[x]]
