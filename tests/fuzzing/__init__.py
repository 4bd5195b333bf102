"""Random inputs for all of tilewise: whatever comes, no traceback, no hang and no changed energy.

A kind (`case.kinds`) makes a case from random numbers; a case runs and is judged; a campaign runs many of
them in a child process that may crash or hang. `benchmarks/fuzz.py` is its command line, docs/fuzzing.md its
description.
"""

from fuzzing import (
    accidents,
    atoms,
    chkfiles,
    configuration_interaction,
    equations,
    geometries,
    integral_files,
    loops,
    machine_files,
    open_shells,
    options,
    python_calls,
    restarts,
    tensors,
    traces,
    triples,
)
from fuzzing.campaign import Campaign, Summary
from fuzzing.case import Case, Problem, Verdict, case_of, kind, kinds
from fuzzing.world import World

__all__ = [
    "Campaign",
    "Case",
    "Problem",
    "Summary",
    "Verdict",
    "World",
    "accidents",
    "atoms",
    "case_of",
    "chkfiles",
    "configuration_interaction",
    "equations",
    "geometries",
    "integral_files",
    "kind",
    "kinds",
    "loops",
    "machine_files",
    "open_shells",
    "options",
    "python_calls",
    "restarts",
    "tensors",
    "traces",
    "triples",
]
