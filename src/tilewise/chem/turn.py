"""Combining orbitals of a mean field to others, within the occupied and within the virtual ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Turn:
    """New orbitals of one spin, in the place of as many others.

    Orbital q has the number `after[q]` in the source, and is the combination of the orbitals `before[p]` with
    coefficients `matrix[p, q]`. Orbitals that are not named stay as they are.
    """

    before: np.ndarray
    after: np.ndarray
    matrix: np.ndarray

    def columns(self, array: np.ndarray) -> np.ndarray:
        """What stands in the columns of orbitals, such as coefficients, over the new ones."""
        turned = array.copy()
        turned[:, self.after] = array[:, self.before] @ self.matrix
        return turned

    def both(self, array: np.ndarray) -> np.ndarray:
        """An operator over the new orbitals."""
        return self.columns(self.columns(array).T).T
