"""What `tilewise study NAME --run` does for real, on ranks that it starts itself by mpiexec.

    mpiexec -n RANKS python -m tilewise.studies.on_ranks PROGRAM PARAMETERS

A program is a function of the ranks and of some parameters; what it gives and takes can be written as JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from tilewise.config import thread_limits
from tilewise.errors import TilewiseError
from tilewise.execute.mpi.failure import together
from tilewise.execute.mpi.launch import run_ranks_of
from tilewise.execute.mpi.world import world
from tilewise.wording import counted

PROGRAMS = {
    "flood": "tilewise.studies.ozog_flood",
    "proxy": "tilewise.studies.ghosh_proxy_loops",
    "patterns": "tilewise.studies.ghosh_messages",
}
"""Modules whose function `on_ranks(ranks, **parameters)` runs on each rank."""

LIMIT = 600.0
"""Seconds after which ranks are ended."""


def run_program(name: str, ranks: int, **parameters: Any) -> Any:
    """What a program gives on rank 0 of some ranks of this machine."""
    arguments = ["-m", __name__, name, json.dumps(parameters)]
    ended = run_ranks_of(arguments, ranks, LIMIT)
    lines = ended.stdout.splitlines()
    if ended.returncode or not lines:
        why = (ended.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise TilewiseError(f"{name} on {counted(ranks, 'rank')} failed: {why}")
    return json.loads(lines[-1])


def main(name: str, parameters: str) -> None:
    ranks = world(True)
    program = import_module(PROGRAMS[name])
    with together(ranks), thread_limits(1):
        found = program.on_ranks(ranks, **json.loads(parameters))
    if ranks.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
