"""Levels: energies with names, weights of configurations, natural orbitals, and levels measured by others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewise.ci.determinants import Determinants
from tilewise.errors import InputError

HARTREE_IN_EV = 27.211386245981
HARTREE_IN_WAVENUMBERS = 219474.63136314
"""CODATA 2022; for a nucleus of infinite mass."""

_LEAST_WEIGHT = 1e-4
"""Of configurations that are listed."""

_PASSED_OVER = 1e-3 * _LEAST_WEIGHT
"""What the determinants with the same electrons of each spin in each shell have to have together to count."""


@dataclass(frozen=True)
class Level:
    """One eigenstate; `energy` is its total energy in hartree."""

    energy: float
    name: str
    """Such as 3Po, or 1A1."""
    s_squared: float
    l_squared: float | None
    configurations: tuple[tuple[str, float], ...]
    """Names and weights, largest first."""
    residual: float

    def above(self, lowest: float) -> tuple[float, float, float]:
        """Hartree, eV and cm^-1 above another energy."""
        difference = self.energy - lowest
        return difference, difference * HARTREE_IN_EV, difference * HARTREE_IN_WAVENUMBERS


@dataclass(frozen=True, eq=False)
class NaturalOrbitals:
    """Occupations, largest first within a name; `names` are irreps, or l for an atom.

    `coefficients` (active orbitals, natural orbitals); of an atom over the subshells of each l, with
    occupations summed over m and spin.
    """

    occupations: np.ndarray
    names: tuple[str, ...]
    coefficients: np.ndarray


def configuration_weights(determinants: Determinants, vector: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Electrons in each shell, and the weight of all determinants that have them; largest first."""
    orbitals, n_shells = determinants.orbitals, len(determinants.orbitals.shell_names)

    def shells(occupied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = np.zeros((len(occupied), n_shells), np.int16)
        for column in occupied.T:
            counts[np.arange(len(occupied)), orbitals.shell[column]] += 1
        rows, place = np.unique(counts, axis=0, return_inverse=True)
        return rows, place.ravel()

    alpha, of_alpha = shells(determinants.alpha.occupied)
    beta, of_beta = shells(determinants.beta_strings.occupied)
    weights = vector * vector
    is_single = len(alpha) == len(of_alpha) and len(beta) == len(of_beta)
    chosen = np.flatnonzero(weights > _PASSED_OVER) if is_single else slice(None)
    key = of_alpha[determinants.alpha_of[chosen]] * len(beta) + of_beta[determinants.beta[chosen]]
    found, place = np.unique(key, return_inverse=True)
    weights = np.bincount(place, weights=weights[chosen])
    kept = weights > _PASSED_OVER
    found, weights = found[kept], weights[kept]
    totals = alpha[found // len(beta)] + beta[found % len(beta)]
    rows, place = np.unique(totals, axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), weights=weights)
    order = [k for k in np.argsort(-sums, kind="stable") if sums[k] >= _LEAST_WEIGHT]
    return [(rows[k].astype(np.int64), float(sums[k])) for k in order]


def natural_orbitals(density: np.ndarray, names: list[str]) -> NaturalOrbitals:
    """Eigenvectors of a density matrix (n, n), one name after the other."""
    occupations, found, columns = [], [], []
    for name in dict.fromkeys(names):
        own = np.flatnonzero(np.array(names) == name)
        values, vectors = np.linalg.eigh(density[np.ix_(own, own)])
        for k in np.argsort(-values, kind="stable"):
            column = np.zeros(len(names))
            column[own] = vectors[:, k]
            occupations.append(float(values[k]))
            found.append(name)
            columns.append(column)
    return NaturalOrbitals(np.array(occupations), tuple(found), np.array(columns).T)


@dataclass(frozen=True)
class KnownLevel:
    """A level from elsewhere, in cm^-1 above the lowest."""

    name: str
    wavenumber: float


def read_levels(path: Path) -> list[KnownLevel]:
    """A file with a term and its energy in cm^-1 in each line, such as "3Po 21978.93"; # begins a comment."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: it cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            energy = float(words[1])
        except (IndexError, ValueError):
            energy = math.nan
        if not math.isfinite(energy):
            raise InputError(
                f"{path}, line {number}: a term and its energy in cm^-1 are expected, such as 3Po 21978.9"
            )
        found.append(KnownLevel(words[0].replace("*", "o"), energy))
    if not found:
        raise InputError(f"{path}: there is no level in it; each line has a term and its energy in cm^-1")
    return found


def beside(levels: list[Level], known: list[KnownLevel]) -> list[KnownLevel | None]:
    """For each level the known one: the first of a name goes with the first of that name, and so on."""
    left = sorted(known, key=lambda level: level.wavenumber)
    found: dict[int, KnownLevel] = {}
    for k in sorted(range(len(levels)), key=lambda k: levels[k].energy):
        match = next((level for level in left if level.name == levels[k].name), None)
        if match is not None:
            found[k] = match
            left.remove(match)
    return [found.get(k) for k in range(len(levels))]
