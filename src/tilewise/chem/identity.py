"""Recognising orbitals again: does a restart file speak of the orbitals at hand?

Amplitudes are only worth keeping if their indices can be matched. An SCF that is run again gives
the same orbitals up to sign and order; a FCIDUMP gives them as they are in the file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import h5py
import numpy as np

from tilewise.chem.selection import Selection
from tilewise.errors import CheckpointError
from tilewise.hdf5 import file_of, read_array, reason_of

# Orbitals of two converged SCF runs differ by their gradient over a gap, up to about 1e-5.
_OVERLAP_TOLERANCE = 1e-4
_ENERGY_TOLERANCE = 1e-7
_POSITION_TOLERANCE = 1e-5  # bohr
_DEGENERATE = 1e-6  # hartree; nearer levels may come out mixed from each SCF

_TEXTS = ("kind", "atoms", "basis", "basis_digest")
_ARRAYS = ("positions", "overlap", "occ", "vir", "occ_numbers", "vir_numbers")


@dataclass(frozen=True)
class OrbitalMap:
    """How to bring another calculation's orbitals into this one's order.

    This one's occupied orbital p is `occ_signs[p]` times the other's `occ[p]`, and so for virtuals.
    """

    occ: np.ndarray
    occ_signs: np.ndarray
    vir: np.ndarray
    vir_signs: np.ndarray


@dataclass(frozen=True, eq=False)
class OrbitalIdentity:
    """What is needed to recognise orbitals.

    From PySCF (kind "molecule"): atoms, positions, basis, the AO overlap, and in `occ`, `vir` the
    coefficients, one orbital per column. From a file (kind "fcidump"): in `occ`, `vir` two rows,
    the orbital energies and the diagonal of the core Hamiltonian. `occ_numbers` and
    `vir_numbers` are the orbitals' numbers in the source.
    """

    kind: str
    atoms: str
    basis: str
    basis_digest: str
    positions: np.ndarray
    overlap: np.ndarray
    occ: np.ndarray
    vir: np.ndarray
    occ_numbers: np.ndarray
    vir_numbers: np.ndarray

    @classmethod
    def of_molecule(
        cls,
        *,
        atoms: list[str],
        positions: np.ndarray,
        basis: str,
        functions: Any,
        overlap: np.ndarray,
        coefficients: np.ndarray,
        active: Selection,
    ) -> OrbitalIdentity:
        """Of a mean field; `functions` is the basis set itself, which two bases of one name may differ in."""
        return cls(
            kind="molecule",
            atoms=" ".join(atoms),
            basis=basis,
            basis_digest=hashlib.sha256(
                json.dumps(functions, default=str, sort_keys=True).encode()
            ).hexdigest(),
            positions=positions,
            overlap=overlap,
            occ=coefficients[:, active.occ],
            vir=coefficients[:, active.vir],
            occ_numbers=active.occ,
            vir_numbers=active.vir,
        )

    @classmethod
    def of_file(cls, energies: np.ndarray, h_diagonal: np.ndarray, active: Selection) -> OrbitalIdentity:
        """Of a FCIDUMP, which knows nothing of atoms."""
        values = np.stack([energies, h_diagonal])
        return cls(
            kind="fcidump",
            atoms="",
            basis="FCIDUMP",
            basis_digest="",
            positions=np.zeros((0, 3)),
            overlap=np.zeros((0, 0)),
            occ=values[:, active.occ],
            vir=values[:, active.vir],
            occ_numbers=active.occ,
            vir_numbers=active.vir,
        )

    def reordered(self, occ: np.ndarray, vir: np.ndarray) -> OrbitalIdentity:
        """The same orbitals in another order."""
        return replace(
            self,
            occ=self.occ[:, occ],
            vir=self.vir[:, vir],
            occ_numbers=self.occ_numbers[occ],
            vir_numbers=self.vir_numbers[vir],
        )

    def to_hdf5(self, group: h5py.Group) -> None:
        """Write into an HDF5 group."""
        for name in _TEXTS:
            group.attrs[name] = getattr(self, name)
        for name in _ARRAYS:
            group.create_dataset(name, data=getattr(self, name))

    @classmethod
    def from_hdf5(cls, group: h5py.Group) -> OrbitalIdentity:
        """Read what `to_hdf5` wrote."""
        try:
            values: dict[str, Any] = {name: " ".join(str(group.attrs[name]).split()) for name in _TEXTS}
            values |= {name: read_array(group, name) for name in _ARRAYS}
            found = cls(**values)
            found.check()
        except Exception as error:  # h5py raises many kinds over wrong contents
            raise CheckpointError(
                f"{file_of(group)}damaged, its orbitals cannot be read ({reason_of(error)})"
            ) from error
        return found

    def check(self) -> None:
        """Raises CheckpointError if the parts do not fit together."""
        if self.kind not in ("molecule", "fcidump"):
            raise CheckpointError(f"orbitals of kind '{self.kind[:40]}' are unknown")
        n_functions = len(self.overlap) if self.kind == "molecule" else 2
        shapes = {
            "overlap": (len(self.overlap), len(self.overlap)),
            "positions": (len(self.positions), 3),
            "occ": (n_functions, len(self.occ_numbers)),
            "vir": (n_functions, len(self.vir_numbers)),
        }
        for name in _ARRAYS:
            array = getattr(self, name)
            if name in shapes and array.shape != shapes[name]:
                raise CheckpointError(f"{name} has the shape {array.shape}, not {shapes[name]}")
            if not np.isfinite(array).all():
                raise CheckpointError(f"{name} is not finite")
        if self.occ_numbers.ndim != 1 or self.vir_numbers.ndim != 1:
            raise CheckpointError("the numbers of the orbitals are not a list")

    def match(self, other: OrbitalIdentity) -> OrbitalMap:
        """Order and signs that turn `other`'s orbitals into these; a CheckpointError says what differs."""
        if self.kind != other.kind:
            raise CheckpointError(
                f"the restart file is of another calculation: its orbitals come from {_origin(other)}, "
                f"these from {_origin(self)}"
            )
        if self.kind == "molecule":
            self._check_molecule(other)
        for kind, mine, theirs in (("occupied", self.occ, other.occ), ("virtual", self.vir, other.vir)):
            if mine.shape[1] != theirs.shape[1]:
                raise CheckpointError(
                    f"the restart file has another set of active orbitals: {theirs.shape[1]} {kind} ones, "
                    f"here there are {mine.shape[1]}; freeze the same orbitals"
                )
        find = self._by_overlap if self.kind == "molecule" else self._by_energy
        return OrbitalMap(*find(other, "occ"), *find(other, "vir"))

    def align(self, coefficients: np.ndarray, energies: np.ndarray) -> np.ndarray:
        """Orbitals of a new SCF, with degenerate ones turned among themselves to agree with these.

        Two SCF runs may mix the partners of a degenerate level differently, which changes no energy.
        """
        if self.kind != "molecule" or len(self.overlap) != len(coefficients):
            return coefficients
        known = np.hstack([self.occ, self.vir])
        products = coefficients.T @ self.overlap @ known
        turned = np.array(coefficients)
        order = np.argsort(energies, kind="stable")
        for level in np.split(order, np.flatnonzero(np.diff(energies[order]) > _DEGENERATE) + 1):
            partners = np.flatnonzero(np.linalg.norm(products[level], axis=0) > 0.99)
            if len(level) > 1 and len(partners) == len(level):
                left, _, right = np.linalg.svd(products[np.ix_(level, partners)])
                turned[:, level] = coefficients[:, level] @ (left @ right)
        return turned

    def _check_molecule(self, other: OrbitalIdentity) -> None:
        if self.atoms != other.atoms:
            raise CheckpointError(
                f"the restart file is of another molecule: {_short(other.atoms)} there, "
                f"{_short(self.atoms)} here"
            )
        if self.positions.shape != other.positions.shape:
            raise CheckpointError(
                f"the restart file is damaged: {len(other.positions)} positions for {_short(self.atoms)}"
            )
        distance = float(np.abs(self.positions - other.positions).max(initial=0.0))
        if distance > _POSITION_TOLERANCE:
            raise CheckpointError(
                f"the restart file is of another geometry or orientation: "
                f"coordinates differ by up to {distance:.1e} bohr"
            )
        if self.basis_digest != other.basis_digest:
            raise CheckpointError(
                f"the restart file is of another basis: '{other.basis}' there, '{self.basis}' here"
                + (" (same name, other functions)" if self.basis == other.basis else "")
            )

    def _by_overlap(self, other: OrbitalIdentity, space: str) -> tuple[np.ndarray, np.ndarray]:
        if len(getattr(other, space)) != len(self.overlap):
            raise CheckpointError("the restart file is damaged: its orbitals are over other basis functions")
        products = getattr(self, space).T @ self.overlap @ getattr(other, space)
        if not products.size:  # as without electrons of one spin
            return np.zeros(0, np.intp), np.zeros(0)
        order = np.abs(products).argmax(axis=1)
        signs = np.sign(products[np.arange(len(order)), order])
        expected = np.zeros_like(products)
        expected[np.arange(len(order)), order] = signs
        error = np.abs(products - expected).max(axis=1, initial=0.0)
        worst = int(error.argmax())
        if error[worst] > _OVERLAP_TOLERANCE or len(np.unique(order)) != len(order):
            kind = "occupied" if space == "occ" else "virtual"
            raise CheckpointError(
                f"the restart file has other orbitals: {kind} orbital {worst + 1} is not one of them (off by "
                f"{error[worst]:.1e}); another SCF solution, another frozen set, or rotated "
                f"degenerate orbitals: start from the same SCF orbitals"
            )
        return order, signs

    def _by_energy(self, other: OrbitalIdentity, space: str) -> tuple[np.ndarray, np.ndarray]:
        """By the numbers in the file if the values agree there, else by ascending energy."""
        mine, theirs = getattr(self, space), getattr(other, space)
        by_number = (
            np.argsort(getattr(self, f"{space}_numbers")),
            np.argsort(getattr(other, f"{space}_numbers")),
        )
        by_value = np.lexsort((mine[1], mine[0])), np.lexsort((theirs[1], theirs[0]))
        error = np.inf
        for here, there in (by_number, by_value):
            error = float(np.abs(mine[:, here] - theirs[:, there]).max(initial=0.0))
            if error <= _ENERGY_TOLERANCE:
                order = np.empty_like(there)
                order[here] = there
                return order, np.ones(len(order))
        kind = "occupied" if space == "occ" else "virtual"
        raise CheckpointError(
            f"the restart file has other orbitals: energies or integrals of "
            f"{kind} ones differ by up to {error:.1e} hartree"
        )


def _origin(identity: OrbitalIdentity) -> str:
    return "a FCIDUMP file" if identity.kind == "fcidump" else f"a molecule ({_short(identity.atoms)})"


def _short(atoms: str) -> str:
    return atoms if len(atoms) <= 60 else atoms[:57] + "..."
