"""Whether (T) makes sense: denominators of triples that are near zero, or zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewise.chem.reference import Reference
from tilewise.errors import InputError
from tilewise.inspect.triples_blocks import OrbitalSet

DOUBTFUL, REFUSED = -1e-3, -1e-8
"""Denominators, in hartree, above which a note says so and above which nothing is computed."""

EDGE = 3
"""Orbitals of each irrep that can be part of the smallest gap."""


def check_gaps(sets: Sequence[OrbitalSet], references: Sequence[Reference]) -> str:
    """A note if a denominator e_i + e_j + e_k - e_a - e_b - e_c is near zero; raises if it is not below."""
    cases = [(0, 0, 0)] if len(sets) == 1 else [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    found = [_largest(case, sets, references) for case in cases]
    largest, occupied, virtual = max(found, key=lambda one: one[0])
    if largest < DOUBTFUL:
        return ""
    where = f"occupied orbitals {_listed(occupied)} and virtual orbitals {_listed(virtual)}"
    if largest > REFUSED:
        raise InputError(
            f"(T): the denominator of {where} is {largest:.1e} hartree and not below zero, so that (T) has "
            "no meaning; occupy the lowest orbitals, or use a method for degenerate states"
        )
    return f"(T) can hardly be trusted: the denominator of {where} is {largest:.1e} hartree"


def _largest(
    case: tuple[int, int, int], sets: Sequence[OrbitalSet], references: Sequence[Reference]
) -> tuple[float, list[int], list[int]]:
    """The denominator nearest to zero, and the orbitals that have it, as the source numbers them."""
    edges = {}
    for s in set(case):
        own, order = references[s], references[s].order
        n_occ = sets[s].n_occ
        occ = _edge(own.occ_irreps, -own.occ_energies)
        vir = _edge(own.vir_irreps, own.vir_energies)
        edges[s] = (
            (own.occ_irreps[occ], own.occ_energies[occ], order[:n_occ][occ]),
            (own.vir_irreps[vir], own.vir_energies[vir], order[n_occ:][vir]),
        )
    closed = len(sets) == 1
    tops = _by_irrep([edges[s][0] for s in case], case, closed, largest=True)
    bottoms = _by_irrep([edges[s][1] for s in case], case, closed, largest=False)
    best: tuple[float, list[int], list[int]] = (-np.inf, [], [])
    for irrep in tops.keys() & bottoms.keys():
        gap = tops[irrep][0] - bottoms[irrep][0]
        if gap > best[0]:
            best = (gap, tops[irrep][1], bottoms[irrep][1])
    return best


def _edge(irreps: np.ndarray, energies: np.ndarray) -> np.ndarray:
    """The few lowest orbitals of each irrep."""
    return np.array(
        [k for h in np.unique(irreps) for k in _lowest(np.flatnonzero(irreps == h), energies)], np.int64
    )


def _lowest(orbitals: np.ndarray, energies: np.ndarray) -> list[int]:
    found: list[int] = orbitals[np.argsort(energies[orbitals], kind="stable")][:EDGE].tolist()
    return found


def _by_irrep(
    orbitals: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    case: tuple[int, int, int],
    closed: bool,
    largest: bool,
) -> dict[int, tuple[float, list[int]]]:
    """For each product of irreps three orbitals with the largest, or the smallest, sum of energies.

    Of electrons of one spin no two share an orbital; of a closed shell two may, and three may not.
    """
    index = np.indices([len(own[0]) for own in orbitals]).reshape(3, -1)
    alike = sum(
        (index[x] == index[y]).astype(np.int64) for x in range(3) for y in range(x) if case[x] == case[y]
    )
    index = index[:, np.asarray(alike) <= (1 if closed else 0)]
    irrep = np.bitwise_xor.reduce([own[0][k] for own, k in zip(orbitals, index, strict=True)])
    total = np.sum([own[1][k] for own, k in zip(orbitals, index, strict=True)], axis=0)
    found: dict[int, tuple[float, list[int]]] = {}
    for h in np.unique(irrep).tolist():
        mine = np.flatnonzero(irrep == h)
        best = mine[np.argmax(total[mine]) if largest else np.argmin(total[mine])]
        numbers = [int(own[2][k[best]]) for own, k in zip(orbitals, index, strict=True)]
        found[h] = (float(total[best]), numbers)
    return found


def _listed(orbitals: list[int]) -> str:
    return ", ".join(map(str, orbitals))
