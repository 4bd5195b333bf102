"""Runs one rank's part of a distributed graph: native workers compute, this thread moves strips.

This thread makes all calls of the communication library. It hears which tasks have ended, tells other ranks
which strips are ready, gets what this rank needs, and opens the gates of the tasks that wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from tilewise import native
from tilewise.core import core
from tilewise.execute.local_graph import Incoming, LocalPlan
from tilewise.execute.mpi.world import World
from tilewise.execute.overlap import under_way
from tilewise.execute.store import Request, Store
from tilewise.native import Outcome

READY, TAKEN, FOR_STORE = 1, 2, 3
"""The first number of a message: strips that are ready, strips that have come, or something for the store."""

UNDER_WAY = 1 << 25
"""Bytes that a rank gets at a time at most, unless one strip has more: what is needed first comes first, and
what turns out to be more urgent waits for no more than this."""

BUSY, IDLE = 2e-4, 2e-3
"""Seconds between two looks while requests are under way, and otherwise."""


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


@dataclass
class Traffic:
    """The strips of one run, from their beginning to their end."""

    plan: LocalPlan
    world: World
    store: Store
    tensors: dict[str, np.ndarray]
    moved: Moved = field(default_factory=Moved)

    def __post_init__(self) -> None:
        plan = self.plan
        self._left = {k: len(out.after) for k, out in enumerate(plan.outgoing)}
        self._makes: dict[int, list[int]] = {}
        for k, out in enumerate(plan.outgoing):
            for task in out.after.tolist():
                self._makes.setdefault(task, []).append(k)
        self._of_transfer = {int(t): k for k, out in enumerate(plan.outgoing) for t in out.transfers}
        self._waiting = {k: len(out.transfers) for k, out in enumerate(plan.outgoing)}
        self._held = {k: len(one.after) for k, one in plan.incoming.items()}
        self._frees: dict[int, list[int]] = {}
        for k, one in plan.incoming.items():
            for task in one.after.tolist():
                self._frees.setdefault(task, []).append(k)
        self._announced: set[int] = set()
        self._wanted: list[tuple[float, int]] = []
        self._pending: list[tuple[Incoming, Request]] = []
        self._bytes_pending = 0
        self._posts: dict[int, dict[int, list[int]]] = {}
        self._began = 0
        self._spans: list[tuple[int, int]] = []

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return bool(self._pending or self._wanted)

    @property
    def watched(self) -> list[int]:
        """Tasks whose end matters to others, or to a strip that is to come."""
        return sorted({*self._makes, *self._frees})

    def start(self) -> None:
        """Tells of all that needs no task."""
        self.store.publish()
        for k, count in self._left.items():
            if not count:
                self._announce(k)
        self._send()

    def ended(self, tasks: Sequence[int]) -> None:
        """Own tasks have ended: strips may be ready, and older versions no longer read."""
        ready = []
        for task in tasks:
            for k in self._makes.get(task, ()):
                self._left[k] -= 1
                if not self._left[k]:
                    ready.append(k)
            for k in self._frees.get(task, ()):
                self._held[k] -= 1
                if not self._held[k] and k in self._announced:
                    self._want(k)
        if ready:
            self.store.publish()
            for k in ready:
                self._announce(k)

    def look(self) -> list[int]:
        """Takes what has come; the gates that can be opened."""
        gates: list[int] = []
        for source, numbers in self.world.arrived():
            kind, rest = int(numbers[0]), numbers[1:]
            if kind == FOR_STORE:
                self.store.handle(source, rest)
            elif kind == READY:
                for k in rest.tolist():
                    self._announced.add(k)
                    if not self._held[k]:
                        self._want(k)
            else:
                gates += self._taken(rest.tolist())
        self.store.progress()
        gates += self._finish()
        self._begin_most_needed()
        self._send()
        return gates

    def count_hidden(self, trace: np.ndarray, workers: int, began: int) -> None:
        """Compares the spans of requests with those of tasks, whose run began at a moment of the clock."""
        spans = [(begin - began, end - began) for begin, end in self._spans]
        self.moved.seconds, self.moved.hidden = under_way(spans, trace, workers)

    def _announce(self, k: int) -> None:
        out = self.plan.outgoing[k]
        data = self.tensors[out.name][out.first : out.first + out.elements]
        columns = (out.transfers, out.channels, out.targets)
        for transfer, channel, target in zip(*(column.tolist() for column in columns), strict=True):
            self._post(target, READY, transfer)
            self.store.offer(target, channel, data)

    def _taken(self, transfers: list[int]) -> list[int]:
        gates = []
        for transfer in transfers:
            k = self._of_transfer[transfer]
            self._waiting[k] -= 1
            if not self._waiting[k] and self.plan.outgoing[k].gate >= 0:
                gates.append(self.plan.outgoing[k].gate)
        return gates

    def _want(self, k: int) -> None:
        """A strip can be got: it is ready, and nobody here reads the version before."""
        heappush(self._wanted, (-self.plan.incoming[k].need, k))

    def _begin_most_needed(self) -> None:
        """Gets strips in the order in which they are needed, as much at a time as may be under way."""
        while self._wanted and self._bytes_pending < UNDER_WAY:
            self._begin(heappop(self._wanted)[1])

    def _begin(self, k: int) -> None:
        one = self.plan.incoming[k]
        if not self._pending:
            self._began = time.perf_counter_ns()
        out = self.tensors[one.name][one.here : one.here + one.elements]
        self._pending.append((one, self.store.take(one.source, one.channel, one.name, one.there, out)))
        self._bytes_pending += 8 * one.elements

    def _finish(self) -> list[int]:
        gates, left = [], []
        for one, request in self._pending:
            if not request.done():
                left.append((one, request))
                continue
            gates.append(one.gate)
            self.moved.gets += 1
            self.moved.bytes += 8 * one.elements
            self._bytes_pending -= 8 * one.elements
            if one.told:
                self._post(one.source, TAKEN, one.transfer)
        if self._pending and not left:
            self._spans.append((self._began, time.perf_counter_ns()))
        self._pending = left
        return gates

    def _post(self, rank: int, kind: int, number: int) -> None:
        self._posts.setdefault(rank, {}).setdefault(kind, []).append(number)

    def _send(self) -> None:
        for rank, kinds in self._posts.items():
            for kind, numbers in kinds.items():
                self.world.post(rank, np.array([kind, *numbers], np.int64))
                self.moved.messages += 1
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
) -> Outcome:
    """Runs the tasks of a rank while this thread moves strips. All ranks call it at the same time."""
    gates = core.Gates(plan.gate_first.tolist(), plan.gate_tasks.tolist(), traffic.watched)

    began: list[int] = []

    def run() -> Outcome:
        began.append(time.perf_counter_ns())
        return native.run(plan.graph, tables, schedule, buffers, scratch, workers, processors, shift, gates)

    crew = _Workers(run)
    crew.start()
    try:
        traffic.start()
        while True:
            over = gates.is_over() or not crew.is_alive()
            ended = gates.ended(0.0 if over else BUSY if traffic.busy or gates.is_waiting() else IDLE)
            traffic.ended(ended)
            opened = traffic.look()
            if opened and not over:
                gates.open(opened)
            if over and not ended:
                break
    except BaseException:
        gates.stop()
        raise
    finally:
        crew.join()
    if crew.error is not None:
        raise crew.error
    assert crew.outcome is not None
    traffic.count_hidden(crew.outcome.trace, workers, began[0])
    return crew.outcome
