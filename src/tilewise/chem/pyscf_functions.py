"""Basis functions of a mean field: those of its atoms, or of a model that has none (Hubbard's, Pariser's)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pyscf import gto
from pyscf.data.elements import chemcore

from tilewise.chem.basis_names import basis_name
from tilewise.chem.symmetry import Blocks, atom_images
from tilewise.chem.transform import Shells
from tilewise.chem.xyz import formula
from tilewise.symmetry.groups import PointGroup, group_named

# PySCF's irrep id modulo 10 is the bit pattern in these.
ABELIAN = {"Dooh": "D2h", "SO3": "D2h", "Coov": "C2v"}


@dataclass(frozen=True, eq=False)
class BasisFunctions:
    """A molecule's functions; if their number is not that of its basis, the mean field is that of a model."""

    mol: gto.Mole
    count: int

    @property
    def is_model(self) -> bool:
        return self.count != self.mol.nao

    @property
    def group(self) -> PointGroup:
        if self.is_model or not self.mol.symmetry:
            return group_named("C1")
        return group_named(ABELIAN.get(self.mol.groupname, self.mol.groupname))

    @property
    def blocks(self) -> Blocks:
        """For each irrep the symmetry-adapted functions."""
        if self.group.order == 1:
            return [(0, np.eye(self.count))]
        pairs = zip(self.mol.irrep_id, self.mol.symm_orb, strict=True)
        return [(int(irrep) % 10, np.asarray(block)) for irrep, block in pairs]

    def shells(self, group: PointGroup) -> Shells:
        """The shells, and for each operation of a subgroup the shell that each shell is taken to."""
        if self.is_model:
            return Shells(np.arange(self.count + 1), np.arange(self.count)[None, :])
        mol, n = self.mol, self.mol.nbas
        images = [np.arange(n)]
        if mol.symmetry:
            atoms = atom_images(mol.atom_coords(), mol._symm_orig, mol._symm_axes, self.group, group)
            owner = mol._bas[:, gto.ATOM_OF]
            first = np.searchsorted(owner, np.arange(mol.natm))
            images = [first[image[owner]] + np.arange(n) - first[owner] for image in atoms]
        return Shells(mol.ao_loc_nr(), np.array(images))

    # In words

    @property
    def formula(self) -> str:
        """Of the atoms, ghosts left out."""
        if self.is_model:
            return ""
        atoms = [k for k in range(self.mol.natm) if not gto.is_ghost_atom(self.mol.atom_symbol(k))]
        return formula([self.mol.atom_pure_symbol(k) for k in atoms], self.mol.charge)

    @property
    def title(self) -> str:
        return f"model of {self.count} functions" if self.is_model else self.formula

    @property
    def basis(self) -> str:
        return "model" if self.is_model else basis_name(self.mol.basis)

    @property
    def core(self) -> int | None:
        """Chemical core orbitals (1s of C to Ne, ...) that `frozen="auto"` leaves out; None without atoms."""
        return None if self.is_model else int(chemcore(self.mol))

    # What restart files are recognised by

    @property
    def atoms(self) -> list[str]:
        return [self.title] if self.is_model else atoms_and_charge(self.mol)

    @property
    def positions(self) -> np.ndarray:
        return np.zeros((0, 3)) if self.is_model else np.asarray(self.mol.atom_coords())

    @property
    def definition(self) -> list[Any]:
        """The basis set itself, in which two of one name may differ."""
        return [self.title] if self.is_model else [self.mol._basis, self.mol._ecp, self.mol.cart]


def atoms_and_charge(mol: gto.Mole) -> list[str]:
    """What a restart file is recognised by before there are orbitals."""
    return [mol.atom_symbol(k) for k in range(mol.natm)] + [f"charge {mol.charge}"]
