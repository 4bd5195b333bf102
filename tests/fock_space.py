"""Coupled-cluster residuals by definition: exp(-T) H exp(T) in the Fock space of a few spin orbitals."""

from __future__ import annotations

from functools import cached_property, reduce
from itertools import combinations, permutations

import numpy as np
import scipy.sparse


def antisymmetrized(tensor: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    total = np.zeros_like(tensor)
    for order in permutations(range(len(axes))):
        target = list(range(tensor.ndim))
        for k, axis in enumerate(axes):
            target[axis] = axes[order[k]]
        sign = round(np.linalg.det(np.eye(len(axes))[list(order)]))
        total += sign * tensor.transpose(target)
    return total


class FockSpace:
    """Random integrals and amplitudes of o holes and v particles."""

    def __init__(self, o: int, v: int, seed: int = 0) -> None:
        self.o, self.v = o, v
        rng, n = np.random.default_rng(seed), o + v
        self.core = rng.normal(size=(n, n))
        self.integrals = antisymmetrized(antisymmetrized(rng.normal(size=(n,) * 4), (0, 1)), (2, 3))
        self.t1 = 0.3 * rng.normal(size=(v, o))
        self.t2 = 0.3 * antisymmetrized(antisymmetrized(rng.normal(size=(v, v, o, o)), (0, 1)), (2, 3))
        t3 = rng.normal(size=(v, v, v, o, o, o))
        self.t3 = 0.1 * antisymmetrized(antisymmetrized(t3, (0, 1, 2)), (3, 4, 5))

    @cached_property
    def annihilators(self) -> list[scipy.sparse.csr_matrix]:
        n = self.o + self.v
        states = np.arange(1 << n)
        found = []
        for p in range(n):
            full = states[(states >> p) & 1 == 1]
            below = np.array([(int(s) & ((1 << p) - 1)).bit_count() for s in full])
            entries = ((-1.0) ** below, (full ^ (1 << p), full))
            found.append(scipy.sparse.csr_matrix(entries, shape=(1 << n, 1 << n)))
        return found

    def _string(self, up: tuple[int, ...], down: tuple[int, ...]) -> scipy.sparse.csr_matrix:
        """Creators of `up` in order, then annihilators of `down` in reverse."""
        a = self.annihilators
        return reduce(lambda x, y: x @ y, [a[p].T.tocsr() for p in up] + [a[q] for q in reversed(down)])

    @cached_property
    def hamiltonian(self) -> scipy.sparse.csr_matrix:
        n = range(self.o + self.v)
        total = sum(self.core[p, q] * self._string((p,), (q,)) for p in n for q in n)
        creators = {pair: self._string(pair, ()) for pair in combinations(n, 2)}
        for left, up in creators.items():
            weighted = sum(self.integrals[left + right] * x.T for right, x in creators.items())
            total = total + up @ weighted
        return total

    def _excitations(self, rank: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        particles, holes = range(self.v), range(self.o)
        return [(a, i) for a in combinations(particles, rank) for i in combinations(holes, rank)]

    def residuals(self, ranks: int) -> list[np.ndarray]:
        """Projections on single excitations and higher ones, the amplitudes up to that rank being there."""
        amplitudes = (self.t1, self.t2, self.t3)[:ranks]
        strings = [
            {(a, i): self._string(tuple(self.o + x for x in a), i) for a, i in self._excitations(rank)}
            for rank in range(1, ranks + 1)
        ]
        cluster = sum(
            t[a + i] * x for t, found in zip(amplitudes, strings, strict=True) for (a, i), x in found.items()
        )
        vacuum = np.zeros(1 << (self.o + self.v))
        vacuum[(1 << self.o) - 1] = 1.0
        state = self._exponential(-cluster, self.hamiltonian @ self._exponential(cluster, vacuum))
        found = []
        for t, excitations in zip(amplitudes, strings, strict=True):
            rank, values = t.ndim // 2, np.zeros(t.shape)
            for (a, i), x in excitations.items():
                values[a + i] = (x @ vacuum) @ state
            once = antisymmetrized(values, tuple(range(rank)))
            found.append(antisymmetrized(once, tuple(range(rank, 2 * rank))))
        return found

    def _exponential(self, cluster: scipy.sparse.csr_matrix, vector: np.ndarray) -> np.ndarray:
        total = term = vector
        for k in range(1, self.o + self.v + 1):
            term = cluster @ term / k
            total = total + term
        return total

    def given(self, name: str, kinds: str) -> np.ndarray:
        """A tensor that routines read without one that writes it, such as v(hh|pp)."""
        if name in ("t1", "t2", "t3"):
            return getattr(self, name)
        if name == "c2":
            pairs = np.einsum("ai,bj->abij", self.t1, self.t1)
            return self.t2 + pairs - pairs.transpose(1, 0, 2, 3)
        part = {"h": slice(0, self.o), "p": slice(self.o, None)}
        return self.dressed[name][tuple(part[kind] for kind in kinds)]

    @cached_property
    def dressed(self) -> dict[str, np.ndarray]:
        """f and v, and the same of exp(-T1) H exp(T1), g and w."""
        n, o = self.o + self.v, self.o
        up, down = np.eye(n), np.eye(n)
        up[o:, :o], down[:o, o:] = -self.t1, self.t1.T
        w = np.einsum("ap,bq,pqrs,cr,ds->abcd", up, up, self.integrals, down, down, optimize=True)
        g = up @ self.core @ down.T
        core = {"f": (self.core, self.integrals), "g": (g, w)}
        focks = {name: h + np.einsum("piqi->pq", x[:, :o, :, :o]) for name, (h, x) in core.items()}
        return {**focks, "v": self.integrals, "w": w}

    def shape(self, kinds: str) -> tuple[int, ...]:
        return tuple({"h": self.o, "p": self.v}[kind] for kind in kinds)
