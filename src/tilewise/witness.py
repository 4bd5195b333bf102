"""A witness tells which rank has died: a launcher tells no more than the number of its process."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

LOOK = 1.0
"""Seconds between two looks whether the launcher is there."""

_SCRIPT = """
trap '' INT TERM HUP PIPE
if ! read -r word; then
    true >"$3.$1"
    sleep 1
    [ "$(ls -tr "$3".* | head -n 1)" = "$3.$1" ] || exit
    word="its process $2 has ended without a word: killed, or ended by a library"
fi
[ "$word" = farewell ] && exit
if [ "$word" != hush ]; then
    set -C
    true 2>/dev/null >"$3" || exit
    echo "rank $1: $word" >&2
    cat >&2
fi
exec 2>&-
sleep 20
rm -f "$3" "$3".*
"""
"""A rank that has said why comes first; of those without a word the one whose pipe was the first to end: the
launcher has ended the others."""


class Witness:
    """A shell at the other end of a pipe, which the system closes when this process is no more.

    If the process has not said farewell before, the shell speaks, unless another one has: a launcher ends all
    other ranks as well. Of a crash it hears through the pipe, from Python's faulthandler.
    """

    def __init__(self, rank: int) -> None:
        threading.Thread(target=_end_with, args=(rank, os.getppid()), daemon=True).start()
        self._file = Path(tempfile.gettempdir()) / f"tilewise-{_launcher()}-ended"
        self._shell: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # where there is no shell nobody speaks
            self._shell = subprocess.Popen(
                ["sh", "-c", _SCRIPT, "tilewise", str(rank), str(os.getpid()), str(self._file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            atexit.register(self.say, b"farewell\n")
            if self._shell.stdin and not faulthandler.is_enabled():
                faulthandler.enable(self._shell.stdin)

    def hush(self) -> None:
        """This rank has said itself why all come to their end."""
        with contextlib.suppress(OSError):
            self._file.touch()
        self.say(b"hush\n")

    def say(self, word: bytes) -> None:
        if self._shell and self._shell.stdin and not self._shell.stdin.closed:
            faulthandler.disable()  # it has written to this pipe
            with contextlib.suppress(OSError):
                self._shell.stdin.write(word)
                self._shell.stdin.close()
            self._shell.returncode = 0  # nobody waits for it


def _end_with(rank: int, launcher: int) -> None:
    """Ends this process when the one that has started it is gone: nobody else would."""
    while os.getppid() == launcher:
        time.sleep(LOOK)
    with contextlib.suppress(OSError):
        os.write(2, f"rank {rank}: its launcher is gone\n".encode())
    os._exit(1)


def _launcher() -> str:
    """The process that has started this one and its neighbours: its number, and when it began, if told.

    Numbers come again, and what a job before has left behind must not silence this one.
    """
    parent = os.getppid()
    try:
        began = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return str(parent)
    return f"{parent}-{began}"


def call_witness(rank: int) -> Witness:
    """The witness of this process; there is one."""
    global _called
    if _called is None:
        _called = Witness(rank)
    return _called


_called: Witness | None = None
