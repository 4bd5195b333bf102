"""Energies of CI by PySCF: all eigenvalues of small matrices, of any rank, spin, irrep and references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SUBGROUPS = {"SO3": "D2h", "Dooh": "D2h", "Coov": "C2v"}
"""Abelian groups that tilewise takes for those of atoms and of linear molecules."""


@dataclass(frozen=True, eq=False)
class Sectors:
    """Integrals over the orbitals of an RHF or ROHF, and their irreps."""

    one: np.ndarray
    two: np.ndarray
    """(pq|rs) in full."""
    constant: float
    occupation: np.ndarray
    irreps: np.ndarray
    """Numbers, whose products are their exclusive or."""
    names: dict[str, int]
    """Of the irreps that orbitals have."""

    @classmethod
    def solved(cls, system: Any) -> Sectors:
        """Of the mean field of a `world.System`, with abelian symmetry."""
        from pyscf import ao2mo, gto, scf

        def molecule(symmetry: Any) -> Any:
            return gto.M(
                atom=list(system.atoms), basis=system.basis, charge=system.charge, spin=system.spin,
                symmetry=symmetry, verbose=0,
            )  # fmt: skip

        made = molecule(True)
        made = molecule(SUBGROUPS[made.groupname]) if made.groupname in SUBGROUPS else made
        solver = (scf.ROHF if system.spin else scf.RHF)(made)
        field = solver.run(conv_tol=1e-12, conv_tol_grad=1e-9, chkfile=None)
        orbitals = np.asarray(field.mo_coeff)
        n = orbitals.shape[1]
        return cls(
            orbitals.T @ field.get_hcore() @ orbitals,
            ao2mo.restore(1, ao2mo.kernel(made, orbitals), n),
            float(made.energy_nuc()),
            np.asarray(field.mo_occ).astype(int),
            np.asarray(field.get_orbsym()).astype(int),
            dict(zip(made.irrep_name, map(int, made.irrep_id), strict=True)),
        )

    def write(self, path: Path) -> None:
        names, numbers = np.array(list(self.names)), np.array(list(self.names.values()))
        with open(path, "wb") as file:
            np.savez(
                file, one=self.one, two=self.two, constant=self.constant, occupation=self.occupation,
                irreps=self.irreps, names=names, numbers=numbers,
            )  # fmt: skip

    @classmethod
    def read(cls, path: Path) -> Sectors:
        with np.load(path) as kept:
            names = dict(zip(kept["names"].tolist(), kept["numbers"].tolist(), strict=True))
            arrays = (kept[key] for key in ("one", "two"))
            return cls(*arrays, float(kept["constant"]), kept["occupation"], kept["irreps"], names)

    @property
    def spin(self) -> int:
        """Unpaired electrons of the mean field."""
        return int((self.occupation == 1).sum())

    def frozen(self, count: int) -> Sectors:
        """With the electrons of the first orbitals in the constant and in the field."""
        if not count:
            return self
        core, rest = slice(0, count), slice(count, None)
        one = self.one + 2 * np.einsum("pqkk->pq", self.two[:, :, core, core])
        one = one - np.einsum("pkkq->pq", self.two[:, core, core, :])
        constant = self.constant + float(np.trace((self.one + one)[core, core]))
        return Sectors(
            one[rest, rest], self.two[rest, rest, rest, rest], constant, self.occupation[rest],
            self.irreps[rest], self.names,
        )  # fmt: skip

    def energies(
        self,
        rank: int | None = None,
        spin: int | None = None,
        irrep: str | None = None,
        references: Sequence[str] = (),
        by_irrep: bool = True,
    ) -> np.ndarray:
        """From the lowest up; none if there is no such determinant. The arguments are those of `CI`.

        Without irreps (`by_irrep`) all states are in one list.
        """
        from pyscf.fci import cistring, direct_spin1

        occupied = np.array([_digits(text, len(self.irreps)) for text in references] or [self.occupation])
        n, electrons = len(self.irreps), int(occupied[0].sum())
        unpaired = self.spin if spin is None else spin
        number = np.bitwise_xor.reduce(self.irreps[occupied[0] == 1], initial=0)
        number = number if irrep is None else self.names[irrep]
        by_spin = ((electrons + unpaired) // 2, (electrons - unpaired) // 2)
        if by_spin[0] > n:
            return np.zeros(0)
        _, matrix = direct_spin1.pspace(self.one, self.two, n, by_spin, np=10**6)
        alpha, beta = (
            np.array([[int(s) >> k & 1 for k in range(n)] for s in cistring.make_strings(range(n), count)])
            for count in by_spin
        )
        shells = (alpha[:, None] + beta[None]).reshape(-1, n)
        kept = (_product(shells, self.irreps) == number) | (not by_irrep)
        if rank is not None:
            left = np.maximum(occupied[:, None] - shells[None], 0).sum(axis=2).min(axis=0)
            kept &= left <= rank
        return np.linalg.eigvalsh(matrix[np.ix_(kept, kept)]) + self.constant


def _digits(text: str, n: int) -> list[int]:
    return [int(digit) for digit in text.ljust(n, "0")]


def _product(shells: np.ndarray, irreps: np.ndarray) -> np.ndarray:
    """The irrep of each determinant."""
    return np.bitwise_xor.reduce(np.where(shells % 2 == 1, irreps, 0), axis=1)
