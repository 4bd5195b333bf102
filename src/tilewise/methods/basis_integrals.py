"""Plain constants filled from integrals over basis functions, for one or two sets of spatial orbitals.

A spin takes its orbitals from a set. Closed shells have one of both, an ROHF two spins with one set, a UHF
two of both. Rows and columns of tensors are pairs of one spin; what is put into them is (aa|aa), (aa|bb)
and (bb|bb).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewise.chem.function_integrals import BasisIntegrals
from tilewise.chem.open_shell import AnyReference
from tilewise.chem.orbital_pairs import ABOVE_R, ALL, FROM_R, Destination, OrbitalSet, Side
from tilewise.chem.reference import Reference
from tilewise.chem.transform import transform
from tilewise.spaces import Space
from tilewise.tensor import Compound, Layout, Tensor


@dataclass(frozen=True, eq=False)
class Spin:
    """The orbitals of one spin, or of both: their numbers in a set, by the name of their space, and the
    kinds in it that have electrons of this spin (None if the set does not tell)."""

    which: int
    numbers: dict[str, np.ndarray]
    filled: tuple[int, ...] | None

    @property
    def active(self) -> np.ndarray:
        return np.concatenate([self.numbers["o"], self.numbers["v"]])


@dataclass(frozen=True, eq=False)
class SpinSets:
    """Sets of orbitals, and the spins that take theirs from them."""

    basis: BasisIntegrals
    sets: tuple[OrbitalSet, ...]
    spins: tuple[Spin, ...]


def closed_shell(reference: Reference, basis: BasisIntegrals) -> SpinSets:
    """One set, which serves both spins."""
    orbitals, spin = _own_set(reference, basis, 0)
    return SpinSets(basis, (orbitals,), (spin,))


def spin_sets(reference: AnyReference, basis: BasisIntegrals) -> SpinSets:
    """Two spins with one set of orbitals, or a set each."""
    alpha, beta = reference.by_spin
    if alpha is beta:
        orbitals, spin = _own_set(alpha, basis, 0)
        return SpinSets(basis, (orbitals,), (spin, spin))
    if reference.is_restricted:
        return _common_set(alpha, beta, basis)
    both = [_own_set(own, basis, which) for which, own in enumerate((alpha, beta))]
    return SpinSets(basis, tuple(own for own, _ in both), tuple(spin for _, spin in both))


def _irreps(reference: Reference) -> np.ndarray:
    return np.concatenate([reference.occ_irreps, reference.vir_irreps])


def _own_set(reference: Reference, basis: BasisIntegrals, which: int) -> tuple[OrbitalSet, Spin]:
    """Frozen orbitals (kind 2), occupied (0) and virtual ones (1) of a reference, in its order."""
    integrals, order = reference.integrals, reference.order
    frozen = np.setdiff1d(integrals.filled, order)
    n_occ, n_vir = reference.outline.n_occ, reference.outline.n_vir
    kinds = np.repeat([0, 1], [n_occ, n_vir])
    orbitals = basis.orbital_set(
        integrals.orbitals(frozen), integrals.orbitals(order), _irreps(reference), kinds, 3
    )
    start = len(frozen)
    numbers = {"o": start + np.arange(n_occ), "v": start + n_occ + np.arange(n_vir)}
    return orbitals, Spin(which, numbers, (0, orbitals.frozen))


def _common_set(alpha: Reference, beta: Reference, basis: BasisIntegrals) -> SpinSets:
    """The spatial orbitals of an ROHF: frozen (kind 3), doubly (0), singly (1) and not occupied ones (2)."""
    every = np.union1d(alpha.order, beta.order)
    filled = [own.integrals.filled for own in (alpha, beta)]
    frozen = np.setdiff1d(filled[1], every)
    kinds = 2 - np.isin(every, filled[0]) - np.isin(every, filled[1])
    labels = np.zeros(len(every), np.int64)
    for own in (alpha, beta):
        labels[np.searchsorted(every, own.order)] = _irreps(own)
    integrals = alpha.integrals
    orbitals = basis.orbital_set(integrals.orbitals(frozen), integrals.orbitals(every), labels, kinds, 4)
    # A singly occupied orbital that is frozen stands in no kind, so that its exchange is not known.
    is_known = np.isin(filled[0], np.concatenate([every, frozen])).all()
    spins = []
    for own, kinds_of_spin in ((alpha, (0, 1, orbitals.frozen)), (beta, (0, orbitals.frozen))):
        numbers, n_occ = len(frozen) + np.searchsorted(every, own.order), own.outline.n_occ
        parts = {"o": numbers[:n_occ], "v": numbers[n_occ:]}
        spins.append(Spin(0, parts, kinds_of_spin if is_known else None))
    return SpinSets(basis, (orbitals,), tuple(spins))


def fill_from_basis(tensors: list[Tensor], sets: SpinSets, workers: int) -> list[np.ndarray | None]:
    """Fills plain constants; of each spin the Fock matrix over its active orbitals, if it can be had."""
    places = Places(sets)
    wanted = [d for tensor in tensors for d in _destinations(tensor, places)]
    filled = sorted({kind for spin in sets.spins for kind in spin.filled or ()})
    room = _room(tensors, sets.basis)
    fields = transform(sets.basis, sets.sets, wanted, workers, filled=filled, room=room)
    found: list[np.ndarray | None] = []
    for spin in sets.spins:
        if fields is None or spin.filled is None:
            found.append(None)
        else:
            found.append(fields[spin.which].fock(spin.filled)[np.ix_(spin.active, spin.active)])
    return found


def _destinations(tensor: Tensor, places: Places) -> list[Destination]:
    """Of each two spins, of the rows and of the columns.

    What is symmetric in its two pairs is made once. Of two sets, (pq|rs) is made for r and s of the later
    one: what has its rows there is put down transposed.
    """
    spins = places.sets.spins
    rows, cols = ([places.side(tensor.layout, side, s) for s in range(len(spins))] for side in (0, 1))
    found = []
    for one, spin in enumerate(spins):
        for two, other in enumerate(spins):
            across = (spin.which, other.which)
            if spin.which > other.which:
                found.append(Destination(tensor.data, cols[two], rows[one], *across[::-1], ALL, True))
            elif spin.which < other.which or not is_symmetric(tensor.layout):
                found.append(Destination(tensor.data, rows[one], cols[two], *across))
            else:
                found.append(Destination(tensor.data, rows[one], cols[two], *across, FROM_R))
                found.append(Destination(tensor.data, cols[two], rows[one], *across, ABOVE_R, True))
    return found


def is_symmetric(layout: Layout) -> bool:
    """Whether rows and columns are the same pairs: (pq|rs) = (rs|pq)."""
    return (layout.rows.spaces, layout.rows.packing) == (layout.cols.spaces, layout.cols.packing)


@dataclass(frozen=True, eq=False)
class _States:
    """States of a compound index whose orbitals are of one spin: their pairs of orbitals of the set of this
    spin, their sectors and positions there, and <pq+|pq> / <pq|pq>."""

    pairs: np.ndarray
    sector: np.ndarray
    position: np.ndarray
    factor: np.ndarray


@dataclass(frozen=True, eq=False)
class Places:
    """Where pairs of orbitals stand in tensors; rows and columns of several tensors are the same pairs."""

    sets: SpinSets
    known: dict[tuple[str, str, str | None, int], _States] = field(default_factory=dict)

    def side(self, layout: Layout, side: int, number: int) -> Side:
        """The place of each pair of one spin among the rows (side 0) or the columns (side 1) of a tensor."""
        compound = (layout.rows, layout.cols)[side]
        states = self._states(compound, number)
        which = np.full(len(compound.sizes), -1)
        which[layout.sector_pairs[:, side]] = np.arange(len(layout.sector_pairs))
        of_state = which[states.sector]
        here = slice(None) if (of_state >= 0).all() else np.flatnonzero(of_state >= 0)
        of_state, position = of_state[here], states.position[here]
        found = Side.nowhere(self.sets.sets[self.sets.spins[number].which])
        offset = position if side else layout.offsets[of_state] + position * layout.ncols[of_state]
        found.offset[states.pairs[here]] = offset
        found.factor[states.pairs[here]] = states.factor[here]
        return found

    def _states(self, compound: Compound, number: int) -> _States:
        first, second = compound.spaces
        key = (first.name, second.name, compound.packing, number)
        if key not in self.known:
            self.known[key] = self._found(compound, number)
        return self.known[key]

    def _found(self, compound: Compound, number: int) -> _States:
        spin = self.sets.spins[number]
        states, sector, position = compound.all_states()
        index = [of_spin(space, x, number) for space, x in zip(compound.spaces, states, strict=True)]
        mine = np.flatnonzero((index[0] >= 0) & (index[1] >= 0))
        p, q = (
            spin.numbers[space.name][own[mine]] for space, own in zip(compound.spaces, index, strict=True)
        )
        factor = np.where(p == q, 1.0, np.sqrt(2.0)) if compound.packing else np.ones(len(p))
        pairs = self.sets.sets[spin.which].pairs(p, q)
        return _States(pairs, sector[mine], position[mine], factor)


def of_spin(space: Space, index: np.ndarray, number: int) -> np.ndarray:
    """Orbitals of a space, counted within one spin, and -1 for those of the other one."""
    if len(space.spins) == 1:
        return index
    first = sum(space.counts[0])
    return np.where((index >= first) == number, index - first * number, -1)


def _room(tensors: Sequence[Tensor], basis: BasisIntegrals) -> list[np.ndarray]:
    """For each irrep its largest sector, all of which is written; none if operations are too few."""
    room = [np.zeros(0)] * basis.operations.count
    if len(basis.irreps) > len(room):
        return room
    for tensor in tensors:
        layout = tensor.layout
        for s, (sector, _) in enumerate(layout.sector_pairs):
            label, size = layout.rows.labels[sector], layout.offsets[s + 1] - layout.offsets[s]
            irrep = basis.irreps[label[0]]
            if label[1] == 0 and size > len(room[irrep]):
                room[irrep] = tensor.data[layout.offsets[s] : layout.offsets[s + 1]]
    return room
