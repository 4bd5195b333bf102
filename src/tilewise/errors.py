"""The errors that tilewise raises on purpose: a small tree under TilewiseError.

An InputError is the user's to mend: its message is one sentence that says what is wrong, where,
and what would be right; the command line prints it and exits with code 2.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TilewiseError(Exception):
    """Base of all errors raised by tilewise."""


class InputError(TilewiseError, ValueError):
    """The input (file, option, argument) is wrong; the message says what would be right."""


class MemoryBudgetError(InputError):
    """The calculation does not fit into the memory that it may use."""

    def __init__(self, text: str, enough: str = "") -> None:
        """`enough` is a budget that would do, such as "1.2GB", if there is one."""
        super().__init__(text)
        self.enough = enough


class CheckpointError(InputError):
    """A restart file is damaged, or belongs to another calculation."""


class ConvergenceError(TilewiseError):
    """An iterative solver gave up before it met its thresholds."""


class TaskError(TilewiseError):
    """A task failed in a worker; the message names the operation and the block."""


class ItemError(TilewiseError):
    """A function failed on an item of a loop; the cause is the error that it raised."""

    def __init__(self, text: str, index: int, item: object, worker: int) -> None:
        super().__init__(text)
        self.index, self.item, self.worker = index, item, worker


class UnwrittenFileError(TilewiseError):
    """The results are complete, but a file that was asked for could not be written."""


class Interrupted(TilewiseError):
    """The user has stopped a run; the message says how it can go on."""


class SymmetryError(TilewiseError, ValueError):
    """Values contradict the symmetry that a tensor declares."""


def one_of(what: str, given: object, valid: Iterable[str]) -> InputError:
    """An InputError for an unknown name, with the close ones first, then all that are valid."""
    names = [str(name) for name in valid]
    close = difflib.get_close_matches(str(given), names, n=3)
    hint = f"did you mean {', '.join(close)}? " if close else ""
    return InputError(f"unknown {what} '{given}': {hint}valid are {', '.join(names)}")
