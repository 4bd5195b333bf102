"""Where the operands of connected triples lie: blocks of integrals and amplitudes over tiles.

Virtual orbitals are cut into tiles, and x runs over all active orbitals of an irrep, virtual ones first.
There are blocks (docs/triples.md has the equations)

    direct  (p, Y, Z)   [y][x][z]   (py|zd) and -t_pl^yz    p, y of one set; x, z of another one, or the same
    crossed (p, Z, Y)   [z][x][y]   the same, led by z
    pair    (j, k, C)   [x][c]      t_jk^dc and (lj|kc); then (jb|kc) in the rows that follow

whose last index is padded with zeros to whole vectors. A closed shell has one set of orbitals, an open one
two; blocks of one set are those with Y >= Z alone, and antisymmetrized in an open shell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from tilewise.core import core
from tilewise.inspect.operations.triples import BUFFERS, BY_SETS, SPACE
from tilewise.lazy import cached_property
from tilewise.spaces.space import Tiles

LANES: int = core.segment_lanes
CACHE_LINE = 8
"""Numbers of a cache line, from whose beginning on a worker's results and factors lie."""

TILE = 20
"""Virtual orbitals per tile: the results of a triple of tiles stay in the second-level cache of a core."""

NOWHERE = -1
"""The place of a block that is not kept."""


