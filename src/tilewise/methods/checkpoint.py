"""Restart files: amplitudes with the orbitals that they belong to, in HDF5.

A file is written beside its place and then renamed, so the last good one survives whatever happens.
Whatever is in a file that is read, it is checked here: what is wrong ends in a CheckpointError.
"""

from __future__ import annotations

import errno
import io
import os
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tilewise.arguments import number
from tilewise.chem.identity import OrbitalIdentity, OrbitalMap
from tilewise.errors import CheckpointError
from tilewise.hdf5 import reason_of, whole_numbers
from tilewise.hdf5_image import Image, Pieces
from tilewise.interrupts import interrupts_held
from tilewise.output_files import beside
from tilewise.sealed import digest, header_of, read_sealed, write_sealed_stream
from tilewise.spaces import Space
from tilewise.tensor import Layout, Tensor
from tilewise.tensor.tensor import load_layout, save_layout

FORMAT = "tilewise amplitudes 1"
"""The first line of a file; in its header, a digest of the owner follows if there is one."""

Identities = tuple[OrbitalIdentity, ...]

ORBITALS = ("orbitals", "orbitals of beta spin")
"""Groups of a file; a closed shell has the first alone."""


@dataclass
class Streamed:
    """A tensor that is to be written, whose elements come in pieces, in the order of storage."""

    layout: Layout
    pieces: Pieces


@dataclass
class Checkpoint:
    """Amplitudes after some iteration."""

    method: str
    iteration: int
    e_corr: float
    identities: tuple[OrbitalIdentity, ...]
    """Of the orbitals; of an open shell those of alpha, then of beta spin."""
    tensors: dict[str, Tensor]
    change: float = float("inf")
    """Of the energy in that iteration, in hartree; not known of older files."""
    residual: float = float("inf")
    """Its norm at the beginning of that iteration."""
    streamed: dict[str, Streamed] = field(default_factory=dict)
    """Amplitudes that nobody holds whole, which are written beside the others."""

    @property
    def identity(self) -> OrbitalIdentity:
        return self.identities[0]

    def write(self, path: Path) -> None:
        """Raises OSError if the disk does not take it; what was there before is then still there."""
        if path.exists() and not path.is_file():  # such as /dev/null, which a renaming would replace
            raise OSError(errno.EINVAL, "it is not a file")
        with beside(path) as place:
            self.write_to(place)
            os.replace(place, path)

    def write_to(self, place: Path, owner: str = "") -> None:
        """Writes to a place that nobody reads from yet, without a second copy of the amplitudes."""
        with interrupts_held():
            image = Image(self._to_hdf5)
        more = [digest(owner.encode())] if owner else []
        write_sealed_stream(place, FORMAT, image.stream(), *more)

    def _to_hdf5(self, file: h5py.File, image: Image) -> None:
        file.attrs.update(method=self.method, iteration=self.iteration, e_corr=self.e_corr)
        if np.isfinite([self.change, self.residual]).all():
            file.attrs.update(change=self.change, residual=self.residual)
        for name, identity in zip(ORBITALS, self.identities, strict=False):
            identity.to_hdf5(file.create_group(name))
        own = {name: Streamed(tensor.layout, [tensor.data]) for name, tensor in self.tensors.items()}
        for name, tensor in (own | self.streamed).items():
            group = file.create_group(f"amplitudes/{name}")
            save_layout(group, tensor.layout, name)
            image.array(group, "data", tensor.layout.size, tensor.pieces)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        if not path.is_file():
            raise CheckpointError(f"{path}: no such restart file")
        try:
            image = read_sealed(path, FORMAT, "restart file")
        except CheckpointError as error:
            raise CheckpointError(f"{error}; start without it or use an older one") from error
        try:
            with interrupts_held(), h5py.File(io.BytesIO(image), "r") as file:
                return cls._from_hdf5(file)
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from error
        except Exception as error:  # h5py raises many kinds on damaged files
            raise CheckpointError(
                f"{path}: truncated or corrupt restart file ({reason_of(error)}); "
                "start without it or use an older one"
            ) from error

    @classmethod
    def _from_hdf5(cls, file: h5py.File) -> Checkpoint:
        present = [name for name in ORBITALS if name == ORBITALS[0] or name in file]
        identities = tuple(OrbitalIdentity.from_hdf5(file[name]) for name in present)
        groups = list(file["amplitudes"].items())  # all at once: h5py keeps its lock until the last one
        tensors = {name: _load_tensor(group, identities) for name, group in groups}
        method = " ".join(str(file.attrs["method"]).split())
        iteration, energy = whole_numbers(file.attrs, "iteration"), number("e_corr", file.attrs["e_corr"])
        known = [number(name, file.attrs[name]) for name in ("change", "residual") if name in file.attrs]
        return cls(method, int(iteration), energy, identities, tensors, *(known if len(known) == 2 else ()))


