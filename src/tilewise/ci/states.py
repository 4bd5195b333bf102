"""The states asked for: Davidson on columns, names of roots, and more roots until a term has enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewise.chem.configurations import Term
from tilewise.ci.columns import Columns
from tilewise.ci.levels import Level, configuration_weights
from tilewise.ci.operators import Operator
from tilewise.ci.problem import Problem
from tilewise.errors import InputError
from tilewise.methods.davidson import Cycle, Eigenpairs, Preconditioner, davidson
from tilewise.schedule import policy_named
from tilewise.wording import counted

MODEL_SPACE = 200
"""Determinants with the lowest diagonal, whose dense block starts Davidson and preconditions it."""

MOST_ROOTS_FOR_A_TERM = 24
"""Roots that are followed at most until enough of a term are among them."""

Follow = Callable[[Cycle, np.ndarray], None]
"""Called with each cycle and the vectors (roots, n) after it."""


@dataclass(frozen=True)
class Thresholds:
    """When Davidson ends: `conv_tol` of energies in hartree, `conv_tol_residual` of norms, or cycles."""

    conv_tol: float
    conv_tol_residual: float
    max_cycle: int


@dataclass(frozen=True, eq=False)
class States:
    """What was found."""

    converged: bool
    energies: np.ndarray
    vectors: np.ndarray
    levels: list[Level]
    notes: list[str]
    e_mean_field: float | None


def subspace(roots: int) -> int:
    """Vectors that Davidson keeps."""
    return 4 * (roots + 1) + 8


@dataclass(frozen=True, eq=False)
class StateSearch:
    """Looks for the lowest `roots` states of a problem, of a term if one is given."""

    problem: Problem
    columns: Columns
    operator: Operator
    roots: int
    term: Term | None
    thresholds: Thresholds
    follow: Follow

    def run(self, start: np.ndarray | None) -> States:
        """Follows roots, beginning with the vectors `start`, until there are enough of the term."""
        preconditioner, roots = self._preconditioner(), self.roots
        most = min(MOST_ROOTS_FOR_A_TERM + self.roots, len(self.columns.determinants))
        while True:
            solved = self._davidson(preconditioner, roots, start)
            names, squares = self._names(solved.vectors)
            wanted = [k for k, name in enumerate(names) if self.term is None or name == str(self.term)]
            if len(wanted) >= self.roots or roots >= most:
                break
            start, roots = solved.vectors, min(roots + max(2, self.roots - len(wanted)), most)
        chosen, notes = wanted[: self.roots], list[str]()
        if not chosen:
            raise InputError(
                f"term {self.term}: it is not among the {counted(roots, 'lowest root')} "
                f"({', '.join(names)}); ask for one of these, or for m_l, m_s and parity alone"
            )
        if len(chosen) < self.roots and self.term is not None:
            notes.append(f"{len(chosen)} of {self.roots} roots of {self.term} are among the lowest {roots}")
        levels = [
            Level(
                float(solved.energies[k]),
                names[k],
                *squares[k],
                self._configurations(solved.vectors[k]),
                float(solved.residuals[k]),
            )
            for k in chosen
        ]
        return States(
            solved.converged,
            solved.energies[chosen],
            solved.vectors[chosen],
            levels,
            notes,
            self.problem.e_mean_field,
        )

    def _preconditioner(self) -> Preconditioner:
        """The diagonal, and the dense block of the lowest determinants."""
        diagonal, determinants = self.columns.diagonal, self.columns.determinants
        size = min(len(diagonal), max(MODEL_SPACE, 8 * (self.roots + 1)))
        part, rows = determinants.part(np.argpartition(diagonal, size - 1)[:size])
        few = Columns(part, self.columns.numbers, 1, policy_named("block"))
        few.use(self.operator)
        few.build(few.count()[:, 0], np.ones(len(part)), 1 << 30)
        return Preconditioner(diagonal, rows, few.dense())

    def _davidson(self, preconditioner: Preconditioner, roots: int, start: np.ndarray | None) -> Eigenpairs:
        return davidson(
            self.columns.multiply,
            preconditioner,
            roots,
            start=start,
            conv_tol=self.thresholds.conv_tol,
            conv_tol_residual=self.thresholds.conv_tol_residual,
            max_cycle=self.thresholds.max_cycle,
            max_space=subspace(roots),
            progress=self.follow,
        )

    def _names(self, vectors: np.ndarray) -> tuple[list[str], list[tuple[float, float | None]]]:
        """Of each root its name, and what it comes from: <S^2> and, of an atom, <L^2>."""
        problem, columns = self.problem, self.columns
        angular = problem.angular(columns.numbers, self.operator)
        s_squared = columns.spin_squared(vectors).tolist()
        l_squared: list[float | None] = [None] * len(s_squared)
        if angular is not None:
            l_squared = columns.expectation(angular, vectors).tolist()
        squares = list(zip(s_squared, l_squared, strict=True))
        return [problem.symmetry_name(*both) for both in squares], squares

    def _configurations(self, vector: np.ndarray) -> tuple[tuple[str, float], ...]:
        """Names and weights."""
        weights = configuration_weights(self.columns.determinants, vector)
        return tuple((self.problem.configuration(shells), weight) for shells, weight in weights)
