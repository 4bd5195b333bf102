"""Reading HDF5 files that may hold anything."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from tilewise.errors import CheckpointError


def read_array(group: h5py.Group, name: str) -> np.ndarray:
    """An array of numbers. One that claims to be larger than its whole file is refused, not made."""
    dataset = group[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind not in "iuf":
        raise CheckpointError(f"{name} is not an array of numbers")
    if dataset.nbytes > dataset.file.id.get_filesize():
        raise CheckpointError(f"{name} is larger than the file")
    return np.asarray(dataset[()])


def whole_numbers(attributes: h5py.AttributeManager, name: str) -> Any:
    """A whole number, or lists of them."""
    values = np.asarray(attributes[name])
    if values.dtype.kind not in "iu":
        raise CheckpointError(f"{name} is not made of whole numbers")
    return values.tolist()


def file_of(group: h5py.Group) -> str:
    """The name of the file, as messages begin with it; nothing for one that is in memory."""
    return "" if group.file.driver == "fileobj" else f"{group.file.filename}: "


def reason_of(error: Exception) -> str:
    """An error in a line."""
    return " ".join(str(error).split()) or type(error).__name__
