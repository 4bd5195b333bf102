"""What a correlated method needs to know of a mean field.

An Outline is the orbital counts alone, enough to plan a calculation; a Reference adds energies and
integrals. Active orbitals are ordered: occupied by irrep, then energy; virtual by irrep, then energy
(where equal to 1e-8, as in the source). An open shell has two References, one for each spin
(`chem.open_shell`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from tilewise.chem.function_integrals import BasisIntegrals
from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.selection import by_irrep_and_energy, check_canonical, check_symmetric, rounded
from tilewise.chem.turn import Turn
from tilewise.symmetry.groups import PointGroup
from tilewise.wording import counted

FOCK_DIGITS = 9
"""Decimals of the Fock matrix that are kept, in hartree: more differ from run to run."""


class Integrals(Protocol):
    """Where a Reference gets its integrals: `order` lists orbitals in the source's own numbering."""

    def one_electron(self, order: np.ndarray) -> np.ndarray:
        """The (n, n) core Hamiltonian, frozen core included."""

    def eri(self, order: np.ndarray) -> np.ndarray:
        """(pq|rs), packed in p >= q and in r >= s."""

    def eri_with(self, order: np.ndarray, other: Any, other_order: np.ndarray) -> np.ndarray:
        """(pq|rs) with r and s among the orbitals of another spin, packed alike."""

    def three_index(self, order: np.ndarray, workers: int) -> np.ndarray | None:
        """(vectors, pairs) of fitted or Cholesky-decomposed integrals; None for exact ones."""

    def three_index_with(
        self, order: np.ndarray, other: Any, other_order: np.ndarray, workers: int
    ) -> np.ndarray | None:
        """The same vectors over pairs of these orbitals, then over pairs of those of another spin."""

    def basis_pairs(self, group: PointGroup) -> int:
        """Combinations of pairs of basis functions in the largest irrep, 0 if there are none."""

    def basis_integrals(self, group: PointGroup) -> BasisIntegrals | None:
        """Integrals over basis functions; None if there are none to begin with."""

    def orbitals(self, order: np.ndarray) -> np.ndarray:
        """Coefficients (basis functions, orbitals)."""

    @property
    def filled(self) -> np.ndarray:
        """All occupied orbitals, frozen ones among them."""

    def fock(self, order: np.ndarray) -> np.ndarray:
        """The Fock matrix."""

    def decomposed(self) -> Integrals:
        """The same integrals, as vectors. Sources without basis functions cannot."""

    def turned(self, own: Turn, other: Turn) -> Integrals:
        """The same over other orbitals; what has both spins needs the turn of the other one too."""

    def marks(self, order: np.ndarray, energies: np.ndarray) -> np.ndarray:
        """What the orbitals, of these energies, are recognised by: a column for each (`OrbitalIdentity`)."""


