"""Checkpoints of a run: what is kept after an iteration, and what another run takes from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path

from tilewise.errors import CheckpointError
from tilewise.methods.checkpoint import Checkpoint, Identities, carried_over, matched
from tilewise.methods.checkpoint_file import CheckpointFile
from tilewise.methods.method import Method
from tilewise.tensor import Layout, Tensor


def keep(file: CheckpointFile, saved: Checkpoint) -> tuple[bool, str]:
    """Writes a checkpoint: whether it was written, and what is to be noted about it."""
    wanted = file.path
    try:
        file.write(saved)
    except OSError as error:
        reason = error.strerror or error
        return False, f"checkpoint {wanted} could not be written ({reason}); going on without it"
    finally:
        for tensor in saved.streamed.values():  # what others send is taken, whatever becomes of the file
            deque(tensor.pieces, maxlen=0)
    if file.path != wanted:
        return True, f"checkpoint {wanted} is of another input; this run writes {file.path}"
    return True, ""


def taken_over(
    path: Path, saved: Checkpoint, method: Method, identities: Identities, layouts: Mapping[str, Layout]
) -> dict[str, Tensor]:
    """The amplitudes of a checkpoint in the orbitals and layouts of this run; refused if they are others."""
    if saved.method != method.name or set(method.amplitudes) - set(saved.tensors):
        raise CheckpointError(f"{path}: it holds amplitudes of {saved.method}, not of {method.name}")
    try:
        orbitals = matched(identities, saved.identities)
        return {
            name: carried_over(saved.tensors[name], layouts[name], orbitals) for name in method.amplitudes
        }
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
