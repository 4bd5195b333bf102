"""The oracle: the same equations, evaluated with numpy.einsum on dense arrays."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_letters

import numpy as np

from tilewise.equations.terms import FOCK, VECTORS, Equation, Factor, Solve, Term
from tilewise.errors import InputError
from tilewise.spaces import Space


def dense_constants(
    equation: Equation,
    eri: np.ndarray,
    spaces: Mapping[str, Space],
    starts: Mapping[str, int],
    fock: np.ndarray | None = None,
    vectors: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Dense constants from dense integrals; `starts` says where each space begins in them.

    `fock` is the Fock matrix less the orbital energies, by default zero; `vectors` is v[p, q, x].
    """
    where = {c: slice(starts[s.name], starts[s.name] + s.size) for cs, s in spaces.items() for c in cs}
    constants = {}
    for name, declaration in equation.declarations.items():
        if declaration.kind != "constant":
            continue
        letters = declaration.form.letters
        total: np.ndarray | float = 0.0
        for term in declaration.definition:
            (factor,) = term.factors
            if factor.name == FOCK:
                shape = tuple(where[c].stop - where[c].start for c in letters)
                part = np.zeros(shape) if fock is None else fock[tuple(where[c] for c in letters)]
                total = total + term.coefficient * part
            elif factor.name == VECTORS:
                if vectors is None:
                    raise InputError(f"{name} needs vectors, and none are given")
                part = vectors[tuple(where[c] for c in letters[:2])]
                total = total + term.coefficient * part
            else:
                part = eri[tuple(where[c] for c in factor.indices)]
                total = total + term.coefficient * np.einsum(f"{factor.indices}->{letters}", part)
        constants[name] = np.asarray(total)
    return constants


def evaluate_dense(
    equation: Equation,
    tensors: Mapping[str, np.ndarray],
    energies: Mapping[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """All tensors after the statements, given dense inputs and constants.

    `energies` (letter to orbital energies) is needed by `solve` lines.
    """
    values = {name: np.asarray(x, dtype=np.float64) for name, x in tensors.items()}
    for statement in equation.statements:
        if isinstance(statement, Solve):
            _solve(statement, values, energies or {})
            continue
        total: np.ndarray | float = 0.0
        for term in statement.terms:
            total = total + _einsum(term, statement.target, values)
        name = statement.target.name
        values[name] = values[name] + total if statement.accumulate else np.asarray(total)
    return values


def _einsum(term: Term, target: Factor, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """A term as a dense array; an index that the target has twice is two, times a unit matrix."""
    indices, arrays = [f.indices for f in term.factors], [values[f.name] for f in term.factors]
    unused = (c for c in ascii_letters if c not in target.indices + term.letters)
    result = ""
    for axis, c in enumerate(target.indices):
        other = next(unused) if c in result else c
        if other != c:
            indices.append(c + other)
            arrays.append(np.eye(values[target.name].shape[axis]))
        result += other
    return term.coefficient * np.einsum(",".join(indices) + "->" + result, *arrays, optimize=True)


def _solve(statement: Solve, values: dict[str, np.ndarray], energies: Mapping[str, np.ndarray]) -> None:
    name, letters = statement.amplitude.name, statement.amplitude.indices
    gap = np.zeros(values[name].shape)
    for axis, letter in enumerate(letters):
        shape = [-1 if k == axis else 1 for k in range(len(letters))]
        gap = gap + statement.signs[letter] * energies[letter].reshape(shape)
    residual = values[statement.residual.name] - gap * values[name]
    values[statement.step] = residual / gap
    values[statement.new] = values[name] + residual / gap
    values[statement.norm2] = np.asarray((residual**2).sum())
