"""Davidson's method: the lowest eigenpairs of a large matrix, known by its products with vectors.

E. R. Davidson, J. Comput. Phys. 17, 87 (1975), with the correction vectors of J. Olsen, P. Jorgensen and
J. Simons, Chem. Phys. Lett. 169, 463 (1990). One root more than asked for is followed, so that two roots that
lie close together do not change places unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

Sigma = Callable[[np.ndarray], np.ndarray]
"""The matrix times vectors: (k, n) -> (k, n)."""

_DEPENDENT = 1e-8
"""A correction whose part outside of the subspace is a smaller share of it adds nothing."""

_CANCELLED = 0.7
"""If the part outside of the subspace is a smaller share, rounding leaves something of the subspace in it."""


@dataclass(frozen=True)
class Cycle:
    """One cycle: the roots asked for, what they changed by, and norms of their residuals."""

    number: int
    energies: np.ndarray
    change: float
    residuals: np.ndarray
    subspace: int


@dataclass(frozen=True)
class Eigenpairs:
    """`vectors` (roots, n) are normalized; for a matrix that is not symmetric they are right eigenvectors."""

    energies: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    converged: bool
    cycles: int
    products: int
    """Products of the matrix with a vector."""
    further: np.ndarray
    """Energies of the roots that were followed beyond those asked for."""


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Approximates the matrix by its diagonal, and by a dense block where that is known.

    `rows` are the places of the block (m, m) in a vector.
    """

    diagonal: np.ndarray
    rows: np.ndarray
    block: np.ndarray

    @classmethod
    def of_diagonal(cls, diagonal: np.ndarray) -> Preconditioner:
        return cls(diagonal, np.zeros(0, np.int64), np.zeros((0, 0)))

    def solve(self, energy: float, vectors: np.ndarray) -> np.ndarray:
        """(approximation - energy)^-1 times vectors (k, n), where that is not near to a division by zero."""
        gap = self.diagonal - energy
        small = np.abs(gap) < _SMALLEST_GAP
        if small.any():
            gap = np.where(small, np.copysign(_SMALLEST_GAP, gap), gap)
        result: np.ndarray = vectors / gap
        if len(self.rows):
            levels, states = self._states
            level_gap = levels - energy
            small = np.abs(level_gap) < _SMALLEST_GAP
            level_gap = np.where(small, np.copysign(_SMALLEST_GAP, level_gap), level_gap)
            result[:, self.rows] = ((vectors[:, self.rows] @ states) / level_gap) @ states.T
        return result

    @property
    def _states(self) -> tuple[np.ndarray, np.ndarray]:
        found = self.__dict__.get("_known_states")
        if found is None:
            found = tuple(np.linalg.eigh(self.block))
            object.__setattr__(self, "_known_states", found)
        return found

    def start(self, count: int) -> np.ndarray:
        """Vectors (count, n): the lowest states of the block, then unit vectors of the lowest diagonal."""
        vectors = np.zeros((count, len(self.diagonal)))
        known = min(count, len(self.rows))
        if known:
            vectors[:known, self.rows] = self._states[1][:, :known].T
        if known < count:
            rest = np.setdiff1d(np.argsort(self.diagonal, kind="stable")[: count + known], self.rows)
            for k in range(known, count):
                vectors[k, rest[k - known]] = 1.0
        return vectors


_SMALLEST_GAP = 1e-4
"""In hartree."""


def davidson(
    sigma: Sigma,
    preconditioner: Preconditioner,
    roots: int = 1,
    *,
    start: np.ndarray | None = None,
    extra: int = 1,
    conv_tol: float = 1e-10,
    conv_tol_residual: float = 1e-5,
    max_cycle: int = 100,
    max_space: int | None = None,
    is_symmetric: bool = True,
    progress: Callable[[Cycle, np.ndarray], None] | None = None,
) -> Eigenpairs:
    """The lowest `roots` eigenpairs.

    All of them must change by less than `conv_tol` and have residuals below `conv_tol_residual`; the `extra`
    ones are followed and not waited for. `start` are vectors (k, n) to begin with, by default those of the
    preconditioner. `progress(cycle, vectors)` is called in each cycle. Memory: 2 `max_space` vectors.
    """
    n = len(preconditioner.diagonal)
    roots = min(roots, n)
    followed = min(roots + extra, n)
    most = min(n, max(max_space or 4 * followed + 8, 2 * followed))
    space = _Space(sigma, most, n, is_symmetric)
    guess = preconditioner.start(followed)
    # The guess stays beside a start that may lack the lowest state: no product would find it then.
    space.add(guess if start is None else np.concatenate([start[:followed], guess]))
    space.fill_up(followed)
    before, cycle = np.full(roots, np.inf), 0
    while True:
        cycle += 1
        energies, coefficients = space.lowest(followed)
        vectors, products = coefficients @ space.basis, coefficients @ space.images
        residuals = products - energies[:, None] * vectors
        norms = np.linalg.norm(residuals, axis=1)
        change = float(np.abs(energies[:roots] - before).max())
        if progress is not None:
            told = Cycle(cycle, energies[:roots], change, norms[:roots], space.size)
            progress(told, vectors[:roots])
        is_done = change < conv_tol and bool((norms[:roots] < conv_tol_residual).all())
        is_done |= space.size == n
        if is_done or cycle == max_cycle:
            break
        before = energies[:roots]
        # Roots asked for that are not converged; the others as long as they might change places with them: an
        # eigenvalue of a symmetric matrix lies within the norm of the residual of each energy.
        reach = float((energies[:roots] + norms[:roots]).max())
        is_near = (energies - norms < reach) | (not is_symmetric)
        open_roots = [
            k for k in range(followed) if k < roots or (is_near[k] and norms[k] > 0.3 * conv_tol_residual)
        ]
        open_roots = [k for k in open_roots if norms[k] >= 0.1 * conv_tol_residual] or [int(norms.argmax())]
        if space.size + len(open_roots) > most:
            space.restart(vectors, products)
        corrections = [_correction(preconditioner, energies[k], vectors[k], residuals[k]) for k in open_roots]
        if not space.add(np.array(corrections)) and not space.fill_up(space.size + 1):
            break
    return Eigenpairs(
        energies[:roots],
        vectors[:roots],
        norms[:roots],
        is_done,
        cycle,
        space.products,
        energies[roots:],
    )


