"""Iterations to the CCSD energy: tilewise and PySCF on the same orbitals, counted alike.

    python benchmarks/iterations.py
    python benchmarks/iterations.py --error 1e-6 --cases "ozone; nitrogen, stretched"
    python benchmarks/iterations.py --diis-space 6

Each program runs with its own DIIS. In both, an iteration ends with the energy of the amplitudes it has made.
Printed per molecule: the iterations after which the energy is within the error of the converged one and stays
there, and those after which each program says that it has converged, with a change of the energy below 1e-8
hartree and a norm below 1e-6 (of the residual here, of the step in PySCF).
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

from pyscf import cc, gto, lib, scf

import tilewise
from tilewise.methods.plan import DEFAULT_DIIS_SPACE

WATERS = (
    "O -1.551007 -0.114520 0; H -1.934259 0.762503 0; H -0.599677 0.040712 0;"
    "O 1.350625 0.111469 0; H 1.680398 -0.373741 -0.758561; H 1.680398 -0.373741 0.758561"
)
ETHYLENE = "C 0 0 0.667; C 0 0 -0.667; H 0 0.923 1.24; H 0 -0.923 1.24; H 0 0.923 -1.24; H 0 -0.923 -1.24"
ASKEW = (
    "O -1.55 -0.11 0.05; H -1.93 0.76 0.1; H -0.6 0.04 0; O 1.35 0.11 0; H 1.68 -0.37 -0.76; H 1.65 -0.4 0.73"
)
THREE_WATERS = (
    "O 1.6 0.1 -0.05; H 1.3 0.95 0.25; H 0.75 -0.35 -0.1; O -0.75 1.45 0.05; H -1.1 0.6 -0.2;"
    "H -1.05 2.1 -0.6; O -0.85 -1.5 0.1; H -0.55 -2.0 0.85; H -1.6 -1.95 -0.25"
)
ACETYLENE = "C 0 0 0.6; C 0 0 -0.6; H 0 0 1.663; H 0 0 -1.663"
FORMALDEHYDE = "C 0 0 -0.529; O 0 0 0.678; H 0 0.935 -1.109; H 0 -0.935 -1.109"
AMMONIA = "N 0 0 0.1; H 0 0.94 -0.27; H 0.814 -0.47 -0.27; H -0.814 -0.47 -0.27"
METHANE = "C 0 0 0; H .63 .63 .63; H -.63 -.63 .63; H -.63 .63 -.63; H .63 -.63 -.63"


class Case(NamedTuple):
    atom: str
    basis: str
    charge: int = 0


CASES = {
    "water": Case("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", "cc-pvdz"),
    "two waters": Case(WATERS, "6-31+g"),
    "nitrogen": Case("N 0 0 0; N 0 0 1.1", "cc-pvdz"),
    "nitrogen, stretched": Case("N 0 0 0; N 0 0 1.6", "cc-pvdz"),
    "ozone": Case("O 0 0 0; O 0 1.0885 0.6697; O 0 -1.0885 0.6697", "6-31g*"),
    "fluorine": Case("F 0 0 0; F 0 0 1.412", "cc-pvdz"),
    "fluorine, stretched": Case("F 0 0 0; F 0 0 2.0", "6-31g"),
    "carbon monoxide": Case("C 0 0 0; O 0 0 1.13", "cc-pvdz"),
    "lithium hydride": Case("Li 0 0 0; H 0 0 1.6", "cc-pvdz"),
    "ethylene": Case(ETHYLENE, "6-31g"),
    "beryllium oxide": Case("Be 0 0 0; O 0 0 1.33", "6-31g*"),
    "hydrogen cyanide": Case("H 0 0 -1.065; C 0 0 0; N 0 0 1.153", "6-31g*"),
    "hydrogen cyanide, pVDZ": Case("H 0 0 -1.065; C 0 0 0; N 0 0 1.153", "cc-pvdz"),
    "acetylene": Case(ACETYLENE, "6-31g*"),
    "acetylene, pVDZ": Case(ACETYLENE, "cc-pvdz"),
    "formaldehyde": Case(FORMALDEHYDE, "6-31g*"),
    "ammonia": Case(AMMONIA, "6-31g*"),
    "methane": Case(METHANE, "6-31g*"),
    "hydrogen fluoride": Case("H 0 0 0; F 0 0 0.917", "cc-pvdz"),
    "hydrogen sulfide": Case("S 0 0 0.1; H 0 0.97 -0.82; H 0 -0.97 -0.82", "6-31g*"),
    "dicarbon": Case("C 0 0 0; C 0 0 1.243", "6-31g*"),
    "lithium fluoride": Case("Li 0 0 0; F 0 0 1.564", "6-31g*"),
    "boron hydride": Case("B 0 0 0; H 0 0 1.232", "cc-pvdz"),
    "nitrogen, 2.0": Case("N 0 0 0; N 0 0 2.0", "cc-pvdz"),
    "carbon dioxide": Case("C 0 0 0; O 0 0 1.16; O 0 0 -1.16", "6-31g"),
    "two waters, askew": Case(ASKEW, "6-31g"),
    "three waters": Case(THREE_WATERS, "6-31g"),
    "hydroxide": Case("O 0 0 0; H 0 0 0.97", "6-31+g*", -1),
    "cyanide": Case("C 0 0 0; N 0 0 1.18", "6-31+g*", -1),
    "beryllium": Case("Be 0 0 0", "cc-pvdz"),
    "neon": Case("Ne 0 0 0", "cc-pvdz"),
}
SETTINGS = {"conv_tol": 1e-8, "conv_tol_residual": 1e-6}
CONVERGED = {"conv_tol": 1e-12, "conv_tol_residual": 1e-10}
TRACED = {"conv_tol": 1e-10, "conv_tol_residual": 1e-8}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", help="some of the molecules, separated by ';'; by default all")
    parser.add_argument("--error", type=float, default=1e-8, help="hartree")
    parser.add_argument("--diis-space", type=int, default=DEFAULT_DIIS_SPACE)
    args = parser.parse_args()
    chosen = [name.strip() for name in args.cases.split(";")] if args.cases else list(CASES)
    for name in chosen:
        if name not in CASES:
            sys.exit(f"unknown case '{name}': valid are {'; '.join(CASES)}")
    print(f"{'iterations':<24}{'to ' + format(args.error, 'g') + ' hartree':>22}{'to convergence':>22}")
    print(f"{'':<24}" + 2 * f"{'tilewise':>14}{'PySCF':>8}")
    rows = [_count(CASES[name], args.error, args.diis_space) for name in chosen]
    for name, row in zip((*chosen, "sum"), (*rows, map(sum, zip(*rows, strict=True))), strict=True):
        ours, theirs, ours_told, theirs_told = row
        print(f"{name:<24}{ours:14d}{theirs:8d}{ours_told:14d}{theirs_told:8d}")


def _count(case: Case, error: float, space: int) -> tuple[int, int, int, int]:
    with lib.with_omp_threads(1):
        molecule = gto.M(atom=case.atom, basis=case.basis, charge=case.charge, symmetry=True, verbose=0)
        mf = scf.RHF(molecule).run(conv_tol=1e-12)
        exact = tilewise.CCSD(mf, threads=1, max_cycle=300, **CONVERGED).run().e_corr
        counts = [_settled(energies(mf, space, TRACED), exact, error) for energies in (_tilewise, _pyscf)] + [
            len(energies(mf, space, SETTINGS)) for energies in (_tilewise, _pyscf)
        ]
    return counts[0], counts[1], counts[2], counts[3]


def _tilewise(mf: Any, space: int, settings: dict[str, float]) -> list[float]:
    """The energy after each iteration."""
    solved = tilewise.CCSD(mf, threads=1, max_cycle=300, diis_space=space, **settings).run()
    return [step.e_corr for step in solved.iterations]


def _pyscf(mf: Any, space: int, settings: dict[str, float]) -> list[float]:
    """The same; PySCF first takes the energy of the amplitudes that it begins with."""
    solver, energies = cc.CCSD(mf), []
    energy_of = solver.energy

    def listed(*args: Any, **options: Any) -> float:
        energies.append(float(energy_of(*args, **options)))
        return energies[-1]

    solver.energy, solver.verbose, solver.max_cycle = listed, 0, 300
    solver.conv_tol, solver.conv_tol_normt = settings["conv_tol"], settings["conv_tol_residual"]
    solver.kernel()
    return energies[1:]


def _settled(energies: list[float], exact: float, error: float) -> int:
    """The first iteration from which on all energies are near enough."""
    off = [number for number, energy in enumerate(energies, 1) if abs(energy - exact) >= error]
    return max(off, default=0) + 1


if __name__ == "__main__":
    main()
