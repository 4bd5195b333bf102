"""Iterations of the TCE's CCSD on a simulated machine, for the studies of several papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tilewise.errors import InputError
from tilewise.execute.rehearsal import rehearsed
from tilewise.execute.simulated import Simulation, simulate
from tilewise.hardware.machines import MachineModel
from tilewise.lazy import cached_property
from tilewise.schedule import Policy, Schedule
from tilewise.spaces.orbitals import orbitals_named
from tilewise.tce.inspector import TileGraph, inspect_routines
from tilewise.tce.routines import Routine, tce_routines


@lru_cache(maxsize=8)
def routine_graph(
    molecule: str,
    tile: int,
    names: tuple[str, ...] = (),
    granularity: str = "chain",
    *,
    frozen: bool = False,
) -> TileGraph:
    """All routines of CCSD over the tiles of a molecule that is known by its orbitals, or those named.

    `frozen` leaves out its core.
    """
    routines: Sequence[Routine] = tce_routines("ccsd")
    if names:
        routines = [routine for routine in routines if routine.name in names]
    tiles = orbitals_named(molecule, frozen=frozen).tiles(tile)
    return inspect_routines(routines, tiles, granularity=granularity)


@dataclass(frozen=True)
class SimulatedIteration:
    """The tasks of a graph of routines on a machine, which must give the rates of its cores."""

    graph: TileGraph
    machine: MachineModel
    places: np.ndarray | None = None

    @cached_property
    def seconds(self) -> np.ndarray:
        """Of each task without its messages, by the rates of the machine."""
        if self.machine.rates is None:
            raise InputError(f"machine {self.machine.name}: this study needs the table [rates] of its file")
        return self.machine.rates.seconds(self.graph.flops, self.graph.sorted_words)

    def on(self, **changed: object) -> SimulatedIteration:
        """The same on a machine of which some values are changed."""
        return replace(self, machine=replace(self.machine, **changed))  # type: ignore[arg-type]

    def run(
        self,
        plan: Policy | Schedule,
        workers: int,
        *,
        seconds: np.ndarray | None = None,
        seed: int = 0,
    ) -> Simulation:
        """One iteration; `seconds` of the tasks may differ from those that the policy goes by.

        A policy that learns has its first iterations before, under the seeds that follow.
        """

        def run(schedule: Schedule, number: int) -> Simulation:
            return simulate(
                self.graph,
                schedule,
                self.seconds if seconds is None else seconds,
                self.machine,
                **vars(self.graph.traffic),
                places=self.places,
                seed=seed + number,
            )

        if isinstance(plan, Policy):
            plan = rehearsed(plan, self.graph, self.seconds, self.machine.team(workers), run)
        return run(plan, 0)


def in_counter(run: Simulation) -> float:
    """Share of time inside the counter: in its calls, and in the last one, which waits for all workers."""
    return run.share(run.counter) + run.share(run.waiting)


def fitted(goal: float, low: float, high: float, share: Callable[[float], float], steps: int = 10) -> float:
    """The value, found by bisection of its logarithm, at which a growing share reaches its goal."""
    for _ in range(steps):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if share(middle) < goal else (low, middle)
    return float(np.sqrt(low * high))
