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

import numpy as np

from tilewise.chem.exchange import add_exchange
from tilewise.chem.function_integrals import BasisIntegrals, Density
from tilewise.chem.orbital_pairs import ABOVE_R, FROM_R, Destination, OrbitalSet
from tilewise.chem.pages import Pages, cut, places_of, waves_of
from tilewise.chem.pair_classes import Expansion, Operations, PairClasses, pair_number
from tilewise.config import thread_limits
from tilewise.core import core
from tilewise.new_memory import empty

# Where integrals go, as the native core has it.
DESTINATION = np.dtype(
    [(name, np.int64) for name in ("buffer", "left", "right", "from", "by_rows", "wanted")]
)

LEAST_HALF = 1 << 27
"""Bytes of half-transformed integrals that are always allowed."""
HALF_SHARE = 0.45
"""Half-transformed integrals of one irrep that take more than this part of the results are made in several
batches."""

PARTS = 16
"""Where all half-transformed integrals are made at once: parts that are used one after the other."""

NOWHERE = 1 << 60
"""More than any offset."""


@dataclass(frozen=True, eq=False)
class Fields:
    """Of one set of orbitals, by their numbers: the core Hamiltonian with the Coulomb field, and for each
    kind the sum of the exchange integrals (pi|qi) over its orbitals i."""

    direct: np.ndarray
    exchange: np.ndarray

    def fock(self, occupied: Sequence[int]) -> np.ndarray:
        """The Fock matrix for electrons in the orbitals of some kinds."""
        return self.direct - self.exchange[list(occupied)].sum(axis=0)


