"""Twins of the native functions of CI, written to be read: strings that are near or far, and columns."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np

from tilewise.ci.determinants import Determinants
from tilewise.ci.operators import Operator
from tilewise.ci.orbitals import PairNumbers

SIGN_BIT = 1 << 31
NO_STRING = 2**31 - 1
"""At the end of each list of strings two orbitals apart."""


def near_lists(
    occupied: np.ndarray, class_of: np.ndarray, hop: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strings one orbital apart: where the list of each begins, its classes, and (string, code) of each.

    A code is the number of the pair (new, old), with the sign in the highest bit: that of moving the electron
    past all that stand between.
    """
    first, of_class, near = [0], [], []
    for s, own in enumerate(occupied.tolist()):
        found = []
        for other, its in enumerate(occupied.tolist()):
            new, old = set(its) - set(own), set(own) - set(its)
            if other != s and len(new) == 1:
                p, q = new.pop(), old.pop()
                is_odd = (own.index(q) + its.index(p)) % 2
                found.append((other, int(hop[p, q]) | is_odd * SIGN_BIT))
        classes = class_of[[other for other, _ in found]] if found else np.zeros(0, np.int32)
        of_class.append(np.searchsorted(classes, np.arange(n_classes + 1)))
        near += found
        first.append(len(near))
    return (
        np.array(first, np.int64),
        np.array(of_class, np.int32).ravel(),
        np.array(near, np.uint32).reshape(-1),
    )


def far_lists(occupied: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strings two orbitals apart: where each stands in the list of each of its pairs, and all the lists.

    Strings with the same rest are in one list. Lists come in the order in which their rests are seen.
    """
    lists: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    places: list[tuple[tuple[int, ...], int]] = []
    for s, own in enumerate(occupied.tolist()):
        for i, j in combinations(range(len(own)), 2):
            rest = tuple(orbital for k, orbital in enumerate(own) if k not in (i, j))
            code = (i + j) % 2 * SIGN_BIT | int(two[own[i], own[j]]) << 16 | own[i] << 8 | own[j]
            places.append((rest, len(lists[rest])))
            lists[rest].append((s, code))
    start, far = {}, list[tuple[int, int]]()
    for rest, members in lists.items():
        start[rest] = len(far)
        far += [*members, (NO_STRING, 0)]
    place = [start[rest] + k for rest, k in places]
    return np.array(place, np.int32), np.array(far, np.uint32).reshape(-1)


def element(
    numbers: PairNumbers,
    operator: Operator,
    bra: tuple[list[int], list[int]],
    ket: tuple[list[int], list[int]],
) -> float:
    """An element between two determinants, alpha and beta orbitals of each, by Slater and Condon's rules."""
    spins = [_difference(own, other) for own, other in zip(bra, ket, strict=True)]
    hops = [len(new) for new, _, _ in spins]
    sign = spins[0][2] * spins[1][2]
    v, w, hop, two = operator.v, operator.w, numbers.hop, numbers.two
    if hops == [0, 0]:
        one = sum(_field(operator, hop[p, p], ket[0], ket[1]) for p in ket[0])
        other = sum(_field(operator, hop[p, p], ket[1], ket[0]) for p in ket[1])
        bare = sum(float(operator.h[hop[p, p]]) for p in (*ket[0], *ket[1]))
        return operator.constant + bare + 0.5 * (one + other)
    if hops in ([1, 0], [0, 1]):
        own = hops.index(1)
        pair = hop[spins[own][0][0], spins[own][1][0]]
        return sign * float(operator.h[pair] + _field(operator, pair, ket[own], ket[1 - own]))
    if hops == [1, 1]:
        (p, q), (r, s) = ((new[0], old[0]) for new, old, _ in spins)
        return sign * float(v[operator.v_row[hop[p, q]] + hop[r, s]])
    if hops in ([2, 0], [0, 2]):
        (a, b), (i, j), _ = spins[hops.index(2)]
        return sign * float(w[operator.w_row[two[i, j]] + two[a, b]])
    return 0.0


def _field(operator: Operator, pair: int, same: list[int], other: list[int]) -> float:
    """What the electrons of both spins do to a hop."""
    return float(operator.jk[pair, same].sum() + operator.j[pair, other].sum())


def _difference(bra: list[int], ket: list[int]) -> tuple[list[int], list[int], int]:
    """Orbitals of the bra alone, of the ket alone, and the sign of exchanging them."""
    new, old = sorted(set(bra) - set(ket)), sorted(set(ket) - set(bra))
    moved = sum(bra.index(p) for p in new) + sum(ket.index(q) for q in old)
    return new, old, -1 if moved % 2 else 1


def column(
    determinants: Determinants, numbers: PairNumbers, operator: Operator, j: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows below the diagonal and values of a column, zeros left out."""
    alpha, beta = determinants.occupied(np.arange(len(determinants)))
    every = list(zip(alpha.tolist(), beta.tolist(), strict=True))
    values = np.array([element(numbers, operator, every[i], every[j]) for i in range(j, len(every))])
    rows = 1 + np.flatnonzero(values[1:])
    return j + rows, values[rows]


def spin_squared(determinants: Determinants, vector: np.ndarray) -> float:
    """<S^2> = S_z (S_z + 1) + the squared norm of S_+ times the vector."""
    alpha, beta = determinants.occupied(np.arange(len(determinants)))
    raised: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = defaultdict(float)
    for own, other, x in zip(alpha.tolist(), beta.tolist(), vector.tolist(), strict=True):
        for p in set(other) - set(own):
            new, rest = tuple(sorted([*own, p])), tuple(q for q in other if q != p)
            raised[new, rest] += -x if (new.index(p) + other.index(p)) % 2 else x
    n_alpha, n_beta = determinants.electrons
    s_z = 0.5 * (n_alpha - n_beta)
    norm = float(np.dot(vector, vector))
    return s_z * (s_z + 1) * norm + sum(value * value for value in raised.values())
