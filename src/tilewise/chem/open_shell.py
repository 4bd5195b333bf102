"""Open shells: a mean field whose alpha and beta electrons have orbitals, or occupations, of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.reference import Outline, Reference
from tilewise.chem.semicanonical import diagonalising, turned
from tilewise.lazy import cached_property

CONTAMINATED = 0.1
"""What <S^2> may exceed that of a pure spin state by without a word."""


@dataclass(frozen=True, eq=False)
class OpenReference:
    """A determinant of alpha and beta orbitals: UHF, or ROHF with one set of spatial orbitals for both
    (unless they are semicanonical).

    Each spin is a Reference: orbitals, energies (diagonal elements of its Fock matrix), integrals.
    `overlap` has <p|q> of all alpha with all beta orbitals in the source's numbering, of which `occupied`
    lists the filled ones, frozen ones included; None if the source does not tell.
    """

    kind: str  # "uhf" or "rohf"
    alpha: Reference
    beta: Reference
    overlap: np.ndarray | None
    occupied: tuple[np.ndarray, np.ndarray]
    is_semicanonical: bool = False

    @property
    def by_spin(self) -> tuple[Reference, Reference]:
        return self.alpha, self.beta

    @property
    def identities(self) -> tuple[OrbitalIdentity, ...]:
        return self.alpha.identity, self.beta.identity

    @property
    def is_restricted(self) -> bool:
        """Whether one set of spatial integrals serves both spins."""
        return self.kind == "rohf" and not self.is_semicanonical

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

    def semicanonical(self) -> OpenReference:
        """The same determinant with orbitals that diagonalise the Fock matrix of their spin, within irreps,
        among the active occupied and among the active virtual ones. Those of a UHF do.

        The two spins then have a set of orbitals each, as in a UHF, but f_ia stays.
        """
        if self.is_semicanonical or (self.alpha.is_canonical and self.beta.is_canonical):
            return self
        (levels, turn), (beta_levels, beta_turn) = map(diagonalising, self.by_spin)
        overlap = self.overlap
        if overlap is not None:
            overlap = beta_turn.columns(turn.columns(overlap.T).T)
        return replace(
            self,
            alpha=turned(self.alpha, levels, turn, beta_turn),
            beta=turned(self.beta, beta_levels, beta_turn, turn),
            overlap=overlap,
            is_semicanonical=True,
        )

    def decomposed(self) -> OpenReference:
        """The same with integrals decomposed so tightly that energies stay the same to 1e-8."""
        return replace(self, alpha=self.alpha.decomposed(), beta=self.beta.decomposed())


AnyReference = Reference | OpenReference
