"""Axes of a molecule by which it has an abelian group: found from the atoms, whatever its point group is.

A rotation by 180 degrees or a reflection that takes an atom p to q has its axis along p + q or p - q, and one
that leaves p where it is, along p or perpendicular to it. So a few atoms tell all the axes there can be, and
three of them that are orthogonal make the frame of a group. C60 has 15 axes, and any three such make it D2h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy.linalg import polar

from tilewise.chem.symmetry import AXES
from tilewise.symmetry.groups import GROUPS, PointGroup

_TOLERANCE = 3e-4  # bohr, between an atom and the image of another one
_ANGLE = 1e-3  # how far from orthogonal two axes may be, for coordinates with few digits


def abelian_frames(symbols: Sequence[str], positions: np.ndarray) -> list[tuple[PointGroup, np.ndarray]]:
    """Groups with the axes (rows) in which they hold, largest first; the origin is where all axes meet."""
    kinds = np.array(symbols)
    axes = [n for n in _candidates(kinds, positions) if _is_axis(n, kinds, positions)]
    found = [(_group_of(kinds, positions @ frame.T), frame) for frame in _frames(axes)]
    return sorted(found, key=lambda entry: -entry[0].order)


def _candidates(kinds: np.ndarray, positions: np.ndarray) -> list[np.ndarray]:
    """Directions that can be axes: unit vectors, each once."""
    radius = np.linalg.norm(positions, axis=1)
    shells = [
        np.flatnonzero((kinds == kinds[k]) & (abs(radius - radius[k]) < _TOLERANCE))
        for k in range(len(kinds))
    ]
    by_shell = sorted(np.flatnonzero(radius > 0.1), key=lambda k: len(shells[k]))
    if not by_shell:
        return []
    p = by_shell[0]
    across = [
        k
        for k in by_shell
        if np.linalg.norm(np.cross(positions[p], positions[k])) > 0.01 * radius[p] * radius[k]
    ]
    vectors = []
    for k in (p, *across[:1]):
        vectors += [
            positions[k],
            *(positions[k] + positions[shells[k]]),
            *(positions[k] - positions[shells[k]]),
        ]
        vectors.append(np.cross(positions[p], positions[k]))
    return _different([v for v in vectors if np.linalg.norm(v) > 0.1])


def _different(vectors: list[np.ndarray]) -> list[np.ndarray]:
    """Unit vectors, no two along one line; of those the one that was longest, and so is the most exact."""
    found: list[np.ndarray] = []
    for vector in sorted(vectors, key=lambda v: -np.linalg.norm(v)):
        unit = vector / np.linalg.norm(vector)
        if all(abs(unit @ other) < 1 - _ANGLE**2 for other in found):
            found.append(unit)
    return found


def _is_axis(n: np.ndarray, kinds: np.ndarray, positions: np.ndarray) -> bool:
    """Whether the rotation by 180 degrees, or the reflection along n, leaves the molecule as it is."""
    reflected = positions - 2.0 * np.outer(positions @ n, n)
    return _is_same(kinds, positions, reflected) or _is_same(kinds, positions, -reflected)


def _is_same(kinds: np.ndarray, positions: np.ndarray, images: np.ndarray) -> bool:
    distances = np.linalg.norm(positions[:, None, :] - images[None, :, :], axis=2)
    distances[kinds[:, None] != kinds] = np.inf
    return bool((distances.min(axis=0) < _TOLERANCE).all())


def _frames(axes: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Right-handed frames of one axis or of orthogonal ones, with each of the axes as z."""
    for u, v in combinations(axes, 2):
        if abs(u @ v) < _ANGLE:
            frame = polar(np.array([u, v, np.cross(u, v)]))[0]
            yield from (np.roll(frame, shift, axis=0) for shift in range(3))
    for n in axes:
        x = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        x /= np.linalg.norm(x)
        yield np.array([x, np.cross(n, x), n])
    yield np.eye(3)


def _group_of(kinds: np.ndarray, frame: np.ndarray) -> PointGroup:
    """The largest group whose operations along these axes leave the molecule as it is."""
    kept = {name for name, signs in AXES.items() if _is_same(kinds, frame, frame * np.array(signs))}
    return max((g for g in GROUPS.values() if set(g.operations) <= kept), key=lambda g: g.order)