@dataclass(frozen=True)
class Outline:
    """Orbital counts per irrep and where they come from: all that planning needs."""

    title: str
    formula: str
    group: PointGroup
    basis: str
    occ: tuple[int, ...]
    vir: tuple[int, ...]
    frozen_core: int
    frozen_virtual: int
    n_electrons: int
    source: str
    beta: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Of an open shell: occupied and virtual orbitals of beta spin; `occ` and `vir` are alpha then."""
    # For the memory of the transformation: combinations of pairs of basis functions in an irrep, basis
    # functions, and vectors of decomposed integrals, or as many as there would be; 0 if there are none.
    basis_pairs: int = field(default=0, compare=False)
    n_basis: int = field(default=0, compare=False)
    n_vectors: int = field(default=0, compare=False)
    is_fitted: bool = field(default=False, compare=False)
    # Whether nobody keeps the integrals over basis functions.
    is_direct: bool = field(default=False, compare=False)
    # Bytes of integrals over basis functions that an SCF still to come will keep if they fit its memory.
    ao_bytes: int = field(default=0, compare=False)

    @property
    def n_occ(self) -> int:
        return sum(self.occ)

    @property
    def n_vir(self) -> int:
        return sum(self.vir)

    @property
    def by_spin(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Occupied and virtual orbitals per irrep of alpha and of beta spin."""
        alpha = (self.occ, self.vir)
        return alpha, self.beta or alpha

    @property
    def orbitals(self) -> tuple[object, ...]:
        """What a plan depends on: the group, and the orbitals of each kind and irrep."""
        return (self.group.name, self.occ, self.vir, self.beta)

    @property
    def shown(self) -> dict[str, str]:
        """What people ask first, by its label."""
        names = [self.title, *([self.formula] if self.formula not in ("", self.title) else [])]
        return {
            "molecule": ", ".join(names),
            "basis": self.basis,
            "group": self.group.name,
            "orbitals": f"{self._shown_count(0)} occupied, {self._shown_count(1)} virtual",
        }

    @property
    def electrons(self) -> str:
        """How many there are, and of an open shell how many are unpaired, in words."""
        (alpha, _), (beta, _) = self.by_spin
        unpaired = f", {sum(alpha) - sum(beta)} unpaired" if self.beta else ""
        return f"{counted(self.n_electrons, 'electron')}{unpaired}"

    def _shown_count(self, kind: int) -> str:
        """How many are occupied (0) or virtual (1); of an open shell for each spin."""
        counts = [str(sum(spin[kind])) for spin in self.by_spin]
        return " + ".join(counts) if self.beta else counts[0]

    def restrict(self, subgroup: str) -> Outline:
        """The same orbitals counted by the irreps of a subgroup."""
        group, image = self.group.restrict(subgroup)

        def summed(by_irrep: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(map(int, np.bincount(image, weights=by_irrep, minlength=group.order)))

        # A subgroup of index k splits each set of equivalent pairs into k at the most.
        pairs = self.basis_pairs * (self.group.order // group.order)
        occ, vir = summed(self.occ), summed(self.vir)
        beta = (summed(self.beta[0]), summed(self.beta[1])) if self.beta else None
        return replace(self, group=group, basis_pairs=pairs, occ=occ, vir=vir, beta=beta)


@dataclass(frozen=True, eq=False)
class Reference:
    """A closed-shell determinant with canonical orbitals, and the integrals over its active orbitals.

    In an open shell it stands for the orbitals of one spin.

    `order` gives each active orbital's number in the source (PySCF's MO index, or the FCIDUMP's
    orbital, both from 0). `e_hf` is the total energy of the mean field. The Fock matrix is diagonal, with the
    energies, but for a small rest that `fock_rest` gives.
    """

    outline: Outline
    occ_energies: np.ndarray
    vir_energies: np.ndarray
    e_hf: float
    identity: OrbitalIdentity
    order: np.ndarray
    integrals: Integrals = field(repr=False)
    remedy: str = "diagonalise it first, as mf.canonicalize does"  # for orbitals that are not canonical
    is_canonical: bool = True  # ROHF's orbitals need not be: the rest of their Fock matrix is not small

    @property
    def by_spin(self) -> tuple[Reference, Reference]:
        """The orbitals of alpha and of beta spin."""
        return self, self

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of this mean field."""
        return ()

    @property
    def is_restricted(self) -> bool:
        """Whether one set of spatial integrals serves both spins."""
        return True

    @property
    def identities(self) -> tuple[OrbitalIdentity, ...]:
        """What each set of orbitals is recognised by."""
        return (self.identity,)

    @property
    def n_orbitals(self) -> int:
        return len(self.order)

    @property
    def occ_irreps(self) -> np.ndarray:
        """The irrep of each active occupied orbital, ascending."""
        return np.repeat(np.arange(self.outline.group.order), self.outline.occ)

    @property
    def vir_irreps(self) -> np.ndarray:
        """The irrep of each active virtual orbital, ascending."""
        return np.repeat(np.arange(self.outline.group.order), self.outline.vir)

    def eri(self) -> np.ndarray:
        """(pq|rs) as an (npair, npair) array, pair index p(p+1)/2 + q for p >= q.

        Computed at each call and not kept: the caller owns the array.
        """
        return self.integrals.eri(self.order)

    def eri_with(self, other: Reference) -> np.ndarray:
        """(pq|rs) with r and s among the orbitals of another spin of the same mean field, packed alike."""
        return self.integrals.eri_with(self.order, other.integrals, other.order)

    def dense_eri(self) -> np.ndarray:
        """(pq|rs) as a dense (n, n, n, n) array, for small molecules: an oracle's."""
        pair = np.zeros((self.n_orbitals,) * 2, np.int64)
        high, low = np.tril_indices(self.n_orbitals)
        pair[high, low] = pair[low, high] = np.arange(len(high))
        return self.eri()[pair[:, :, None, None], pair]

    def three_index(self, workers: int) -> np.ndarray | None:
        """B_L,pq (vectors, pairs p >= q) with (pq|rs) = sum over L of B_L,pq B_L,rs, for fitted integrals."""
        return self.integrals.three_index(self.order, workers)

    def three_index_with(self, other: Reference, workers: int) -> np.ndarray | None:
        """The same over the pairs of this spin, then over those of another one of the same mean field."""
        return self.integrals.three_index_with(self.order, other.integrals, other.order, workers)

    def basis_integrals(self) -> BasisIntegrals | None:
        """Integrals over basis functions, where the source has such."""
        return self.integrals.basis_integrals(self.outline.group)

    def fock_rest(self, fock: np.ndarray | None = None) -> np.ndarray:
        """The Fock matrix (as given, or computed anew) less the orbital energies on its diagonal."""
        if fock is None:
            fock = self.integrals.fock(self.order)
        irreps = np.concatenate([self.occ_irreps, self.vir_irreps])
        check_symmetric(fock, self.outline.n_occ, irreps, self.outline.group)
        if self.is_canonical:
            check_canonical(fock, self.outline.n_occ, self.remedy)
        # Threads add in another order each time: without the last digits the same bits come out.
        rest = fock - np.diag(np.concatenate([self.occ_energies, self.vir_energies]))
        return rounded(rest, FOCK_DIGITS) + 0.0  # no negative zeros

    def semicanonical(self) -> Reference:
        """A closed shell's orbitals are canonical: itself."""
        return self

    def decomposed(self) -> Reference:
        """The same with integrals decomposed so tightly that energies stay the same to 1e-8."""
        integrals = self.integrals.decomposed()
        return replace(self, integrals=integrals, outline=replace(self.outline, is_fitted=True))

    def one_electron(self) -> np.ndarray:
        """The (n, n) core Hamiltonian over the active orbitals, the field of the frozen core included."""
        return self.integrals.one_electron(self.order)

    @property
    def e_core(self) -> float:
        """Energy of the nuclei and the frozen core: what the active electrons do not account for."""
        diagonal = np.diag(self.one_electron() + self.integrals.fock(self.order))
        return self.e_hf - float(diagonal[: self.outline.n_occ].sum())

    def restrict(self, subgroup: str) -> Reference:
        """The same orbitals, reordered by the irreps of a subgroup."""
        outline = self.outline.restrict(subgroup)
        _, image = self.outline.group.restrict(subgroup)
        n_occ = self.outline.n_occ
        occ = by_irrep_and_energy(image[self.occ_irreps], self.occ_energies, self.order[:n_occ])
        vir = by_irrep_and_energy(image[self.vir_irreps], self.vir_energies, self.order[n_occ:])
        return replace(
            self,
            outline=replace(outline, basis_pairs=self.integrals.basis_pairs(outline.group)),
            occ_energies=self.occ_energies[occ],
            vir_energies=self.vir_energies[vir],
            identity=self.identity.reordered(occ, vir),
            order=self.order[np.concatenate([occ, n_occ + vir])],
        )