def allowed_half(results: int, share: float = HALF_SHARE) -> int:
    """Bytes of half-transformed integrals that are made at once, for so many bytes of results."""
    return max(LEAST_HALF, int(share * results))


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
        self.combined = self.coulomb = np.zeros(0)
        self.n_coulomb = 0
        self.scratch = core.Scratch(workers)
        self.wanted = {id(d): d.wanted(sets[d.left_set]) for d in self.destinations}

    def run(self, room: list[np.ndarray] | None) -> list[Fields] | None:
        classes = self.classes
        sizes = [
            max(int(np.diff(s.first_pair)[h] * classes.n_classes[h]) for s in self.sets)
            for h in range(classes.n_irreps)
        ]
        unique = {d.buffer.ctypes.data: d.buffer.nbytes for d in self.destinations}
        most = allowed_half(sum(unique.values())) / 8
        fits = max(sizes, default=0) <= most
        if classes.n_irreps == 1 and len(self.sets) == 1 and not fits and self.integrals.is_direct:
            self._run_in_waves()
            return self._fields()
        # The memory of results serves until they are written, so nothing may be needed after the first batch.
        nothing = [np.zeros(0)] * classes.n_irreps
        alone = len(self.sets) == 1 and fits
        adapted = self.integrals.adapted(room if room and alone else nothing, self.workers)
        if classes.n_irreps == 1 and len(self.sets) == 1 and not fits:
            self._run_descending(adapted[0], room[0] if room else nothing[0], most / 2)
            return self._fields()
        memory = empty(
            int(min(max(sizes, default=0), most + max(map(len, self.sets)) * max(classes.n_classes)))
        )
        for irrep in range(classes.n_irreps):
            expansion = classes.expansion(irrep)
            n = expansion.n_classes
            for number in range(len(self.sets)):
                for first, last in self._batches(irrep, number, most):
                    half = memory[: (last - first) * n].reshape(last - first, -1)
                    self._first_half(expansion, adapted[irrep], number, (0, n), first, [half])
                    self._use_half(expansion, [half], number, first, last)
            adapted[irrep] = np.zeros(0)
        return self._fields()

    def _fields(self) -> list[Fields] | None:
        if self.density is None:
            return None
        return fields_of(self.classes, self.density, self.coulomb, self.sets, self.exchange)

    def _run_descending(self, adapted: np.ndarray, room: np.ndarray, most: float) -> None:
        """One set without symmetry: batches of pairs, those of high rank first.

        Results with two such pairs are written to the end of their memory, whose beginning serves for
        half-transformed integrals until then; besides it there is memory for `most` of them.
        """
        expansion = self.classes.expansion(0)
        n = expansion.n_classes
        bounds = np.append(0, self._ends(0, 0))
        rows = max(int(most // n), int(np.diff(bounds).max()))
        own, free = empty(rows * n), self._free(room, bounds)
        end = len(bounds) - 1
        while end:
            middle = int(np.searchsorted(bounds, bounds[end] - rows))
            begin = middle
            while begin and (bounds[middle] - bounds[begin - 1]) * n <= free[begin - 1]:
                begin -= 1
            ranges = [(bounds[begin], bounds[middle], room), (bounds[middle], bounds[end], own)]
            parts = [
                (int(a), int(b), memory[: (b - a) * n].reshape(-1, n)) for a, b, memory in ranges if b > a
            ]
            self._first_half(expansion, adapted, 0, (0, n), int(bounds[begin]), [half for *_, half in parts])
            for first, last, half in parts:
                self._use_half(expansion, [half], 0, first, last)
            end = begin

    def _free(self, room: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """How many numbers at the beginning of `room` stay as they are when all results with columns (rs)
        from each bound on are written."""
        free = np.full(len(bounds), len(room))
        for d in self.destinations:
            if np.may_share_memory(room, d.buffer):
                start = (room.ctypes.data - d.buffer.ctypes.data) // room.itemsize
                left, right = _least_from(d.left.offset), _least_from(d.right.offset)
                left = left[bounds if d.takes in (FROM_R, ABOVE_R) else 0]
                free = np.minimum(free, left + right[bounds] - start)
        return np.maximum(free, 0)

    def _run_in_waves(self) -> None:
        """All half-transformed integrals of one set without symmetry, in waves of columns K.

        After the wave of K the memory of integrals over pairs of functions up to K serves for later waves.
        What is made is given back, in parts, as soon as it is used. Pairs of high rank are used first:
        results with two such pairs are all in a few pages.
        """
        expansion = self.classes.expansion(0)
        n = expansion.n_classes
        pages = Pages(n * (n + 1) // 2)
        (adapted,) = self.integrals.adapted([pages.numbers], self.workers)
        pairs = int(self.sets[0].first_pair[1])
        # Pairs with a frozen orbital come last: no result is made of them, and they are given back first.
        active = int(np.diff(self.sets[0].first[0])[:-1].sum())
        ranges = cut(self._batches(0, 0, pairs * n / PARTS), active * (active + 1) // 2)
        rows, waves = [last - first for first, last in ranges], list(waves_of(n))
        places, again, own = places_of(rows, waves)
        memory = Pages(own[-1])
        parts: list[list[np.ndarray]] = [[] for _ in ranges]
        for wave, (begin, end) in enumerate(waves):
            for part, count, of_part in zip(parts, rows, places, strict=True):
                has_served, at = of_part[wave]
                whole = (pages if has_served else memory).numbers[at:]
                part.append(whole[: count * (end - begin)].reshape(count, -1))
            made = [part[-1] for part in parts]
            self._first_half(expansion, adapted, 0, (begin, end), ranges[0][0], made)
        pages.give_back(again[-1])
        while parts:
            self._use_half(expansion, parts.pop(), 0, *ranges.pop())
            pages.give_back(again[len(parts)])
            memory.give_back(own[len(parts)])

    def _batches(self, irrep: int, number: int, most: float) -> Iterator[tuple[int, int]]:
        """Ranges of pairs, all pairs of some p each, whose half-transformed integrals are not too many."""
        first = int(self.sets[number].first_pair[irrep])
        rows = max(1, int(most // max(1, self.classes.n_classes[irrep])))
        ends = self._ends(irrep, number)
        begin = 0
        for k, stop in enumerate(ends):
            if k + 1 == len(ends) or ends[k + 1] - begin > rows:
                yield first + begin, first + stop
                begin = stop

    def _ends(self, irrep: int, number: int) -> list[int]:
        """Where the pairs of each p end, counted from the first pair of the irrep."""
        orbitals = self.sets[number]
        first, end = (int(x) for x in orbitals.first_pair[irrep : irrep + 2])
        p = orbitals.p[first:end]
        left = orbitals.irreps[orbitals.by_rank][p]
        starts = np.flatnonzero(np.diff(p, prepend=-1) | np.diff(left, prepend=-1)).tolist()
        return [*starts[1:], end - first] if starts else []

    def _tables(self, expansion: Expansion, number: int) -> dict[str, np.ndarray | int]:
        return native_tables(self.classes, expansion, self.sets[number], self.coefficients[number])

    def _first_half(
        self,
        expansion: Expansion,
        adapted: np.ndarray,
        number: int,
        rows: tuple[int, int],
        first: int,
        halves: list[np.ndarray],
    ) -> None:
        """Half-transformed integrals of pairs from `first` on, of some rows K; the Coulomb field once."""
        orbitals, irrep = self.sets[number], expansion.irrep
        density = coulomb = np.zeros(0)
        if self.density and irrep == 0 and self.n_coulomb < expansion.n_classes:
            if rows[0] == 0:
                self.combined = combined_density(self.classes, self.density)
                self.coulomb = np.zeros(expansion.n_classes)
            density, coulomb, self.n_coulomb = self.combined, self.coulomb, rows[1]
        core.first_half(
            **self._tables(expansion, number),
            integrals=adapted,
            begin=rows[0],
            end=rows[1],
            first=first - int(orbitals.first_pair[irrep]),
            out=halves,
            column=0,
            density=density,
            coulomb=coulomb,
            scratch=self.scratch,
        )

    def _use_half(
        self, expansion: Expansion, half: list[np.ndarray], number: int, first: int, last: int
    ) -> None:
        """All that is made of the half-transformed integrals of some pairs: matrices side by side."""
        for left in range(len(self.sets)):
            some = [d for d in self.destinations if (d.left_set, d.right_set) == (left, number)]
            if some:
                self._second_half(expansion, half, left, number, first, last, some)
        if self.filled:
            add_exchange(
                self._tables(expansion, number),
                self.sets[number],
                self.filled,
                half,
                np.arange(first, last),
                self.exchange[number],
                self.scratch,
            )

    def _second_half(
        self,
        expansion: Expansion,
        half: list[np.ndarray],
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
            scratch=self.scratch,
        )


def _least_from(offset: np.ndarray) -> np.ndarray:
    """The least offset of all pairs from each one on that have one; a large number behind the last one."""
    known = np.append(np.where(offset >= 0, offset, NOWHERE), NOWHERE)
    return np.minimum.accumulate(known[::-1])[::-1]


def combined_density(classes: PairClasses, density: Density) -> np.ndarray:
    """The density in the combinations of the irrep 0, each pair of functions counted both ways round."""
    high, low = np.tril_indices(len(density.total))
    return classes.combined(np.where(high == low, 1.0, 2.0) * density.total[high, low])


def fields_of(
    classes: PairClasses,
    density: Density,
    coulomb: np.ndarray,
    sets: Sequence[OrbitalSet],
    exchanges: Sequence[np.ndarray],
) -> list[Fields]:
    """Of each set, from the Coulomb field over combinations and the sums of exchange integrals."""
    if not any(map(len, sets)):  # no orbitals, and nothing was transformed
        coulomb = np.zeros(int(classes.n_classes[0]))
    every = np.arange(len(density.total))
    potential = density.core + classes.separated(coulomb)[pair_number(every[:, None], every)]
    found = []
    for orbitals, exchange in zip(sets, exchanges, strict=True):
        same = orbitals.labels[:, None] == orbitals.labels
        direct = orbitals.coefficients.T @ potential @ orbitals.coefficients
        found.append(Fields(direct * same, exchange * same))
    return found


def native_tables(
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
            **native_tables(classes, classes.expansion(0), orbitals, orbitals.in_functions(classes)),
            integrals=np.ascontiguousarray(kets),
            begin=0,
            end=len(kets),
            first=0,
            out=[out],
            column=column,
            density=nothing,
            coulomb=nothing,
            scratch=core.Scratch(workers),
        )
