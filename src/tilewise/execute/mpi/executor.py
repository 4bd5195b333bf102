"""Runs one rank's part of a distributed graph: native workers compute, this thread attends to strips.

This thread makes all calls of the communication library. It hears which tasks have ended, tells other ranks
which strips are ready, gets what this rank needs, and opens the gates of the tasks that wait for it. Within a
node it only sees that all are alive: there the workers take strips themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from tilewise import native
from tilewise.core import core
from tilewise.execute.local_graph import Incoming, LocalPlan
from tilewise.execute.mpi.world import World
from tilewise.execute.overlap import under_way
from tilewise.execute.store import Near, Request, Store
from tilewise.native import Outcome

READY, TAKEN, FOR_STORE = 1, 2, 3
"""The first number of a message: strips that are ready, strips that have come, or something for the store."""

UNDER_WAY = 1 << 21
"""Bytes that a rank gets at a time at most, unless one strip has more: what is needed first comes first, and
what turns out to be more urgent waits for no more than this. Over a link of 1 Gbit that is 17 ms."""

BUSY, IDLE = 2e-4, 2e-3
"""Seconds between two looks while requests are under way, and otherwise."""
QUIET = 5e-2
"""Seconds between two looks for signs of life alone."""


@dataclass
class Moved:
    """What a rank has moved in a run."""

    gets: int = 0
    adds: int = 0
    bytes: int = 0
    messages: int = 0
    seconds: float = 0.0
    """In which at least one request was under way."""
    hidden: float = 0.0
    """Seconds of these in which the average worker of the rank computed."""


class Traffic(Protocol):
    """The strips of one run, from its beginning to its end."""

    gates: core.Gates

    def attend(self, is_running: Callable[[], bool]) -> None:
        """Moves strips until the run is over."""

    def moved(self, outcome: Outcome, workers: int, began: int) -> Moved:
        """What was moved in a run that began at this moment of the clock."""


def _gates(plan: LocalPlan) -> tuple[list[int], list[int], list[int], list[int]]:
    gates, groups = (plan.gate_first, plan.gate_tasks), (plan.group_first, plan.group_tasks)
    return gates[0].tolist(), gates[1].tolist(), groups[0].tolist(), groups[1].tolist()


class Carried:
    """Within a node: workers take strips out of other ranks' memory, between their tasks."""

    def __init__(
        self, plan: LocalPlan, world: World, near: Near, tensors: dict[str, np.ndarray], run: int
    ) -> None:
        """`run` is the number of the run, the same on all ranks, and larger than before."""
        self.world = world
        tables = plan.tables
        theirs = [near.tensors[rank][name] for rank, name in tables.theirs]
        ours = [tensors[name] for name in tables.ours]
        boxes, rank = near.boxes, world.rank
        self._carrier = core.Carrier(
            *_gates(plan), boxes, rank, run, tables.inbound, theirs, ours, tables.outbound, tables.ways
        )
        self.gates: core.Gates = self._carrier

    def attend(self, is_running: Callable[[], bool]) -> None:
        self._carrier.start()
        while not self._carrier.watch(QUIET) and is_running():
            self.world.arrived()  # signs of life

    def moved(self, outcome: Outcome, workers: int, began: int) -> Moved:
        carrier = self._carrier
        spans = [(begin - began, end - began) for begin, end in carrier.spans]
        seconds, hidden = under_way(spans, outcome.trace, workers)
        return Moved(carrier.gets, 0, carrier.bytes, carrier.told, seconds, hidden)


