"""NumPy twins of the native kernels of connected triples, written to be read: docs/triples.md in arrays.

Indices are of one triple of tiles: a, b, c of the tiles A, B, C, x of the active orbitals of an irrep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewise.core import core

if TYPE_CHECKING:
    from tilewise.inspect.operations.kind import Work

CLOSED, SQUARES = (core.triples_forms.index(name) for name in ("closed", "squares"))


def record_energy(work: Work, record: np.void) -> tuple[float, float]:
    """The energy of fourth and of fifth order that a record adds."""
    operands = Operands(work)
    energy = np.zeros(2)
    tiles = work.records["tile_triple"][record["first_tiles"] :][: record["n_tiles"]]
    for k in range(record["k"], record["k"] + record["n_k"]):
        for a, b, c in tiles:
            if record["form"] not in (CLOSED, SQUARES):
                energy += open_energy(operands, record, int(k), (a, b, c))
            elif not record["i"] == record["j"] == k:
                energy += closed_energy(operands, (record["i"], record["j"], k), (a, b, c), record["form"])
    return float(energy[0]), float(energy[1])


Tiles = tuple[int, int, int]


@dataclass(frozen=True)
class Operands:
    """Blocks by the numbers of their orbitals and tiles; the names are those of the native kernels."""

    work: Work

    def direct(self, s: int, r: int, p: int, first: int, second: int) -> np.ndarray:
        """[first][x][second]"""
        return self._led("direct", s, r, (s, r), p, first, second)

    def crossed(self, s: int, r: int, p: int, first: int, second: int) -> np.ndarray:
        return self._led("crossed", s, r, (r, s), p, first, second)

    def pair(self, s: int, r: int, j: int, k: int, c: int) -> np.ndarray:
        """[x][c]"""
        rows = self._pair_rows(s, r, j, k, c)
        return self._pair(s, r, j, k, c, rows)

    def integrals(self, s: int, r: int, j: int, k: int, b: int, c: int) -> np.ndarray:
        """[b][c]"""
        rows, first = self._pair_rows(s, r, j, k, c), self._number("tile_inner", s, b)
        every = self._pair(s, r, j, k, c, rows + first + self.size(s, b))
        return every[rows + first :]

    def doubles(self, s: int, r: int, j: int, k: int, b: int, c: int) -> np.ndarray:
        """[b][c]"""
        first = self._number("tile_inner", s, b)
        return self._pair(s, r, j, k, c, first + self.size(s, b))[first:]

    def t1(self, s: int, i: int, tile: int) -> np.ndarray:
        return self._single("t1", s, i, tile)

    def fock(self, s: int, i: int, tile: int) -> np.ndarray:
        return self._single("fock", s, i, tile)

    def meets(self, s: int, i: int, tile: int) -> bool:
        return self._number("occ_irrep", s, i) == self._number("tile_irrep", s, tile)

    def size(self, s: int, tile: int) -> int:
        return self._number("tile_size", s, tile)

    def gaps(self, sets: Tiles, occupied: Tiles, tiles: Tiles) -> np.ndarray:
        """e_i + e_j + e_k - e_a - e_b - e_c, [a][b][c]"""
        energies = self._buffer("energies")
        gap = np.zeros((1, 1, 1))
        for axis, (s, i, tile) in enumerate(zip(sets, occupied, tiles, strict=True)):
            first = self.space["vir_energy"][s] + self._number("tile_first", s, tile)
            own = energies[self.space["occ_energy"][s] + i] - energies[first : first + self.size(s, tile)]
            gap = gap + own.reshape([-1 if axis == k else 1 for k in range(3)])
        return gap

    @property
    def space(self) -> np.void:
        return self.work.records["triples_space"][0]

    def _number(self, field: str, s: int, k: int) -> int:
        return int(self.work.records["triples_numbers"][self.space[field][s] + k])

    def _buffer(self, field: str) -> np.ndarray:
        return self.work.buffers[self.space[field]]

    def _led(
        self, kind: str, s: int, r: int, sets: tuple[int, int], p: int, first: int, second: int
    ) -> np.ndarray:
        of_first, of_second = sets
        tiles = self.space["n_tile"]
        where = self.space[kind][2 * s + r] + (p * tiles[of_first] + first) * tiles[of_second] + second
        place = int(self.work.records["triples_numbers"][where])
        irrep = self._number("occ_irrep", s, p)
        irrep ^= self._number("tile_irrep", of_first, first) ^ self._number("tile_irrep", of_second, second)
        rows, depth, cols = (
            self.size(of_first, first),
            self._number("n_sum", r, irrep),
            self.size(of_second, second),
        )
        ld = -(-cols // core.segment_lanes) * core.segment_lanes
        return self._buffer("blocks")[place : place + rows * depth * ld].reshape(rows, depth, ld)[..., :cols]

    def _pair_rows(self, s: int, r: int, j: int, k: int, c: int) -> int:
        irrep = self._number("occ_irrep", s, j) ^ self._number("occ_irrep", r, k)
        return self._number("n_sum", s, irrep ^ self._number("tile_irrep", r, c))

    def _pair(self, s: int, r: int, j: int, k: int, c: int, rows: int) -> np.ndarray:
        where = self.space["pair"][2 * s + r] + (j * self.space["n_occ"][r] + k) * self.space["n_tile"][r] + c
        place, cols = int(self.work.records["triples_numbers"][where]), self.size(r, c)
        ld = -(-cols // core.segment_lanes) * core.segment_lanes
        return self._buffer("pairs")[place : place + rows * ld].reshape(rows, ld)[:, :cols]

    def _single(self, field: str, s: int, i: int, tile: int) -> np.ndarray:
        first = self.space[field][s] + i * self.space["n_vir"][s] + self._number("tile_first", s, tile)
        return self._buffer("singles")[first : first + self.size(s, tile)]


def closed_energy(operands: Operands, occupied: Tiles, tiles: Tiles, form: int = CLOSED) -> np.ndarray:
    """(fourth, fifth) order of i >= j >= k in the tiles A >= B >= C."""
    i, j, k = occupied
    connected = closed_connected if form == CLOSED else squared
    even, odd = ((i, j, k), (j, k, i), (k, i, j)), ((j, i, k), (k, j, i), (i, k, j))
    w = {order: connected(operands, order, tiles) for order in {*even, *odd}}
    v = {order: closed_disconnected(operands, order, tiles) for order in w}
    w_even, w_odd = (sum(w[order] for order in half) for half in (even, odd))
    v_even, v_odd = (sum(v[order] for order in half) for half in (even, odd))
    fourth = 3 * sum(w[order] ** 2 for order in (*even, *odd)) + w_even**2 + w_odd**2 - 4 * w_even * w_odd
    fifth = 3 * sum(w[order] * v[order] for order in (*even, *odd))
    fifth = fifth + w_even * (v_even - 2 * v_odd) + w_odd * (v_odd - 2 * v_even)
    weight = _weights(operands, tiles) * (2 - (i == j) - (j == k)) / operands.gaps((0, 0, 0), occupied, tiles)
    return np.array([(weight * fourth).sum(), (weight * fifth).sum()])


def _ranks(operands: Operands, s: int, tile: int) -> np.ndarray:
    """Of each orbital of a tile a number by which those of all tiles are ordered, as tiles are."""
    return int(tile) * int(operands.space["n_vir"][s]) + np.arange(operands.size(s, tile))


def _weights(operands: Operands, tiles: Tiles) -> np.ndarray:
    """1 for a > b > c, a half if two are equal, a sixth if all are, and 0 for all else."""
    a, b, c = np.ix_(*(_ranks(operands, 0, tile) for tile in tiles))
    equal = 1 + (a == b) + (b == c)
    return np.where((a >= b) & (b >= c), np.array([0, 1, 1 / 2, 1 / 6])[equal], 0.0)


def closed_connected(operands: Operands, order: Tiles, tiles: Tiles) -> np.ndarray:
    """W_pqr[a][b][c]"""
    (p, q, r), (a, b, c) = order, tiles

    def f(i: int, first: int, second: int) -> np.ndarray:
        """F_i[y][z][x] for the tiles of y and z; of those Y >= Z are stored, and the others crossed."""
        if first >= second:
            return operands.direct(0, 0, i, first, second).transpose(0, 2, 1)
        return operands.crossed(0, 0, i, second, first).transpose(2, 0, 1)

    def g(j: int, k: int, last: int) -> np.ndarray:
        return operands.pair(0, 0, j, k, last)

    crossed_ab = operands.crossed(0, 0, q, a, b).transpose(2, 0, 1) if a == b else f(q, b, a)
    crossed_ac = operands.crossed(0, 0, r, a, c).transpose(2, 0, 1) if a == c else f(r, c, a)
    crossed_bc = operands.crossed(0, 0, r, b, c).transpose(2, 0, 1) if b == c else f(r, c, b)
    return np.asarray(
        np.einsum("abx,xc->abc", f(p, a, b), g(q, r, c))
        + np.einsum("bax,xc->abc", crossed_ab, g(p, r, c))
        + np.einsum("acx,xb->abc", f(p, a, c), g(r, q, b))
        + np.einsum("cax,xb->abc", crossed_ac, g(p, q, b))
        + np.einsum("bcx,xa->abc", f(q, b, c), g(r, p, a))
        + np.einsum("cbx,xa->abc", crossed_bc, g(q, p, a))
    )


def squared(operands: Operands, order: Tiles, tiles: Tiles) -> np.ndarray:
    """W_pqr[a][b][c] by (S + T)^2 - S^2 - T^2 with S = (pa|..) and T = t_qr, and the same of q and r."""
    space, o, v = operands.space, int(operands.space["n_occ"][0]), int(operands.space["n_vir"][0])
    blocks, scale = operands.work.buffers[space["blocks"]], float(space["scale"])

    def part(which: int, *shape: int) -> np.ndarray:
        first = int(space["squares"][which])
        return blocks[first : first + int(np.prod(shape))].reshape(shape)

    s, s2, t, t2 = part(0, o, v, v, v), part(1, o, v, v, v), part(2, o, o, v, v), part(3, o, o, v, v)
    holes = part(4, o, o, o, v)

    def group(lead: int, j: int, k: int) -> np.ndarray:
        """[lead][row][column] of the orbital `lead` and the pair j, k."""
        both = s[lead] + t[j, k]
        return both @ both - s2[lead] - t2[j, k]

    p, q, r = order
    doubles = scale * t
    w = group(p, q, r) + group(q, p, r).transpose(1, 0, 2) + group(r, p, q).transpose(1, 2, 0)
    for bra, indices, ket in (
        (doubles[p], "lab,lc->abc", holes[:, q, r]),
        (doubles[q], "lba,lc->abc", holes[:, p, r]),
        (doubles[p], "lac,lb->abc", holes[:, r, q]),
        (doubles[r], "lca,lb->abc", holes[:, p, q]),
        (doubles[q], "lbc,la->abc", holes[:, r, p]),
        (doubles[r], "lcb,la->abc", holes[:, q, p]),
    ):
        w = w - np.einsum(indices, bra, ket)
    orbitals = [operands._number("tile_first", 0, tile) + np.arange(operands.size(0, tile)) for tile in tiles]
    return np.asarray(w[np.ix_(*orbitals)])


def closed_disconnected(operands: Operands, order: Tiles, tiles: Tiles) -> np.ndarray:
    """V_pqr[a][b][c] - W_pqr[a][b][c]"""
    (p, q, r), (a, b, c) = order, tiles
    v = np.zeros([operands.size(0, tile) for tile in tiles])
    for single, pairs in ((operands.t1, operands.integrals), (operands.fock, operands.doubles)):
        if operands.meets(0, p, a):
            v += np.einsum("a,bc->abc", single(0, p, a), pairs(0, 0, q, r, b, c))
        if operands.meets(0, q, b):
            v += np.einsum("b,ac->abc", single(0, q, b), pairs(0, 0, p, r, a, c))
        if operands.meets(0, r, c):
            v += np.einsum("c,ab->abc", single(0, r, c), pairs(0, 0, p, q, a, b))
    return v


def open_energy(operands: Operands, record: np.void, k: int, tiles: Tiles) -> np.ndarray:
    """(fourth, fifth) order of i > j > k of one spin, or of i > j of one and k of the other."""
    s, r, i, j = (int(record[name]) for name in ("s", "r", "i", "j"))
    make = one_spin if s == r else two_spins
    w, v = make(operands, s, r, (i, j, k), tiles)
    sets = (s, s, r)
    a, b, c = np.ix_(*(_ranks(operands, own, tile) for own, tile in zip(sets, tiles, strict=True)))
    is_wanted = (a > b) & ((b > c) if s == r else np.ones_like(c, bool))
    weighted = np.where(is_wanted, w / operands.gaps(sets, (i, j, k), tiles), 0.0)
    return np.array([(weighted * w).sum(), (weighted * v).sum()])


def one_spin(
    operands: Operands, s: int, r: int, occupied: Tiles, tiles: Tiles
) -> tuple[np.ndarray, np.ndarray]:
    """W[a][b][c] of three electrons of one spin, and V - W."""
    (i, j, k), (a, b, c) = occupied, tiles
    w, v = (np.zeros([operands.size(s, tile) for tile in tiles]) for _ in range(2))
    for p, q, r_ in ((i, j, k), (j, k, i), (k, i, j)):
        w += np.einsum("axb,xc->abc", operands.direct(s, s, p, a, b), operands.pair(s, s, q, r_, c))
        w += np.einsum("bxc,xa->abc", operands.direct(s, s, p, b, c), operands.pair(s, s, q, r_, a))
        w -= np.einsum("axc,xb->abc", operands.direct(s, s, p, a, c), operands.pair(s, s, q, r_, b))
        for single, pairs in ((operands.t1, operands.integrals), (operands.fock, operands.doubles)):
            if operands.meets(s, p, c):
                v += np.einsum("ab,c->abc", pairs(s, s, q, r_, a, b), single(s, p, c))
            if operands.meets(s, p, a):
                v += np.einsum("bc,a->abc", pairs(s, s, q, r_, b, c), single(s, p, a))
            if operands.meets(s, p, b):
                v -= np.einsum("ac,b->abc", pairs(s, s, q, r_, a, c), single(s, p, b))
    return w, v


def two_spins(
    operands: Operands, s: int, r: int, occupied: Tiles, tiles: Tiles
) -> tuple[np.ndarray, np.ndarray]:
    """The same of two electrons of one spin and one of the other, k and c."""
    (i, j, k), (a, b, c) = occupied, tiles
    o = operands
    w = np.einsum("axb,xc->abc", o.direct(s, s, i, a, b), o.pair(s, r, j, k, c))
    w = w - np.einsum("axb,xc->abc", o.direct(s, s, j, a, b), o.pair(s, r, i, k, c))
    w -= np.einsum("bxc,xa->abc", o.crossed(r, s, k, b, c), o.pair(s, s, i, j, a))
    w += np.einsum("axc,xb->abc", o.crossed(r, s, k, a, c), o.pair(s, s, i, j, b))
    w += np.einsum("axc,xb->abc", o.direct(s, r, i, a, c), o.pair(r, s, k, j, b))
    w -= np.einsum("axc,xb->abc", o.direct(s, r, j, a, c), o.pair(r, s, k, i, b))
    w -= np.einsum("bxc,xa->abc", o.direct(s, r, i, b, c), o.pair(r, s, k, j, a))
    w += np.einsum("bxc,xa->abc", o.direct(s, r, j, b, c), o.pair(r, s, k, i, a))
    v = np.zeros_like(w)
    for single, pairs in ((o.t1, o.integrals), (o.fock, o.doubles)):
        if o.meets(r, k, c):
            v += np.einsum("ab,c->abc", pairs(s, s, i, j, a, b), single(r, k, c))
        for sign, p, q in ((1, i, j), (-1, j, i)):
            if o.meets(s, p, a):
                v += sign * np.einsum("a,bc->abc", single(s, p, a), pairs(s, r, q, k, b, c))
            if o.meets(s, p, b):
                v -= sign * np.einsum("b,ac->abc", single(s, p, b), pairs(s, r, q, k, a, c))
    return w, v
