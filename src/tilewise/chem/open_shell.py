"""Open shells: a mean field whose alpha and beta electrons have orbitals, or occupations, of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.reference import Outline, Reference

CONTAMINATED = 0.1
"""What <S^2> may exceed that of a pure spin state by without a word."""


@dataclass(frozen=True, eq=False)
class OpenReference:
    """A determinant of alpha and beta orbitals: UHF, or ROHF with one set of spatial orbitals for both.

    Each spin is a Reference: orbitals, energies (diagonal elements of its Fock matrix), integrals.
    `overlap` has <p|q> of all alpha with all beta orbitals in the source's numbering, of which `occupied`
    lists the filled ones, frozen ones included; None if the source does not tell.
    """

    kind: str  # "uhf" or "rohf"
    alpha: Reference
    beta: Reference
    overlap: np.ndarray | None
    occupied: tuple[np.ndarray, np.ndarray]

    @property
    def by_spin(self) -> tuple[Reference, Reference]:
        return self.alpha, self.beta

    @property
    def identities(self) -> tuple[OrbitalIdentity, ...]:
        return self.alpha.identity, self.beta.identity

    @property
    def is_restricted(self) -> bool:
        """Whether one set of spatial integrals serves both spins."""
        return self.kind == "rohf"

    @cached_property
    def outline(self) -> Outline:
        alpha, beta = self.alpha.outline, self.beta.outline
        return replace(
            alpha,
            beta=(beta.occ, beta.vir),
            n_electrons=sum(len(filled) for filled in self.occupied),
        )

    @property
    def e_hf(self) -> float:
        return self.alpha.e_hf

    @property
    def n_orbitals(self) -> int:
        return self.alpha.n_orbitals

    @cached_property
    def s_squared(self) -> float | None:
        """<S^2> of the determinant."""
        if self.overlap is None:
            return None
        n_alpha, n_beta = map(len, self.occupied)
        s_z = (n_alpha - n_beta) / 2
        shared = np.linalg.norm(self.overlap[np.ix_(*self.occupied)]) ** 2
        return float(s_z * (s_z + 1) + n_beta - shared)

    @property
    def contamination(self) -> float:
        """By how much <S^2> exceeds that of the pure spin state with the same projection; 0 if not known."""
        if self.s_squared is None:
            return 0.0
        s_z = abs(len(self.occupied[0]) - len(self.occupied[1])) / 2
        return self.s_squared - s_z * (s_z + 1)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of this mean field."""
        if self.s_squared is None or self.contamination < CONTAMINATED:
            return ()
        return (
            f"the UHF mixes spin states: <S^2> is {self.s_squared:.4f}, that of a pure one "
            f"{self.s_squared - self.contamination:.4f}; compare with an ROHF, and see with PySCF's "
            "mf.stability() whether it is stable",
        )

    def restrict(self, subgroup: str) -> OpenReference:
        """The same orbitals, reordered by the irreps of a subgroup."""
        return replace(self, alpha=self.alpha.restrict(subgroup), beta=self.beta.restrict(subgroup))

    def decomposed(self) -> OpenReference:
        """The same with integrals decomposed so tightly that energies stay the same to 1e-8."""
        return replace(self, alpha=self.alpha.decomposed(), beta=self.beta.decomposed())


AnyReference = Reference | OpenReference
