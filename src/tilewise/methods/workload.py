"""What is to be simulated: an iteration of our own equations, or of the TCE's routines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tilewise.arguments import whole_number
from tilewise.chem.reference import Outline
from tilewise.config import format_bytes
from tilewise.equations import plan_program
from tilewise.equations.constants import with_plain_constants
from tilewise.equations.program import Program
from tilewise.equations.tce import METHODS, tce_routines
from tilewise.errors import InputError, one_of
from tilewise.hardware.machines import MachineModel
from tilewise.inspect import Graph, inspect_routines
from tilewise.inspect.counting import program_bytes
from tilewise.methods.method import DEFAULT_METHOD, Method, method_named
from tilewise.methods.panels import suited_graph
from tilewise.spaces import TileSpace
from tilewise.spaces.space import DEFAULT_TILE

OWN = "tilewise"
EQUATIONS = (OWN, *(f"tce-{method}" for method in METHODS))

TCE_TILE = 40
"""Orbitals per tile of the TCE's routines, as the papers have it: 27 to 45."""


@dataclass(frozen=True)
class Workload:
    """The tasks of one iteration, which may depend on who runs them."""

    outline: Outline
    equations: str
    graph_for: Callable[[MachineModel, int], Graph]
    """The tasks for a number of workers of a machine."""
    shown: str
    """What there is to do, in words."""


def workload(
    outline: Outline, equations: str = OWN, tile: int | None = None, method: Method | str = DEFAULT_METHOD
) -> Workload:
    """The tasks of an iteration of a method or of the TCE's routines, in tiles of at most `tile` orbitals."""
    if equations not in EQUATIONS:
        raise one_of("equations", equations, EQUATIONS)
    if equations == OWN:
        suited = method_named(method).suited_to(outline)
        return _own(outline, suited, None if tile is None else whole_number("tile", tile))
    if outline.beta is not None:
        raise InputError(f"equations {equations}: the TCE's routines are counted for closed shells alone")
    largest = TCE_TILE if tile is None else whole_number("tile", tile)
    space = TileSpace(outline.occ, outline.vir, largest)
    graph = inspect_routines(tce_routines(equations.removeprefix("tce-")), space)
    shown = f"{len(graph)} of {int(graph.tuples[1].sum())} tuples per iteration; {space}"
    return Workload(outline, equations, lambda machine, workers: graph, shown)


def _own(outline: Outline, method: Method, tile: int | None) -> Workload:
    """Tiles and panels are chosen for each number of workers, unless `tile` is given."""

    @cache
    def program_of(size: int) -> Program:
        spaces = method.spaces(outline, size)
        return plan_program(with_plain_constants(method.equation, spaces), spaces)

    @cache
    def graph_for(machine: MachineModel, workers: int) -> Graph:
        return suited_graph(program_of, machine, workers, tile)

    stored = program_bytes(program_of(DEFAULT_TILE if tile is None else tile))
    return Workload(outline, OWN, graph_for, f"as many as suit the workers, {format_bytes(stored)} stored")
