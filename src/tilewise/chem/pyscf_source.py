"""Molecules, mean fields and integrals from PySCF: the only module that imports it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from pyscf import ao2mo, df, gto, lib, scf, symm
from pyscf.data.elements import chemcore
from pyscf.gto import basis as basis_sets
from pyscf.symm import geom
from scipy.linalg import polar

from tilewise.chem.basis_names import basis_name, check_basis
from tilewise.chem.cholesky import cholesky_vectors
from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.reference import Outline, Reference
from tilewise.chem.selection import (
    Frozen,
    Selection,
    check_closed_shell,
    select,
)
from tilewise.chem.symmetry import (
    Blocks,
    atom_images,
    group_wish,
    label_orbitals,
    levels,
    subgroup_wish,
    symmetrize,
)
from tilewise.chem.transform import (
    AoRows,
    Field,
    HalfTransformed,
    Kets,
    Orbitals,
    Shells,
    half_transformed,
    transformed,
)
from tilewise.chem.xyz import formula, looks_like_atoms, parse_atoms, read_xyz
from tilewise.errors import InputError
from tilewise.spaces.groups import PointGroup, group_named

# PySCF's irrep id modulo 10 is the bit pattern in these.
_ABELIAN = {"Dooh": "D2h", "SO3": "D2h", "Coov": "C2v"}
_ROUNDING = 1e-4  # bohr; a geometry nearer than that to a symmetric one is meant to be symmetric
# The correlation energy is off by about a hundredth of the orbital gradient that the SCF leaves.
_GRADIENT = 1e-7
_TOLERANCES = (1e-5, 1e-4, 3e-4, 1e-3)

TIGHT_THRESHOLD = 1e-8
"""Of a Cholesky decomposition that changes energies by about 1e-9 hartree."""

Progress = Callable[[int, float, float], None]


def build_molecule(
    source: str | Path,
    basis: str | dict[str, Any],
    charge: int = 0,
    symmetry: bool | str = True,
    max_memory: int | None = None,
) -> gto.Mole:
    """A closed-shell molecule from an XYZ file, or from text such as "O 0 0 0; H 0 0 0.96; ...", in angstrom.

    `symmetry`: True or "auto" for the largest abelian group found, False or "C1" for none, or the name of
    a group. `max_memory` in bytes is PySCF's budget. Core potentials come with the basis sets that need them.
    """
    if isinstance(source, str) and looks_like_atoms(source):
        atoms, where = parse_atoms(source), "geometry"
    else:
        atoms, where = read_xyz(source)[0], Path(source).name
    potentials = check_basis(atoms, basis, basis_sets)
    group = group_wish(symmetry)
    mol = gto.Mole()
    mol.verbose, mol.charge, mol.spin = 0, charge, None
    mol.atom, mol.basis, mol.unit = atoms, basis, "Angstrom"
    if potentials:
        mol.ecp = potentials
    mol.build(dump_input=False, parse_arg=False)
    check_closed_shell(mol.nelectron, mol.spin, charge, where)
    if group != "C1":
        mol = _with_symmetry(mol, group, where)
    if max_memory is not None:
        mol.max_memory = max_memory / 1e6
    return mol


def run_scf(
    mol: gto.Mole,
    *,
    conv_tol: float = 1e-10,
    max_cycle: int = 100,
    guess: np.ndarray | tuple[np.ndarray, np.ndarray] | None = None,
    progress: Progress | None = None,
    max_memory: int | None = None,
) -> scf.hf.RHF:
    """A converged RHF. `guess` is a density matrix, or coefficients with occupations, to start from.

    `progress(cycle, energy, change)` is called once per cycle. `max_memory` in bytes.
    """
    check_closed_shell(mol.nelectron, mol.spin, mol.charge, "molecule")
    mean_field = scf.RHF(mol)
    mean_field.verbose = 0
    mean_field.conv_tol, mean_field.max_cycle = conv_tol, max_cycle
    mean_field.conv_tol_grad = _GRADIENT
    mean_field.chkfile = None
    if max_memory is not None:
        mean_field.max_memory = max_memory / 1e6
    change = np.nan

    def follow(state: dict[str, Any]) -> None:
        nonlocal change
        change = float(state["e_tot"] - state["last_hf_e"])
        if progress is not None:
            progress(int(state["cycle"]) + 1, float(state["e_tot"]), change)

    mean_field.callback = follow
    density = mean_field.make_rdm1(*guess) if isinstance(guess, tuple) else guess
    mean_field.kernel(dm0=density)
    mean_field.callback = None
    if not mean_field.converged:
        raise InputError(
            f"SCF not converged in {max_cycle} cycles (last energy change {change:.1e} hartree): allow more, "
            f"check the geometry, or converge it in PySCF (level_shift, newton) and pass the mean field"
        )
    return mean_field


def atoms_and_charge(mol: gto.Mole) -> list[str]:
    """What a restart file is recognised by before there are orbitals."""
    return [mol.atom_symbol(k) for k in range(mol.natm)] + [f"charge {mol.charge}"]


def frozen_core_count(mol: gto.Mole) -> int:
    """Chemical core orbitals (1s of C to Ne, ...) that `frozen="auto"` leaves out."""
    return int(chemcore(mol))


def outline(
    mol: gto.Mole,
    frozen: Frozen = None,
    symmetry: str = "auto",
    title: str | None = None,
    fitting: bool | str | float = False,
) -> Outline:
    """Orbital counts before any SCF: no two-electron integral of the molecule is computed.

    Occupations are guessed by filling the levels of a superposition of atomic potentials. Where there
    is none (core potentials, an old PySCF), extended Hueckel levels, or those of the core
    Hamiltonian, which are less reliable; `source` says which.
    """
    check_closed_shell(mol.nelectron, mol.spin, mol.charge, "molecule")
    full, n_occ = _point_group(mol), mol.nelectron // 2
    overlap = mol.intor_symmetric("int1e_ovlp")
    fock, source = _guessed_fock(mol, overlap)
    energies, irreps = levels(fock, overlap, _blocks(mol))
    filled = np.argsort(energies, kind="stable")
    energies, irreps = energies[filled], irreps[filled]
    numbers = np.arange(len(energies))
    active = select(frozen, numbers[:n_occ], numbers[n_occ:], energies, frozen_core_count(mol))
    group, image = full.restrict(subgroup_wish(full, symmetry))
    text = f"occupations guessed by {source}"
    made = _outline(mol, group, active, image[irreps], title, text, fitting)
    return replace(made, ao_bytes=int(mol.nao) ** 4)


def from_mean_field(
    mean_field: Any,
    frozen: Frozen = None,
    symmetry: str = "auto",
    title: str | None = None,
    fitting: bool | str | float | None = None,
) -> Reference:
    """The Reference of a converged PySCF RHF, density-fitted or not, in a vacuum or a solvent.

    `fitting`: True for density fitting in PySCF's default auxiliary basis (or the mean field's own),
    the name of an auxiliary basis, or a Cholesky threshold such as 1e-6. A density-fitted mean field is
    always fitted.

    `frozen`: None, a number of lowest occupied orbitals, a list of MO indices, or "auto" (chemical core).
    `symmetry`: "auto" for all of the molecule's abelian group, or the name of a subgroup, such as "C1".
    """
    mol, coefficients, occupied = _checked(mean_field)
    fitted = _fitting(mean_field, fitting)
    full = _point_group(mol)
    group, image = full.restrict(subgroup_wish(full, symmetry))
    overlap = np.asarray(mean_field.get_ovlp())
    blocks = [(int(image[irrep]), block) for irrep, block in _blocks(mol)]
    irreps = label_orbitals(coefficients, overlap, blocks, group.order)

    energies = _energies(mean_field, coefficients)
    active = select(frozen, *occupied, energies, frozen_core_count(mol)).sorted_by(irreps, energies)
    order = active.order
    identity = OrbitalIdentity.of_molecule(
        atoms=atoms_and_charge(mol),
        positions=np.asarray(mol.atom_coords()),
        basis=basis_name(mol.basis),
        functions=[mol._basis, mol._ecp, mol.cart],
        overlap=overlap,
        coefficients=coefficients,
        active=active,
    )
    return Reference(
        outline=_outline(mol, group, active, irreps, title, "SCF orbitals", fitted),
        occ_energies=energies[active.occ],
        vir_energies=energies[active.vir],
        e_hf=float(mean_field.e_tot),
        identity=identity,
        order=order,
        integrals=MeanFieldIntegrals(mean_field, coefficients, active.occ, fitted),
    )


@dataclass(frozen=True, eq=False)
class MeanFieldIntegrals:
    """Integrals over a mean field's orbitals, from the AO integrals that the mean field itself used."""

    mean_field: Any
    coefficients: np.ndarray
    occupied: np.ndarray  # active occupied orbitals
    fitting: df.DF | float | None = None  # density fitting, or a Cholesky threshold

    def one_electron(self, order: np.ndarray) -> np.ndarray:
        """What acts on the active electrons and is not of their making: nuclei, core, solvent."""
        filled, orbitals = self.coefficients[:, self.occupied], self.coefficients[:, order]
        coulomb, exchange = self.mean_field.get_jk(self.mean_field.mol, 2.0 * filled @ filled.T, hermi=1)
        return orbitals.T @ (self.basis_fock - (coulomb - 0.5 * exchange)) @ orbitals

    @cached_property
    def basis_fock(self) -> np.ndarray:
        """The Fock matrix over basis functions."""
        return np.asarray(self.mean_field.get_fock(dm=self.mean_field.make_rdm1()))

    def fock(self, order: np.ndarray) -> np.ndarray:
        orbitals = self.coefficients[:, order]
        return orbitals.T @ self.basis_fock @ orbitals

    def decomposed(self) -> MeanFieldIntegrals:
        return replace(self, fitting=self.fitting or TIGHT_THRESHOLD)

    def basis_pairs(self, group: PointGroup) -> int:
        return _shells(self.mean_field.mol, group).count_pairs()

    def half_transformed(
        self, order: np.ndarray, irreps: np.ndarray, group: PointGroup, pairs: np.ndarray, workers: int
    ) -> HalfTransformed | None:
        """(mu nu|rs) over the active orbitals, for symmetry-unique pairs; None for fitted integrals."""
        if self.fitting is not None:
            return None
        mol = self.mean_field.mol
        image = _point_group(mol).restrict(group.name)[1]
        adapted: list[list[np.ndarray]] = [[] for _ in range(group.order)]
        for irrep, block in _blocks(mol):
            adapted[int(image[irrep])].append(block)
        functions = [np.hstack(b) if b else np.zeros((mol.nao, 0)) for b in adapted]
        orbitals = Orbitals(np.ascontiguousarray(self.coefficients[:, order]), irreps, functions)
        shells = _shells(mol, group)
        mean_field = self.mean_field
        field = Field(mean_field.make_rdm1(), mean_field.get_hcore()) if _is_plain(mean_field) else None
        return half_transformed(orbitals, shells, self._rows(shells), pairs, workers, field)

    def _rows(self, shells: Shells) -> AoRows:
        stored = getattr(self.mean_field, "_eri", None)
        return _direct_rows(self.mean_field.mol) if stored is None else _stored_rows(stored, shells.first)

    def three_index(self, order: np.ndarray, workers: int) -> np.ndarray | None:
        if self.fitting is None:
            return None
        orbitals = Orbitals(
            np.ascontiguousarray(self.coefficients[:, order]),
            np.zeros(len(order), np.int64),
            [np.eye(len(self.coefficients))],
        )
        if isinstance(self.fitting, float):
            mol = self.mean_field.mol
            shells = _shells(mol, group_named("C1"))
            vectors = cholesky_vectors(_diagonal(mol), shells.first, self._rows(shells), self.fitting)
            count = sum(map(len, vectors))
        else:
            vectors, count = self.fitting.loop(), self.fitting.get_naoaux()
        out, at = np.empty((count, len(order) * (len(order) + 1) // 2)), 0
        for block in _used_up(vectors):
            out[at : at + len(block)] = transformed(orbitals, np.asarray(block), workers)
            at += len(block)
        return out

    def eri(self, order: np.ndarray) -> np.ndarray:
        vectors = self.three_index(order, 1)
        if vectors is not None:
            return vectors.T @ vectors
        orbitals = np.ascontiguousarray(self.coefficients[:, order])
        ao_integrals = getattr(self.mean_field, "_eri", None)
        if ao_integrals is not None:
            if ao_integrals.ndim == 4:
                ao_integrals = ao2mo.restore(8, ao_integrals, len(orbitals))
            values = ao2mo.incore.full(ao_integrals, orbitals, verbose=0, compact=True)
        else:
            budget = max(500.0, self.mean_field.max_memory - lib.current_memory()[0])
            values = ao2mo.outcore.full_iofree(self.mean_field.mol, orbitals, max_memory=budget, verbose=0)
        n_pairs = len(order) * (len(order) + 1) // 2
        return np.ascontiguousarray(values, dtype=np.float64).reshape(n_pairs, n_pairs)


def _used_up(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Those of a list are let go one by one."""
    if not isinstance(blocks, list):
        yield from blocks
        return
    while blocks:
        yield blocks.pop(0)


def _fitting(mean_field: Any, wanted: bool | str | float | None) -> df.DF | float | None:
    """How the integrals are to be decomposed, if at all."""
    own = vars(mean_field).get("with_df")  # getattr would have PySCF import all of itself
    if isinstance(wanted, float):
        return wanted
    if isinstance(own, df.DF) and not isinstance(wanted, str):
        return own
    if not wanted:
        return None
    fitted = df.DF(mean_field.mol, auxbasis=auxiliary_basis(mean_field.mol, wanted))
    fitted.verbose = 0
    try:
        fitted.build()
    except Exception as error:
        raise _auxiliary_error(wanted, error) from None
    return fitted


def auxiliary_basis(mol: gto.Mole, wanted: bool | str | float) -> str | dict[str, Any]:
    """The auxiliary basis for density fitting that has this name, or PySCF's default one.

    A basis that PySCF lacks is refused; no integral is computed.
    """
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # PySCF prints advice
            warnings.simplefilter("ignore")
            auxiliary = wanted if isinstance(wanted, str) else df.make_auxbasis(mol, mp2fit=True)
            df.make_auxmol(mol, auxiliary)
    except Exception as error:  # PySCF raises all sorts for a basis that it lacks
        raise _auxiliary_error(wanted, error) from None
    return auxiliary


def _auxiliary_error(wanted: bool | str | float, error: Exception) -> InputError:
    name = f"basis '{' '.join(wanted.split())}'" if isinstance(wanted, str) else "basis by default"
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"auxiliary {name}: PySCF has none such for these atoms ({reason})")


def _diagonal(mol: gto.Mole) -> np.ndarray:
    """(mu nu|mu nu) for mu >= nu."""
    first, n = mol.ao_loc_nr(), mol.nao
    square = np.zeros((n, n))
    for m in range(mol.nbas):
        for k in range(m + 1):
            values = mol.intor("int2e", shls_slice=(m, m + 1, k, k + 1, m, m + 1, k, k + 1))
            part = np.einsum("ijij->ij", values)
            square[first[m] : first[m + 1], first[k] : first[k + 1]] = part
            square[first[k] : first[k + 1], first[m] : first[m + 1]] = part.T
    return square[np.tril_indices(n)]


def _shells(mol: gto.Mole, group: PointGroup) -> Shells:
    """The molecule's shells, and for each operation the shell that each shell is taken to."""
    n = mol.nbas
    images = [np.arange(n)]
    if mol.symmetry:
        own = _point_group(mol)
        atoms = atom_images(mol.atom_coords(), mol._symm_orig, mol._symm_axes, own, group)
        owner = mol._bas[:, gto.ATOM_OF]
        first = np.searchsorted(owner, np.arange(mol.natm))
        images = [first[image[owner]] + np.arange(n) - first[owner] for image in atoms]
    return Shells(mol.ao_loc_nr(), np.array(images))


def _stored_rows(stored: np.ndarray, first: np.ndarray) -> AoRows:
    """Rows of the integrals that the SCF kept, whichever of PySCF's packings they have."""
    n = int(first[-1])
    values = np.asarray(stored, dtype=np.float64)
    if values.ndim == 4:
        values = ao2mo.restore(4, values, n)

    def rows(m: int, n0: int, n1: int) -> Kets:
        mu, nu = np.meshgrid(
            np.arange(first[m], first[m + 1]), np.arange(first[n0], first[n1]), indexing="ij"
        )
        high, low = np.maximum(mu, nu).ravel(), np.minimum(mu, nu).ravel()
        which = (high * (high + 1) // 2 + low).astype(np.int64)
        return Kets(values[which]) if values.ndim == 2 else Kets(values[None, :], which)

    return rows


def _direct_rows(mol: gto.Mole) -> AoRows:
    """Rows of integrals computed when they are needed, always into the same memory."""
    first = mol.ao_loc_nr()
    pairs = mol.nao * (mol.nao + 1) // 2
    memory = np.empty(0)

    def rows(m: int, n0: int, n1: int) -> Kets:
        nonlocal memory
        count = int((first[m + 1] - first[m]) * (first[n1] - first[n0]))
        if len(memory) < count * pairs:
            memory = np.empty(count * pairs)
        # PySCF runs in parallel over the first pair: the pair wanted here is the second one.
        slices = (0, mol.nbas, 0, mol.nbas, m, m + 1, n0, n1)
        values = mol.intor("int2e", aosym="s2ij", shls_slice=slices, out=memory[: count * pairs])
        return Kets(values.reshape(pairs, count).T)

    return rows


def _is_plain(mean_field: Any) -> bool:
    """Whether the Fock matrix is the core Hamiltonian and the field of the electrons, nothing else."""
    own = vars(mean_field)
    return all(
        getattr(type(mean_field), name) is getattr(scf.hf.RHF, name) and name not in own
        for name in ("get_fock", "get_veff", "get_jk")
    )


def _energies(mean_field: Any, coefficients: np.ndarray) -> np.ndarray:
    """Orbital energies; where the mean field has none that fit, the diagonal of its Fock matrix."""
    known = mean_field.mo_energy
    if known is not None and np.shape(known) == (coefficients.shape[1],) and np.all(np.isfinite(known)):
        return np.array(known, dtype=np.float64)
    fock = np.asarray(mean_field.get_fock(dm=mean_field.make_rdm1()))
    return np.einsum("mp,mn,np->p", coefficients, fock, coefficients)


def _checked(mean_field: Any) -> tuple[gto.Mole, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The molecule, the coefficients, the occupied and the virtual orbitals of a mean field that will do."""
    name = type(mean_field).__name__
    wanted = "a converged closed-shell RHF (pyscf.scf.RHF) is needed"
    if not isinstance(mean_field, scf.hf.SCF):
        raise InputError(f"{name} is not a PySCF mean field: {wanted}")
    if isinstance(mean_field, scf.hf.KohnShamDFT):
        raise InputError(f"{name} is a Kohn-Sham mean field: {wanted}")
    if isinstance(mean_field, scf.rohf.ROHF) or not isinstance(mean_field, scf.hf.RHF):
        raise InputError(f"{name} is not closed-shell restricted: {wanted}")
    if any(base.__module__.startswith("pyscf.pbc") for base in type(mean_field.mol).__mro__):
        raise InputError(f"{name} is periodic: {wanted}, of a molecule")
    if mean_field.mo_coeff is None:
        raise InputError("the mean field has no orbitals yet: run mf.kernel() first")
    if not mean_field.converged:
        raise InputError(
            "SCF not converged: raise mf.max_cycle, try another guess or mf.newton(), run mf.kernel() again"
        )
    coefficients, occupations = np.asarray(mean_field.mo_coeff), np.asarray(mean_field.mo_occ)
    if np.iscomplexobj(coefficients):
        raise InputError(f"the orbitals are complex: {wanted}, with real orbitals")
    if not np.all((np.abs(occupations) < 1e-8) | (np.abs(occupations - 2) < 1e-8)):
        raise InputError(f"orbitals are partly occupied: {wanted}, with occupations 0 and 2")
    spaces = np.flatnonzero(occupations > 1), np.flatnonzero(occupations <= 1)
    return mean_field.mol, np.asarray(coefficients, dtype=np.float64), spaces


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
            if len(energies) >= mol.nelectron // 2:
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


def _with_symmetry(mol: gto.Mole, wanted: str, where: str) -> gto.Mole:
    """The molecule with positions that obey its point group exactly, and PySCF's symmetry switched on.

    PySCF's own detection expects coordinates good to 1e-5; with the five or six digits of a text file
    it finds less symmetry than was meant, or fails. So looser tolerances are tried too, and the
    largest group is taken that asks for no more than a change in the last digits.
    """
    name, axes, origin, positions = "C1", np.eye(3), np.zeros(3), mol.atom_coords()
    symbols = [mol.atom_symbol(k) for k in range(mol.natm)]
    top, found = "C1", group_named("C1")
    strict = geom.TOLERANCE
    for tolerance, subgroup in ((t, g) for g in (None, wanted) if g != "auto" for t in _TOLERANCES):
        try:
            geom.TOLERANCE = tolerance
            new_top, new_origin, new_axes = symm.detect_symm(mol._atom, mol._basis)
            new_name, new_axes = symm.as_subgroup(new_top, new_axes, subgroup)
        except Exception:  # PointGroupSymmetryError, or a failure over a geometry between two groups
            continue
        finally:
            geom.TOLERANCE = strict
        group = group_named(_ABELIAN.get(new_name, new_name))
        new_axes = polar(new_axes)[0]  # PySCF's are orthogonal to ten digits or so
        moved = symmetrize(symbols, mol.atom_coords(), new_origin, new_axes, group)
        better = group.order > found.order or (subgroup and wanted not in found.subgroups)
        if better and np.abs(moved - mol.atom_coords()).max() < _ROUNDING:
            name, axes, origin, positions, top, found = new_name, new_axes, new_origin, moved, new_top, group
    if wanted != "auto" and wanted not in found.subgroups:
        raise InputError(
            f"{where}: the molecule lacks the symmetry {wanted}; valid are {', '.join(found.subgroups)}"
        )
    exact = mol.copy()
    exact.atom, exact.unit = list(zip(symbols, positions.tolist(), strict=True)), "Bohr"
    exact.build(dump_input=False, parse_arg=False)
    # What Mole.build does with symmetry on, except that group and axes are given.
    exact.symmetry, exact.topgroup, exact.groupname = True, top, name
    exact._symm_orig, exact._symm_axes = origin, axes
    exact.symm_orb, exact.irrep_id = symm.symm_adapted_basis(exact, name, origin, axes)
    exact.irrep_name = [symm.irrep_id2name(name, irrep) for irrep in exact.irrep_id]
    return exact


def _point_group(mol: gto.Mole) -> PointGroup:
    if not mol.symmetry:
        return group_named("C1")
    return group_named(_ABELIAN.get(mol.groupname, mol.groupname))


def _blocks(mol: gto.Mole) -> Blocks:
    if not mol.symmetry:
        return [(0, np.eye(mol.nao))]
    return [
        (int(irrep) % 10, np.asarray(block)) for irrep, block in zip(mol.irrep_id, mol.symm_orb, strict=True)
    ]


def _count_vectors(mol: gto.Mole, fitting: df.DF | bool | str | float | None) -> int:
    """Vectors of decomposed integrals; as many as a tight decomposition would take if they are exact."""
    if isinstance(fitting, df.DF):
        return int(fitting.get_naoaux())
    if isinstance(fitting, str) or fitting is True:
        return int(df.addons.make_auxmol(mol, auxiliary_basis(mol, fitting)).nao)
    threshold = fitting if isinstance(fitting, float) else TIGHT_THRESHOLD
    vectors = max(1.0, -1.8 * np.log10(threshold) - 2.5) * mol.nao  # a rule of thumb, for planning
    return min(int(vectors), mol.nao * (mol.nao + 1) // 2)


def _outline(
    mol: gto.Mole,
    group: PointGroup,
    active: Selection,
    irreps: np.ndarray,
    title: str | None,
    source: str,
    fitting: df.DF | bool | str | float | None,
) -> Outline:
    occ, vir = active.counts(irreps, group.order)
    symbols = [mol.atom_pure_symbol(k) for k in range(mol.natm) if not gto.is_ghost_atom(mol.atom_symbol(k))]
    text = formula(symbols, mol.charge)
    return Outline(
        title=title or text,
        formula=text,
        group=group,
        basis=basis_name(mol.basis),
        occ=occ,
        vir=vir,
        frozen_core=len(active.core),
        frozen_virtual=active.frozen_virtual,
        n_electrons=int(mol.nelectron),
        source=source,
        basis_pairs=_shells(mol, group).count_pairs(),
        n_basis=int(mol.nao),
        n_vectors=_count_vectors(mol, fitting),
        is_fitted=fitting is not None and fitting is not False,
    )
