"""Who gets which items of a loop next: the decisions of a schedule, without threads or messages.

Threads, processes and ranks ask the same source; the native core decides alike for tasks that it computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from multiprocessing.context import BaseContext

import numpy as np

from tilewise.schedule.loops import Loop
from tilewise.schedule.schedule import NULL, WHOLE, Phase, Queue, Schedule

PIECES = 16
"""Parts in which a worker gets a list that is its own alone, so that an error stops it early."""
PATIENCE = 1.0
"""Seconds to wait for a lock that others keep for microseconds."""


@dataclass
class _Line:
    """What is left of one queue: positions from `front` to before `back`."""

    queue: Queue
    work: np.ndarray
    front: int = 0
    back: int = field(init=False)
    loop: Loop | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.back = len(self.queue.tasks)
        if self.queue.rule.taking != "fixed":
            work = self.work[self.queue.tasks]
            self.loop = Loop(self.queue.rule, work, len(self.queue.workers))

    @property
    def left(self) -> int:
        return self.back - self.front

    def take(self, worker: int, seconds: float) -> np.ndarray:
        """What comes next, from the front."""
        if self.loop is not None:
            first, self.front = self.loop.next(worker, seconds)
            return self.queue.tasks[first : self.front]
        first = self.front
        whole = -(-len(self.queue.tasks) // PIECES)
        quantum = whole if self.queue.quantum == WHOLE else self.queue.quantum
        self.front = min(first + max(1, quantum), self.back)
        return self.queue.tasks[first : self.front]

    def steal(self) -> np.ndarray:
        """One quantum from the far end."""
        last = self.back
        self.back = max(self.front, last - max(1, self.queue.quantum))
        return self.queue.tasks[self.back : last]


class Source:
    """Hands out the items of a loop as a schedule says; whoever acts on it asks again and again.

    Items do not need each other: a worker that has done its part of one phase goes on to the next.
    """

    def __init__(self, schedule: Schedule) -> None:
        phases = schedule.phases or (_by_priority(schedule),)
        self._phases = [(phase, [_Line(queue, schedule.work) for queue in phase.queues]) for phase in phases]
        self._at = [0] * schedule.workers
        self.calls = [0] * schedule.workers
        """How often each worker has asked."""
        self.steals = [0] * schedule.workers
        """How often each worker has got something from the queue of another."""

    def take(self, worker: int, seconds: float = 0.0) -> np.ndarray:
        """Items for a worker whose last ones took `seconds`; none if there is nothing left for it."""
        self.calls[worker] += 1
        while self._at[worker] < len(self._phases):
            items = self._of_phase(worker, seconds, *self._phases[self._at[worker]])
            if len(items):
                return items
            self._at[worker] += 1
            seconds = 0.0
        return np.zeros(0, np.int64)

    def _of_phase(self, worker: int, seconds: float, phase: Phase, lines: list[_Line]) -> np.ndarray:
        own = next((line for line in lines if worker in line.queue.workers), None)
        while own is not None and own.left:
            items = _present(own.take(worker, seconds))
            if len(items):
                return items
        fullest = max(lines, key=lambda line: line.left, default=None)
        if phase.steal and fullest is not None and fullest.left:
            self.steals[worker] += 1
            return _present(fullest.steal())
        return np.zeros(0, np.int64)


class SharedSource:
    """A source that processes ask without a word to each other; whoever is asked answers alike.

    Each process has a copy. What was asked, by whom, is written down in memory that all share, one after the
    other: who asks goes through what the others have asked since, and then knows what is its own.
    """

    def __init__(self, source: Source, most: int, context: BaseContext) -> None:
        """Is asked `most` times at most."""
        self.source = source
        self._lock = context.Lock()
        self._stopped = context.RawValue("b", 0)
        self._asked = context.RawValue("q", 0)
        self._workers = context.RawArray("i", most)
        self._seconds = context.RawArray("d", most)
        self._seen = 0

    def stop(self) -> None:
        """From now on there is nothing left for anyone."""
        self._stopped.value = 1

    def take(self, worker: int, seconds: float = 0.0) -> np.ndarray:
        """Items for a worker, as of `Source.take`."""
        if self._stopped.value:
            return np.zeros(0, np.int64)
        with self._lock:
            at = self._asked.value
            self._workers[at], self._seconds[at] = worker, seconds
            self._asked.value = at + 1
        return self._go_to(at + 1)[worker]

    def taken(self) -> dict[int, np.ndarray]:
        """What each worker has got last, of those that have asked since this process has looked."""
        held = self._lock.acquire(timeout=PATIENCE)  # a process that was killed may keep it for ever
        asked = self._asked.value
        if held:
            self._lock.release()
        return self._go_to(asked)

    def _go_to(self, asked: int) -> dict[int, np.ndarray]:
        found = {}
        for k in range(self._seen, asked):
            worker = self._workers[k]
            found[worker] = self.source.take(worker, self._seconds[k])
        self._seen = asked
        return found


def _present(items: np.ndarray) -> np.ndarray:
    """Without null tuples, which are drawn in vain."""
    return items[items != NULL]


def _by_priority(schedule: Schedule) -> Phase:
    """A schedule by data flow, where all is ready from the beginning: first what has the highest priority."""
    order = np.argsort(-schedule.priority, kind="stable")
    everyone = tuple(range(schedule.workers))
    if schedule.ready is None:
        return Phase((Queue(order, everyone),))
    group_of = schedule.ready.group[schedule.ready.of_worker]
    groups = sorted(set(group_of.tolist()))
    queues = (
        Queue(order[schedule.ready.home[order] == g], tuple(np.flatnonzero(group_of == g).tolist()))
        for g in groups
    )
    return Phase(tuple(queues), steal=True)
