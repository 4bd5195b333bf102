"""Mean fields from PySCF. This and its neighbours `pyscf_...` are the only modules that import it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyscf import df, gto, scf
from pyscf.gto import basis as basis_sets

from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.chem.pyscf_checks import (
    OrbitalSet,
    check_core_symmetry,
    check_molecule,
    check_stored_symmetry,
    checked,
    fock_matrices,
    is_canonical,
    kind_of,
    orbitals_of,
)
from tilewise.chem.pyscf_functions import BasisFunctions
from tilewise.chem.pyscf_integrals import MeanFieldIntegrals, count_vectors, fitting_of
from tilewise.chem.pyscf_molecule import few_threads
from tilewise.chem.pyscf_scf import Progress as Progress
from tilewise.chem.pyscf_scf import run_scf as run_scf
from tilewise.chem.pyscf_scf import unsolved as unsolved
from tilewise.chem.reference import Outline, Reference
from tilewise.chem.selection import (
    Frozen,
    Selection,
    check_electrons,
    reference_kind,
    select,
    select_by_spin,
    spins_of,
)
from tilewise.chem.symmetry import Blocks, label_orbitals, levels, subgroup_wish
from tilewise.config import thread_limits
from tilewise.lazy import cached_property
from tilewise.symmetry.groups import PointGroup


def outline(
    mol: gto.Mole,
    frozen: Frozen = None,
    symmetry: str | bool | None = "auto",
    title: str | None = None,
    fitting: bool | str | float | None = False,
    reference: str | None = None,
) -> Outline:
    """Orbital counts before any SCF: no two-electron integral of the molecule is computed.

    `reference` is the kind of the SCF, as for `run_scf`. Occupations are guessed by filling the levels of a
    superposition of atomic potentials. Where there is none (core potentials, an old PySCF), extended Hueckel
    levels, or those of the core Hamiltonian, which are less reliable; `source` says which.
    """
    check_molecule(mol)
    check_electrons(mol.nelectron, mol.spin, mol.charge, "molecule", mol.nao)
    kind = reference_kind(reference, mol.spin, "the molecule")
    functions, filled_by_spin = BasisFunctions(mol, int(mol.nao)), spins_of(mol.nelectron, mol.spin)
    overlap = mol.intor_symmetric("int1e_ovlp")
    fock, source = _guessed_fock(mol, overlap)
    energies, irreps = levels(fock, overlap, functions.blocks)
    filled = np.argsort(energies, kind="stable")
    energies, irreps = energies[filled], irreps[filled]
    numbers = np.arange(len(energies))
    occ, vir = [numbers[:n] for n in filled_by_spin], [numbers[n:] for n in filled_by_spin]
    if kind == "rhf":
        chosen = [select(frozen, occ[0], vir[0], energies, functions.core)]
    else:
        chosen = select_by_spin(frozen, occ, vir, [energies, energies], functions.core)
    group, image = functions.group.restrict(subgroup_wish(functions.group, symmetry))
    text = f"occupations guessed by {source}"
    made = [_outline(functions, group, own, image[irreps], title, text, fitting) for own in chosen]
    return replace(_joined(made), ao_bytes=int(mol.nao) ** 4)


def from_mean_field(
    mean_field: Any,
    frozen: Frozen = None,
    symmetry: str | bool | None = "auto",
    title: str | None = None,
    fitting: bool | str | float | None = None,
) -> AnyReference:
    """The Reference of a converged PySCF RHF, density-fitted or not, in a vacuum or a solvent, or of a model.

    Of a UHF or ROHF it is an OpenReference.

    A model has no atoms: its Hamiltonian is in `mf.get_hcore`, `mf.get_ovlp` and `mf._eri`.

    `fitting`: True for density fitting in PySCF's default auxiliary basis (or the mean field's own),
    the name of an auxiliary basis, or a Cholesky threshold such as 1e-6. A density-fitted mean field is
    always fitted.

    `frozen`: None, a number of lowest occupied orbitals, a list of MO indices, or "auto" (chemical core); of
    an open shell for both spins, or a pair of lists.
    `symmetry`: "auto" for all of the molecule's abelian group, or the name of a subgroup, such as "C1".
    """
    sets = checked(mean_field)
    functions = BasisFunctions(mean_field.mol, len(sets[0].coefficients))
    source = _Source(mean_field, functions, fitting_of(mean_field, functions, fitting), symmetry, title)
    energies, focks = _levels(mean_field, sets)
    chosen = _selected(mean_field, frozen, sets, energies, functions)
    references = [
        source.reference(*own, spin)
        for spin, own in enumerate(zip(sets, energies, chosen, focks, strict=True))
    ]
    if len(references) == 1:
        return references[0]
    alpha, beta = (own.coefficients for own in sets)
    overlap, occupied = alpha.T @ source.overlap @ beta, (sets[0].occupied, sets[1].occupied)
    return OpenReference(kind_of(mean_field), references[0], references[1], overlap, occupied)


@dataclass(frozen=True, eq=False)
class _Source:
    """A mean field, and how its orbitals are wanted."""

    mean_field: Any
    functions: BasisFunctions
    fitting: df.DF | float | None
    symmetry: str | bool | None
    title: str | None

    @cached_property
    def overlap(self) -> np.ndarray:
        with few_threads(self.mean_field.mol):
            return np.asarray(self.mean_field.get_ovlp())

    def reference(
        self,
        orbitals: OrbitalSet,
        energies: np.ndarray,
        chosen: Selection,
        fock: np.ndarray | None,
        spin: int,
    ) -> Reference:
        """The Reference of a closed shell, or of one spin. The Fock matrix may be known already."""
        functions, coefficients = self.functions, orbitals.coefficients
        overlap = self.overlap
        with thread_limits(1):  # those of BLAS would go on spinning beside ours
            found = _labelled(functions, overlap, coefficients, self.symmetry)
        active = chosen.sorted_by(found.irreps, energies)
        integrals = MeanFieldIntegrals(
            self.mean_field, functions, coefficients, active.occ, self.fitting, spin, fock
        )
        if found.group.order > 1:
            every = np.concatenate([orbitals.occupied, orbitals.virtual])
            mine, labels, core = coefficients[:, every], found.irreps[every], integrals.core_hamiltonian
            n_occ = len(orbitals.occupied)
            check_core_symmetry(lambda: integrals.basis_fock, core, mine, n_occ, labels, found.group)
            if integrals.stored is not None and spin == 0:
                check_stored_symmetry(integrals.stored, found.blocks, found.group)
        identity = OrbitalIdentity.of_molecule(
            atoms=functions.atoms,
            positions=functions.positions,
            basis=functions.basis,
            functions=functions.definition,
            overlap=self.overlap,
            coefficients=coefficients,
            active=active,
        )
        mean_field = self.mean_field
        made = _outline(
            functions, found.group, active, found.irreps, self.title, "SCF orbitals", self.fitting
        )
        return Reference(
            outline=replace(made, is_direct=self.fitting is None and integrals.stored is None),
            occ_energies=energies[active.occ],
            vir_energies=energies[active.vir],
            e_hf=float(mean_field.e_tot if mean_field.converged else mean_field.energy_tot()),
            identity=identity,
            order=active.order,
            integrals=integrals,
            is_canonical=is_canonical(mean_field),
        )


def _selected(
    mean_field: Any,
    frozen: Any,
    sets: list[OrbitalSet],
    energies: list[np.ndarray],
    functions: BasisFunctions,
) -> list[Selection]:
    """The active orbitals of each set. The two spins of an ROHF leave out the same ones."""
    occ, vir = [own.occupied for own in sets], [own.virtual for own in sets]
    if len(sets) == 1:
        return [select(frozen, occ[0], vir[0], energies[0], functions.core)]
    if kind_of(mean_field) == "rohf":
        energies = [energies[0] + energies[1]] * 2
    return select_by_spin(frozen, occ, vir, energies, functions.core)


def outline_of_orbitals(
    mean_field: Any,
    frozen: Frozen = None,
    symmetry: str | bool | None = "auto",
    title: str | None = None,
    fitting: bool | str | float | None = False,
) -> Outline:
    """Orbital counts of a mean field that is restored from a file: no two-electron integral is computed."""
    sets = orbitals_of(mean_field)
    functions = BasisFunctions(mean_field.mol, len(sets[0].coefficients))
    with few_threads(mean_field.mol):
        overlap = np.asarray(mean_field.get_ovlp())
    energies = [np.asarray(mean_field.mo_energy)] * len(sets)
    if kind_of(mean_field) == "uhf":
        energies = [np.asarray(own) for own in mean_field.mo_energy]
    made = []
    for own, active in zip(sets, _selected(mean_field, frozen, sets, energies, functions), strict=True):
        found = _labelled(functions, overlap, own.coefficients, symmetry)
        text = "SCF orbitals of a chkfile"
        made.append(_outline(functions, found.group, active, found.irreps, title, text, fitting))
    return replace(_joined(made), ao_bytes=functions.count**4)


def _joined(outlines: list[Outline]) -> Outline:
    """Of a closed shell, or of both spins."""
    first, last = outlines[0], outlines[-1]
    if first is last:
        return first
    electrons = sum(own.n_electrons for own in outlines) // 2  # each counts two in every orbital
    return replace(first, beta=(last.occ, last.vir), n_electrons=electrons)


@dataclass(frozen=True, eq=False)
class _Labelled:
    """Irreps of orbitals in a group, with the adapted functions that they were found by."""

    group: PointGroup
    blocks: Blocks
    irreps: np.ndarray


def _labelled(
    functions: BasisFunctions, overlap: np.ndarray, coefficients: np.ndarray, symmetry: str | bool | None
) -> _Labelled:
    group, image = functions.group.restrict(subgroup_wish(functions.group, symmetry))
    blocks = [(int(image[irrep]), block) for irrep, block in functions.blocks]
    return _Labelled(group, blocks, label_orbitals(coefficients, overlap, blocks, group.order))


def _levels(
    mean_field: Any, sets: list[OrbitalSet]
) -> tuple[list[np.ndarray], list[np.ndarray] | list[None]]:
    """Orbital energies of each set; where the mean field has none that fit, diagonals of its Fock matrices,
    which are given too.

    Those of an ROHF belong to neither spin, and those of one electron are without its field.
    """
    known = mean_field.mo_energy
    if known is not None and is_canonical(mean_field):
        each = [known] if len(sets) == 1 else list(known)
        shapes = [(own.coefficients.shape[1],) for own in sets]
        if [np.shape(e) for e in each] == shapes and all(np.all(np.isfinite(e)) for e in each):
            return [np.array(e, dtype=np.float64) for e in each], [None] * len(sets)
    focks = fock_matrices(mean_field)
    energies = [
        np.einsum("mp,mn,np->p", own.coefficients, fock, own.coefficients)
        for own, fock in zip(sets, focks, strict=True)
    ]
    return energies, focks


def _guessed_fock(mol: gto.Mole, overlap: np.ndarray) -> tuple[np.ndarray, str]:
    """A Fock matrix without two-electron integrals, and its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not mol.has_ecp():
            try:
                return scf.hf.get_hcore(mol) + _atomic_potentials(mol), "atomic potentials"
            except Exception:  # PySCF raises all sorts for elements that it lacks
                pass
        try:
            energies, coefficients = scf.hf._init_guess_huckel_orbitals(mol)
            if len(energies) >= spins_of(mol.nelectron, mol.spin)[0]:
                # Functions outside the Hueckel orbitals' span get 0, above every shifted level.
                vectors = overlap @ coefficients
                return (vectors * (energies - energies.max() - 1.0)) @ vectors.T, "extended Hueckel"
        except Exception:
            pass
    return scf.hf.get_hcore(mol), "the core Hamiltonian (unreliable)"


