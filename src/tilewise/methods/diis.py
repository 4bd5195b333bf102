"""Direct inversion in the iterative subspace, on flat amplitude vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class DIIS:
    """Keeps the last amplitudes and steps in rings, and extrapolates.

    The solver writes straight into `slot()`: a row for the new amplitudes, a row for their step. `weights`
    say how much the square of each element counts in the norm of a step; by default all count alike. Where
    the vectors are parts of longer ones, `total` sums what each part gives.

    With `pieces` the same bits come out whoever has which pieces of the vectors: `total` then gets the
    overlaps of each piece, (rows, pieces), and sums them in an order of its own.
    """

    def __init__(
        self,
        space: int,
        length: int,
        weights: np.ndarray | None = None,
        total: Callable[[np.ndarray], np.ndarray] | None = None,
        pieces: Sequence[slice] | None = None,
    ) -> None:
        self.pieces = pieces
        self.total = total or (lambda overlaps: overlaps)
        self.space = max(1, space)
        self.weights = np.ones(length) if weights is None else weights
        self.weighted = np.zeros(length)
        self.amplitudes = np.zeros((self.space, length))
        self.steps = np.zeros((self.space, length))
        self.overlaps = np.zeros((self.space, self.space))
        self.count = 0

    @staticmethod
    def bytes(space: int, length: int) -> int:
        return 16 * (max(1, space) + 1) * length

    def slot(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the next amplitudes and their step go."""
        row = self.count % self.space
        return self.amplitudes[row], self.steps[row]

    def extrapolate(self, out: np.ndarray) -> None:
        """Takes the slot as filled; `out` becomes the combination with the shortest step."""
        row = self.count % self.space
        self.count += 1
        size = min(self.count, self.space)
        np.multiply(self.weights, self.steps[row], out=self.weighted)
        self.overlaps[row, :size] = self.overlaps[:size, row] = self.total(self._products(size))
        if self.pieces is None:
            np.matmul(self.coefficients(size), self.amplitudes[:size], out=out)
            return
        out[:] = 0.0
        for weight, amplitudes in zip(self.coefficients(size), self.amplitudes, strict=False):
            np.multiply(amplitudes, weight, out=self.weighted)
            out += self.weighted

    def _products(self, size: int) -> np.ndarray:
        """Of the steps with the newest one, weighted."""
        if self.pieces is None:
            products: np.ndarray = self.steps[:size] @ self.weighted
            return products
        parts = [[step[piece] @ self.weighted[piece] for piece in self.pieces] for step in self.steps[:size]]
        return np.array(parts, np.float64).reshape(size, len(self.pieces))

    def coefficients(self, size: int) -> np.ndarray:
        """Numbers that sum to one and minimise the norm of the combined step."""
        matrix = np.zeros((size + 1, size + 1))
        scale = np.sqrt(np.maximum(np.diag(self.overlaps)[:size], 1e-300))
        matrix[:size, :size] = self.overlaps[:size, :size] / np.outer(scale, scale)
        matrix[size, :size] = matrix[:size, size] = 1.0 / scale / (1.0 / scale).max()
        right = np.zeros(size + 1)
        right[size] = 1.0
        # Nearly parallel steps make the matrix singular: their directions are dropped by the cut-off.
        solution = np.linalg.lstsq(matrix, right, rcond=1e-13)[0][:size] / scale
        total = solution.sum()
        if not np.isfinite(total) or total == 0.0:
            newest = np.zeros(size)
            newest[(self.count - 1) % self.space] = 1.0
            return newest
        weights: np.ndarray = solution / total
        return weights
