"""Files that a run leaves behind: whole or not at all, and never at the expense of its results.

A file is written beside its place and then renamed, so that what was there before survives a full disk or
an interruption. What dead runs have left beside it is removed.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tilewise.errors import InputError, UnwrittenFileError


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A place in the folder of `path` to write to; whatever happens, nothing stays there."""
    remove_orphans(path)
    place = path.with_name(f".{path.name}.{_host()}.{os.getpid()}.part")
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, which becomes `path` when all is written.

    Devices and pipes are written to directly, and so are files in a folder that takes no new ones.
    """
    target = path.resolve()
    if (target.exists() and not target.is_file()) or not os.access(target.parent, os.W_OK):
        yield target
        return
    with beside(target) as place:
        yield place
        if target.exists():
            shutil.copymode(target, place)
        os.replace(place, target)


def remove_orphans(path: Path) -> None:
    """Removes what runs on this computer that have died have left beside `path`."""
    try:
        names = [name for name in os.listdir(path.parent) if name.startswith(f".{path.name}.{_host()}.")]
        for name in names:
            number = name.removesuffix(".part").rpartition(".")[2]
            if name.endswith(".part") and number.isdecimal() and not _is_alive(int(number)):
                path.with_name(name).unlink(missing_ok=True)
    except OSError:
        pass  # somebody else's, or a folder that cannot be read: not worth a word


def _host() -> str:
    """This computer's short name: a process number says nothing about the others of a shared folder."""
    return socket.gethostname().partition(".")[0]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


class SideFiles:
    """Files that are written when the results have been shown; one that cannot be is noted."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self.lost: list[str] = []

    def write(self, name: str | Path, write: Callable[[Path], object]) -> bool:
        """Lets `write` make the file at the place that it is given; tells whether that went well."""
        try:
            with replacing(Path(name)) as place:
                write(place)
        except OSError as error:
            self.lose(str(name), error)
            return False
        return True

    def lose(self, name: str, error: OSError) -> None:
        """Notes that something was not written."""
        self._note(f"{name} could not be written ({error.strerror or error})")
        self.lost.append(name)

    def check(self) -> None:
        """Raises UnwrittenFileError, after everything else is done, if a file is missing."""
        if self.lost:
            raise UnwrittenFileError(
                f"the results are complete, but {' and '.join(self.lost)} could not be written"
            )


def check_target(option: str, target: str | None) -> None:
    """Refuses a file that could not be written, before the work whose result it is to hold."""
    if target is None or target == "-":
        return
    if not target:
        raise InputError(f"{option}: the name of a file is needed, not an empty one")
    path = Path(target)
    if path.is_dir():
        raise InputError(f"{option} {target}: it is a folder, a file is needed")
    if not path.parent.is_dir():
        raise InputError(f"{option} {target}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option} {target}: it cannot be written, permission is denied")
