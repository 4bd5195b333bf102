"""Point-group symmetry of molecules in numbers: labels of orbitals, levels per irrep, exact positions.

A molecule's symmetry comes as blocks: for each irrep a matrix whose columns are symmetry-adapted
combinations of the basis functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from tilewise.config import thread_limits
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup, group_named

# Largest amplitude of foreign irreps in an orbital. Coordinates rounded to five digits can exceed it;
# `symmetrize` mends those before an SCF of our own.
MIXING_TOLERANCE = 1e-6

Blocks = Sequence[tuple[int, np.ndarray]]

# What each operation does to the three coordinates.
AXES = {"C2x": (1, -1, -1), "C2y": (-1, 1, -1), "C2z": (-1, -1, 1), "i": (-1, -1, -1)}
AXES |= {"sigma_yz": (-1, 1, 1), "sigma_xz": (1, -1, 1), "sigma_xy": (1, 1, -1), "E": (1, 1, 1)}


def group_wish(symmetry: bool | str | None) -> str:
    """What the user wrote for the symmetry: "auto" (or None, True), or the name of a group (False: C1)."""
    if symmetry is None or isinstance(symmetry, bool):
        return "C1" if symmetry is False else "auto"
    if not isinstance(symmetry, str):
        raise InputError(f'symmetry={symmetry!r}: expected "auto", True, False or the name of a point group')
    return "auto" if symmetry.lower() == "auto" else group_named(symmetry).name


def subgroup_wish(full: PointGroup, symmetry: str | bool | None) -> str:
    """The name of the subgroup of `full` to work in."""
    wanted = group_wish(symmetry)
    if wanted == "auto":
        return full.name
    if full.name == "C1" and wanted != "C1":
        raise InputError(
            f"symmetry {wanted} was asked for, but the orbitals have none: build mol with symmetry=True"
        )
    return wanted


def label_orbitals(coefficients: np.ndarray, overlap: np.ndarray, blocks: Blocks, order: int) -> np.ndarray:
    """The irrep of each orbital (a column), or an InputError for orbitals that belong to none."""
    weights = np.zeros((order, coefficients.shape[1]))
    with thread_limits(1):  # threads of BLAS wait for each other longer than such small matrices take
        projected = overlap @ coefficients
        for irrep, block in blocks:
            metric = block.T @ overlap @ block
            along = block.T @ projected
            weights[irrep] += np.einsum("kp,kp->p", along, scipy.linalg.solve(metric, along, assume_a="pos"))
    irreps: np.ndarray = weights.argmax(axis=0)
    weights[irreps, np.arange(len(irreps))] = 0.0
    foreign = np.sqrt(np.clip(weights.sum(axis=0), 0.0, None))
    worst = int(foreign.argmax())
    if foreign[worst] > MIXING_TOLERANCE:
        raise InputError(
            f"orbital {worst} mixes irreps (amplitude {foreign[worst]:.1e}, allowed {MIXING_TOLERANCE:.0e}): "
            f'run the SCF with mol.symmetry on, or use symmetry="C1"'
        )
    return irreps


def levels(fock: np.ndarray, overlap: np.ndarray, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a totally symmetric one-electron operator, irrep by irrep, and their irreps."""
    energies, irreps = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for irrep, block in blocks:
        if block.shape[1] == 0:
            continue
        values = scipy.linalg.eigh(block.T @ fock @ block, block.T @ overlap @ block, eigvals_only=True)
        energies.append(values)
        irreps.append(np.full(len(values), irrep))
    return np.concatenate(energies), np.concatenate(irreps)


def atom_images(
    positions: np.ndarray, origin: np.ndarray, axes: np.ndarray, full: PointGroup, group: PointGroup
) -> list[np.ndarray]:
    """For each operation of a subgroup of the molecule's group, where it takes each atom."""
    frame = (positions - origin) @ axes.T
    return [_image(frame, np.array(AXES[operation])) for operation in full.operations_in(group.name)]


def _image(frame: np.ndarray, signs: np.ndarray, kinds: np.ndarray | None = None) -> np.ndarray:
    """The atom (of the same kind) nearest to where each atom is taken."""
    distances = np.linalg.norm(frame[:, None, :] - (frame * signs)[None, :, :], axis=2)
    if kinds is not None:
        distances[kinds[:, None] != kinds[None, :]] = np.inf
    nearest: np.ndarray = distances.argmin(axis=0)
    return nearest


def symmetrize(
    symbols: Sequence[str], positions: np.ndarray, origin: np.ndarray, axes: np.ndarray, group: PointGroup
) -> np.ndarray:
    """Positions that obey the group exactly: each atom's average over the operations.

    Rounded coordinates in a file break the symmetry in the sixth digit, and the integrals with it.
    """
    frame = (positions - origin) @ axes.T
    kinds = np.array(symbols)
    total = np.zeros_like(frame)
    for operation in group.operations:
        signs = np.array(AXES[operation])
        # An operation of these groups is its own inverse.
        total += (frame * signs)[_image(frame, signs, kinds)]
    placed: np.ndarray = total / group.order @ axes + origin
    return placed
