"""The mean field of a molecule by PySCF: DIIS, and where it stalls a second-order solver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyscf import gto, scf

from tilewise.chem.selection import check_electrons, reference_kind
from tilewise.config import one_blas_thread
from tilewise.errors import InputError

# The correlation energy is off by about a hundredth of the orbital gradient that the SCF leaves.
_FEW_FUNCTIONS = 500  # with fewer, products of an SCF gain nothing from a second BLAS thread
_GRADIENT = 1e-7
_SECOND_ORDER_GRADIENT = 1e-6
"""What the second-order solver reaches surely; DIIS goes on from there."""
_FIRST_CYCLES, _LAST_CYCLES = 10, 10
"""DIIS stalls if, after so many cycles, the gradient of so many more ..."""
_GAIN = 0.6
"""... has not fallen to this part of the smallest one before."""
_SAME_ENERGY = 1e-6
"""Hartree by which two descriptions of one solution may differ."""

Progress = Callable[[int, float, float], None]
"""Called once per cycle with its number, the energy and the change of the energy."""


class _StalledError(Exception):
    """DIIS gets no nearer."""


@dataclass
class _Course:
    """What the cycles of an SCF have come to; `watch` it is a callback of PySCF."""

    progress: Progress | None
    gradients: list[float] = field(default_factory=list)
    change: float = np.nan
    best: tuple[float, Any, Any] = (np.inf, None, None)
    """The lowest energy, with its orbitals and occupations."""

    def follow(self, state: dict[str, Any]) -> None:
        energy = float(state["e_tot"])
        self.change = energy - float(state["last_hf_e"])
        self.gradients.append(float(state["norm_gorb"]))
        if energy < self.best[0]:
            self.best = energy, np.array(state["mo_coeff"]), np.array(state["mo_occ"])
        if self.progress is not None:
            self.progress(len(self.gradients), energy, self.change)

    def watch(self, state: dict[str, Any]) -> None:
        self.follow(state)
        early, late = self.gradients[:-_LAST_CYCLES], self.gradients[-_LAST_CYCLES:]
        if len(early) >= _FIRST_CYCLES and min(late) > max(_GAIN * min(early), _GRADIENT):
            raise _StalledError


def unsolved(mol: gto.Mole, max_memory: int | None = None, reference: str | None = None) -> scf.hf.SCF:
    """A mean field before its SCF: `reference` is "rhf", "uhf" or "rohf", by default RHF or, with unpaired
    electrons, UHF. `max_memory` in bytes."""
    check_electrons(mol.nelectron, mol.spin, mol.charge, "molecule", mol.nao)
    kinds = {"rhf": scf.RHF, "uhf": scf.UHF, "rohf": scf.ROHF}
    mean_field = kinds[reference_kind(reference, mol.spin, "the molecule")](mol)
    mean_field.verbose, mean_field.chkfile = 0, None
    if max_memory is not None:
        mean_field.max_memory = max_memory / 1e6
    return mean_field


def run_scf(
    mol: gto.Mole,
    *,
    conv_tol: float = 1e-10,
    max_cycle: int = 100,
    guess: np.ndarray | tuple[np.ndarray, np.ndarray] | None = None,
    progress: Progress | None = None,
    max_memory: int | None = None,
    reference: str | None = None,
    note: Callable[[str], None] | None = None,
) -> scf.hf.SCF:
    """A converged mean field. `guess` is a density matrix, or coefficients with occupations, to start from;
    for `max_memory` and `reference` see `unsolved`.

    `note` is called with a sentence if the second-order solver took over.
    """
    mean_field = unsolved(mol, max_memory, reference)
    mean_field.conv_tol, mean_field.max_cycle = conv_tol, max_cycle
    mean_field.conv_tol_grad = _GRADIENT
    course = _Course(progress)
    mean_field.callback = course.watch
    density = mean_field.make_rdm1(*guess) if isinstance(guess, tuple) else guess
    try:
        with one_blas_thread() if mol.nao < _FEW_FUNCTIONS else nullcontext():
            mean_field.kernel(dm0=density)
    except _StalledError:
        _go_downhill(mean_field, course, max_cycle, note)
    except AttributeError as error:
        # PySCF's DIIS catches Ctrl-C too, and then looks for a name of an older NumPy.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    mean_field.callback, mean_field.max_cycle = None, max_cycle
    if not mean_field.converged:
        raise InputError(
            f"SCF not converged in {max_cycle} cycles (last energy change {course.change:.1e} hartree): "
            "allow more, check the geometry, or converge it in PySCF (level_shift, newton) and pass the mean "
            "field"
        )
    return mean_field


def _go_downhill(
    mean_field: Any, course: _Course, max_cycle: int, note: Callable[[str], None] | None
) -> None:
    """From the lowest energy that was met, by second-order steps; a few cycles of DIIS finish it."""
    done, (energy, orbitals, occupations) = len(course.gradients), course.best
    solver = mean_field.newton()
    solver.verbose, solver.chkfile, solver.max_cycle = 0, None, max_cycle - done
    solver.conv_tol_grad = _SECOND_ORDER_GRADIENT
    solver.callback = course.follow
    solver.kernel(orbitals, occupations)
    if not solver.converged:
        return
    mean_field.callback, mean_field.max_cycle = course.follow, _LAST_CYCLES
    mean_field.kernel(dm0=solver.make_rdm1())
    # DIIS fills the lowest levels, which are not always those of the solution.
    if not mean_field.converged or mean_field.e_tot > solver.e_tot + _SAME_ENERGY:
        for name in ("mo_coeff", "mo_occ", "mo_energy", "e_tot", "converged"):
            setattr(mean_field, name, getattr(solver, name))
    if note is not None and energy - mean_field.e_tot > _SAME_ENERGY:
        note(
            f"the SCF stalled after {done} cycles of DIIS; PySCF's second-order solver went on and found an "
            f"energy that is {energy - mean_field.e_tot:.1e} hartree lower"
        )
