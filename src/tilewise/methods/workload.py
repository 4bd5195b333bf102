"""What is to be simulated: the tasks of an iteration, which may depend on who runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tilewise.arguments import whole_number
from tilewise.chem.reference import Outline
from tilewise.config import format_bytes
from tilewise.equations import plan_program
from tilewise.equations.program import Program
from tilewise.hardware.machines import MachineModel
from tilewise.inspect import Graph
from tilewise.inspect.counting import program_bytes
from tilewise.methods.method import DEFAULT_METHOD, Method, method_named
from tilewise.methods.panels import suited_graph
from tilewise.spaces.space import DEFAULT_TILE

OWN = "tilewise"
"""The equations of our own methods, as `Workload.equations` has them."""


@dataclass(frozen=True)
class Workload:
    """The tasks of one iteration, which may depend on who runs them."""

    outline: Outline
    equations: str
    graph_for: Callable[[MachineModel, int], Graph]
    """The tasks for a number of workers of a machine."""
    shown: str
    """What there is to do, in words."""


def workload_of(outline: Outline, method: Method | str = DEFAULT_METHOD, tile: int | None = None) -> Workload:
    """Of a method; tiles and panels are chosen for each number of workers, or tiles have `tile` orbitals."""
    method = method_named(method).suited_to(outline)
    tile = None if tile is None else whole_number("tile", tile)

    @cache
    def program_of(size: int) -> Program:
        spaces = method.spaces(outline, size)
        return plan_program(method.equation_over(spaces), spaces)

    @cache
    def graph_for(machine: MachineModel, workers: int) -> Graph:
        return suited_graph(program_of, machine, workers, tile)

    stored = program_bytes(program_of(DEFAULT_TILE if tile is None else tile))
    return Workload(outline, OWN, graph_for, f"as many as suit the workers, {format_bytes(stored)} stored")
