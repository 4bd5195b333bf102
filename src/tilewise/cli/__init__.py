"""The command line: `tilewise ccsd`, `plan`, `fcidump`, `simulate`, `tune`, `report` and `study`."""

from __future__ import annotations

import errno
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import typer

from tilewise.cli import calculations, machines, studies
from tilewise.cli.app import Output, app
from tilewise.errors import InputError, Interrupted, MemoryBudgetError, TilewiseError, UnwrittenFileError

__all__ = ["app", "calculations", "machines", "main", "studies"]

EXIT_NOT_CONVERGED, EXIT_INPUT, EXIT_UNWRITTEN, EXIT_INTERRUPTED = 1, 2, 3, 130

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Of disks that fail, rather than of names that are wrong."""

UsageError: Any = typer.BadParameter.__mro__[1]  # typer has it from click, or from a copy of its own


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    out, err = Output(sys.stdout), Output(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        code = _run(given)
        out.flush()
        if out.error and not isinstance(out.error, BrokenPipeError):
            _complain(f"the text could not be written ({out.error.strerror or out.error})", EXIT_UNWRITTEN)
    return code or (EXIT_UNWRITTEN if out.error or err.error else 0)


def _run(given: list[str]) -> int:
    try:
        code = app(_joined(given), standalone_mode=False, prog_name="tilewise") or 0
        if code == EXIT_INTERRUPTED:  # typer turns a KeyboardInterrupt into this, without a word
            raise Interrupted("interrupted")
        return code
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return EXIT_INPUT
        return _complain(_one_sentence(error), EXIT_INPUT)
    except InputError as error:
        return _complain(f"{error}{_hint(error)}", EXIT_INPUT)
    except Interrupted as error:
        return _complain(str(error), EXIT_INTERRUPTED)
    except UnwrittenFileError as error:
        return _complain(str(error), EXIT_UNWRITTEN)
    except TilewiseError as error:
        return _complain(str(error), EXIT_NOT_CONVERGED)
    except BrokenPipeError:  # whoever read the output has left
        return EXIT_NOT_CONVERGED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        code = EXIT_UNWRITTEN if error.errno in DISK_ERRORS else EXIT_INPUT
        return _complain(f"{where}{error.strerror or error}", code)
    except MemoryError:
        return _complain("out of memory: give a smaller --memory to see what is needed", EXIT_NOT_CONVERGED)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", EXIT_INTERRUPTED)


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


def _complain(text: str, code: int) -> int:
    """Says on one line what is wrong, also where names that the user gave have line ends in them."""
    sys.stdout.flush()
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    print(f"tilewise: {line}", file=sys.stderr)
    return code
