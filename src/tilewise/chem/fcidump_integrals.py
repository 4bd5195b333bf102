"""Integrals over the orbitals of a file: one set of orbitals for both spins, or one for each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.chem.fcidump_text import Dump
from tilewise.chem.turn import Turn
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup

SYMMETRY_TOLERANCE = 1e-6
"""Of integrals that are zero or equal by symmetry."""

BySpin = tuple[np.ndarray, np.ndarray]
"""Arrays of two spins, such as their occupied orbitals."""


@dataclass(frozen=True, eq=False)
class SpinIntegrals:
    """What a file has for alpha and beta electrons: h, and (pq|rs) packed to the unique ones.

    If each spin has orbitals of its own, `mixed` is a matrix (pq|rs) of alpha pairs and beta pairs.
    """

    hamiltonians: BySpin
    packed: BySpin
    mixed: np.ndarray | None = None

    def of_spin(self, spin: int, core: BySpin, occupied: BySpin) -> DumpIntegrals:
        """For the electrons of one spin; `core` and `occupied` are those of alpha and of beta spin."""
        mixed = self.mixed if self.mixed is None or spin == 0 else self.mixed.T
        own_first = (core[spin], core[1 - spin]), (occupied[spin], occupied[1 - spin])
        return DumpIntegrals(self.hamiltonians[spin], self.packed[spin], *own_first, mixed)

    def focks(self, occupied: BySpin) -> BySpin:
        """The Fock matrix of each spin over all orbitals of the file."""
        every = np.arange(len(self.hamiltonians[0]))
        alpha, beta = (self.of_spin(spin, occupied, occupied).fock(every) for spin in (0, 1))
        return alpha, beta


@dataclass(frozen=True, eq=False)
class DumpIntegrals:
    """Integrals of a file, packed to the unique (pq|rs), with `core` orbitals folded into the Hamiltonian.

    In an open shell they are for the electrons of one spin, and `core` and `occupied` have the orbitals of
    that spin, then those of the other one. `mixed` has (pq|rs) with r and s of the other spin, a row for each
    pair p >= q and a column for each r >= s, if that spin has orbitals of its own.
    """

    hamiltonian: np.ndarray
    packed: np.ndarray
    core: BySpin
    occupied: BySpin
    mixed: np.ndarray | None = None

    def one_electron(self, order: np.ndarray) -> np.ndarray:
        return self._field(self.core)[np.ix_(order, order)]

    def eri(self, order: np.ndarray) -> np.ndarray:
        pairs = _pairs_of(order)
        values = np.empty((len(pairs), len(pairs)))
        for k, pair in enumerate(pairs):
            values[k, : k + 1] = self.packed[pair_index(pair, pairs[: k + 1])]
            values[: k + 1, k] = values[k, : k + 1]
        return values

    def eri_with(self, order: np.ndarray, other: DumpIntegrals, other_order: np.ndarray) -> np.ndarray:
        if self.mixed is None:
            raise InputError(
                "one set of orbitals serves both spins, so their integrals are those of one spin"
            )
        return self.mixed[np.ix_(*(_pairs_of(own) for own in (order, other_order)))]

    def three_index(self, order: np.ndarray, workers: int) -> None:
        """The integrals of a file are what they are."""

    def three_index_with(
        self, order: np.ndarray, other: DumpIntegrals, other_order: np.ndarray, workers: int
    ) -> None:
        """The same for two spins."""

    def basis_pairs(self, group: PointGroup) -> int:
        return 0

    def decomposed(self) -> DumpIntegrals:
        raise InputError("the integrals of a FCIDUMP are not decomposed")

    def basis_integrals(self, group: PointGroup) -> None:
        """A file has no basis functions: its integrals are over orbitals already."""

    def orbitals(self, order: np.ndarray) -> np.ndarray:
        raise InputError("the orbitals of a FCIDUMP are not known over basis functions")

    @property
    def filled(self) -> np.ndarray:
        return self.occupied[0]

    def fock(self, order: np.ndarray) -> np.ndarray:
        return self._field(self.occupied)[np.ix_(order, order)]

    def _field(self, filled: BySpin) -> np.ndarray:
        return field_of(self.hamiltonian, self.packed, *filled, mixed=self.mixed)

    def turned(self, own: Turn, other: Turn) -> DumpIntegrals:
        every = np.arange(len(self.hamiltonian))
        same = self.eri(every)
        mixed = turned_pairs(same if self.mixed is None else self.mixed, own, other)
        same = turned_pairs(same, own, own)
        packed = same[np.tril_indices(len(same))]
        return replace(self, hamiltonian=own.both(self.hamiltonian), packed=packed, mixed=mixed)

    def marks(self, order: np.ndarray, energies: np.ndarray) -> np.ndarray:
        """Their energies, and the core Hamiltonian on its diagonal."""
        return np.stack([energies, np.diag(self.hamiltonian)[order]])


def field_of(
    hamiltonian: np.ndarray,
    packed: np.ndarray,
    own: np.ndarray,
    other: np.ndarray,
    mixed: np.ndarray | None = None,
) -> np.ndarray:
    """h + the field of occupied orbitals of the same and of the other spin, over all orbitals of the file."""
    n = len(hamiltonian)
    p, q = np.arange(n)[:, None], np.arange(n)[None, :]
    field = hamiltonian.copy()
    for i in own if mixed is not None else (*own, *other):
        field += packed[pair_index(pair_index(p, q), pair_index(i, i))]
    if mixed is not None:
        field += mixed[:, pair_index(other, other)].sum(axis=1)[pair_index(p, q)]
    for i in own:
        field -= packed[pair_index(pair_index(p, i), pair_index(q, i))]
    return field


def pair_index(p: Any, q: Any) -> Any:
    """The index of an unordered pair."""
    high, low = np.maximum(p, q), np.minimum(p, q)
    return high * (high + 1) // 2 + low


def _pairs_of(order: np.ndarray) -> np.ndarray:
    """Pairs p >= q of orbitals, as numbers of the file."""
    rows, columns = np.tril_indices(len(order))
    pairs: np.ndarray = pair_index(order[rows], order[columns])
    return pairs


def turned_pairs(values: np.ndarray, rows: Turn, columns: Turn) -> np.ndarray:
    """A matrix of pairs p >= q and r >= s over new orbitals."""

    def over_columns(values: np.ndarray, turn: Turn) -> np.ndarray:
        found = np.empty_like(values)
        n = (math.isqrt(8 * values.shape[1] + 1) - 1) // 2
        high, low = np.tril_indices(n)
        square = np.zeros((n, n))
        for k, row in enumerate(values):
            square[high, low] = square[low, high] = row
            found[k] = turn.both(square)[high, low]
        return found

    return over_columns(over_columns(values, columns).T, rows).T


def spin_integrals(dump: Dump) -> SpinIntegrals:
    """The integrals of a file for both spins, which may share their orbitals."""
    if dump.sections is None:
        hamiltonian, packed = packed_integrals(dump)
        return SpinIntegrals((hamiltonian,) * 2, (packed,) * 2)
    alpha, beta = (packed_integrals(dump, np.isin(dump.sections, own)) for own in ((0, 3), (1, 4)))
    return SpinIntegrals((alpha[0], beta[0]), (alpha[1], beta[1]), _mixed_integrals(dump, dump.sections == 2))


def packed_integrals(dump: Dump, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """h as a matrix and (pq|rs) packed to its unique elements, of some lines of a file or of all."""
    n = dump.n_orbitals
    n_pairs = n * (n + 1) // 2
    p, q, r, s = (dump.indices - 1).T
    chosen = True if rows is None else rows
    two = (r >= 0) & chosen
    one = (q >= 0) & (r < 0) & chosen
    hamiltonian, packed = np.zeros((n, n)), np.zeros(n_pairs * (n_pairs + 1) // 2)
    hamiltonian[p[one], q[one]] = dump.values[one]
    hamiltonian[q[one], p[one]] = dump.values[one]
    positions = pair_index(pair_index(p[two], q[two]), pair_index(r[two], s[two]))
    packed[positions] = dump.values[two]
    clash = np.zeros(len(dump.values))
    clash[one] = np.abs(hamiltonian[p[one], q[one]] - dump.values[one])
    clash[two] = np.abs(packed[positions] - dump.values[two])
    _refuse_clash(dump, clash, 8)
    return hamiltonian, packed


def _mixed_integrals(dump: Dump, rows: np.ndarray) -> np.ndarray:
    """(pq|rs) of alpha p, q and beta r, s as a matrix of pairs."""
    n_pairs = dump.n_orbitals * (dump.n_orbitals + 1) // 2
    found, chosen = np.zeros((n_pairs, n_pairs)), np.flatnonzero(rows & (dump.indices[:, 0] > 0))
    p, q, r, s = (dump.indices[chosen] - 1).T
    places = pair_index(p, q), pair_index(r, s)
    found[places] = dump.values[chosen]
    clash = np.zeros(len(dump.values))
    clash[chosen] = np.abs(found[places] - dump.values[chosen])
    _refuse_clash(dump, clash, 4)
    return found


def _refuse_clash(dump: Dump, clash: np.ndarray, permutations: int) -> None:
    """Refuses a file that gives one integral twice; `clash` has the difference for each of its lines."""
    if clash.max(initial=0.0) <= SYMMETRY_TOLERANCE:
        return
    row = int(clash.argmax())
    indices = " ".join(map(str, dump.indices[row]))
    raise InputError(
        f"{dump.path.name}, line {dump.line_number(row)}: integral {indices} is given again further on "
        f"with another value (they differ by {clash[row]:.1e}); real orbitals have {permutations} equal "
        "permutations"
    )
