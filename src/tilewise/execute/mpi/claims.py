"""Who takes which task, where that is decided while ranks run: counters that all of them draw from.

A phase of a schedule for all workers of all ranks has queues. A list of one worker is taken by its rank
without asking. From a shared queue a rank draws as much as its workers take at a time, by one addition to
the queue's counter; the chunks of a loop are cut beforehand, with the estimated work as measure. Where
stealing is allowed, the two ends of a queue are one number: an addition takes from either of them, and
gives what both were before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilewise.execute.store import Store
from tilewise.schedule import Phase, Queue
from tilewise.schedule.loops import Loop
from tilewise.schedule.schedule import NULL, WHOLE

BACK = 1 << 32
"""What one task that was taken from the back counts in the number of a queue that may be stolen from."""


def chunks_of(queue: Queue, work: np.ndarray) -> list[tuple[int, int]]:
    """The chunks of a self-scheduled loop, if all workers are equally fast and ask in turn."""
    loop = Loop(queue.rule, np.where(queue.tasks == NULL, 0.0, work[queue.tasks]), len(queue.workers))
    found: list[tuple[int, int]] = []
    turn = 0
    taken: dict[int, float] = {}
    while True:
        first, last = loop.next(turn, taken.get(turn, 0.0))
        if first == last:
            return found
        found.append((first, last))
        taken[turn] = float(loop.work[first:last].sum())
        turn = (turn + 1) % len(queue.workers)


def counter_homes(phases: Sequence[Phase], threads: int) -> list[int]:
    """The rank on which the counter of each queue lies: one of those that draw from it, in turn by phase.

    So the counter of a node's bucket is in the memory that the ranks of this node share.
    """
    homes: list[int] = []
    for number, phase in enumerate(phases):
        for queue in phase.queues:
            drawing = sorted({worker // threads for worker in queue.workers}) or [0]
            homes.append(drawing[number % len(drawing)])
    return homes


class Claims:
    """The tasks that one rank takes in one phase, as it goes."""

    def __init__(self, phase: Phase, first_slot: int, work: np.ndarray, workers: range, store: Store) -> None:
        """`workers` are the rank's own; counters of the phase begin at `first_slot`."""
        self.phase, self.first_slot, self.work, self.store = phase, first_slot, work, store
        self.own = [
            (k, sum(w in workers for w in queue.workers))
            for k, queue in enumerate(phase.queues)
            if any(w in workers for w in queue.workers)
        ]
        self.draws = 0
        self.steals = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        """Some tasks at a time, until none are left."""
        for k, mine in self.own:
            queue = self.phase.queues[k]
            if queue.quantum == WHOLE:
                for task in queue.tasks:
                    yield np.array([task])
            elif self.phase.steal:
                yield from self._from_front(k, queue.quantum * mine)
            elif queue.rule.taking != "fixed":
                yield from self._chunks(k, chunks_of(queue, self.work))
            else:
                yield from self._drawn(k, queue.quantum * mine)
        if self.phase.steal:
            yield from self._stolen()

    def _draw(self, k: int, amount: int) -> int:
        self.draws += 1
        return self.store.fetch_add(self.first_slot + k, amount)

    def _drawn(self, k: int, amount: int) -> Iterator[np.ndarray]:
        tasks = self.phase.queues[k].tasks
        while (first := self._draw(k, amount)) < len(tasks):
            yield _real(tasks[first : first + amount])

    def _chunks(self, k: int, chunks: list[tuple[int, int]]) -> Iterator[np.ndarray]:
        tasks = self.phase.queues[k].tasks
        while (number := self._draw(k, 1)) < len(chunks):
            yield _real(tasks[slice(*chunks[number])])

    def _from_front(self, k: int, amount: int) -> Iterator[np.ndarray]:
        tasks = self.phase.queues[k].tasks
        while True:
            front, back = self._ends(k, self._draw(k, amount))
            if front >= back:
                return
            yield _real(tasks[front : min(front + amount, back)])

    def _stolen(self) -> Iterator[np.ndarray]:
        """One task after the other from the back of the longest queue, until all are empty."""
        while True:
            ends = [self._ends(k, self._draw(k, 0)) for k in range(len(self.phase.queues))]
            left = [back - front for front, back in ends]
            victim = int(np.argmax(left)) if left else 0
            if not left or left[victim] <= 0:
                return
            front, back = self._ends(victim, self._draw(victim, BACK))
            if front < back:  # nobody was sooner
                self.steals += 1
                yield _real(self.phase.queues[victim].tasks[back - 1 : back])

    def _ends(self, k: int, seen: int) -> tuple[int, int]:
        """What was left of a queue, tasks[front:back], when that was its number.

        Who drew then has the first of these, or the last one; of an empty queue nothing.
        """
        return seen % BACK, len(self.phase.queues[k].tasks) - seen // BACK


def _real(tasks: np.ndarray) -> np.ndarray:
    return tasks[tasks != NULL]
