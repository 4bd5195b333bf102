"""Operators over determinants: integrals by label, in the form that the columns are made from.

The Hamiltonian is one, L^2 another, so that terms come from the same columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewise.ci.orbitals import Orbitals, PairNumbers

ZERO = 1e-14
"""Integrals below it are zero by symmetry, but for rounding; in hartree."""

Block = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(p, q, r, s) -> (pq|rs) as a matrix of the pairs p, q by the pairs r, s."""


@dataclass(frozen=True, eq=False)
class Operator:
    """The numbers of an operator with one- and two-electron parts; see src/native/columns.hpp for each."""

    orbitals: int
    constant: float
    hop: np.ndarray
    v: np.ndarray
    v_row: np.ndarray
    w: np.ndarray
    w_row: np.ndarray
    h: np.ndarray
    j: np.ndarray
    jk: np.ndarray

    def tables(self) -> dict[str, object]:
        names = ("v", "v_row", "w", "w_row", "h", "orbitals", "constant")
        shaped = {name: getattr(self, name).ravel() for name in ("hop", "j", "jk")}
        return {name: getattr(self, name) for name in names} | shaped

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (self.v, self.w, self.j, self.jk))


def hamiltonian(
    orbitals: Orbitals, numbers: PairNumbers, constant: float, one_electron: np.ndarray, block: Block
) -> Operator:
    """`one_electron` (n, n) and the integrals that `block` gives, for electrons of both spins."""
    labels, first, count = np.unique(numbers.hop_label, return_index=True, return_counts=True)
    opposite = _opposite(orbitals, numbers, first)
    sizes = count * count[opposite]
    v, v_row, place = np.empty(int(sizes.sum())), np.empty(len(numbers.new), np.int64), 0
    for k in range(len(labels)):
        rows = slice(first[k], first[k] + count[k])
        other = opposite[k]
        columns = slice(first[other], first[other] + count[other])
        values = block(numbers.new[rows], numbers.old[rows], numbers.new[columns], numbers.old[columns])
        v[place : place + sizes[k]] = np.where(np.abs(values) > ZERO, values, 0.0).ravel()
        v_row[rows] = place + np.arange(count[k]) * count[other] - first[other]
        place += int(sizes[k])
    w, w_row = _antisymmetrized(numbers, v, v_row)
    return _with_fields(numbers, constant, one_electron, (v, v_row), (w, w_row))


def angular_momentum_squared(
    orbitals: Orbitals, numbers: PairNumbers, raising: np.ndarray, m: int, like: Operator
) -> Operator:
    """L^2 = M (M + 1) + L_- L_+, where `raising` (n, n) is L_+ over orbitals."""
    lowering = raising.T

    def block(p: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray) -> np.ndarray:
        made: np.ndarray = np.outer(lowering[p, q], raising[r, s]) + np.outer(raising[p, q], lowering[r, s])
        return made

    return hamiltonian(orbitals, numbers, m * (m + 1.0), lowering @ raising, block)


def _opposite(orbitals: Orbitals, numbers: PairNumbers, first: np.ndarray) -> np.ndarray:
    """The position of the label of (q, p) for that of (p, q)."""
    codes = numbers.hop_label[first]
    turned = numbers.hop[numbers.old[first], numbers.new[first]]
    return np.searchsorted(codes, numbers.hop_label[turned])


def _antisymmetrized(numbers: PairNumbers, v: np.ndarray, v_row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(ai|bj) - (aj|bi) for i < j and a < b of the same label."""
    _, first, count = np.unique(numbers.two_label, return_index=True, return_counts=True)
    sizes = count * count
    w, w_row, place = np.empty(int(sizes.sum())), np.empty(len(numbers.low), np.int64), 0
    hop = numbers.hop
    for begin, n, size in zip(first.tolist(), count.tolist(), sizes.tolist(), strict=True):
        rows = slice(begin, begin + n)
        i, j = numbers.low[rows][:, None], numbers.high[rows][:, None]
        a, b = numbers.low[rows][None], numbers.high[rows][None]
        direct, exchange = v[v_row[hop[a, i]] + hop[b, j]], v[v_row[hop[a, j]] + hop[b, i]]
        values = direct - exchange
        w[place : place + size] = np.where(np.abs(values) > ZERO, values, 0.0).ravel()
        w_row[rows] = place + np.arange(n) * n - begin
        place += size
    return w, w_row


def _with_fields(
    numbers: PairNumbers,
    constant: float,
    one_electron: np.ndarray,
    v_and_row: tuple[np.ndarray, np.ndarray],
    w_and_row: tuple[np.ndarray, np.ndarray],
) -> Operator:
    """Adds what an electron in orbital k does to a hop between orbitals of the same label."""
    (v, v_row), (w, w_row), n = v_and_row, w_and_row, len(numbers.hop)
    p, q = numbers.new[: numbers.n_even], numbers.old[: numbers.n_even]
    k = np.arange(n)
    j = v[v_row[: numbers.n_even, None] + numbers.hop[k, k]]
    jk = j - v[v_row[numbers.hop[p[:, None], k]] + numbers.hop[k, q[:, None]]]
    return Operator(n, constant, numbers.hop, v, v_row, w, w_row, one_electron[p, q], j, jk)
