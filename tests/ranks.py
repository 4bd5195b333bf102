"""Scripts under mpiexec, for tests: on up to four ranks, which share the cores that there are."""

import os
import textwrap

from command_line import ROOT
from tilewise.execute.mpi.launch import run_ranks_of

SECONDS = 300
"""A test that takes longer hangs: its ranks are ended and the test fails."""


def run_script(text, ranks, seconds=SECONDS, **environment):
    """The ended process of `python -c TEXT` on some ranks."""
    return run_ranks_of(["-c", textwrap.dedent(text)], ranks, seconds, _variables(environment))


def run_module(path, ranks, *arguments, seconds=SECONDS, **environment):
    """The ended process of `python PATH ARGUMENTS` on some ranks."""
    return run_ranks_of([str(path), *map(str, arguments)], ranks, seconds, _variables(environment))


def run_tilewise(ranks, *arguments, seconds=SECONDS, **environment):
    """The ended process of `tilewise ARGUMENTS` on some ranks."""
    given = ["-m", "tilewise", *map(str, arguments)]
    return run_ranks_of(given, ranks, seconds, _variables(environment))


def _variables(more):
    found = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "tests" / "execute" / "mpi")])
    return {"PYTHONPATH": found, "OMP_NUM_THREADS": "1", **more}
