"""(T): a single pass over the connected triples, when CCSD is done. docs/triples.md tells how.

What is run, and on whose workers, is the plan's and the executor's; the pass has operands made, hands over
tasks slice by slice, and keeps the energy of each task in a file, from which a restart goes on. Several ranks
have the same operands, and share out the tasks of each slice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Reference
from tilewise.execute import Result, Runner
from tilewise.execute.mpi.world import Alone, World
from tilewise.inspect.operations.triples import OUTPUTS
from tilewise.inspect.triples import TriplesGraph, on_blocks
from tilewise.inspect.triples_blocks import TriplesBlocks
from tilewise.methods.triples_checks import check_gaps
from tilewise.methods.triples_file import PartialEnergies, TriplesFile
from tilewise.methods.triples_operands import Packing, Sources
from tilewise.methods.triples_plan import Stage, TriplesPlan
from tilewise.tensor import Tensor
from tilewise.trace import TraceFile
from tilewise.trace.chrome import COUNTS

T = TypeVar("T")

SLICE = 3.0
"""Seconds of a slice, about: after each the file is written, and an interruption is heard."""

SLICE_TASKS = 24
"""Tasks of each worker in a slice, at least: they then end at about the same time."""


@dataclass(frozen=True)
class Triples:
    """The energy of connected triples in hartree, and what it took."""

    fourth: float
    """Of fourth order, by the doubles alone: E[T]."""
    fifth: float
    """What the singles add."""
    tasks: int
    restarted: int
    """Tasks that a file of an earlier run had the energies of."""
    flops: float
    seconds: dict[str, float]
    """Wall-clock seconds of the integrals, of packing the operands and of the triples."""
    task_seconds: np.ndarray = field(repr=False)
    product_seconds: np.ndarray = field(repr=False)
    """Of each task, the part of its time in which its products were made."""

    @property
    def e_t(self) -> float:
        """E(T)."""
        return self.fourth + self.fifth


@dataclass
class TriplesPass:
    """(T) on converged amplitudes t[i|a] and T[ab|ij]."""

    plan: TriplesPlan
    reference: AnyReference
    amplitudes: tuple[Tensor, Tensor]
    executor: str = "threads"
    processors: tuple[int, ...] = ()
    file: TriplesFile | None = None
    progress: Callable[[str], None] | None = None
    note: Callable[[str], None] = lambda text: None
    seconds: dict[str, float] = field(default_factory=dict)
    world: World = field(default_factory=Alone)
    traced: TraceFile | None = None
    """Where each slice is told as a further iteration, if it is wanted."""

    def run(self) -> Triples:
        for text in filter(None, [check_gaps(self.plan.blocks.sets, self._sets), self.plan.note]):
            self.note(text)
        graph = self.plan.graph
        energies = PartialEnergies.of(graph, self.reference, self.amplitudes)
        restarted = self._restarted(energies)
        spent = np.zeros((2, len(graph)))
        if not energies.is_complete:
            sources = self._timed("triples integrals", self._sources)
            for stage in self.plan.stages:
                self._run_stage(stage, sources, energies, spent)
            if self.file:
                self.file.write(energies)
        for text in self.file.notes if self.file else ():
            self.note(text)
        fourth, both = energies.summed()
        return Triples(fourth, both - fourth, len(graph), restarted, self.plan.flops, self.seconds, *spent)

    def _restarted(self, energies: PartialEnergies) -> int:
        """Takes what the file has, which rank 0 alone reads; how many tasks that are."""
        found = energies.take(self.file.read()) if self.file else 0
        energies.total, energies.fourth, found = self.world.bcast((energies.total, energies.fourth, found))
        return found

    @property
    def _sets(self) -> tuple[Reference, ...]:
        return self.reference.by_spin[: len(self.plan.blocks.sets)]

    def _timed(self, phase: str, work: Callable[[], T]) -> T:
        if self.progress:
            self.progress(phase)
        began = time.perf_counter()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
        return result

    def _sources(self) -> Sources:
        return Sources.of(self.plan.method, self.reference, self.amplitudes, self.plan.threads)

    def _run_stage(
        self, stage: Stage, sources: Sources, energies: PartialEnergies, spent: np.ndarray
    ) -> None:
        """The tasks of a stage that are still to be done, slice by slice."""
        left = stage.tasks[energies.is_missing[stage.tasks]]
        if not len(left):
            return
        blocks = self.plan.blocks if stage.kept is None else TriplesBlocks(self.plan.blocks.sets, stage.kept)
        orbitals = np.concatenate([x for own in self._sets for x in (own.occ_energies, own.vir_energies)])
        packing = Packing(blocks, sources, self.plan.threads)
        buffers = self._timed("triples operands", lambda: packing.buffers(orbitals))
        buffers |= {name: np.zeros(len(self.plan.graph)) for name in OUTPUTS}
        graph = on_blocks(self.plan.graph, blocks, packing.scale)
        self._timed("triples", lambda: self._run_slices(left, graph, buffers, energies, spent))

    def _run_slices(
        self,
        left: np.ndarray,
        graph: TriplesGraph,
        buffers: dict[str, np.ndarray],
        energies: PartialEnergies,
        spent: np.ndarray,
    ) -> None:
        expected = self.plan.task_seconds
        first = time.perf_counter() - (self.traced.end if self.traced else 0.0)
        for tasks in slices(left, expected, self.plan.threads * self.world.size):
            began = time.perf_counter()
            mine = share(tasks, expected, self.world.rank, self.world.size)
            took, energy, result = np.zeros(0), np.zeros(0), None
            if len(mine):
                part = graph.part(mine)
                schedule = self.plan.schedule(part, expected[mine])
                result = Runner(part, schedule, buffers, self.executor, self.processors).run()
                took, energy = result.seconds, result.partial
            done = (mine, took, energy, *(buffers[name][mine] for name in OUTPUTS))
            for own, seconds, total, fourth, products in self.world.allgather(done):
                spent[:, own] = seconds, products
                energies.add(own, total, fourth)
            if self.traced:
                self._trace(self.traced, graph, self.world.allgather((mine, result)), began - first)
            self._tell(energies, time.perf_counter() - began, float(expected[tasks].sum()))
            if self.file and self.file.is_due:
                self.file.write(energies)

    def _trace(
        self,
        traced: TraceFile,
        graph: TriplesGraph,
        done: list[tuple[np.ndarray, Result | None]],
        start: float,
    ) -> None:
        """A slice that all ranks have run, as an iteration of its own."""
        order = np.concatenate([tasks for tasks, _ in done])
        by_worker: dict[str, list[float]] = {name: [] for name in COUNTS}
        runs = []
        for rank, (_, result) in enumerate(done):
            nothing = dict.fromkeys(COUNTS, [0.0] * self.plan.threads)
            for name, values in (result.by_worker if result else nothing).items():
                by_worker[name] += values
            if result:
                run = result.trace.copy()
                run["worker"] += rank * self.plan.threads
                runs.append(run)
        number = traced.iterations[-1]["number"] + 1 if traced.iterations else 1
        by_number = np.argsort(order)
        trace, expected = np.concatenate(runs)[by_number], self.plan.task_seconds[order[by_number]]
        traced.add(graph.part(order[by_number]), trace, expected, by_worker, number, start)

    def _tell(self, energies: PartialEnergies, took: float, predicted: float) -> None:
        """Percent done, and the time left at the speed of the last slice."""
        if not self.progress:
            return
        done = self.plan.graph.records["triples"]["done"]
        share = 1.0 - float(done[energies.is_missing].sum()) / max(1.0, float(done.sum()))
        left = float(self.plan.task_seconds[energies.is_missing].sum()) * took / max(predicted, 1e-12)
        self.progress(f"triples, {100 * share:.0f} %, {left:.0f} s left")


def share(tasks: np.ndarray, seconds: np.ndarray, rank: int, ranks: int) -> np.ndarray:
    """The tasks of one rank, in their order: they are dealt out there and back, the longest first."""
    order = np.argsort(-seconds[tasks], kind="stable")
    place = np.arange(len(tasks)) % (2 * ranks)
    return tasks[np.sort(order[np.minimum(place, 2 * ranks - 1 - place) == rank])]


def slices(tasks: np.ndarray, seconds: np.ndarray, workers: int) -> list[np.ndarray]:
    """Runs of tasks of some seconds each, and of enough tasks for all workers."""
    wall = float(seconds[tasks].sum()) / workers
    count = min(int(wall / SLICE), len(tasks) // (SLICE_TASKS * workers))
    if count < 2:
        return [tasks]
    ends = np.cumsum(seconds[tasks])
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, count) / count)
    return [part for part in np.split(tasks, cuts) if len(part)]