def _atomic_potentials(mol: gto.Mole) -> np.ndarray:
    """The electrons' part of a superposition of atomic potentials (Lehtola et al., doi:10.1063/5.0004046)."""
    centres = mol
    for symbol, position in mol._atom:
        if not gto.is_ghost_atom(symbol):
            fit = np.asarray(basis_sets.load("sap_grasp_large", symbol)[0][1:])
            centres = centres + gto.mole.fakemol_for_cgtf_charge(np.array([position]), fit[:, 0], fit[:, 1])
    potential = np.zeros((mol.nao, mol.nao))
    step = max(1, int(1e8 / potential.nbytes))  # three-index integrals are kept to 100 MB
    for first in range(mol.nbas, centres.nbas, step):
        last = min(first + step, centres.nbas)
        potential -= centres.intor("int3c2e", shls_slice=(0, mol.nbas, 0, mol.nbas, first, last)).sum(axis=2)
    return potential


def _outline(
    functions: BasisFunctions,
    group: PointGroup,
    active: Selection,
    irreps: np.ndarray,
    title: str | None,
    source: str,
    fitting: df.DF | bool | str | float | None,
) -> Outline:
    occ, vir = active.counts(irreps, group.order)
    return Outline(
        title=title or functions.title,
        formula=functions.formula,
        group=group,
        basis=functions.basis,
        occ=occ,
        vir=vir,
        frozen_core=len(active.core),
        frozen_virtual=active.frozen_virtual,
        n_electrons=2 * (len(active.occ) + len(active.core)),
        source=source,
        basis_pairs=functions.count_pairs(group),
        n_basis=functions.count,
        n_vectors=count_vectors(functions, fitting),
        is_fitted=fitting is not None and fitting is not False,
    )
