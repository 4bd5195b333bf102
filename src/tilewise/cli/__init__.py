"""The command line: `tilewise ccsd`, `ci`, `plan`, `fcidump`, `simulate`, `mpi-info` and all others.

Under mpiexec all ranks run the commands that calculate on ranks; of any other command one copy is enough.
Rank 0 alone prints, and an error that all ranks make is said once.
"""

from __future__ import annotations

import errno
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import typer

from tilewise.cli import calculations, configuration_interaction, machines, studies
from tilewise.cli.app import Output, app
from tilewise.config import launcher
from tilewise.errors import InputError, Interrupted, MemoryBudgetError, TilewiseError, UnwrittenFileError

__all__ = ["app", "calculations", "configuration_interaction", "machines", "main", "studies"]

EXIT_NOT_CONVERGED, EXIT_INPUT, EXIT_UNWRITTEN, EXIT_INTERRUPTED = 1, 2, 3, 130

ON_RANKS = ("ccsd", "ci", "mpi-info")
"""Commands that all ranks run together."""

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Of disks that fail, rather than of names that are wrong."""

UsageError: Any = typer.BadParameter.__mro__[1]  # typer has it from click, or from a copy of its own


@dataclass(frozen=True)
class Complaint:
    """One sentence for the user, and the exit code."""

    text: str
    code: int


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    place = launcher()
    is_shared = place is not None and _command(given) in ON_RANKS
    if place and place.rank > 0 and not is_shared:
        return 0
    is_silent = place is not None and place.rank > 0
    out, err = (Output(None if is_silent else stream) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        found = _run(given)
        code = found if isinstance(found, int) else _complain(found, is_shared)
        out.flush()
        if out.error and not isinstance(out.error, BrokenPipeError):
            text = f"the text could not be written ({out.error.strerror or out.error})"
            _complain(Complaint(text, EXIT_UNWRITTEN), is_shared)
    return code or (EXIT_UNWRITTEN if out.error or err.error else 0)


def _command(given: list[str]) -> str:
    return next((word for word in given if not word.startswith("-")), "")


def _run(given: list[str]) -> int | Complaint:
    """The exit code of a command, or what is to be said of its failure."""
    try:
        code: int = app(_joined(given), standalone_mode=False, prog_name="tilewise") or 0
        if code == EXIT_INTERRUPTED:  # typer turns a KeyboardInterrupt into this, without a word
            raise Interrupted("interrupted")
        return code
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return EXIT_INPUT
        return Complaint(_one_sentence(error), EXIT_INPUT)
    except InputError as error:
        return Complaint(f"{error}{_hint(error)}", EXIT_INPUT)
    except Interrupted as error:
        return Complaint(str(error), EXIT_INTERRUPTED)
    except UnwrittenFileError as error:
        return Complaint(str(error), EXIT_UNWRITTEN)
    except TilewiseError as error:
        return Complaint(str(error), EXIT_NOT_CONVERGED)
    except BrokenPipeError:  # whoever read the output has left
        return EXIT_NOT_CONVERGED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        is_disk = error.errno in DISK_ERRORS
        return Complaint(f"{where}{error.strerror or error}", EXIT_UNWRITTEN if is_disk else EXIT_INPUT)
    except MemoryError:
        return Complaint("out of memory: give a smaller --memory to see what is needed", EXIT_NOT_CONVERGED)
    except (KeyboardInterrupt, typer.Abort):
        return Complaint("interrupted", EXIT_INTERRUPTED)


def _joined(arguments: list[str]) -> list[str]:
    """Takes `--tile 16 32` for `--tile 16,32`: all numbers that follow belong to the option."""
    joined: list[str] = []
    for word in arguments:
        if len(joined) > 1 and joined[-2] == "--tile" and word.isdecimal():
            joined[-1] += f",{word}"
        else:
            joined.append(word)
    return joined


def _one_sentence(error: Any) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    commands = getattr(context.command, "commands", None)
    valid = f"; valid commands are {', '.join(commands)}" if commands else ""
    return f"{text}{valid} (see {context.command_path} --help)"


def _hint(error: InputError) -> str:
    """How the command line says what would be right, where the message cannot know it."""
    enough = error.enough if isinstance(error, MemoryBudgetError) else ""
    return f" (--memory {enough})" if enough else ""


def _complain(complaint: Complaint, is_shared: bool) -> int:
    """Says on one line what is wrong, also where names that the user gave have line ends in them.

    If several ranks run the command and not all of them have failed, this one ends them all.
    """
    sys.stdout.flush()
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in complaint.text)
    if is_shared:
        line = _agreed(line, complaint.code)
    print(f"tilewise: {line}", file=sys.stderr)
    return complaint.code


def _agreed(line: str, code: int) -> str:
    from tilewise.execute.mpi.world import world

    try:
        ranks = world()
    except InputError as error:  # there is no MPI, which is what has to be mended first
        return str(error)
    if not ranks.all_failed():
        ranks.abort(line, code)
    return line
