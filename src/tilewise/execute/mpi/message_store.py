"""Messages in the place of windows: who needs a strip asks its home, which sends it.

Slower than one-sided communication where that makes progress by itself, and right where that fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tilewise.execute.mpi.world import Request, World
from tilewise.execute.store import Done, Near
from tilewise.new_memory import zeros

FOR_STORE = 3
"""The first number of a message for the store of another rank."""

ASKED, ADDED, DRAWN, ANSWERED = range(4)
"""What such a message is about."""

ADDS, TAGS, OFFERS = 2048, 4096, 28000
"""Tags of what is asked for, in turn; from the first number on those of what is added, from the second on
those of what is offered; the world has others."""


LOOK = 5e-5
"""Seconds between two looks for the answer of a counter: who is asked may share the core."""


class _Asked:
    """A strip that was asked for."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def done(self) -> bool:
        return self._request.done()


class _Sent:
    """Something that is added elsewhere: over when its home has said so."""

    def __init__(self, request: Request) -> None:
        self._request, self.confirmed = request, False

    def done(self) -> bool:
        return self._request.done() and self.confirmed


class MessageStore:
    """A rank's tensors and counters, which others ask for by messages."""

    name: ClassVar[str] = "messages"

    def __init__(self, world: World) -> None:
        self.world = world
        self._memory: dict[str, np.ndarray] = {}
        self._names: list[str] = []
        self._tag = 0
        self._sends: list[Request] = []
        self._coming: list[tuple[int, int, np.ndarray, np.ndarray, Request]] = []
        self._added: dict[tuple[int, int], _Sent] = {}
        self._counters: list[int] = []
        self._homes: list[int] = []
        self._answer: int | None = None
        self.pump: Callable[[], None] = self._pump
        """Takes messages while an answer is waited for."""

    def allocate(self, lengths: Mapping[str, int]) -> dict[str, np.ndarray]:
        self._names = sorted(lengths)
        self._memory = {name: zeros(length) for name, length in lengths.items()}
        self.world.barrier()
        return dict(self._memory)

    def near(self, transfers: int) -> Near | None:
        return None

    def offer(self, target: int, channel: int, data: np.ndarray) -> None:
        self._sends.append(self.world.send_panel(target, TAGS + channel % OFFERS, data))

    def take(self, source: int, channel: int, name: str, offset: int, out: np.ndarray) -> Request:
        return self.world.receive_panel(source, TAGS + channel % OFFERS, out)

    def get(self, source: int, name: str, offset: int, out: np.ndarray) -> Request:
        if source == self.world.rank:
            out[:] = self._memory[name][offset : offset + len(out)]
            return Done()
        tag = self._next_tag()
        request = self.world.receive_panel(source, tag, out)
        self._post(source, ASKED, tag, self._names.index(name), offset, len(out))
        return _Asked(request)

    def add(self, target: int, name: str, offset: int, data: np.ndarray) -> Request:
        if target == self.world.rank:
            self._memory[name][offset : offset + len(data)] += data
            return Done()
        tag = ADDS + self._next_tag()
        self._post(target, ADDED, tag, self._names.index(name), offset, len(data))
        sent = _Sent(self.world.send_panel(target, tag, data))
        self._added[target, tag] = sent
        return sent

    def fetch_add(self, slot: int, amount: int) -> int:
        """Asks the home of a counter, and waits for the answer while others are served."""
        if self._homes[slot] == self.world.rank:
            return self._count(slot, amount)
        self._answer = None
        self._post(self._homes[slot], DRAWN, slot, amount)
        self.pump()
        while self._answer is None:
            time.sleep(LOOK)
            self.pump()
        return self._answer

    def _pump(self) -> None:
        for source, numbers in self.world.arrived():
            if int(numbers[0]) != FOR_STORE:
                raise AssertionError("only stores talk while a counter is drawn from")
            self.handle(source, numbers[1:])
        self.progress()

    def _count(self, slot: int, amount: int) -> int:
        before = self._counters[slot]
        self._counters[slot] += amount
        return before

    def reset(self, homes: Sequence[int]) -> None:
        self.world.barrier()
        self._homes, self._counters = list(homes), [0] * len(homes)
        self.world.barrier()

    def publish(self) -> None:
        pass

    def handle(self, source: int, numbers: np.ndarray) -> None:
        kind, *rest = (int(n) for n in numbers)
        if kind == ASKED:
            tag, name, offset, count = rest
            data = self._memory[self._names[name]][offset : offset + count]
            self._sends.append(self.world.send_panel(source, tag, data))
        elif kind == ADDED and len(rest) == 1:
            self._added.pop((source, rest[0])).confirmed = True
        elif kind == ADDED:
            tag, name, offset, count = rest
            place, data = self._memory[self._names[name]][offset : offset + count], np.empty(count)
            self._coming.append((source, tag, place, data, self.world.receive_panel(source, tag, data)))
        elif kind == ANSWERED:
            self._answer = rest[0]
        else:
            self._post(source, ANSWERED, self._count(*rest))

    def progress(self) -> None:
        """Adds what has come, and forgets what has been sent."""
        self._sends = [request for request in self._sends if not request.done()]
        left = []
        for source, tag, place, data, request in self._coming:
            if request.done():
                place += data
                self._post(source, ADDED, tag)
            else:
                left.append((source, tag, place, data, request))
        self._coming = left

    def close(self) -> None:
        self.world.barrier()
        self._memory = {}

    def _next_tag(self) -> int:
        self._tag = (self._tag + 1) % ADDS
        return self._tag

    def _post(self, to: int, *numbers: int) -> None:
        self.world.post(to, np.array([FOR_STORE, *numbers], np.int64))
