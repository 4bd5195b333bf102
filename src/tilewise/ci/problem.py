"""What a calculation is about: orbitals with labels and shells, references, and where integrals come from."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tilewise.ci.levels import NaturalOrbitals
from tilewise.ci.operators import Operator
from tilewise.ci.orbitals import Orbitals, PairNumbers


class Problem(Protocol):
    """Orbitals and electrons that determinants are made of."""

    @property
    def title(self) -> str: ...

    @property
    def basis(self) -> str: ...

    @property
    def orbitals(self) -> Orbitals: ...

    @property
    def references(self) -> np.ndarray:
        """Electrons in each shell (references, shells)."""

    @property
    def electrons(self) -> tuple[int, int]:
        """Of alpha and of beta spin."""

    @property
    def label(self) -> tuple[int, ...]:
        """What the labels of a determinant's orbitals add up to."""

    @property
    def e_mean_field(self) -> float | None:
        """Total energy of the mean field, once it is known."""

    def hamiltonian(self, numbers: PairNumbers) -> Operator:
        """Computes the integrals."""

    def angular(self, numbers: PairNumbers, like: Operator) -> Operator | None:
        """L^2, of an atom."""

    def symmetry_name(self, s_squared: float, l_squared: float | None) -> str:
        """The name of a state: 3B1, or 3Po."""

    def configuration(self, shells: np.ndarray) -> str:
        """Electrons in each shell, in words."""

    def natural_orbitals(self, density: np.ndarray) -> NaturalOrbitals:
        """Of a spin-summed density matrix (n, n) over the orbitals."""

    @property
    def shown(self) -> dict[str, str]:
        """What people ask first, by its label."""

    @property
    def integral_bytes(self) -> int:
        """What integrals take while those of the operator are made of them."""


def multiplicity(s_squared: float) -> int:
    """2S + 1 of the nearest spin."""
    return round(float(np.sqrt(max(0.0, 1 + 4 * s_squared))))
