"""What messages between ranks take here: Gets and Accumulates, short and long, a counter, a barrier."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from tilewise.execute.mpi.world import World

WORDS = 1 << 20
"""Elements of the long message: 8 MB."""
SHORT, LONG = 200, 8
"""How often a short and a long message are measured; the fastest quarter counts: others share the cores."""
FLOOD = 0.3
"""Seconds for which all ranks draw from one counter."""


@dataclass(frozen=True)
class Measured:
    """Between rank 0 and `partner`, the first on another node or else the last; seconds, bytes per second."""

    ranks: int
    nodes: int
    partner: int
    get_latency: float
    """Of a Get of 8 bytes."""
    get_bandwidth: float
    """Of a Get of 8 MB, the latency taken off."""
    accumulate_latency: float
    accumulate_bandwidth: float
    counter_latency: float
    """One way: half of what a draw takes if nobody else draws."""
    counter_service: float
    """Between two answers of a counter that all ranks but its host flood."""
    message_latency: float
    """One way, of a few numbers that are posted."""
    message_cost: float
    """To post them."""
    barrier: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(ranks: World) -> Measured:
    """Collective; about two seconds. The same numbers on every rank."""
    others = [rank for rank in range(ranks.size) if not ranks.is_local(rank)] if ranks.rank == 0 else []
    partner = ranks.bcast(others[0] if others else ranks.size - 1)
    bench = _Bench(ranks, partner)
    found = (
        *bench.transfers("Get"),
        *bench.transfers("Accumulate"),
        bench.drawn_alone() / 2,
        bench.flooded(),
        *bench.posted(),
        bench.barrier(),
    )
    bench.close()
    return Measured(ranks.size, len(ranks.nodes), partner, *ranks.bcast(found))


class _Bench:
    """A window with 8 MB and a counter on each rank. One rank acts, and the others look meanwhile."""

    def __init__(self, ranks: World, partner: int) -> None:
        self.ranks, self.partner = ranks, partner
        self.window = MPI.Win.Allocate(8 * (WORDS + 1), 8, comm=ranks.communicator)
        memory: Any = self.window.tomemory()
        self.memory: np.ndarray = np.frombuffer(memory, np.float64)
        self.memory[:] = 0.0
        self.window.Lock_all()
        ranks.barrier()

    def transfers(self, kind: str) -> tuple[float, float]:
        """Latency and bandwidth of Gets or Accumulates by rank 0, from or to its partner."""

        def act(data: np.ndarray) -> Callable[[], None]:
            def once() -> None:
                getattr(self.window, kind)(data, self.partner)
                self.window.Flush(self.partner)

            return once

        latency = self._seconds(act(np.zeros(1)), SHORT)
        long = self._seconds(act(np.zeros(WORDS)), LONG)
        return latency, 8 * WORDS / max(long - latency, 1e-9)

    def drawn_alone(self) -> float:
        """Seconds of a draw from the partner's counter."""
        return self._seconds(lambda: self._draw(self.partner), SHORT)

    def flooded(self) -> float:
        """Seconds between two draws of all other ranks from the counter of rank 0."""
        self.ranks.barrier()
        drawn, until = 0, time.perf_counter() + FLOOD
        if self.ranks.rank != 0 or self.ranks.size == 1:
            while time.perf_counter() < until:
                self._draw(0)
                drawn += 1
        self.ranks.barrier()
        return FLOOD / max(1.0, self.ranks.total(drawn))

    def posted(self) -> tuple[float, float]:
        """Half of the way to the partner and back, and what the sender is busy with, of a few numbers."""
        ranks, numbers = self.ranks, np.arange(4)
        there, busy = [], []
        ranks.barrier()
        if ranks.rank == 0 and self.partner != 0:
            for _ in range(SHORT):
                began = time.perf_counter()
                ranks.post(self.partner, numbers)
                busy.append(time.perf_counter() - began)
                while not ranks.arrived():
                    pass
                there.append((time.perf_counter() - began) / 2)
        elif ranks.rank == self.partner and self.partner != 0:
            for _ in range(SHORT):
                while not ranks.arrived():
                    pass
                ranks.post(0, numbers)
        ranks.barrier()
        return (_typical(there), _typical(busy)) if there else (0.0, 0.0)

    def barrier(self) -> float:
        """Seconds of a barrier into which all come at once."""
        spans = []
        for _ in range(SHORT // 4):
            self.ranks.barrier()
            began = time.perf_counter()
            self.ranks.barrier()
            spans.append(time.perf_counter() - began)
        return _typical(spans)

    def close(self) -> None:
        self.window.Unlock_all()
        self.ranks.barrier()
        self.window.Free()

    def _seconds(self, act: Callable[[], None], count: int) -> float:
        """What rank 0 takes, after one time that does not count."""
        spans = []
        self.ranks.barrier()
        if self.ranks.rank == 0:
            for _ in range(count + 1):
                began = time.perf_counter()
                act()
                spans.append(time.perf_counter() - began)
        self.ranks.barrier()
        return _typical(spans[1:]) if spans else 0.0

    def _draw(self, host: int) -> None:
        found = np.zeros(1, np.int64)
        self.window.Fetch_and_op(np.ones(1, np.int64), found, host, WORDS, MPI.SUM)
        self.window.Flush(host)


def _typical(seconds: list[float]) -> float:
    return float(np.quantile(seconds, 0.25))
