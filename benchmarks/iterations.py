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
from typing import Any

from pyscf import cc, gto, lib, scf

import tilewise
from tilewise.methods.plan import DEFAULT_DIIS_SPACE

WATERS = (
    "O -1.551007 -0.114520 0; H -1.934259 0.762503 0; H -0.599677 0.040712 0;"
    "O 1.350625 0.111469 0; H 1.680398 -0.373741 -0.758561; H 1.680398 -0.373741 0.758561"
)
ETHYLENE = "C 0 0 0.667; C 0 0 -0.667; H 0 0.923 1.24; H 0 -0.923 1.24; H 0 0.923 -1.24; H 0 -0.923 -1.24"
CASES = {
    "water": ("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", "cc-pvdz"),
    "two waters": (WATERS, "6-31+g"),
    "nitrogen": ("N 0 0 0; N 0 0 1.1", "cc-pvdz"),
    "nitrogen, stretched": ("N 0 0 0; N 0 0 1.6", "cc-pvdz"),
    "ozone": ("O 0 0 0; O 0 1.0885 0.6697; O 0 -1.0885 0.6697", "6-31g*"),
    "fluorine": ("F 0 0 0; F 0 0 1.412", "cc-pvdz"),
    "fluorine, stretched": ("F 0 0 0; F 0 0 2.0", "6-31g"),
    "carbon monoxide": ("C 0 0 0; O 0 0 1.13", "cc-pvdz"),
    "lithium hydride": ("Li 0 0 0; H 0 0 1.6", "cc-pvdz"),
    "ethylene": (ETHYLENE, "6-31g"),
    "beryllium oxide": ("Be 0 0 0; O 0 0 1.33", "6-31g*"),
    "hydrogen cyanide": ("H 0 0 -1.065; C 0 0 0; N 0 0 1.153", "6-31g*"),
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
    print(f"{'iterations':<22}{'to ' + format(args.error, 'g') + ' hartree':>22}{'to convergence':>22}")
    print(f"{'':<22}" + 2 * f"{'tilewise':>14}{'PySCF':>8}")
    rows = [_count(*CASES[name], args.error, args.diis_space) for name in chosen]
    for name, row in zip((*chosen, "sum"), (*rows, map(sum, zip(*rows, strict=True))), strict=True):
        ours, theirs, ours_told, theirs_told = row
        print(f"{name:<22}{ours:14d}{theirs:8d}{ours_told:14d}{theirs_told:8d}")


def _count(atom: str, basis: str, error: float, space: int) -> tuple[int, int, int, int]:
    with lib.with_omp_threads(1):
        mf = scf.RHF(gto.M(atom=atom, basis=basis, symmetry=True, verbose=0)).run(conv_tol=1e-12)
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
