"""Basis functions of a mean field: those of its atoms, or of a model that has none (Hubbard's, Pariser's)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from pyscf import gto
from pyscf.data.elements import chemcore

from tilewise.chem.basis_names import basis_name
from tilewise.chem.pair_classes import Operations, PairClasses
from tilewise.chem.symmetry import AXES, Blocks, atom_images
from tilewise.chem.xyz import formula
from tilewise.symmetry.groups import PointGroup, group_named

# PySCF's irrep id modulo 10 is the bit pattern in these.
ABELIAN = {"Dooh": "D2h", "SO3": "D2h", "Coov": "C2v"}

_ASKEW = 1e-7
"""How far the matrix of an operation may be from one that reflects coordinate axes."""


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

    @property
    def first(self) -> np.ndarray:
        """(shells + 1,): the first function of each shell; those of a model are shells of their own."""
        return np.arange(self.count + 1) if self.is_model else np.asarray(self.mol.ao_loc_nr(), np.int64)

    def operations(self, group: PointGroup) -> tuple[Operations, np.ndarray]:
        """Operations of a subgroup that are signed permutations of the functions, and their irreps.

        These are reflections of the coordinate axes: all operations, unless the molecule lies askew to the
        axes. They are a group with irreps of its own; the irrep there of each irrep of `group` is the
        second result.
        """
        masks, images, signs = [0], [np.arange(self.count)], [np.ones(self.count)]
        if not self.is_model and self.mol.symmetry:
            masks, images, signs = self._reflections(group)
        generators = [m for k, m in enumerate(masks) if m and _is_new(m, masks[:k])]
        combined = [0]
        for generator in generators:
            combined += [mask ^ generator for mask in combined]
        order = [masks.index(mask) for mask in combined]
        irreps = np.zeros(group.order, np.int64)
        for bit, generator in enumerate(generators):
            irreps |= [((irrep & generator).bit_count() & 1) << bit for irrep in range(group.order)]
        return Operations(np.array(images)[order], np.array(signs)[order]), irreps

    def turned(self) -> tuple[BasisFunctions, np.ndarray]:
        """The same molecule with the axes of its symmetry as coordinate axes, and what coefficients are
        multiplied with."""
        mol, axes = self.mol, np.array(self.mol._symm_axes)
        axes[2] *= np.sign(np.linalg.det(axes))  # a rotation; which way an axis points does not matter
        matrix = gto.mole.ao_rotation_matrix(mol, axes).T
        other = mol.copy()
        other._env = mol._env.copy()
        places = mol._atm[:, gto.PTR_COORD][:, None] + np.arange(3)
        other._env[places] = mol.atom_coords() @ axes.T
        other._symm_orig, other._symm_axes = axes @ mol._symm_orig, np.eye(3)
        return BasisFunctions(other, self.count), matrix

    def count_pairs(self, group: PointGroup) -> int:
        """Combinations of pairs of functions in an irrep that has the most of them."""
        return int(PairClasses(self.operations(group)[0]).n_classes.max())

    def _reflections(self, group: PointGroup) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
        """Operations of a subgroup that reflect coordinate axes: their masks, images of functions, and
        signs."""
        mol, axes = self.mol, np.asarray(self.mol._symm_axes)
        atoms = atom_images(mol.atom_coords(), mol._symm_orig, axes, self.group, group)
        owner, first = mol._bas[:, gto.ATOM_OF], self.first
        first_shell = np.searchsorted(owner, np.arange(mol.natm))
        shell = np.repeat(np.arange(mol.nbas), np.diff(first))
        odd = np.concatenate([_odd_axes(mol, k) for k in range(mol.nbas)])
        masks, images, signs = [], [], []
        names = self.group.operations_in(group.name)
        for name, mask, image in zip(names, group.masks, atoms, strict=True):
            matrix = axes.T @ np.diag(AXES[name]) @ axes
            turned = np.rint(np.diag(matrix))
            if np.abs(matrix - np.diag(turned)).max() > _ASKEW:
                continue
            moved = first_shell[image[owner]] + np.arange(mol.nbas) - first_shell[owner]
            masks.append(mask)
            images.append(first[moved[shell]] + np.arange(self.count) - first[shell])
            signs.append(np.where(odd, turned, 1.0).prod(axis=1))
        return masks, images, signs

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


def _is_new(mask: int, known: list[int]) -> bool:
    """Whether no product of operations that are known is this one."""
    products = {0}
    for other in known:
        products |= {product ^ other for product in products}
    return mask not in products


def _odd_axes(mol: gto.Mole, shell: int) -> np.ndarray:
    """(functions of a shell, 3): whether each changes its sign when x, y or z does."""
    return np.tile(_odd_powers(mol.bas_angular(shell), bool(mol.cart)), (mol.bas_nctr(shell), 1))


@cache
def _odd_powers(momentum: int, cart: bool) -> np.ndarray:
    """The same for the functions of an angular momentum."""
    powers = np.array(
        [(x, y, momentum - x - y) for x in range(momentum, -1, -1) for y in range(momentum - x, -1, -1)]
    )
    if not cart:  # of the monomials of a spherical function any one tells
        powers = powers[np.abs(gto.cart2sph(momentum)).argmax(axis=0)]
    return powers % 2 == 1


def atoms_and_charge(mol: gto.Mole) -> list[str]:
    """What a restart file is recognised by before there are orbitals."""
    return [mol.atom_symbol(k) for k in range(mol.natm)] + [f"charge {mol.charge}"]
