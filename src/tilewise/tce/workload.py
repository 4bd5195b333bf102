"""The TCE's routines as a workload to be simulated."""

from __future__ import annotations

from tilewise.arguments import whole_number
from tilewise.chem.reference import Outline
from tilewise.errors import InputError
from tilewise.methods.workload import Workload
from tilewise.spaces import TileSpace
from tilewise.tce.inspector import inspect_routines
from tilewise.tce.routines import METHODS, tce_routines

EQUATIONS = {f"tce-{method}": method for method in METHODS}
"""Names of the routines as equations that can be simulated, with those that `tce_routines` knows."""

TILE = 40
"""Orbitals per tile, as the papers have it: 27 to 45."""


def workload_of_routines(outline: Outline, equations: str, tile: int | None = None) -> Workload:
    """In tiles of at most `tile` spin orbitals, whoever runs them."""
    if outline.beta is not None:
        raise InputError(f"equations {equations}: the TCE's routines are counted for closed shells alone")
    space = TileSpace(outline.occ, outline.vir, TILE if tile is None else whole_number("tile", tile))
    graph = inspect_routines(tce_routines(EQUATIONS[equations]), space)
    shown = f"{len(graph)} of {int(graph.tuples[1].sum())} tuples per iteration; {space}"
    return Workload(outline, equations, lambda machine, workers: graph, shown)