def belongs_to(path: Path, owner: str) -> bool:
    """Whether this is a restart file of that owner."""
    return _owner_digest(path) == digest(owner.encode()).encode()


def is_owned(path: Path) -> bool:
    """Whether this is a restart file that some owner writes to."""
    return bool(_owner_digest(path))


def _owner_digest(path: Path) -> bytes:
    header = header_of(path)
    return header[2] if len(header) > 2 and header[0] == FORMAT.encode() else b""


def _load_tensor(group: h5py.Group, identities: tuple[OrbitalIdentity, ...]) -> Tensor:
    """Amplitudes over the orbitals of their file; what is over others is refused before it is laid out."""
    for space in load_layout(group).spaces:
        each = _by_spin(identities, len(space.spins))
        sizes = {"o": [own.occ.shape[1] for own in each], "v": [own.vir.shape[1] for own in each]}
        if [sum(row) for row in space.counts] != sizes.get(space.name):
            raise CheckpointError("the amplitudes in it are over other orbitals than it names")
    tensor = Tensor.load(group)
    if not np.isfinite(tensor.data).all():
        raise CheckpointError("the amplitudes in it are not finite")
    return tensor


def matched(mine: Identities, saved: Identities) -> tuple[OrbitalMap, ...]:
    """How the orbitals of a file become these: of a closed shell, or of each spin."""
    n = max(len(mine), len(saved))
    return tuple(own.match(other) for own, other in zip(_by_spin(mine, n), _by_spin(saved, n), strict=True))


def _by_spin(sets: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """One for each of `n` spins; the only set of a closed shell serves both."""
    return (sets * n)[:n] if len(sets) == 1 else sets[:n]


def carried_over(tensor: Tensor, layout: Layout, orbitals: tuple[OrbitalMap, ...]) -> Tensor:
    """Amplitudes over the orbitals of another run, tiling or subgroup, in the order of this one."""
    kinds = [[(space.name, space.spins) for space in of.spaces] for of in (tensor.layout, layout)]
    if kinds[0] != kinds[1]:
        raise CheckpointError(f"the amplitudes '{tensor.name}' in it have other indices than are expected")

    def moved(space: Space) -> tuple[np.ndarray, np.ndarray]:
        """Where each orbital of a space was, spin after spin, and its sign."""
        which: list[np.ndarray] = []
        signs: list[np.ndarray] = []
        for own in _by_spin(orbitals, len(space.spins)):
            numbers, sign = (own.occ, own.occ_signs) if space.name == "o" else (own.vir, own.vir_signs)
            which.append(sum(len(before) for before in which) + numbers)
            signs.append(sign)
        return np.concatenate(which), np.concatenate(signs)

    maps = [moved(space) for space in layout.spaces]

    def elements(*index: np.ndarray) -> np.ndarray:
        old = [which[i] for (which, _), i in zip(maps, index, strict=True)]
        return tensor.at(*old) * prod(signs[i] for (_, signs), i in zip(maps, index, strict=True))

    return Tensor.from_elements(layout, elements, tensor.name)