def _correction(
    preconditioner: Preconditioner, energy: float, vector: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    """Olsen's: -M^-1 r + e M^-1 x, with e such that it has no part along x."""
    solved, along = preconditioner.solve(energy, np.stack([residual, vector]))
    overlap = float(vector @ along)
    if abs(overlap) > 1e-12:
        solved -= (float(vector @ solved) / overlap) * along
    return -solved


class _Space:
    """Orthonormal vectors, and their products with the matrix."""

    def __init__(self, sigma: Sigma, most: int, n: int, is_symmetric: bool) -> None:
        self.sigma, self.is_symmetric, self.n = sigma, is_symmetric, n
        self._vectors, self._images = np.empty((most, n)), np.empty((most, n))
        self._projected = np.zeros((most, most))
        self.size = self.products = 0

    @property
    def basis(self) -> np.ndarray:
        return self._vectors[: self.size]

    @property
    def images(self) -> np.ndarray:
        return self._images[: self.size]

    def add(self, vectors: np.ndarray) -> int:
        """Adds what is new in the vectors; how many they were."""
        first = self.size
        for vector in vectors[: len(self._vectors) - first]:
            norm = float(np.linalg.norm(vector))
            if norm == 0.0:
                continue
            own, share = self._outside(vector / norm)
            again = share < _CANCELLED
            while again and share >= _DEPENDENT:  # for rounding
                own, left = self._outside(own)
                share, again = share * left, left < _CANCELLED
            if share < _DEPENDENT:
                continue
            self._vectors[self.size] = own
            self.size += 1
        if self.size > first:
            self._images[first : self.size] = self.sigma(self._vectors[first : self.size])
            self.products += self.size - first
            self._project(first)
        return self.size - first

    def _outside(self, unit: np.ndarray) -> tuple[np.ndarray, float]:
        """The part of a normalized vector outside of the subspace, normalized, and its norm."""
        own = unit - (self.basis @ unit) @ self.basis
        left = float(np.linalg.norm(own))
        if left > 0.0:
            own /= left
        return own, left

    def fill_up(self, count: int) -> int:
        """Unit vectors until there are so many: for matrices with few rows."""
        added = 0
        for k in range(self.n):
            if self.size >= min(count, self.n, len(self._vectors)):
                break
            unit = np.zeros((1, self.n))
            unit[0, k] = 1.0
            added += self.add(unit)
        return added

    def restart(self, vectors: np.ndarray, images: np.ndarray) -> None:
        """Goes on with these vectors alone, whose products are known."""
        basis, triangle = np.linalg.qr(vectors.T)
        self.size = len(vectors)
        self._vectors[: self.size] = basis.T
        self._images[: self.size] = np.linalg.solve(triangle.T, images)
        self._project(0)

    def lowest(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues in the subspace, and normalized coefficients (count, size)."""
        matrix = self._projected[: self.size, : self.size]
        if self.is_symmetric:
            values, states = np.linalg.eigh(matrix)
            return values[:count], states[:, :count].T
        values, states = scipy.linalg.eig(matrix)
        order = np.argsort(values.real, kind="stable")[:count]
        real = np.array([_real(states[:, k]) for k in order])
        return values.real[order], real / np.linalg.norm(real, axis=1, keepdims=True)

    def _project(self, first: int) -> None:
        """Rows and columns of the projected matrix from `first` on."""
        new = slice(first, self.size)
        self._projected[: self.size, new] = self.basis @ self._images[new].T
        if self.is_symmetric:
            self._projected[new, :first] = self._projected[:first, new].T
            block = self._projected[new, new]
            self._projected[new, new] = 0.5 * (block + block.T)
        else:
            self._projected[new, :first] = self._vectors[new] @ self._images[:first].T


def _real(vector: np.ndarray) -> np.ndarray:
    """A vector without its phase; of a complex pair the real part."""
    phase = vector[np.argmax(np.abs(vector))]
    return np.real(vector * (np.conj(phase) / np.abs(phase)))
