"""Starts ranks of this Python by the mpiexec that belongs to its MPI library."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewise.config import environment_without_launcher
from tilewise.errors import InputError

PATIENCE = 5.0
"""Seconds that mpiexec has to end its ranks before it is killed itself."""


def find_mpiexec() -> str:
    """The mpiexec beside this Python, which pip's mpich brings, or else the first one on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if found is None:
        raise InputError("no mpiexec was found: pip install 'tilewise[mpi]', or load the MPI of your cluster")
    return found


def run_ranks_of(
    arguments: Sequence[str],
    ranks: int,
    seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `python ARGUMENTS` on some ranks of this machine, and ends them all if they take too long.

    The environment is that of this process, but for what a launcher has put there, and with what is given.
    """
    command = [find_mpiexec(), "-n", str(ranks), sys.executable, *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment_without_launcher() | dict(environment or {}),
        start_new_session=True,  # a launcher that ends its group of processes does not end ours with it
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:  # also Ctrl-C: no rank may stay behind
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
