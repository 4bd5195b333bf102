"""What is to be simulated: an iteration of our own equations, or of the TCE's routines."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.arguments import whole_number
from tilewise.chem.reference import Outline
from tilewise.config import format_bytes
from tilewise.equations.tce import METHODS, tce_routines
from tilewise.errors import one_of
from tilewise.inspect import Graph, inspect_routines
from tilewise.methods.plan import plan_outline
from tilewise.spaces import TileSpace

OWN = "tilewise"
EQUATIONS = (OWN, *(f"tce-{method}" for method in METHODS))

TCE_TILE = 40
"""Orbitals per tile of the TCE's routines, as the papers have it: 27 to 45."""


@dataclass(frozen=True)
class Workload:
    """The tasks of one iteration."""

    outline: Outline
    equations: str
    graph: Graph
    shown: str
    """The tasks in words."""


def workload(outline: Outline, equations: str = OWN, tile: int | None = None) -> Workload:
    """The tasks of an iteration; `tile` is the most orbitals of a tile."""
    if equations not in EQUATIONS:
        raise one_of("equations", equations, EQUATIONS)
    if equations == OWN:
        plan = plan_outline(outline, threads=1, tile=tile, on_the_fly=False)
        shown = f"{len(plan.inspected)} per iteration, {format_bytes(plan.stored_bytes)} stored"
        return Workload(outline, equations, plan.inspected, shown)
    largest = TCE_TILE if tile is None else whole_number("tile", tile)
    space = TileSpace(outline.occ, outline.vir, largest)
    graph = inspect_routines(tce_routines(equations.removeprefix("tce-")), space)
    shown = f"{len(graph)} of {int(graph.tuples[1].sum())} tuples per iteration; {space}"
    return Workload(outline, equations, graph, shown)
