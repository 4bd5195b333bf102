"""The plan of (T): its tasks, memory and time, known before any integral is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from tilewise.chem.reference import Outline
from tilewise.cost import CostModel, estimate, load_or_calibrate
from tilewise.equations.program import Program
from tilewise.inspect.triples import TriplesGraph, inspect_triples
from tilewise.inspect.triples_blocks import TILE, TriplesBlocks
from tilewise.lazy import cached_property
from tilewise.methods.memory import MemoryEstimate, too_little
from tilewise.methods.method import Method
from tilewise.methods.triples_operands import integral_program, orbital_sets
from tilewise.schedule import Policy, Schedule, Team

LEAST_SQUARES = 24
"""Virtual orbitals from which on squares are faster than tiles."""

FIXED_TEAM = 8
"""Workers for which tasks are cut where the same bits are wanted for every number of them."""

Kept = tuple[tuple[int, ...], ...]
"""Of each set of orbitals, the occupied ones whose operands are in memory."""


@dataclass(frozen=True)
class Stage:
    """Tasks that run on the operands of some occupied orbitals; all of them if `kept` is None."""

    kept: Kept | None
    tasks: np.ndarray


@dataclass(frozen=True)
class TriplesPlan:
    """A single pass over all triples, inspected."""

    outline: Outline
    method: Method
    tile: int
    """Orbitals per tile of CCSD's tensors; the triples have tiles of their own."""
    threads: int
    policy: Policy
    budget: int
    in_use: int = 0
    deterministic: bool = False
    has_vectors: bool = False
    model: CostModel | None = None
    by_squares: bool | None = None
    """Whether a closed shell without symmetry is done by squares; by default if they fit and pay."""
    groups: int = 1
    """Groups of occupied orbitals; the operands of three of them are in memory at a time."""

    @cached_property
    def blocks(self) -> TriplesBlocks:
        """With the operands of all occupied orbitals."""
        sets = orbital_sets(self.outline, self.method.spin_orbitals, TILE)
        return TriplesBlocks(sets, by_squares=bool(self.by_squares))

    @property
    def can_square(self) -> bool:
        """Squares need matrices without symmetry, and a closed shell with two electron pairs at least."""
        return self.outline.group.order == 1 and not self.method.spin_orbitals and self.outline.n_occ > 1

    @cached_property
    def graph(self) -> TriplesGraph:
        workers = FIXED_TEAM if self.deterministic else self.threads
        return inspect_triples(self.blocks, workers, longest_run=None if self.groups == 1 else 1)

    @cached_property
    def task_seconds(self) -> np.ndarray:
        return estimate(self.graph, self.model or load_or_calibrate()[0])

    def schedule(self, graph: TriplesGraph, seconds: np.ndarray) -> Schedule:
        """For a part of the graph."""
        return self.policy(graph, seconds, Team.of(self.threads))

    @property
    def predicted_seconds(self) -> float:
        longest = float(self.task_seconds.max(initial=0.0))
        return max(longest, float(self.task_seconds.sum()) / self.threads)

    @property
    def flops(self) -> float:
        return float(self.graph.flops.sum())

    # Memory

    @cached_property
    def integrals(self) -> Program:
        return integral_program(self.method, self.outline, self.tile)[1]

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes at the peak of each stage, with the amplitudes and all that the process has besides."""
        own = MemoryEstimate(self.integrals, self.outline, 1, 0, self.has_vectors).stages
        base = self.in_use + self._amplitudes
        given = 8 * sum(layout.size for layout in self.integrals.layouts.values())
        arenas = 8 * self.threads * self.blocks.largest_result
        return {
            "triples integrals": base + own["integral transformation"],
            "triples": base + given + self.operand_bytes + arenas,
        }

    @property
    def _amplitudes(self) -> int:
        sizes = [(sum(occ), sum(vir)) for occ, vir in self.outline.by_spin]
        (o, v), (p, w) = sizes
        pairs = (o * v * (o * v + 1) + p * w * (p * w + 1)) / 2 + o * v * p * w
        closed = o * v * (o * v + 1) / 2
        return int(8 * (pairs if self.method.spin_orbitals else closed) / self.outline.group.order)

    @property
    def operand_bytes(self) -> int:
        """Of the operands that are in memory at a time."""
        lengths = self.blocks.lengths
        led = lengths["blocks"]
        if self.groups > 3:
            led = max(TriplesBlocks(self.blocks.sets, stage.kept).lengths["blocks"] for stage in self.stages)
        return 8 * (led + lengths["pairs"])

    @cached_property
    def stages(self) -> list[Stage]:
        """All tasks at once, or group by group of occupied orbitals."""
        if self.groups <= 3:
            return [Stage(None, np.arange(len(self.graph)))]
        records = self.graph.records["triples"]
        n_occ = [own.n_occ for own in self.blocks.sets]
        first = np.cumsum([0, *n_occ])
        group = np.arange(first[-1]) * self.groups // first[-1]
        of_task = np.stack(
            [group[first[records[s]] + records[name]] for s, name in (("s", "i"), ("s", "j"), ("r", "k"))]
        )
        left, found = np.ones(len(records), bool), []
        for three in combinations_with_replacement(range(self.groups), 3):
            if len(set(three)) < 3:  # all of these are in stages of three different ones
                continue
            tasks = np.flatnonzero(left & np.isin(of_task, three).all(axis=0))
            left[tasks] = False
            kept = tuple(
                tuple(np.flatnonzero(np.isin(group[first[s] : first[s + 1]], three)).tolist())
                for s in range(len(n_occ))
            )
            if len(tasks):
                found.append(Stage(kept, tasks))
        return found

    def check_memory(self) -> None:
        """Raises MemoryBudgetError if the triples need more than they may use."""
        if max(self.memory.values()) > self.budget:
            raise too_little(self.memory, self.budget)

    def suited(self) -> TriplesPlan:
        """With as many groups of occupied orbitals as the budget asks for, as far as that helps."""
        n_occ = sum(own.n_occ for own in self.blocks.sets)
        wish = self.by_squares
        if self.can_square and (wish or (wish is None and self.outline.n_vir >= LEAST_SQUARES)):
            squared = replace(self, by_squares=True)
            if wish or squared.memory["triples"] <= self.budget:
                return squared
        plan = self
        for groups in (1, *range(4, n_occ + 1)):
            plan = replace(self, groups=groups)
            if plan.memory["triples"] <= self.budget:
                return plan
        return plan

    @property
    def note(self) -> str:
        """What a user should know about a plan that is not the usual one."""
        if self.groups <= 3:
            return ""
        return (
            f"(T) goes through {self.groups} groups of occupied orbitals, three at a time, "
            "for the operands of all of them do not fit into memory"
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as a document of plain values."""
        return {
            "tasks": len(self.graph),
            "flops": self.flops,
            "operand_bytes": self.operand_bytes,
            "groups": self.groups,
            "predicted_seconds": self.predicted_seconds,
        }
