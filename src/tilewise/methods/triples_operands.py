"""The operands of connected triples, packed from integrals and amplitudes of CCSD.

(T) needs few integrals: (ia|bd), (ij|ka), (ia|jb) and what is left of the Fock matrix. They are made once
more when CCSD is done, so that none of CCSD's own forms is in memory then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Outline
from tilewise.equations import Equation, parse, plan_program
from tilewise.equations.program import Program
from tilewise.inspect.triples_blocks import NOWHERE, TILE, OrbitalSet, TriplesBlocks, padded
from tilewise.methods.integrals import Vectors, constants
from tilewise.methods.method import Method
from tilewise.tensor import Tensor
from tilewise.tensor.gather import PairElements

INTEGRALS = """
constant ovvv[kc|bd+] = (kc|bd)
constant ooov[ki+|lc] = (ki|lc)
constant ovov[ia|jb]  = (ia|jb)
constant f[i|a]       = fock
"""

ALIGNED = 64
"""Bytes: vectors of operands never cross a cache line."""


def aligned_zeros(n: int) -> np.ndarray:
    """Zeros that begin at a whole cache line."""
    room = np.zeros(n + ALIGNED // 8)
    first = -room.ctypes.data % ALIGNED // 8
    return room[first : first + n]


def orbital_sets(outline: Outline, is_open: bool, tile: int = TILE) -> tuple[OrbitalSet, ...]:
    """Those of each spin, or of a closed shell the only one."""
    spins = outline.by_spin if is_open else outline.by_spin[:1]
    return tuple(OrbitalSet(tuple(occ), tuple(vir), tile) for occ, vir in spins)


def integral_program(method: Method, outline: Outline, tile: int) -> tuple[Equation, Program]:
    """The constants that (T) needs, laid out."""
    equation = parse(INTEGRALS)
    return equation, plan_program(equation, method.spaces(outline, tile))


@dataclass(frozen=True)
class Sources:
    """Integrals and amplitudes, by their elements."""

    ovvv: PairElements
    ooov: PairElements
    ovov: PairElements
    doubles: PairElements
    t1: np.ndarray
    fock: np.ndarray

    @classmethod
    def of(
        cls,
        method: Method,
        reference: AnyReference,
        amplitudes: tuple[Tensor, Tensor],
        workers: int,
    ) -> Sources:
        """Makes the integrals of a reference; amplitudes are t[i|a] and T[ab|ij]."""
        t1, t2 = amplitudes
        equation, program = integral_program(method, reference.outline, t1.layout.spaces[0].tile)
        vectors = Vectors.of(reference, workers)
        buffers = constants(equation, program, reference, workers, vectors)
        made = {name: Tensor(program.layouts[name], data, name) for name, data in buffers.items()}
        ovvv, ooov, ovov = (PairElements(made[name]) for name in ("ovvv", "ooov", "ovov"))
        return cls(ovvv, ooov, ovov, PairElements(t2), t1.to_dense(), made["f"].to_dense())


class Packing:
    """Fills the buffers of `TriplesBlocks`."""

    def __init__(self, blocks: TriplesBlocks, sources: Sources, workers: int = 1) -> None:
        self.blocks, self.sources, self.workers = blocks, sources, workers
        self.n_occ, self.n_vir = sources.t1.shape
        self.scale = 1.0
        """Of the integrals among the operands of squares."""
        sizes = [(own.n_occ, own.n_vir) for own in blocks.sets]
        self.occ0 = np.cumsum([0, *(o for o, _ in sizes)]).tolist()
        self.vir0 = np.cumsum([0, *(v for _, v in sizes)]).tolist()

    def buffers(self, energies: np.ndarray) -> dict[str, np.ndarray]:
        """All operands; `energies` are those of the orbitals, occupied before virtual ones, set after set."""
        return {
            "blocks": self.led_blocks(),
            "pairs": self.pair_blocks(),
            "energies": energies,
            "singles": self.singles(),
        }

    def singles(self) -> np.ndarray:
        """t1 and f of each set, [i][a]."""
        parts = []
        for s in range(len(self.blocks.sets)):
            rows, cols = slice(*self.occ0[s : s + 2]), slice(*self.vir0[s : s + 2])
            parts += [self.sources.t1[rows, cols].ravel(), self.sources.fock[rows, cols].ravel()]
        return np.concatenate(parts)

    def led_blocks(self) -> np.ndarray:
        """(py|zd) and -t_pl^yz, direct and crossed; or what squares need."""
        if self.blocks.by_squares:
            return self.square_blocks()
        out = aligned_zeros(self.blocks.lengths["blocks"])
        jobs = _Jobs()
        for (s, r), places in self.blocks.direct.items():
            antisymmetric = self.blocks.is_open and s == r
            for (p, first, second), place in _present(places.first):
                self._direct(jobs, s, r, p, first, second, place, antisymmetric)
        for (s, r), places in self.blocks.crossed.items():
            for (p, first, second), place in _present(places.first):
                self._crossed(jobs, s, r, p, first, second, place)
        self.sources.ovvv.add(jobs.plus, out, 1.0, self.workers)
        self.sources.ovvv.add(jobs.minus, out, -1.0, self.workers)
        self.sources.doubles.add(jobs.holes, out, -1.0, self.workers)
        return out

    def square_blocks(self) -> np.ndarray:
        """s (ia|bd), t_jk^bc / s and their squares, and (lj|kc); the scale s makes both equally large."""
        out, places = aligned_zeros(self.blocks.lengths["blocks"]), self.blocks.squares
        o, v = self.n_occ, self.n_vir
        integrals, squares = (out[places[k] : places[k + 1]].reshape(o * v, v, v) for k in (0, 1))
        doubles, double_squares = (out[places[k] : places[k + 1]].reshape(o * o, v, v) for k in (2, 3))
        steps = (0, v, 1)
        rows = [(1, v, v, places[0] + ia * v * v, *steps, ia, 0, 0, 0, 0, 0, v, 1) for ia in range(o * v)]
        self.sources.ovvv.add(rows, out, 1.0, self.workers)
        pairs = [(1, v, v, places[2] + jk * v * v, *steps, 0, 0, v, 1, jk, 0, 0, 0) for jk in range(o * o)]
        self.sources.doubles.add(pairs, out, 1.0, self.workers)
        holes = [(1, o, v, places[4] + lj * o * v, *steps, lj, 0, 0, 0, 0, 0, v, 1) for lj in range(o * o)]
        self.sources.ooov.add(holes, out, 1.0, self.workers)
        sizes = [float(np.linalg.norm(x) / np.sqrt(max(1, len(x)))) for x in (doubles, integrals)]
        self.scale = float(np.sqrt(sizes[0] / sizes[1])) if min(sizes) > 0 else 1.0
        integrals *= self.scale
        doubles /= self.scale
        np.matmul(integrals, integrals, out=squares)
        np.matmul(doubles, doubles, out=double_squares)
        return out

    def _ranges(self, s: int, irrep: int) -> tuple[int, int, int, int]:
        """First virtual orbital of an irrep and how many; the same of occupied ones, as tensors count."""
        own = self.blocks.sets[s]
        return (
            self.vir0[s] + sum(own.vir[:irrep]),
            own.vir[irrep],
            self.occ0[s] + sum(own.occ[:irrep]),
            own.occ[irrep],
        )

    def _tile(self, s: int, tile: int) -> tuple[int, int, int]:
        """First orbital among all of the tensors, how many, and the irrep."""
        tiles = self.blocks.sets[s].tiles
        return self.vir0[s] + int(tiles.start[tile]), int(tiles.size[tile]), int(tiles.irrep[tile])

    def _direct(
        self, jobs: _Jobs, s: int, r: int, p: int, first: int, second: int, place: int, antisymmetric: bool
    ) -> None:
        """[y][x][z] with y of set s, z and x of set r."""
        (y, n_y, h_y), (z, n_z, h_z), v, o = (
            self._tile(s, first),
            self._tile(r, second),
            self.n_vir,
            self.n_occ,
        )
        d, n_d, m, n_m = self._ranges(r, int(self.blocks.sets[s].occ_irrep[p]) ^ h_y ^ h_z)
        ld, i = int(padded(n_z)), self.occ0[s] + p
        steps = ((n_d + n_m) * ld, ld, 1)
        jobs.plus.append((n_y, n_d, n_z, place, *steps, i * v + y, 1, 0, 0, z * v + d, 0, 1, v))
        if antisymmetric:
            jobs.minus.append((n_y, n_d, n_z, place, *steps, i * v + z, 0, 0, 1, y * v + d, v, 1, 0))
        jobs.holes.append((n_y, n_m, n_z, place + n_d * ld, *steps, y * v + z, v, 0, 1, i * o + m, 0, 1, 0))

    def _crossed(self, jobs: _Jobs, s: int, r: int, p: int, first: int, second: int, place: int) -> None:
        """[z][x][y] with y of set s, z and x of set r."""
        (z, n_z, h_z), (y, n_y, h_y), v, o = (
            self._tile(r, first),
            self._tile(s, second),
            self.n_vir,
            self.n_occ,
        )
        d, n_d, m, n_m = self._ranges(r, int(self.blocks.sets[s].occ_irrep[p]) ^ h_y ^ h_z)
        ld, i = int(padded(n_y)), self.occ0[s] + p
        steps = ((n_d + n_m) * ld, ld, 1)
        jobs.plus.append((n_z, n_d, n_y, place, *steps, i * v + y, 0, 0, 1, z * v + d, v, 1, 0))
        jobs.holes.append((n_z, n_m, n_y, place + n_d * ld, *steps, y * v + z, 1, 0, v, i * o + m, 0, 1, 0))

    def pair_blocks(self) -> np.ndarray:
        """t_jk^dc, (lj|kc) and (jb|kc), antisymmetrized where both are of one set of an open shell."""
        out = aligned_zeros(self.blocks.lengths["pairs"])
        doubles: list[tuple[int, ...]] = []
        holes, integrals = _Jobs(), _Jobs()
        for (s, r), places in self.blocks.pair.items():
            one, two = self.blocks.sets[s], self.blocks.sets[r]
            antisymmetric = self.blocks.is_open and s == r
            for (j, k, tile), place in _present(places.first):
                c, n_c, h_c = self._tile(r, tile)
                d, n_d, m, n_m = self._ranges(s, int(one.occ_irrep[j] ^ two.occ_irrep[k]) ^ h_c)
                ld, v, o = int(padded(n_c)), self.n_vir, self.n_occ
                j_, k_, steps = self.occ0[s] + j, self.occ0[r] + k, (0, ld, 1)
                doubles.append((1, n_d, n_c, place, *steps, d * v + c, 0, v, 1, j_ * o + k_, 0, 0, 0))
                hole, rows = place + n_d * ld, place + (n_d + n_m) * ld
                holes.plus.append((1, n_m, n_c, hole, *steps, m * o + j_, 0, o, 0, k_ * v + c, 0, 0, 1))
                integrals.plus.append((1, n_d, n_c, rows, *steps, j_ * v + d, 0, 1, 0, k_ * v + c, 0, 0, 1))
                if antisymmetric:
                    holes.minus.append((1, n_m, n_c, hole, *steps, m * o + k_, 0, o, 0, j_ * v + c, 0, 0, 1))
                    integrals.minus.append(
                        (1, n_d, n_c, rows, *steps, j_ * v + c, 0, 0, 1, k_ * v + d, 0, 1, 0)
                    )
        self.sources.doubles.add(doubles, out, 1.0, self.workers)
        for source, jobs in ((self.sources.ooov, holes), (self.sources.ovov, integrals)):
            source.add(jobs.plus, out, 1.0, self.workers)
            source.add(jobs.minus, out, -1.0, self.workers)
        return out


class _Jobs:
    """Blocks of integrals that are added and subtracted, and of amplitudes."""

    def __init__(self) -> None:
        self.plus: list[tuple[int, ...]] = []
        self.minus: list[tuple[int, ...]] = []
        self.holes: list[tuple[int, ...]] = []


def _present(first: np.ndarray) -> list[tuple[tuple[int, ...], int]]:
    """Indices and place of each block that is kept."""
    index = np.argwhere(first != NOWHERE)
    return list(zip(map(tuple, index.tolist()), first[tuple(index.T)].tolist(), strict=True))
