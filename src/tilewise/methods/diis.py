"""Direct inversion in the iterative subspace, on flat amplitude vectors."""

from __future__ import annotations

import numpy as np


class DIIS:
    """Keeps the last amplitudes and steps in rings, and extrapolates.

    The solver writes straight into `slot()`: a row for the new amplitudes, a row for their step. `weights`
    say how much the square of each element counts in the norm of a step; by default all count alike.
    """

    def __init__(self, space: int, length: int, weights: np.ndarray | None = None) -> None:
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
        self.overlaps[row, :size] = self.overlaps[:size, row] = self.steps[:size] @ self.weighted
        np.matmul(self.coefficients(size), self.amplitudes[:size], out=out)

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
