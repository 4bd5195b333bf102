"""Iterations of CCSD some of whose contractions run in another communication pattern, simulated on Tukey."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewise.execute.simulated import Simulation, simulate
from tilewise.inspect.records import concatenated
from tilewise.lazy import cached_property
from tilewise.schedule import Phase, Queue, Schedule
from tilewise.schedule.schedule import NULL
from tilewise.spaces import TileSpace
from tilewise.studies.tukey import Tukey
from tilewise.tce.inspector import INTEGRALS, inspect_routines
from tilewise.tce.patterns import PATTERNS
from tilewise.tce.routines import Routine, levels_of, tce_routines
from tilewise.tce.tasks import TILE_PRODUCT, TILE_TASK, TileGraph

ORIGINAL, INVERTED, CACHE = PATTERNS
LADDER = "t2_8"

SCOPES: Mapping[str, Callable[[Routine], bool]] = {
    f"{LADDER} alone": lambda routine: routine.name == LADDER,
    "all with integrals": lambda routine: routine.inputs[-1].name == INTEGRALS,
    "all contractions": lambda routine: True,
}
"""Which contractions are in a new pattern; the others are as they were."""

SPENT = (
    "products",
    "sorts",
    "summing Gets",
    "adding Accumulates",
    "waiting for data",
    "counter",
    "waiting for others",
)
"""What the time of a process goes to."""


@dataclass(frozen=True)
class Costs:
    """What the paper leaves open."""

    tukey: Tukey
    summed: int
    """Times that each word of integrals is added up when it is got, at the rate of sorts."""
    by_level: bool = False
    """A counter and a barrier for each level of routines, not for each routine."""


@dataclass(frozen=True)
class Part:
    """A routine in one pattern."""

    graph: TileGraph
    integrals: np.ndarray
    """Words of integrals that each task gets."""

    @classmethod
    def of(cls, routine: Routine, space: TileSpace, pattern: str) -> Part:
        if routine.is_copy:
            graph = inspect_routines([routine], space)
            return cls(graph, np.zeros(len(graph)))
        found = PATTERNS[pattern](routine, space)
        return cls(found.graph, found.words * (routine.inputs[1].name == INTEGRALS))

    @property
    def draws(self) -> np.ndarray:
        """The tasks as its counter gives them out, null tuples in between."""
        place, count = self.graph.tuples
        drawn = np.full(int(count[0]), NULL, np.int64)
        drawn[place] = np.arange(len(self.graph))
        return drawn


@dataclass(frozen=True)
class RoutineTimes:
    """How many tasks a routine has, and seconds: its own, shared out evenly, and of its longest task."""

    tasks: int
    seconds: float
    even: float
    longest: float


@dataclass(frozen=True)
class PatternRun:
    """All routines of an iteration, one after the other or level by level."""

    routines: tuple[Routine, ...]
    parts: Sequence[Part]

    @cached_property
    def graph(self) -> TileGraph:
        """The tasks of all, without their dependencies: barriers keep these."""
        tasks, products, first = [], [], 0
        for operation, part in enumerate(self.parts):
            own = part.graph.tasks.copy()
            own["operation"], own["first"] = operation, own["first"] + first
            tasks.append(own)
            products.append(part.graph.products)
            first += len(part.graph.products)
        counts = tuple(part.graph.counts[0] for part in self.parts)
        every, chains = concatenated(TILE_TASK, tasks), concatenated(TILE_PRODUCT, products)
        none = np.zeros(0, np.int64)
        return TileGraph(self.routines, self.parts[0].graph.space, counts, every, chains, none, none)

    @cached_property
    def integrals(self) -> np.ndarray:
        return np.concatenate([part.integrals for part in self.parts])

    def schedule(self, workers: int, *, by_level: bool) -> Schedule:
        """A counter and a barrier for each routine or level."""
        levels = levels_of(self.routines)
        queues: dict[int, list[np.ndarray]] = {}
        first = 0
        for number, (routine, part) in enumerate(zip(self.routines, self.parts, strict=True)):
            draws = part.draws
            tasks = np.where(draws == NULL, NULL, draws + first)
            queues.setdefault(levels[routine.name] if by_level else number, []).append(tasks)
            first += len(part.graph)
        everyone = tuple(range(workers))
        phases = (Phase((Queue(np.concatenate(queues[key]), everyone),)) for key in sorted(queues))
        return Schedule("patterns", workers, tuple(phases))

    def work(self, costs: Costs) -> np.ndarray:
        """Seconds of each task: a row for each of the first four of SPENT."""
        graph, rates = self.graph, costs.tukey.rates
        return np.array(
            [
                graph.flops / rates.gemm,
                graph.sorted_words / rates.sort,
                costs.summed * self.integrals / rates.sort,
                costs.tukey.accumulating(graph.traffic.bytes_put),
            ]
        )

    def simulated(self, costs: Costs, nodes: int, seed: int = 0) -> Simulation:
        graph, tukey = self.graph, costs.tukey
        schedule = self.schedule(tukey.per_node * nodes, by_level=costs.by_level)
        seconds = self.work(costs).sum(axis=0)
        return simulate(graph, schedule, seconds, tukey.machine, **vars(graph.traffic), seed=seed)

    def spent(self, costs: Costs, nodes: int, seed: int = 0) -> np.ndarray:
        """Seconds of an average process, as SPENT names them: they add up to the time of the iteration."""
        work, run = self.work(costs), self.simulated(costs, nodes, seed)
        busy = work.sum(axis=1) * (run.busy.mean() / work.sum())
        return np.array([*busy, run.communication.mean(), run.counter.mean(), run.waiting.mean()])

    def by_routine(self, costs: Costs, nodes: int, seed: int = 0) -> dict[str, RoutineTimes]:
        """With a barrier after each routine."""
        if costs.by_level:
            raise ValueError("with a barrier after each level routines have no times of their own")
        seconds = self.work(costs).sum(axis=0)
        operation, count = self.graph.tasks["operation"], len(self.routines)
        longest = np.zeros(count)
        np.maximum.at(longest, operation, seconds)
        tasks = np.bincount(operation, minlength=count)
        even = np.bincount(operation, weights=seconds, minlength=count) / (costs.tukey.per_node * nodes)
        phases = self.simulated(costs, nodes, seed).phases
        columns = zip(tasks.tolist(), phases.tolist(), even.tolist(), longest.tolist(), strict=True)
        return {
            routine.name: RoutineTimes(*times) for routine, times in zip(self.routines, columns, strict=True)
        }


@dataclass(frozen=True)
class PatternedMolecule:
    """The routines of CCSD over the tiles of a molecule, in all patterns."""

    space: TileSpace
    routines: tuple[Routine, ...] = tce_routines("ccsd")
    _runs: dict[tuple[str, str], PatternRun] = field(default_factory=dict, compare=False)

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        return {
            pattern: tuple(Part.of(routine, self.space, pattern) for routine in self.routines)
            for pattern in PATTERNS
        }

    def run(self, pattern: str, scope: str) -> PatternRun:
        """With the contractions of the scope in the pattern, and all others in the original one."""
        key = (pattern, scope if pattern != ORIGINAL else "")
        if key not in self._runs:
            chosen = (pattern if SCOPES[scope](routine) else ORIGINAL for routine in self.routines)
            parts = tuple(self.parts[name][number] for number, name in enumerate(chosen))
            self._runs[key] = PatternRun(self.routines, parts)
        return self._runs[key]
