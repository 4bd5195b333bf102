"""Runs tasks on whatever rank takes them: gets what a task reads, computes on copies, adds what it has made.

The communication pattern of the Tensor Contraction Engine ("original"), under policies that decide while
ranks run. This thread makes all calls of the communication library; tasks are computed by threads beside
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from tilewise import native
from tilewise.config import thread_limits
from tilewise.errors import TaskError
from tilewise.execute.mpi.claims import Claims, counter_homes
from tilewise.execute.mpi.executor import FOR_STORE, Moved
from tilewise.execute.mpi.runner import DistributedRunner, RankResult, scalars_of_all
from tilewise.execute.mpi.world import World
from tilewise.execute.overlap import under_way
from tilewise.execute.spread import Errand, Spread
from tilewise.execute.store import Request, Store
from tilewise.inspect.records import TRACE
from tilewise.native import COUNTS, Outcome
from tilewise.schedule import Phase, Policy, Queue, Schedule, Team
from tilewise.schedule.policy import tasks_by_level
from tilewise.schedule.schedule import WHOLE

ARRIVED = 4
"""The first number of a message: a rank has done its part of a phase."""

PAUSE = 1e-4
"""Seconds between two looks when nothing has changed."""


@dataclass
class _Trip:
    """An errand under way."""

    errand: Errand
    copies: dict[str, np.ndarray]
    requests: list[Request] = field(default_factory=list)
    running: Future[tuple[Outcome, int, int]] | None = None
    began: int = 0
    """When its last requests were made, in nanoseconds of the clock."""

    def is_there(self) -> bool:
        self.requests = [request for request in self.requests if not request.done()]
        return not self.requests


class SpreadRunner(DistributedRunner):
    """Runs the tasks that this rank takes. All ranks make one, and call `run` together."""

    def __init__(
        self,
        distribution: Spread,
        world: World,
        store: Store,
        policy: Policy,
        team: Team,
        buffers: Mapping[str, np.ndarray],
        processors: Sequence[int] = (),
    ) -> None:
        """`team` are the workers of this rank; the policy decides for those of all ranks."""
        self.distribution, self.world, self.store = distribution, world, store
        self.spread, self.policy, self.team, self.processors = distribution, policy, team, tuple(processors)
        everyone = Team(team.size * world.size, groups=groups_of(world.nodes, team.size))
        # Rank 0 decides: a partition of a hypergraph may come out otherwise each time.
        made = policy(distribution.graph, distribution.seconds, everyone) if world.rank == 0 else None
        self._schedule: Schedule = world.bcast(made)
        self.tensors = self._filled(buffers)
        self._bound: dict[str, np.ndarray] = {}
        self._arrived = [0] * world.size
        self._phases_done = 0
        if hasattr(store, "pump"):
            store.pump = self._pump

    @property
    def graph(self):  # type: ignore[no-untyped-def]
        """All tasks: any of them may run here."""
        return self.distribution.graph

    @property
    def schedule(self) -> Schedule:
        return self._schedule

    @property
    def seconds(self) -> np.ndarray:
        return self.distribution.seconds

    def _filled(self, buffers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        rank, spread = self.world.rank, self.spread
        lengths = {name: spread.home(name, rank).size for name in spread.home_of_cell}
        tensors = dict(self.store.allocate(lengths))
        for name, data in buffers.items():
            if name in tensors:
                tensors[name][:] = data
            else:
                tensors[name] = data
        return tensors

    def bind(self, name: str, data: np.ndarray) -> None:
        """Copies what tasks have made of a tensor to another buffer, after each run."""
        self._bound[name] = data

    def run(self, tasks: np.ndarray | None = None, shift: float = 0.0) -> RankResult:
        graph, store = self.distribution.graph, self.store
        phases = self._phases(tasks)
        self._prepare(np.arange(len(graph)) if tasks is None else tasks)
        store.reset(counter_homes(phases, self.team.size) or [0])
        done = Outcome(
            -1,
            "",
            np.zeros(len(graph)),
            np.zeros(len(graph), TRACE),
            np.zeros((self.team.size, len(COUNTS)), np.int64),
        )
        moved, slot = Moved(), 0
        self._began = time.perf_counter()
        own = range(self.world.rank * self.team.size, (self.world.rank + 1) * self.team.size)
        self._ran: list[int] = []
        self._spans: list[tuple[int, int]] = []
        with thread_limits(1), self.world.watched(), ThreadPoolExecutor(self.team.size) as pool:
            for phase in phases:
                claims = Claims(phase, slot, self.distribution.seconds, own, store)
                self._run_phase(iter(claims), pool, shift, done, moved)
                done.counts[0, COUNTS.index("counter_calls")] += claims.draws
                done.counts[0, COUNTS.index("steals")] += claims.steals
                slot += len(phase.queues)
                self._wait_for_all()
        moved.seconds, moved.hidden = under_way(self._spans, done.trace[self._ran], self.team.size)
        for name, data in self._bound.items():
            data[:] = self.tensors[name]
        scalars = scalars_of_all(self.distribution.graph, done.partial, self.world)
        return RankResult(scalars, done.trace, done.counts, done.partial, moved=moved)

    def _phases(self, tasks: np.ndarray | None) -> tuple[Phase, ...]:
        """Those of the schedule; by data flow, or for some tasks alone, each level where it is at home."""
        if tasks is None and not self._schedule.by_dataflow:
            return self._schedule.phases
        graph, rank = self.distribution.graph, self.distribution.placement.task_rank
        chosen = np.ones(len(graph), bool)
        if tasks is not None:
            chosen[:] = False
            chosen[tasks] = True
        found = []
        for level in tasks_by_level(graph):
            mine = [level[chosen[level] & (rank[level] == r)] for r in range(self.world.size)]
            queues = (Queue(list_, (r * self.team.size,), WHOLE) for r, list_ in enumerate(mine))
            found.append(Phase(tuple(queues)))
        return tuple(phase for phase in found if len(phase.tasks))

    def _prepare(self, tasks: np.ndarray) -> None:
        """What is assigned begins as zero, since everything is added to it."""
        graph = self.distribution.graph
        for number in np.unique(graph.tasks["operation"][tasks]).tolist():
            for name, accumulate in graph.operations[number].outputs.items():
                if not accumulate:
                    self.tensors[name][:] = 0.0
        self.store.publish()
        self.world.barrier()

    def _run_phase(
        self,
        claims: Iterator[np.ndarray],
        pool: ThreadPoolExecutor,
        shift: float,
        done: Outcome,
        moved: Moved,
    ) -> None:
        getting: list[_Trip] = []
        running: list[_Trip] = []
        adding: list[_Trip] = []
        waiting: list[int] = []
        more = True
        while True:
            self._pump()
            changed = False
            while more and not waiting and len(getting) + len(running) <= self.team.size:
                claim = next(claims, None)
                more = claim is not None
                waiting += [] if claim is None else claim.tolist()
            while waiting and len(getting) + len(running) <= self.team.size:
                getting.append(self._set_out(waiting.pop(0), moved))
                changed = True
            for trip in [trip for trip in getting if trip.is_there()]:
                getting.remove(trip)
                self._came(trip)
                trip.running = pool.submit(self._compute, trip, shift)
                running.append(trip)
                changed = True
            for trip in [trip for trip in running if trip.running and trip.running.done()]:
                running.remove(trip)
                self._deliver(trip, done, moved)
                adding.append(trip)
                changed = True
            for trip in [trip for trip in adding if trip.is_there()]:
                adding.remove(trip)
                self._came(trip)
            if not (more or waiting or getting or running or adding):
                return
            if not changed:
                time.sleep(PAUSE)

    def _set_out(self, task: int, moved: Moved) -> _Trip:
        errand = self.spread.errand(task)
        copies = {name: np.zeros(length) for name, length in errand.lengths.items()}
        trip = _Trip(errand, copies, began=time.perf_counter_ns())
        for move in errand.gets:
            out = copies[move.name][move.here : move.here + move.elements]
            trip.requests.append(self.store.get(move.rank, move.name, move.there, out))
            moved.gets += 1
            moved.bytes += 8 * move.elements
        return trip

    def _compute(self, trip: _Trip, shift: float) -> tuple[Outcome, int, int]:
        graph = trip.errand.graph
        nothing = np.zeros(0)
        buffers = [
            trip.copies.get(name, self.tensors[name] if name in graph.vectors else nothing)
            for name in graph.buffers
        ]
        scratch = np.zeros(native.scratch_size(graph))
        began = time.perf_counter()
        made = native.run(
            graph,
            native.tables(graph),
            native.static_lists([np.zeros(1, np.int64)]),
            buffers,
            scratch,
            1,
            (),
            shift,
        )
        ended = time.perf_counter()
        return made, int(1e9 * (began - self._began)), int(1e9 * (ended - self._began))

    def _deliver(self, trip: _Trip, done: Outcome, moved: Moved) -> None:
        assert trip.running is not None
        made, began, ended = trip.running.result()
        task = trip.errand.task
        if made.failed >= 0:
            raise TaskError(f"{made.reason} in {self.distribution.graph.describe(task)}")
        done.partial[task] = made.partial[0]
        done.trace[task] = (0, began, began, ended)
        self._ran.append(task)
        trip.began = time.perf_counter_ns()
        for move in trip.errand.adds:
            data = trip.copies[move.name][move.here : move.here + move.elements]
            trip.requests.append(self.store.add(move.rank, move.name, move.there, data))
            moved.adds += 1
            moved.bytes += 8 * move.elements

    def _came(self, trip: _Trip) -> None:
        """What a trip got, or added, is where it belongs."""
        begin = int(1e9 * self._began)
        self._spans.append((trip.began - begin, time.perf_counter_ns() - begin))

    def _numbers_of(self, result: RankResult) -> np.ndarray:
        return np.flatnonzero(result.trace["end"] > 0)

    def _pump(self) -> None:
        """Takes messages: those of other ranks' stores, and that a rank has done its part."""
        for source, numbers in self.world.arrived():
            if int(numbers[0]) == FOR_STORE:
                self.store.handle(source, numbers[1:])
            else:
                self._arrived[source] += 1
        self.store.progress()

    def _wait_for_all(self) -> None:
        """A barrier in which other ranks are served."""
        self._phases_done += 1
        self.store.publish()
        for rank in range(self.world.size):
            if rank != self.world.rank:
                self.world.post(rank, np.array([ARRIVED], np.int64))
        self._arrived[self.world.rank] = self._phases_done
        while min(self._arrived) < self._phases_done:
            self._pump()
            if min(self._arrived) < self._phases_done:
                time.sleep(PAUSE)


def groups_of(nodes: Sequence[Sequence[int]], threads: int) -> tuple[tuple[int, ...], ...]:
    """The workers of each node, whose ranks have so many each."""
    return tuple(tuple(r * threads + t for r in ranks for t in range(threads)) for ranks in nodes)
