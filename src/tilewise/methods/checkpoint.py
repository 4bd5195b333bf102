"""Restart files: amplitudes with the orbitals that they belong to, in HDF5.

A file is written beside its place and then renamed, so the last good one survives whatever happens.
Whatever is in a file that is read, it is checked here: what is wrong ends in a CheckpointError.
"""

from __future__ import annotations

import errno
import io
import os
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from tilewise.arguments import number
from tilewise.chem.identity import OrbitalIdentity, OrbitalMap
from tilewise.errors import CheckpointError
from tilewise.hdf5 import reason_of, whole_numbers
from tilewise.interrupts import interrupts_held
from tilewise.output_files import beside
from tilewise.sealed import digest, header_of, read_sealed, write_sealed
from tilewise.tensor import Layout, Tensor
from tilewise.tensor.tensor import load_layout

FORMAT = "tilewise amplitudes 1"
"""The first line of a file; in its header, a digest of the owner follows if there is one."""


@dataclass
class Checkpoint:
    """Amplitudes after some iteration."""

    method: str
    iteration: int
    e_corr: float
    identity: OrbitalIdentity
    tensors: dict[str, Tensor]

    def write(self, path: Path) -> None:
        """Raises OSError if the disk does not take it; what was there before is then still there."""
        if path.exists() and not path.is_file():  # such as /dev/null, which a renaming would replace
            raise OSError(errno.EINVAL, "it is not a file")
        with beside(path) as place:
            self.write_to(place)
            os.replace(place, path)

    def write_to(self, place: Path, owner: str = "") -> None:
        """Writes to a place that nobody reads from yet."""
        image = io.BytesIO()
        with interrupts_held(), h5py.File(image, "w") as file:
            file.attrs.update(method=self.method, iteration=self.iteration, e_corr=self.e_corr)
            self.identity.to_hdf5(file.create_group("orbitals"))
            for name, tensor in self.tensors.items():
                tensor.save(file.create_group(f"amplitudes/{name}"))
        write_sealed(place, FORMAT, image.getbuffer(), *([digest(owner.encode())] if owner else []))

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
        identity = OrbitalIdentity.from_hdf5(file["orbitals"])
        tensors = {name: _load_tensor(group, identity) for name, group in file["amplitudes"].items()}
        method = " ".join(str(file.attrs["method"]).split())
        iteration, energy = whole_numbers(file.attrs, "iteration"), number("e_corr", file.attrs["e_corr"])
        return cls(method, int(iteration), energy, identity, tensors)


def belongs_to(path: Path, owner: str) -> bool:
    """Whether this is a restart file of that owner."""
    return _owner_digest(path) == digest(owner.encode()).encode()


def is_owned(path: Path) -> bool:
    """Whether this is a restart file that some owner writes to."""
    return bool(_owner_digest(path))


def _owner_digest(path: Path) -> bytes:
    header = header_of(path)
    return header[2] if len(header) > 2 and header[0] == FORMAT.encode() else b""


def _load_tensor(group: h5py.Group, identity: OrbitalIdentity) -> Tensor:
    """Amplitudes over the orbitals of their file; what is over others is refused before it is laid out."""
    sizes = {"o": identity.occ.shape[1], "v": identity.vir.shape[1]}
    if any(space.size != sizes.get(space.name) for space in load_layout(group).spaces):
        raise CheckpointError("the amplitudes in it are over other orbitals than it names")
    tensor = Tensor.load(group)
    if not np.isfinite(tensor.data).all():
        raise CheckpointError("the amplitudes in it are not finite")
    return tensor


def carried_over(tensor: Tensor, layout: Layout, orbitals: OrbitalMap) -> Tensor:
    """Amplitudes over the orbitals of another run, tiling or subgroup, in the order of this one."""
    if [space.name for space in tensor.layout.spaces] != [space.name for space in layout.spaces]:
        raise CheckpointError(f"the amplitudes '{tensor.name}' in it have other indices than are expected")
    maps = {"o": (orbitals.occ, orbitals.occ_signs), "v": (orbitals.vir, orbitals.vir_signs)}

    def elements(*index: np.ndarray) -> np.ndarray:
        old, sign = [], np.ones(())
        for space, i in zip(layout.spaces, index, strict=True):
            which, signs = maps[space.name]
            spin, orbital = np.divmod(i, len(which))  # of a space of spin orbitals; both spins are alike
            old.append(which[orbital] + spin * len(which))
            sign = sign * signs[orbital]
        return tensor.at(*old) * sign

    return Tensor.from_elements(layout, elements, tensor.name)
