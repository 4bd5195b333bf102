"""From integrals over basis functions to integrals over orbitals, in the basis of the symmetry.

1. Pairs of functions that are images of one another make one combination in each irrep that they have
   (`chem.pair_classes`). X_h[K, L], the integrals over combinations, are block diagonal in the irrep h, and
   each is made of the integrals of one pair of K with all images of L.
2. For one irrep at a time, and some columns L at a time, X_h goes over into pairs (P, Q) of symmetry-adapted
   functions (a sparse step), P becomes p, Q becomes q: Y_h[rs, K]. From the same numbers comes the Coulomb
   field of a density.
3. The other pair of functions goes the same way, some columns (rs) at a time, and each (pq|rs) is put where
   it belongs. What is symmetric in its two pairs is made once and put into both places. Exchange integrals
   (pi|qi) of all occupied orbitals i, frozen ones too, are picked out for the Fock matrix.

Every number is made by one worker in a fixed order: the same bits come out for any number of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewise.chem.orbital_pairs import FROZEN, Destination, OrbitalSet
from tilewise.chem.pair_classes import Expansion, Operations, PairClasses, pair_number
from tilewise.config import thread_limits
from tilewise.core import core

# Where integrals go, and groups of exchange integrals, as the native core has them.
DESTINATION = np.dtype(
    [(name, np.int64) for name in ("buffer", "left", "right", "from", "by_rows", "wanted")]
)
EXCHANGE = np.dtype([(name, np.int64) for name in ("i", "irrep_i", "irrep_q", "first", "count")])

LEAST_HALF = 1 << 27
"""Bytes of half-transformed integrals that are always allowed."""
HALF_SHARE = 0.45
"""Half-transformed integrals of one irrep that take more than this part of the results are made in several
batches."""

NEGLIGIBLE = 1e-15
"""Integrals over basis functions whose Schwarz bound is smaller are not computed, in hartree."""


@dataclass(frozen=True, eq=False)
class Density:
    """What the Fock matrix is made of besides the integrals, over basis functions, in hartree."""

    total: np.ndarray
    core: np.ndarray  # the core Hamiltonian


@dataclass(frozen=True, eq=False)
class Fields:
    """Of one set of orbitals, by their numbers: the core Hamiltonian with the Coulomb field, and for each
    kind the sum of the exchange integrals (pi|qi) over its orbitals i."""

    direct: np.ndarray
    exchange: np.ndarray

    def fock(self, occupied: Sequence[int]) -> np.ndarray:
        """The Fock matrix for electrons in the orbitals of some kinds."""
        return self.direct - self.exchange[list(occupied)].sum(axis=0)


@dataclass(frozen=True, eq=False)
class BasisIntegrals:
    """Integrals over the basis functions: packed in both pairs (a vector), a matrix over pairs, or yet to be
    made by libcint."""

    operations: Operations
    source: np.ndarray | core.Libcint
    irreps: np.ndarray
    """For each irrep of the group that orbitals are labelled by: its irrep in these operations."""
    density: Density | None = None

    @cached_property
    def classes(self) -> PairClasses:
        return PairClasses(self.operations)

    def orbital_set(
        self, frozen: np.ndarray, active: np.ndarray, labels: np.ndarray, kinds: np.ndarray, n_kinds: int
    ) -> OrbitalSet:
        """Active orbitals with their irreps (`labels`) and kinds (from 1 on), frozen ones before them.

        Both are columns of coefficients. Which irrep a frozen orbital has is told by its coefficients.
        """
        n = frozen.shape[1]
        parts = [(self.classes.adapted(h).T @ frozen) ** 2 for h in range(self.operations.count)]
        irreps = np.argmax([part.sum(axis=0) for part in parts], axis=0)
        return OrbitalSet(
            np.hstack([frozen, active]),
            np.concatenate([irreps, self.irreps[labels]]).astype(np.int64),
            np.concatenate([np.full(n, FROZEN), kinds]),
            np.concatenate([np.zeros(n, np.int64), labels]),
            self.operations.count,
            n_kinds,
        )

    def adapted(self, room: list[np.ndarray], workers: int) -> list[np.ndarray]:
        """X_h for each irrep, a packed triangle; in the memory of `room` where that is large enough.

        Without symmetry these are the integrals themselves.
        """
        source, classes = self.source, self.classes
        if self.operations.count == 1 and isinstance(source, np.ndarray):
            return [source]
        out = []
        for n, given in zip(classes.n_classes, room, strict=True):
            size = n * (n + 1) // 2
            out.append(given[:size] if len(given) >= size else np.empty(size))
        if isinstance(source, np.ndarray):
            n = self.operations.n_functions
            n_pairs = n * (n + 1) // 2
            core.adapt_pairs(**classes.tables, integrals=source, n_pairs=n_pairs, out=out, n_workers=workers)
        else:
            core.adapt_quartets(
                **classes.tables, libcint=source, threshold=NEGLIGIBLE, out=out, n_workers=workers
            )
        return out


def allowed_half(results: int) -> int:
    """Bytes of half-transformed integrals that are made at once, for so many bytes of results."""
    return max(LEAST_HALF, int(HALF_SHARE * results))


def transform(
    integrals: BasisIntegrals,
    sets: Sequence[OrbitalSet],
    destinations: Sequence[Destination],
    workers: int,
    filled: Sequence[int] = (),
    room: list[np.ndarray] | None = None,
) -> list[Fields] | None:
    """All integrals to their destinations; the fields of each set if a density is given.

    `filled` are the kinds of orbitals whose exchange is wanted. `room` is memory, per irrep, that may be
    used until the results of that irrep are written: usually the results' own.
    """
    with thread_limits(1):  # one BLAS thread per worker
        return _Transformation(integrals, sets, destinations, workers, filled).run(room)


class _Transformation:
    """One call of `transform`: irrep by irrep, set by set, batch by batch."""

    def __init__(
        self,
        integrals: BasisIntegrals,
        sets: Sequence[OrbitalSet],
        destinations: Sequence[Destination],
        workers: int,
        filled: Sequence[int],
    ) -> None:
        self.integrals, self.sets, self.workers = integrals, sets, workers
        self.classes, self.density = integrals.classes, integrals.density
        self.filled = list(filled) if self.density else []
        self.destinations = sorted(destinations, key=lambda d: -len(d.buffer))
        self.coefficients = [orbitals.in_functions(self.classes) for orbitals in sets]
        self.exchange = [np.zeros((s.n_kinds, len(s), len(s))) for s in sets]
        self.coulomb = np.zeros(0)
        self.wanted = {id(d): d.wanted(sets[d.left_set]) for d in self.destinations}

    def run(self, room: list[np.ndarray] | None) -> list[Fields] | None:
        classes = self.classes
        sizes = [
            max(int(np.diff(s.first_pair)[h] * classes.n_classes[h]) for s in self.sets)
            for h in range(classes.n_irreps)
        ]
        unique = {d.buffer.ctypes.data: d.buffer.nbytes for d in self.destinations}
        most = allowed_half(sum(unique.values())) / 8
        # The memory of results serves until they are written, so nothing may be needed after the first batch.
        nothing = [np.zeros(0)] * classes.n_irreps
        alone = len(self.sets) == 1 and max(sizes, default=0) <= most
        adapted = self.integrals.adapted(room if room and alone else nothing, self.workers)
        self.memory = np.empty(
            int(min(max(sizes, default=0), most + max(map(len, self.sets)) * max(classes.n_classes)))
        )
        for irrep in range(classes.n_irreps):
            expansion = classes.expansion(irrep)
            for number in range(len(self.sets)):
                for first, last in self._batches(irrep, number, most):
                    self._batch(expansion, adapted[irrep], number, first, last)
            adapted[irrep] = np.zeros(0)
        return self._fields() if self.density else None

    def _batches(self, irrep: int, number: int, most: float) -> Iterator[tuple[int, int]]:
        """Ranges of pairs, all pairs of some p each, whose half-transformed integrals are not too many."""
        orbitals = self.sets[number]
        first, end = (int(x) for x in orbitals.first_pair[irrep : irrep + 2])
        rows = max(1, int(most // max(1, self.classes.n_classes[irrep])))
        p = orbitals.p[first:end]
        left = orbitals.irreps[orbitals.by_rank][p]
        starts = np.flatnonzero(np.diff(p, prepend=-1) | np.diff(left, prepend=-1)).tolist()
        ends = [*starts[1:], end - first] if starts else []
        begin = 0
        for k, stop in enumerate(ends):
            if k + 1 == len(ends) or ends[k + 1] - begin > rows:
                yield first + begin, first + stop
                begin = stop

    def _tables(self, expansion: Expansion, number: int) -> dict[str, np.ndarray | int]:
        return _native_tables(self.classes, expansion, self.sets[number], self.coefficients[number])

    def _batch(self, expansion: Expansion, adapted: np.ndarray, number: int, first: int, last: int) -> None:
        orbitals, irrep = self.sets[number], expansion.irrep
        half = self.memory[: (last - first) * expansion.n_classes].reshape(last - first, -1)
        density = coulomb = np.zeros(0)
        if self.density and irrep == 0 and not len(self.coulomb):
            density = self._combined_density()
            self.coulomb = coulomb = np.zeros(expansion.n_classes)
        core.first_half(
            **self._tables(expansion, number),
            integrals=adapted,
            first=first - int(orbitals.first_pair[irrep]),
            out=half,
            column=0,
            density=density,
            coulomb=coulomb,
            n_workers=self.workers,
        )
        for left in range(len(self.sets)):
            some = [d for d in self.destinations if (d.left_set, d.right_set) == (left, number)]
            if some:
                self._second_half(expansion, half, left, number, first, last, some)
        if self.filled:
            self._exchange(expansion, half, number, first, last)

    def _second_half(
        self,
        expansion: Expansion,
        half: np.ndarray,
        left: int,
        right: int,
        first: int,
        last: int,
        destinations: list[Destination],
    ) -> None:
        orbitals, others = self.sets[right], self.sets[left]
        pairs, first_block = _columns(orbitals, destinations, first, last)
        if not len(pairs):
            return
        sides = {id(side): side for d in destinations for side in (d.left, d.right)}
        numbers = {key: k for k, key in enumerate(sides)}
        buffers = {d.buffer.ctypes.data: d.buffer for d in destinations}
        places = {key: k for k, key in enumerate(buffers)}
        records = [
            (
                places[d.buffer.ctypes.data],
                numbers[id(d.left)],
                numbers[id(d.right)],
                d.takes,
                d.by_rows,
                self.wanted[id(d)],
            )
            for d in destinations
        ]
        core.second_half(
            **self._tables(expansion, left),
            half=half,
            first_block=first_block,
            column=pairs - first,
            pair=pairs,
            rank=orbitals.p[pairs],
            label=orbitals.pair_labels[pairs[first_block[:-1]]],
            left_label=others.pair_labels,
            first_pair=int(others.first_pair[expansion.irrep]),
            destinations=np.array(records, DESTINATION).view(np.uint8),
            offsets=[side.offset for side in sides.values()],
            factors=[side.factor for side in sides.values()],
            buffers=list(buffers.values()),
            n_workers=self.workers,
        )

    def _exchange(self, expansion: Expansion, half: np.ndarray, number: int, first: int, last: int) -> None:
        """Adds the exchange integrals of the pairs (q, i), q not frozen, that lie in a range of pairs."""
        orbitals = self.sets[number]
        kinds, irreps = orbitals.kinds[orbitals.by_rank], orbitals.irreps[orbitals.by_rank]
        pairs = np.arange(first, last)
        p, q = orbitals.p[pairs], orbitals.q[pairs]
        both = (np.append(pairs, pairs[p != q]), np.append(p, q[p != q]), np.append(q, p[p != q]))
        chosen = np.isin(kinds[both[1]], self.filled) & (kinds[both[2]] != FROZEN)
        pairs, i, q = (x[chosen] for x in both)
        order = np.lexsort([q, irreps[q], i])
        pairs, i, q = pairs[order], i[order], q[order]
        starts = np.flatnonzero(np.diff(i, prepend=-1) | np.diff(irreps[q], prepend=-1))
        if not len(starts):
            return
        start = orbitals.first[:, 0]
        groups = np.zeros(len(starts), EXCHANGE)
        groups["i"], groups["irrep_i"] = i[starts] - start[irreps[i[starts]]], irreps[i[starts]]
        groups["irrep_q"], groups["first"] = irreps[q[starts]], starts
        groups["count"] = np.diff(starts, append=len(pairs))
        out = np.zeros((len(pairs), int((orbitals.first[:, -1] - start).max())))
        core.exchange_half(
            **self._tables(expansion, number),
            half=half,
            groups=groups.view(np.uint8),
            column=pairs - first,
            out=out,
            n_workers=self.workers,
        )
        by_number = orbitals.by_rank
        for irrep in range(orbitals.n_irreps):
            here = by_number[start[irrep] : orbitals.first[irrep, -1]]
            for kind in self.filled:
                mine = np.flatnonzero((irreps[q] == irrep) & (kinds[i] == kind))
                if len(mine):
                    part = self.exchange[number][kind]
                    np.add.at(part, (by_number[q[mine]][:, None], here), out[mine, : len(here)])

    def _combined_density(self) -> np.ndarray:
        assert self.density
        high, low = np.tril_indices(len(self.density.total))
        values = np.where(high == low, 1.0, 2.0) * self.density.total[high, low]
        return self.classes.combined(values)

    def _fields(self) -> list[Fields]:
        assert self.density
        n = len(self.density.total)
        coulomb = self.classes.separated(self.coulomb)
        every = np.arange(n)
        potential = self.density.core + coulomb[pair_number(every[:, None], every)]
        found = []
        for orbitals, exchange in zip(self.sets, self.exchange, strict=True):
            same = orbitals.labels[:, None] == orbitals.labels
            direct = orbitals.coefficients.T @ potential @ orbitals.coefficients
            found.append(Fields(direct * same, exchange * same))
        return found


def _native_tables(
    classes: PairClasses, expansion: Expansion, orbitals: OrbitalSet, coefficients: np.ndarray
) -> dict[str, np.ndarray | int]:
    """What every native step after the first one is told."""
    return {
        "irrep": expansion.irrep,
        "n_classes": expansion.n_classes,
        "n_functions": classes.n_functions,
        "first_entry": expansion.first_entry,
        "entry": expansion.entry,
        "weight": expansion.weight,
        "first_orbital": orbitals.first.ravel(),
        "coefficients": coefficients,
    }


def _columns(
    orbitals: OrbitalSet, destinations: list[Destination], first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (rs) of a range that have a destination, in the order of its places, and where blocks begin.

    Columns of a block go to the same destination and have the same label; there are at most `slab_width`.
    """
    owner, place = np.full((2, last - first), -1)
    for number, d in enumerate(destinations):
        offset = d.right.offset[first:last]
        new = (owner < 0) & (offset >= 0)
        owner[new], place[new] = number, offset[new]
    labels = orbitals.pair_labels[first:last]
    order = np.lexsort([place, labels, owner])
    order = order[owner[order] >= 0]
    code = owner[order] * (labels.max(initial=0) + 1) + labels[order]
    begins = np.flatnonzero(np.diff(code, prepend=-1))
    sizes = np.diff(begins, append=len(order))
    starts = [
        np.arange(begin, begin + size, core.slab_width) for begin, size in zip(begins, sizes, strict=True)
    ]
    return first + order, np.concatenate([*starts, [len(order)]]).astype(np.int64)


def transformed(
    coefficients: np.ndarray, kets: np.ndarray, out: np.ndarray, column: int, workers: int
) -> None:
    """C^T M C for each packed symmetric matrix M, a row of `kets`, into columns of `out`, from `column` on.

    The rows of `out` are pairs p >= q of orbitals.
    """
    n, m = coefficients.shape
    classes = PairClasses(Operations.none(n))
    zeros = np.zeros(m, np.int64)
    orbitals = OrbitalSet(coefficients, zeros, zeros, zeros, 1, 1)
    nothing = np.zeros(0)
    with thread_limits(1):
        core.first_half(
            **_native_tables(classes, classes.expansion(0), orbitals, orbitals.in_functions(classes)),
            integrals=np.ascontiguousarray(kets),
            first=0,
            out=out,
            column=column,
            density=nothing,
            coulomb=nothing,
            n_workers=workers,
        )