def padded(n: np.ndarray | int) -> np.ndarray:
    """Lengths, up to whole vectors."""
    whole: np.ndarray = -(-np.asarray(n) // LANES) * LANES
    return whole


@dataclass(frozen=True)
class OrbitalSet:
    """Occupied and virtual orbitals of one spin, or of both: numbers per irrep."""

    occ: tuple[int, ...]
    vir: tuple[int, ...]
    tile: int = TILE

    @property
    def n_occ(self) -> int:
        return sum(self.occ)

    @property
    def n_vir(self) -> int:
        return sum(self.vir)

    @property
    def order(self) -> int:
        """Number of irreps."""
        return len(self.occ)

    @cached_property
    def occ_irrep(self) -> np.ndarray:
        return np.repeat(np.arange(self.order), self.occ)

    @cached_property
    def n_sum(self) -> np.ndarray:
        """Orbitals of each irrep, what x runs over."""
        return np.add(self.occ, self.vir)

    @cached_property
    def tiles(self) -> Tiles:
        """Nearly equal runs of whole vectors; the last of an irrep has what is left.

        Tiles that fill their vectors best come first: of three tiles A >= B >= C vectors run along C.
        """
        irreps, starts, sizes = [], [], []
        for number, (first, n) in enumerate(zip(np.cumsum([0, *self.vir]), self.vir, strict=False)):
            vectors = -(-n // LANES)
            count = -(-vectors // max(1, self.tile // LANES))
            cuts = np.minimum(n, LANES * (vectors * np.arange(count + 1) // max(1, count)))
            irreps += [number] * count
            starts += (first + cuts[:-1]).tolist()
            sizes += np.diff(cuts).tolist()
        irrep, start, size = (np.array(x, np.int64) for x in (irreps, starts, sizes))
        order = np.argsort(-size / padded(size), kind="stable")
        return Tiles(np.zeros(len(order), np.int64), irrep[order], start[order], size[order])

    @cached_property
    def tile_inner(self) -> np.ndarray:
        """The first orbital of each tile among those of its irrep."""
        first = np.cumsum([0, *self.vir])[:-1]
        inner: np.ndarray = self.tiles.start - first[self.tiles.irrep]
        return inner

    def virtual(self, tile: int) -> np.ndarray:
        """The virtual orbitals of a tile."""
        first = self.tiles.start[tile]
        return np.arange(first, first + self.tiles.size[tile])


@dataclass(frozen=True)
class Places:
    """Blocks of one kind and two sets: where each begins, by three indices, and the length of all."""

    first: np.ndarray
    end: int


@dataclass(frozen=True, eq=False)
class TriplesBlocks:
    """The blocks of one or two sets of orbitals; of `kept` occupied orbitals alone, if they are given."""

    sets: tuple[OrbitalSet, ...]
    kept: tuple[tuple[int, ...], ...] | None = None
    """Of each set the occupied orbitals p whose direct and crossed blocks are there; all by default."""
    by_squares: bool = False
    """Operands of squares in the place of direct and crossed blocks: whole matrices, without symmetry."""

    @property
    def is_open(self) -> bool:
        return len(self.sets) == 2

    @property
    def set_pairs(self) -> list[tuple[int, int]]:
        every = range(len(self.sets))
        return list(product(every, every))

    def has_crossed(self, s: int, r: int) -> bool:
        """Blocks of one set in an open shell are antisymmetric, and need no other order."""
        return s != r or not self.is_open

    @cached_property
    def direct(self) -> dict[tuple[int, int], Places]:
        """By (s, r): of p, Y of set s and Z of set r."""
        if self.by_squares:
            return {}
        return self._led(0, {(s, r): (s, r) for s, r in self.set_pairs})

    @cached_property
    def crossed(self) -> dict[tuple[int, int], Places]:
        """By (s, r): of p of set s, Z of set r and Y of set s."""
        if self.by_squares:
            return {}
        before = max(places.end for places in self.direct.values())
        return self._led(before, {(s, r): (r, s) for s, r in self.set_pairs if self.has_crossed(s, r)})

    def _led(self, end: int, wanted: dict[tuple[int, int], tuple[int, int]]) -> dict[tuple[int, int], Places]:
        found = {}
        for (s, r), (one, two) in wanted.items():
            lead, last = self.sets[one], self.sets[two]
            irrep = (
                self.sets[s].occ_irrep[:, None, None] ^ lead.tiles.irrep[:, None] ^ last.tiles.irrep[None, :]
            )
            size = lead.tiles.size[:, None] * self.sets[r].n_sum[irrep] * padded(last.tiles.size)
            is_there = np.ones(size.shape, bool)
            if one == two:
                is_there &= np.tri(len(lead.tiles), dtype=bool)
            if self.kept is not None:
                is_there[np.setdiff1d(np.arange(self.sets[s].n_occ), self.kept[s])] = False
            found[s, r] = _places(size, is_there, end)
            end = found[s, r].end
        return found

    @cached_property
    def pair(self) -> dict[tuple[int, int], Places]:
        """By (s, r): of j of set s, k and C of set r."""
        found, end = {}, 0
        for s, r in self.set_pairs:
            one, two = self.sets[s], self.sets[r]
            irrep = one.occ_irrep[:, None, None] ^ two.occ_irrep[:, None] ^ two.tiles.irrep
            size = (one.n_sum + one.vir)[irrep] * padded(two.tiles.size)
            is_there = np.ones(size.shape, bool)
            if s == r and self.is_open:
                is_there[np.arange(one.n_occ), np.arange(one.n_occ)] = False
            found[s, r] = _places(size, is_there, end)
            end = found[s, r].end
        return found

    @property
    def lengths(self) -> dict[str, int]:
        """Elements of each buffer, but for the energies of tasks."""
        tiles = sum(own.n_occ + own.n_vir for own in self.sets)
        singles = sum(own.n_occ * own.n_vir for own in self.sets)
        led = [places.end for places in (*self.direct.values(), *self.crossed.values())]
        return {
            "blocks": self.squares[-1] if self.by_squares else max(led),
            "pairs": max(places.end for places in self.pair.values()),
            "energies": tiles,
            "singles": 2 * singles,
        }

    @property
    def squares(self) -> tuple[int, ...]:
        """Where (ia|bd), their squares, t_jk^bc, their squares and (lj|kc) begin, and the end of all."""
        o, v = self.sets[0].n_occ, self.sets[0].n_vir
        sizes = (o * v**3, o * v**3, o * o * v * v, o * o * v * v, o**3 * v)
        return tuple(np.cumsum([0, *sizes]).tolist())

    @property
    def whole_result(self) -> int:
        """Elements of a worker's results before they are cut into tiles, and of the factors of squares."""
        o, v = self.sets[0].n_occ, self.sets[0].n_vir
        if not self.by_squares:
            return 0
        rows, cols = (-(-v // panel) * panel for panel in core.square_panels)
        return v**3 + core.square_slab * v * v + (v + 2 * o) * cols + 2 * o * rows + 4 * CACHE_LINE

    @property
    def largest_result(self) -> int:
        """Elements of a worker's results: six orders of a triple of tiles, or one in an open shell."""
        most = [int(own.tiles.size.max(initial=0)) for own in self.sets]
        return (
            (1 if self.is_open else 6) * max(most) ** 2 * int(padded(max(most)))
            + LANES * 2
            + self.whole_result
        )

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The space as one record, and the numbers that it points to."""
        space, numbers = np.zeros(1, SPACE), _Numbers()
        space["has_fock"] = 1
        for number, name in enumerate(BUFFERS):
            space[name] = number
        occ_vir, singles = 0, 0
        for s in (0, 1):
            own = self.sets[min(s, len(self.sets) - 1)]
            again = s >= len(self.sets)  # a closed shell has one set twice
            if again:
                for name in space.dtype.names or ():
                    if space[name].shape == (1, 2):
                        space[name][0, 1] = space[name][0, 0]
                continue
            for name, value in (("n_occ", own.n_occ), ("n_vir", own.n_vir), ("n_tile", len(own.tiles))):
                space[name][0, s] = value
            for name, values in (
                ("occ_irrep", own.occ_irrep),
                ("n_sum", own.n_sum),
                ("n_in_irrep", own.vir),
                ("tile_irrep", own.tiles.irrep),
                ("tile_size", own.tiles.size),
                ("tile_first", own.tiles.start),
                ("tile_inner", own.tile_inner),
            ):
                space[name][0, s] = numbers.append(values)
            space["occ_energy"][0, s], space["vir_energy"][0, s] = occ_vir, occ_vir + own.n_occ
            space["t1"][0, s], space["fock"][0, s] = singles, singles + own.n_occ * own.n_vir
            occ_vir += own.n_occ + own.n_vir
            singles += 2 * own.n_occ * own.n_vir
        for name in BY_SETS:
            for (s, r), places in getattr(self, name).items():
                space[name][0, 2 * s + r] = numbers.append(places.first.ravel())
        if self.by_squares:
            space["squares"][0] = self.squares[:-1]
        return space, numbers.joined


class _Numbers:
    """Whole numbers that are gathered in one array."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []
        self.length = 0

    def append(self, values: Iterable[int]) -> int:
        """Where they will be."""
        self.parts.append(np.asarray(values, np.int64))
        self.length += len(self.parts[-1])
        return self.length - len(self.parts[-1])

    @property
    def joined(self) -> np.ndarray:
        return np.concatenate(self.parts)


def _places(size: np.ndarray, is_there: np.ndarray, begin: int) -> Places:
    """Blocks of these sizes one after the other."""
    kept = np.where(is_there, size, 0).ravel()
    ends = begin + np.cumsum(kept)
    first = np.where(is_there.ravel(), ends - kept, NOWHERE).reshape(size.shape)
    return Places(first, int(ends[-1]) if len(ends) else begin)