@dataclass
class Posted:
    """Between nodes: messages tell which strips are ready, and this thread gets them."""

    plan: LocalPlan
    world: World
    store: Store
    tensors: dict[str, np.ndarray]

    def __post_init__(self) -> None:
        plan = self.plan
        self.gates = core.Gates(*_gates(plan))
        self._moved = Moved()
        self._waiting = {k: len(out.transfers) for k, out in enumerate(plan.outgoing)}
        self._held = set(plan.held)
        self._announced: set[int] = set()
        self._wanted: list[tuple[float, int]] = []
        self._pending: list[tuple[Incoming, Request]] = []
        self._bytes_pending = 0
        self._posts: dict[int, dict[int, list[int]]] = {}
        self._began = 0
        self._spans: list[tuple[int, int]] = []

    @property
    def pause(self) -> float:
        """Seconds until the next look, if nothing happens that is told of."""
        if self._pending or self._wanted:
            return BUSY
        return IDLE

    def attend(self, is_running: Callable[[], bool]) -> None:
        gates = self.gates
        self.start()
        over = False

        def open_gates(which: list[int]) -> None:
            if which and not over:
                gates.open(which)

        while True:
            over = gates.is_over() or not is_running()
            ended = gates.ended(0.0 if over else BUSY if gates.is_waiting() else self.pause)
            self.ended(ended)
            self.look(open_gates)
            if over and not ended:
                return

    def moved(self, outcome: Outcome, workers: int, began: int) -> Moved:
        spans = [(begin - began, end - began) for begin, end in self._spans]
        self._moved.seconds, self._moved.hidden = under_way(spans, outcome.trace, workers)
        return self._moved

    def start(self) -> None:
        """Tells of all that needs no task."""
        self.store.publish()
        for k, out in enumerate(self.plan.outgoing):
            if not len(out.after):
                self._announce(k)
        self._send()

    def ended(self, groups: Sequence[int]) -> None:
        """Groups of own tasks have ended: strips are ready, and older versions no longer read."""
        made, held = self.plan.made, self.plan.held
        if any(group < len(made) for group in groups):
            self.store.publish()
        for group in groups:
            if group < len(made):
                self._announce(made[group])
                continue
            k = held[group - len(made)]
            self._held.discard(k)
            if k in self._announced:
                self._want(k)

    def look(self, open_gates: Callable[[list[int]], None]) -> None:
        """Takes what has come, and opens the gates of those that waited for it."""
        for source, numbers in self.world.arrived():
            kind, rest = int(numbers[0]), numbers[1:]
            if kind == FOR_STORE:
                self.store.handle(source, rest)
            elif kind == READY:
                for k in rest.tolist():
                    self._announced.add(k)
                    if k not in self._held:
                        self._want(k)
            else:
                open_gates(self._taken(rest.tolist()))
        self.store.progress()
        self._finish(open_gates)
        while self._wanted and self._bytes_pending < UNDER_WAY:
            self._begin(heappop(self._wanted)[1], open_gates)
        self._send()

    def _announce(self, k: int) -> None:
        out = self.plan.outgoing[k]
        data = self.tensors[out.name][out.first : out.first + out.elements]
        for transfer, channel, target in out.ways:
            self._post(target, READY, transfer)
            self.store.offer(target, channel, data)

    def _taken(self, transfers: list[int]) -> list[int]:
        gates = []
        for transfer in transfers:
            k = self.plan.outgoing_of[transfer]
            self._waiting[k] -= 1
            if not self._waiting[k] and self.plan.outgoing[k].gate >= 0:
                gates.append(self.plan.outgoing[k].gate)
        return gates

    def _want(self, k: int) -> None:
        """A strip can be got: it is ready, and nobody here reads the version before."""
        heappush(self._wanted, (-self.plan.incoming[k].need, k))

    def _begin(self, k: int, open_gates: Callable[[list[int]], None]) -> None:
        """Gets a strip, the one that is needed first; within a node it has come then."""
        one = self.plan.incoming[k]
        began = time.perf_counter_ns()
        out = self.tensors[one.name][one.here : one.here + one.elements]
        request = self.store.take(one.source, one.channel, one.name, one.there, out)
        if not self._pending:
            self._began = began
            if request.done():
                self._spans.append((began, time.perf_counter_ns()))
                open_gates([self._came(one)])
                return
        self._pending.append((one, request))
        self._bytes_pending += 8 * one.elements

    def _came(self, one: Incoming) -> int:
        """Counts a strip, and gives its gate."""
        self._moved.gets += 1
        self._moved.bytes += 8 * one.elements
        if one.told:
            self._post(one.source, TAKEN, one.transfer)
        return one.gate

    def _finish(self, open_gates: Callable[[list[int]], None]) -> None:
        if not self._pending:
            return
        gates, left = [], []
        for one, request in self._pending:
            if request.done():
                gates.append(self._came(one))
                self._bytes_pending -= 8 * one.elements
            else:
                left.append((one, request))
        if not left:
            self._spans.append((self._began, time.perf_counter_ns()))
        self._pending = left
        open_gates(gates)

    def _post(self, rank: int, kind: int, number: int) -> None:
        self._posts.setdefault(rank, {}).setdefault(kind, []).append(number)

    def _send(self) -> None:
        for rank, kinds in self._posts.items():
            for kind, numbers in kinds.items():
                self.world.post(rank, np.array([kind, *numbers], np.int64))
                self._moved.messages += 1
        self._posts = {}


class _Workers(threading.Thread):
    """The native run, in a thread of its own."""

    def __init__(self, run: Callable[[], Outcome]) -> None:
        super().__init__(name="tilewise workers")
        self._run = run
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.outcome = self._run()
        except BaseException as error:
            self.error = error


def run_local(
    plan: LocalPlan,
    tables: dict[str, np.ndarray],
    schedule: dict[str, np.ndarray],
    buffers: list[np.ndarray],
    scratch: np.ndarray,
    workers: int,
    processors: Sequence[int],
    shift: float,
    traffic: Traffic,
) -> tuple[Outcome, Moved]:
    """Runs the tasks of a rank while this thread attends to strips. All ranks call it at the same time."""
    began: list[int] = []

    def run() -> Outcome:
        began.append(time.perf_counter_ns())
        gates = traffic.gates
        return native.run(plan.graph, tables, schedule, buffers, scratch, workers, processors, shift, gates)

    crew = _Workers(run)
    crew.start()
    try:
        traffic.attend(crew.is_alive)
    except BaseException:
        traffic.gates.stop()
        raise
    finally:
        crew.join()
    if crew.error is not None:
        raise crew.error
    assert crew.outcome is not None
    return crew.outcome, traffic.moved(crew.outcome, workers, began[0])
