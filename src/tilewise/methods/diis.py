"""Direct inversion in the iterative subspace, on flat amplitude vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewise.core import core
from tilewise.new_memory import written_zeros, zeros

OF_ENERGY = 1000.0
"""What the part of a step that changes the energy counts, where all of the step counts 1."""
CURVATURE = 5.0
"""What an old step that is as long as the amplitudes counts more, as the equations are not linear."""
SHARED_FROM = 100_000
"""Numbers in all rows together from which on it pays to start threads for them."""
TOUCHED = 1 << 26
"""Bytes of rows up to which their memory is asked for at once: short iterations would wait for each page."""


def weighted_products(
    vectors: Sequence[np.ndarray], weights: np.ndarray, rows: np.ndarray, out: np.ndarray, workers: int = 1
) -> None:
    """The twin of the native function: products of each vector, weighted, with all rows and all vectors."""
    out[:] = (np.array(vectors) * weights) @ np.vstack([rows, *vectors]).T


def combine(coefficients: np.ndarray, rows: np.ndarray, out: np.ndarray, workers: int = 1) -> None:
    """The twin of the native function: a linear combination of rows."""
    out[:] = coefficients @ rows


def _zeros(rows: int, length: int, workers: int) -> np.ndarray:
    """Zeros, of which few are written: they have no memory until then."""
    make = written_zeros if 8 * rows * length <= TOUCHED else zeros
    return make(rows * length, workers).reshape(rows, length)


class DIIS:
    """Keeps the last amplitudes and steps in rings, and extrapolates.

    The solver writes straight into `slot()`: a row for the new amplitudes, a row for their step. `weights`
    say how much the square of each element counts in the norm of a step; by default all count alike. Where
    the vectors are parts of longer ones, `total` sums what each part gives.

    `workers` threads go over the vectors, once for all products and once for the combination.

    With `pieces` the same bits come out whoever has which pieces of the vectors: `total` then gets the
    overlaps of each piece, (rows, pieces), and sums them in an order of its own.

    With `first`, the amplitudes that a step from nothing leads to, the combination is the best one for the
    energy. Were the equations linear and symmetric, then the product of a step with T - first, where T are
    the newest amplitudes, would be the error that the step leaves in the energy: this part of it has to
    vanish before all others. As they are not linear, old steps are trusted less the longer they are.
    The first `settled` numbers are left out there: steps of the others know theirs already, so that what they
    would leave is gone with them.
    """

    def __init__(
        self,
        space: int,
        length: int,
        weights: np.ndarray | None = None,
        total: Callable[[np.ndarray], np.ndarray] | None = None,
        pieces: Sequence[slice] | None = None,
        first: np.ndarray | None = None,
        workers: int = 1,
        settled: int = 0,
    ) -> None:
        self.settled = settled
        self.pieces, self.has_first, self.workers = pieces, first is not None, workers
        self.total = total or (lambda overlaps: overlaps)
        self.space = max(1, space)
        self.weights = np.ones(length) if weights is None else weights
        self.amplitudes = _zeros(self.space, length, workers)
        self._rows = _zeros(self.space + 1, length, workers)  # `first`, then the steps
        self._rows[0] = 0.0 if first is None else first
        self._rows[0, :settled] = 0.0
        self.steps = self._rows[1:]
        self.overlaps = np.zeros((self.space, self.space))
        self.with_first = np.zeros(self.space)  # the products of the steps with `first`,
        self.of_energy = np.zeros(self.space)  # and with the way from there to the newest amplitudes
        self.length2 = 0.0  # of the newest amplitudes
        self.count = 0

    @staticmethod
    def bytes(space: int, length: int) -> int:
        return 8 * (2 * max(1, space) + 3) * length

    def slot(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the next amplitudes and their step go."""
        row = self.count % self.space
        return self.amplitudes[row], self.steps[row]

    def extrapolate(self, out: np.ndarray) -> None:
        """Takes the slot as filled; `out` becomes the combination with the shortest step."""
        row = self.count % self.space
        self.count += 1
        size = min(self.count, self.space)
        self._measure(row, size)
        coefficients = self.coefficients(size)
        if self.pieces is None:
            core.combine(coefficients, self.amplitudes[:size], out, self._workers(size))
            return
        out[:] = 0.0
        for coefficient, amplitudes in zip(coefficients, self.amplitudes, strict=False):
            out += coefficient * amplitudes

    def _measure(self, row: int, size: int) -> None:
        """Brings all products up to date with what the slot was filled with, by one sum over all parts."""
        products = self._products(self.steps[row], self.amplitudes[row], size)
        of_step, of_new = self.total(products).reshape(2, size + 3)
        self.overlaps[row, :size] = self.overlaps[:size, row] = of_step[1 : size + 1]
        if self.has_first:
            self.with_first[row], self.length2 = of_step[0], float(of_new[-1])
            self.of_energy[:size] = of_new[1 : size + 1] - self.with_first[:size]

    def _products(self, step: np.ndarray, new: np.ndarray, size: int) -> np.ndarray:
        """Of a step and of new amplitudes, weighted: with `first`, all steps, the step and the amplitudes."""
        rows = self._rows[: size + 1]
        if self.pieces is None:
            found = np.zeros((2, size + 3))
            core.weighted_products([step, new], self.weights, rows, found, self._workers(size))
            some = slice(self.settled)
            found[1, : size + 1] -= rows[:, some] @ (self.weights[some] * new[some])
            return found.ravel()
        parts = []
        for vector in (step, new):
            weighted = self.weights * vector
            for k, row in enumerate([*rows, step, new]):
                left_out = self.settled if vector is new and k <= size else 0
                used = (piece if piece.start >= left_out else slice(0) for piece in self.pieces)
                parts.append([row[piece] @ weighted[piece] for piece in used])
        return np.array(parts, np.float64).reshape(len(parts), len(self.pieces))

    def _workers(self, size: int) -> int:
        return self.workers if size * len(self.weights) > SHARED_FROM else 1

    def _metric(self, size: int) -> np.ndarray:
        """What the square of a combination of steps is made of: overlaps, and what the energy asks for."""
        overlaps, along = self.overlaps[:size, :size], self.of_energy[:size]
        if not self.has_first or not self.length2 > 0.0 or not np.isfinite(along).all():
            return overlaps
        lengths2 = np.diag(overlaps)
        longer = lengths2 - lengths2[(self.count - 1) % self.space]
        metric = overlaps + CURVATURE * np.diag(lengths2 * np.clip(longer / self.length2, 0.0, 1.0))
        if size > 2:  # of two steps, this alone would decide
            with np.errstate(over="ignore"):  # what is not finite is seen by who asked
                metric += OF_ENERGY / self.length2 * np.outer(along, along)
        return metric

    def coefficients(self, size: int) -> np.ndarray:
        """Numbers that sum to one and minimise the norm of the combined step."""
        newest = np.zeros(size)
        newest[(self.count - 1) % self.space] = 1.0
        metric = self._metric(size)
        if not np.isfinite(metric).all():  # steps that grow without bound
            return newest
        matrix = np.zeros((size + 1, size + 1))
        scale = np.sqrt(np.maximum(np.diag(metric), 1e-300))
        matrix[:size, :size] = metric / np.outer(scale, scale)
        matrix[size, :size] = matrix[:size, size] = 1.0 / scale / (1.0 / scale).max()
        right = np.zeros(size + 1)
        right[size] = 1.0
        # Nearly parallel steps make the matrix singular: their directions are dropped by the cut-off.
        solution = np.linalg.lstsq(matrix, right, rcond=1e-13)[0][:size] / scale
        total = solution.sum()
        if not np.isfinite(total) or total == 0.0:
            return newest
        weights: np.ndarray = solution / total
        return weights
