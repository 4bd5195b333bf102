"""Molecules of the CCSD tests, and PySCF's answers for them, each computed once."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pyscf import cc, gto, lib, mp, scf

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
TIGHT = {"conv_tol": 1e-11, "conv_tol_residual": 1e-9, "max_cycle": 100}
"""Thresholds for comparing two runs of tilewise: well below what the comparison asks for."""

ALL_OF_D2H = ("D2h", "D2", "C2v", "C2h", "C2", "Cs", "Ci", "C1")
ALL_OF_C2V = ("C2v", "C2", "Cs", "C1")
SOME_OF_D2H = ("D2h", "C2h", "C1")


@dataclass(frozen=True)
class Molecule:
    """`groups`: the abelian group first, then the subgroups of it to be tested."""

    atom: str
    basis: str
    groups: tuple[str, ...]
    core: int = 0  # what frozen="auto" is to leave out; 0 if that is not to be tested
    options: dict[str, Any] = field(default_factory=dict)


MOLECULES = {
    "water": Molecule(WATER, "6-31g", ALL_OF_C2V, 1),
    "nitrogen": Molecule("N 0 0 0; N 0 0 1.1", "6-31g", ALL_OF_D2H, 2),
    "hydrogen fluoride": Molecule("F 0 0 0; H 0 0 0.92", "6-31g", ALL_OF_C2V, 1),
    "carbon monoxide": Molecule("C 0 0 0; O 0 0 1.13", "6-31g", ALL_OF_C2V, 2),
    "formaldehyde": Molecule("O 0 0 1.2; C 0 0 0; H 0 0.94 -0.59; H 0 -0.94 -0.59", "6-31g", ALL_OF_C2V, 2),
    "ethylene": Molecule(
        "C 0 0 0.667; C 0 0 -0.667; H 0 0.923 1.24; H 0 -0.923 1.24; H 0 0.923 -1.24; H 0 -0.923 -1.24",
        "sto-3g",
        ALL_OF_D2H,
        2,
    ),
    "hydrogen peroxide": Molecule(
        "O 0 0.7 0; O 0 -0.7 0; H 0.83 0.88 0.45; H -0.83 -0.88 0.45", "6-31g", ("C2", "C1"), 2
    ),
    "methanol": Molecule(
        "C -0.047 0.664 0; O -0.047 -0.758 0; H -1.09 0.98 0; H 0.88 -1.06 0; H 0.437 1.08 0.89;"
        "H 0.437 1.08 -0.89",
        "sto-3g",
        ("Cs", "C1"),
        2,
    ),
    "methane": Molecule(
        "C 0 0 0; H 0.629 0.629 0.629; H -0.629 -0.629 0.629; H 0.629 -0.629 -0.629; H -0.629 0.629 -0.629",
        "6-31g",
        ("D2", "C2", "C1"),
        1,
    ),
    "trans-difluoroethylene": Molecule(
        "C 0.66 0.05 0; C -0.66 -0.05 0; F 1.37 -1.09 0; F -1.37 1.09 0; H 1.19 0.99 0; H -1.19 -0.99 0",
        "sto-3g",
        ("C2h", "C2", "Cs", "Ci", "C1"),
        4,
    ),
    "neon": Molecule("Ne", "cc-pvdz", ALL_OF_D2H, 1),
    "argon": Molecule("Ar", "6-31g", SOME_OF_D2H, 5),
    "beryllium": Molecule("Be", "cc-pvdz", SOME_OF_D2H),
    "fluoride": Molecule("F", "6-31+g", SOME_OF_D2H, 1, {"charge": -1}),
    "hydrogen": Molecule("H 0 0 0; H 0 0 0.74", "cc-pvdz", ALL_OF_D2H),
    "lithium hydride": Molecule("Li 0 0 0; H 0 0 1.6", "cc-pvdz", ALL_OF_C2V),
    "water and a ghost": Molecule(WATER + "; ghost-O 0 0 3", "6-31g", ALL_OF_C2V, 1),
    "helium": Molecule("He", "cc-pvdz", SOME_OF_D2H),
    "hydronium": Molecule(
        "O 0 0 0.07; H 0.93 0 -0.2; H -0.465 0.80540363 -0.2; H -0.465 -0.80540363 -0.2",
        "6-31g",
        ("Cs", "C1"),
        options={"charge": 1},
    ),
    "ammonium": Molecule(
        "N 0 0 0; H 0.59 0.59 0.59; H -0.59 -0.59 0.59; H 0.59 -0.59 -0.59; H -0.59 0.59 -0.59",
        "sto-3g",
        ("D2", "C2", "C1"),
        options={"charge": 1},
    ),
    # One virtual orbital for each occupied one, and no single excitation that symmetry allows in D2h.
    "hydrogen, minimal": Molecule("H 0 0 0; H 0 0 0.74", "sto-3g", ALL_OF_D2H),
    # All virtual orbitals in A1, none in the other irreps.
    "hydrogen fluoride, minimal": Molecule("F 0 0 0; H 0 0 0.92", "sto-3g", ("C2v", "C1"), 1),
    "hydrogen bromide, core potential": Molecule(
        "Br 0 0 0; H 0 0 1.41", "lanl2dz", ("C2v", "C1"), options={"ecp": {"Br": "lanl2dz"}}
    ),
    "water, Cartesian functions": Molecule(WATER, "6-31g*", ("C2v", "C1"), 0, {"cart": True}),
    "water, tilted": Molecule(
        "O 0.07038 0 0.09384; H -0.88728 0 0.07896; H 0.32424 0 -0.82968", "6-31g", ALL_OF_C2V
    ),
    "water without symmetry": Molecule(WATER, "6-31g", ("C1",), 1, {"symmetry": False}),
}


def scf_of(atom: str, basis: str, **options: Any) -> scf.hf.RHF:
    """An RHF converged until neglected Fock elements cannot be seen in ten digits of the energy."""
    mol = gto.M(atom=atom, basis=basis, verbose=0, **({"symmetry": True} | options))
    with lib.with_omp_threads(1):
        return scf.RHF(mol).run(conv_tol=1e-13, conv_tol_grad=1e-9)


@cache
def mean_field(name: str) -> scf.hf.RHF:
    molecule = MOLECULES[name]
    return scf_of(molecule.atom, molecule.basis, **molecule.options)


def pyscf_run(mf: scf.hf.RHF, frozen: Any = None) -> cc.ccsd.CCSD:
    # One OpenMP thread: more of them spin while they wait, which is slow on a shared machine.
    with lib.with_omp_threads(1):
        solver = cc.CCSD(mf, frozen=frozen)
        solver.verbose, solver.max_cycle = 0, 300
        solver.run(conv_tol=1e-11, conv_tol_normt=1e-9)
    assert solver.converged
    return solver


@cache
def pyscf_ccsd(name: str, frozen: int | tuple[int, ...] | None = None) -> cc.ccsd.CCSD:
    """PySCF's CCSD of one of MOLECULES."""
    return pyscf_run(mean_field(name), list(frozen) if isinstance(frozen, tuple) else frozen)


def pyscf_mp2(mf: scf.hf.RHF, frozen: Any = None) -> float:
    with lib.with_omp_threads(1):
        return float(mp.MP2(mf, frozen=frozen).run(verbose=0).e_corr)
