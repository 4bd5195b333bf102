"""Energies of the tasks of (T), kept in a file beside the checkpoint of CCSD: a restart goes on from there.

A file is used only for the same tasks on the same orbitals and amplitudes. These are compared as numbers, not
bit by bit, for another run of the SCF leaves other last digits.
"""

from __future__ import annotations

import io
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.errors import CheckpointError
from tilewise.hdf5 import read_array, reason_of
from tilewise.inspect.triples import TriplesGraph
from tilewise.interrupts import interrupts_held
from tilewise.output_files import beside
from tilewise.sealed import read_sealed, write_sealed
from tilewise.tensor import Tensor

FORMAT = "tilewise triples 2"
"""The first line of a file; another number where tasks of the same numbers do something else than before."""

ENDING, OF_TRIPLES = ".h5", ".triples.h5"
"""How the name of a checkpoint ends, and that of the file beside it."""

INTERVAL = 5.0
"""Seconds between two writes."""

ALIKE = 1e-6
"""What orbital energies (hartree) and norms of amplitudes may differ by."""


@dataclass
class PartialEnergies:
    """Of each task E(T) and the part of fourth order, in hartree; NaN where it is not done."""

    total: np.ndarray
    fourth: np.ndarray
    tasks: np.ndarray
    """What each task does, as rows of whole numbers."""
    fingerprint: np.ndarray
    """Orbital energies, and norms of the amplitudes of each occupied orbital."""

    @classmethod
    def of(
        cls, graph: TriplesGraph, reference: AnyReference, amplitudes: tuple[Tensor, Tensor]
    ) -> PartialEnergies:
        """With nothing done."""
        records = graph.records["triples"]
        names = ("form", "s", "r", "i", "j", "k", "n_k", "first_tiles", "n_tiles")
        nothing = np.full(len(records), np.nan)
        energies = [x for own in reference.by_spin for x in (own.occ_energies, own.vir_energies)]
        t1, t2 = amplitudes
        norms = [[t1.norm(), t2.norm()], _norms(t2)]
        fingerprint = np.concatenate([*energies, *norms])
        return cls(nothing, nothing.copy(), np.stack([records[name] for name in names], axis=1), fingerprint)

    @property
    def is_missing(self) -> np.ndarray:
        return np.isnan(self.total)

    @property
    def is_complete(self) -> bool:
        return not self.is_missing.any()

    def add(self, tasks: np.ndarray, total: np.ndarray, fourth: np.ndarray) -> None:
        """What some tasks have given."""
        self.total[tasks], self.fourth[tasks] = total, fourth

    def summed(self) -> tuple[float, float]:
        """Fourth order and E(T), summed in the order of the tasks: the same bits whoever ran them."""
        return float(self.fourth.sum()), float(self.total.sum())

    def take(self, other: PartialEnergies | None) -> int:
        """Takes over what is done of the same tasks; how many there are."""
        if other is None or not self.is_like(other):
            return 0
        self.total, self.fourth = other.total.copy(), other.fourth.copy()
        return int((~self.is_missing).sum())

    def is_like(self, other: PartialEnergies) -> bool:
        """Whether the tasks, the orbitals and the amplitudes are the same."""
        if self.tasks.shape != other.tasks.shape or self.fingerprint.shape != other.fingerprint.shape:
            return False
        same = bool((self.tasks == other.tasks).all())
        return same and bool((np.abs(self.fingerprint - other.fingerprint) < ALIKE).all())


def _norms(t2: Tensor) -> np.ndarray:
    """Of each occupied orbital j, the sum of the squares of t_ij^ab: it tells equal orbitals apart."""
    layout, total = t2.layout, np.zeros(t2.layout.spaces[-1].size)
    for s, (_, col_sector) in enumerate(layout.sector_pairs):
        (i, j), _ = layout.cols.states(col_sector)
        block = t2.data[layout.offsets[s] : layout.offsets[s + 1]].reshape(-1, len(i))
        squares = np.einsum("xy,xy->y", block, block)
        np.add.at(total, i, squares)
        np.add.at(total, j, squares)
    return total


@dataclass
class TriplesFile:
    """Where energies are written to, and where they are read from; either may be missing."""

    target: Path | None
    source: Path | None = None
    notes: list[str] = field(default_factory=list)
    _written: float = field(default_factory=time.monotonic)

    @classmethod
    def beside(cls, checkpoint: Path | None, restart: Path | None) -> TriplesFile:
        target, source = (triples_path(path) if path else None for path in (checkpoint, restart))
        return cls(target, source)

    @property
    def is_due(self) -> bool:
        return self.target is not None and time.monotonic() - self._written > INTERVAL

    def read(self) -> PartialEnergies | None:
        """None if there is no file, or none that can be used; a note says so then."""
        if self.source is None or not self.source.is_file():
            return None
        try:
            return _read(self.source)
        except CheckpointError as error:
            self.notes.append(f"{error}; the triples start from the beginning")
            return None

    def write(self, energies: PartialEnergies) -> None:
        if self.target is None:
            return
        try:
            with beside(self.target) as place:
                write_sealed(place, FORMAT, _image(energies))
                os.replace(place, self.target)
        except OSError as error:
            self.notes.append(f"{self.target} could not be written ({error.strerror or error})")
            self.target = None
        self._written = time.monotonic()


def triples_path(checkpoint: Path) -> Path:
    """The file that belongs to a checkpoint: water.tilewise.triples.h5 beside water.tilewise.h5."""
    return checkpoint.with_name(checkpoint.name.removesuffix(ENDING) + OF_TRIPLES)


FIELDS = ("total", "fourth", "tasks", "fingerprint")


def _image(energies: PartialEnergies) -> memoryview:
    image = io.BytesIO()
    with interrupts_held(), h5py.File(image, "w") as file:
        for name in FIELDS:
            file.create_dataset(name, data=getattr(energies, name))
    return image.getbuffer()


def _read(path: Path) -> PartialEnergies:
    image = read_sealed(path, FORMAT, "file of triples")
    try:
        with interrupts_held(), h5py.File(io.BytesIO(image), "r") as file:
            total, fourth, tasks, fingerprint = (read_array(file, name) for name in FIELDS)
        if any(own.dtype != np.float64 for own in (total, fourth, fingerprint)):
            raise CheckpointError(f"{path}: its energies are not numbers of double precision")
        n = len(total)
        if total.shape != (n,) or fourth.shape != (n,) or tasks.ndim != 2 or len(tasks) != n:
            raise CheckpointError(f"{path}: its arrays do not belong together")
        if np.isinf(total).any() or np.isinf(fourth).any() or (np.isnan(total) != np.isnan(fourth)).any():
            raise CheckpointError(f"{path}: its energies are not finite")
        return PartialEnergies(total, fourth, tasks, fingerprint)
    except CheckpointError:
        raise
    except Exception as error:  # h5py raises many kinds on damaged files
        raise CheckpointError(f"{path}: damaged file of triples ({reason_of(error)})") from error
