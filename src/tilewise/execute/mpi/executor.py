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

UNDER_WAY = 1 << 21
"""Bytes that a rank gets at a time at most, unless one strip has more: what is needed first comes first, and
what turns out to be more urgent waits for no more than this. Over a link of 1 Gbit that is 17 ms."""

BUSY, IDLE = 2e-4, 2e-3
"""Seconds between two looks while requests are under way, and otherwise."""
QUIET = 5e-2
"""Seconds between two looks where a bell tells of all that comes: for signs of life alone."""


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
        self._waiting = {k: len(out.transfers) for k, out in enumerate(plan.outgoing)}
        self._held = set(plan.held)
        self._announced: set[int] = set()
        self._wanted: list[tuple[float, int]] = []
        self._pending: list[tuple[Incoming, Request]] = []
        self._bytes_pending = 0
        self._posts: dict[int, dict[int, list[int]]] = {}
        self._asked = 0.0
        self._began = 0
        self._spans: list[tuple[int, int]] = []

    @property
    def pause(self) -> float:
        """Seconds until the next look, if nothing happens that is told of."""
        if self._pending or self._wanted:
            return BUSY
        return QUIET if self.store.bell else IDLE

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
        for source, numbers in self._arrived():
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

    def _arrived(self) -> list[tuple[int, np.ndarray]]:
        """What was posted to this rank. With a bell the library is asked if it rang, or for signs of life."""
        bell, now = self.store.bell, time.monotonic()
        if bell and bell.place[0] == bell.heard and now < self._asked + QUIET:
            return []
        self._asked, found = now, self.world.arrived()
        if bell:
            bell.heard += len(found)
        return found

    def count_hidden(self, trace: np.ndarray, workers: int, began: int) -> None:
        """Compares the spans of requests with those of tasks, whose run began at a moment of the clock."""
        spans = [(begin - began, end - began) for begin, end in self._spans]
        self.moved.seconds, self.moved.hidden = under_way(spans, trace, workers)

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
        self.moved.gets += 1
        self.moved.bytes += 8 * one.elements
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
                if self.store.bell:
                    self.store.ring(rank)
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
    bell = traffic.store.bell
    gates = core.Gates(
        plan.gate_first.tolist(),
        plan.gate_tasks.tolist(),
        plan.group_first.tolist(),
        plan.group_tasks.tolist(),
        bell.place if bell else None,
        bell.others if bell else (),
    )

    began: list[int] = []

    def run() -> Outcome:
        began.append(time.perf_counter_ns())
        return native.run(plan.graph, tables, schedule, buffers, scratch, workers, processors, shift, gates)

    crew = _Workers(run)
    crew.start()
    try:
        traffic.start()
        over = False

        def open_gates(which: list[int]) -> None:
            if which and not over:
                gates.open(which)

        while True:
            over = gates.is_over() or not crew.is_alive()
            if over:
                ended = gates.ended(0.0)
            elif bell:
                ended = gates.ended(traffic.pause, bell.heard)
            else:
                ended = gates.ended(BUSY if gates.is_waiting() else traffic.pause)
            traffic.ended(ended)
            traffic.look(open_gates)
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
