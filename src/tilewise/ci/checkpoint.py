"""Restart files of CI: roots, and the determinants that they are vectors over, by digest."""

from __future__ import annotations

import errno
import io
import os
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from tilewise.errors import CheckpointError
from tilewise.hdf5 import read_array, reason_of, whole_numbers
from tilewise.interrupts import interrupts_held
from tilewise.output_files import beside
from tilewise.sealed import read_sealed, write_sealed

FORMAT = "tilewise roots 1"


@dataclass(frozen=True, eq=False)
class Roots:
    """Vectors (roots, determinants) after some cycle, with their energies in hartree."""

    determinants: str
    """The digest of their list."""
    cycle: int
    energies: np.ndarray
    vectors: np.ndarray

    def write(self, path: Path) -> None:
        """Raises OSError if the disk does not take it; what was there before is then still there."""
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a file")
        image = io.BytesIO()
        with interrupts_held(), h5py.File(image, "w") as file:
            file.attrs.update(determinants=self.determinants, cycle=self.cycle)
            file["energies"], file["vectors"] = self.energies, self.vectors
        with beside(path) as place:
            write_sealed(place, FORMAT, image.getbuffer())
            os.replace(place, path)

    @classmethod
    def read(cls, path: Path, determinants: str, count: int) -> Roots:
        """Raises CheckpointError unless the file is whole and of these determinants, so many of them."""
        image = read_sealed(path, FORMAT, "file of CI roots")
        try:
            with h5py.File(io.BytesIO(image), "r") as file:
                energies, vectors = read_array(file, "energies"), read_array(file, "vectors")
                cycle = whole_numbers(file.attrs, "cycle")
                found = cls(str(file.attrs["determinants"]), cycle, energies, vectors)
        except (OSError, KeyError, ValueError, RuntimeError, TypeError) as error:
            raise CheckpointError(f"{path}: damaged roots ({reason_of(error)})") from error
        if found.determinants != determinants:
            raise CheckpointError(
                f"{path}: the roots are of other determinants: other orbitals, rank, irrep, spin or reference"
            )
        if vectors.shape != (*energies.shape, count) or not np.isfinite(vectors).all():
            raise CheckpointError(f"{path}: damaged roots: there must be {count} finite numbers of each")
        return found
