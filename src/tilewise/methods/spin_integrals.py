"""Constants of texts over spin orbitals, element by element from the integrals over spatial orbitals.

Only what is stored is computed: antisymmetric pairs, and blocks that keep irreps and spin. The integrals over
all spatial orbitals are in memory at the same time, which suits small molecules.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewise.chem.reference import Reference
from tilewise.equations.program import Program
from tilewise.equations.terms import FOCK, INTEGRAL, Declaration, Equation, Factor
from tilewise.errors import InputError
from tilewise.tensor import Tensor

Indices = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Of each letter the spatial orbitals, occupied ones first, and their spins (0 or 1)."""


def spin_orbital_constants(
    equation: Equation, program: Program, reference: Reference
) -> dict[str, np.ndarray]:
    """Buffers of all constants of an equation over spin orbitals; both spins have the same orbitals."""
    eri, fock = reference.eri(), reference.fock_rest()
    counts = {"o": reference.outline.n_occ, "v": reference.outline.n_vir}
    starts = {"o": 0, "v": counts["o"]}
    buffers = {}
    for name, declaration in equation.declarations.items():
        if declaration.kind != "constant":
            continue
        layout = program.layouts[name]

        def elements(*orbitals: np.ndarray, declared: Declaration = declaration) -> np.ndarray:
            spaces = program.layouts[declared.name].spaces
            where = {
                letter: (starts[space.name] + p % counts[space.name], p // counts[space.name])
                for letter, space, p in zip(declared.form.letters, spaces, orbitals, strict=True)
            }
            return np.sum(
                [
                    term.coefficient * _element(term.factors, where, declared, eri, fock)
                    for term in declared.definition
                ],
                axis=0,
            )

        buffers[name] = Tensor.from_elements(layout, elements, name).data
    return buffers


def _element(
    factors: tuple[Factor, ...], where: Indices, declared: Declaration, eri: np.ndarray, fock: np.ndarray
) -> np.ndarray:
    """The values of one integral or of the Fock matrix at the given orbitals."""
    (factor,) = factors
    letters = factor.indices if factor.name == INTEGRAL else declared.form.letters
    if factor.name not in (INTEGRAL, FOCK) or set(letters) - set(where):
        raise InputError(
            f"equations, line {declared.line}: constant {declared.name} over spin orbitals must be made of "
            "integrals (pq|rs) over its own letters, or of fock"
        )
    pairs = [(letters[k], letters[k + 1]) for k in range(0, len(letters), 2)]
    keeps_spin = np.logical_and.reduce([where[p][1] == where[q][1] for p, q in pairs])
    if factor.name == FOCK:
        values = fock[where[letters[0]][0], where[letters[1]][0]]
    else:
        values = eri[tuple(_pair(where[p][0], where[q][0]) for p, q in pairs)]
    return np.where(keeps_spin, values, 0.0)


def _pair(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The number of a pair of orbitals, in whatever order."""
    high, low = np.maximum(p, q), np.minimum(p, q)
    return high * (high + 1) // 2 + low
