"""The loops of Ghosh et al.'s proxy on real ranks: a product of two square matrices, block by block.

original          a task is a block of the result: both operands are got for each product, one Accumulate
inverted          a task is a block of the second matrix, got once: an Accumulate for each product
double-buffered   the same, with the next block and the last result under way while a product is computed
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.execute.mpi.world import World
from tilewise.execute.simulated import simulate
from tilewise.hardware.model import MachineModel
from tilewise.schedule import policy_named
from tilewise.studies.ghosh_proxy import INVERTED, ORIGINAL, pattern_of
from tilewise.studies.on_ranks import run_program
from tilewise.studies.study import Row, Say, Table

BUFFERED = "double-buffered"
LOOPS = (ORIGINAL, INVERTED, BUFFERED)
SIZE, BLOCKS, RANKS = 1440, (120, 180, 240), (1, 2, 4)
"""Rows of the matrices, of their blocks, and numbers of ranks."""
REPEATS = 3


def on_ranks(ranks: World, size: int, block: int) -> dict[str, Any]:
    """Seconds, messages and the largest error of each of the loops, and what messages take here."""
    from tilewise.execute.mpi.measure import measure

    found: dict[str, Any] = {"network": measure(ranks).to_dict(), "rate": _rate(ranks, block)}
    for name in LOOPS:
        product = _Product(ranks, size // block, block)
        spans = []
        for _ in range(REPEATS):
            product.clear()
            began = time.perf_counter()
            product.run(name)
            spans.append(ranks.total(time.perf_counter() - began, "max"))
        found[name] = {"seconds": min(spans), "error": product.error()} | product.messages()
        product.close()
    return found


class _Product:
    """C = A B in `n` by `n` blocks of `side` rows and columns; block (i, j) has the number i n + j."""

    def __init__(self, ranks: World, n: int, side: int) -> None:
        from tilewise.execute.mpi.blocks import Blocks, Counter

        self.ranks, self.n, self.side = ranks, n, side
        self.a, self.b, self.c = (Blocks(ranks, n * n, side * side) for _ in range(3))
        self.counter = Counter(ranks)
        for seed, blocks in ((1, self.a), (2, self.b)):
            for number in blocks.own:
                blocks.local(number)[:] = _numbers(seed, number, side).ravel()
        ranks.barrier()

    def clear(self) -> None:
        for number in self.c.own:
            self.c.local(number)[:] = 0.0
        for blocks in (self.a, self.b, self.c):
            blocks.gets = blocks.adds = 0
        self.counter.reset()

    def run(self, name: str) -> None:
        loop = {ORIGINAL: self._original, INVERTED: self._inverted, BUFFERED: self._buffered}[name]
        while (task := self.counter.draw()) < self.n * self.n:
            loop(*divmod(task, self.n))
        self.c.complete()

    def _original(self, i: int, j: int) -> None:
        left, right, result = (np.zeros((self.side,) * 2) for _ in range(3))
        for k in range(self.n):
            self.a.get(i * self.n + k, left)
            self.b.get(k * self.n + j, right)
            result += left @ right
        self.c.add(i * self.n + j, result)

    def _inverted(self, k: int, j: int) -> None:
        left, right = (np.zeros((self.side,) * 2) for _ in range(2))
        self.b.get(k * self.n + j, right)
        for i in range(self.n):
            self.a.get(i * self.n + k, left)
            self.c.add(i * self.n + j, left @ right)

    def _buffered(self, k: int, j: int) -> None:
        right, *left = (np.zeros((self.side,) * 2) for _ in range(3))
        self.b.get(k * self.n + j, right)
        coming = self.a.start_get(k, left[0])
        results: list[tuple[Any, np.ndarray]] = []
        for i in range(self.n):
            _finish(coming)
            if i + 1 < self.n:
                coming = self.a.start_get((i + 1) * self.n + k, left[(i + 1) % 2])
            result = left[i % 2] @ right
            if results:
                _finish(results.pop()[0])
            results.append((self.c.start_add(i * self.n + j, result), result))
        _finish(results.pop()[0])

    def messages(self) -> dict[str, int]:
        """Of the last run, on all ranks."""
        own = np.array([self.a.gets, self.b.gets, self.c.adds])
        a, b, adds = map(int, self.ranks.allreduce(own))
        return {"gets": a + b, "adds": adds}

    def error(self) -> float:
        """The largest, over all elements, against a product in one piece of the rows that a block has."""
        worst = 0.0
        for number in self.c.own:
            i, j = divmod(number, self.n)
            rows = np.hstack([_numbers(1, i * self.n + k, self.side) for k in range(self.n)])
            columns = np.vstack([_numbers(2, k * self.n + j, self.side) for k in range(self.n)])
            own = self.c.local(number).reshape(self.side, self.side)
            worst = max(worst, float(np.abs(own - rows @ columns).max()))
        return self.ranks.total(worst, "max")

    def close(self) -> None:
        for shared in (self.a, self.b, self.c, self.counter):
            shared.close()


def _finish(request: Any) -> None:
    while not request.done():
        pass


def _numbers(seed: int, number: int, side: int) -> np.ndarray:
    return np.random.default_rng((seed, number)).uniform(-1, 1, (side, side))


def _rate(ranks: World, side: int) -> float:
    """Operations per second of products of blocks, on all ranks at once."""
    left, right = _numbers(3, 0, side), _numbers(4, 0, side)
    ranks.barrier()
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + 0.2:
        left @ right
        count += 1
    return ranks.total(2.0 * side**3 * count / (time.perf_counter() - began)) / ranks.size


def simulated_seconds(name: str, size: int, block: int, ranks: int, found: dict[str, Any]) -> float:
    """The same loops on a machine with what was measured of messages and products."""
    pattern = pattern_of(ORIGINAL if name == ORIGINAL else INVERTED, size, block, block)
    graph, network = pattern.graph, found["network"]
    machine = MachineModel(
        "measured",
        ranks,
        1,
        latency=network["get_latency"],
        bandwidth=network["get_bandwidth"],
        counter_service=network["counter_service"],
        counter_latency=network["counter_latency"],
        barrier=network["barrier"],
    )
    machine = replace(machine, prefetch=1) if name == BUFFERED else machine
    added = graph.traffic.bytes_put / network["accumulate_bandwidth"]
    seconds = graph.flops / found["rate"] + added
    draws = 1 if name == ORIGINAL else len(graph) // pattern.gets
    schedule = policy_named(f"ie-nxtval(quantum={draws})")(graph, seconds, machine.team(ranks))
    return simulate(graph, schedule, seconds, machine, **vars(graph.traffic)).makespan


def proxy_tables(progress: Say, seed: int) -> tuple[Table, ...]:
    """Measured now on ranks of this machine, beside the simulation."""
    rows = []
    for ranks in RANKS:
        for block in BLOCKS:
            progress(f"real loops, {ranks} ranks, blocks of {block}")
            found = run_program("proxy", ranks, size=SIZE, block=block)
            for name in LOOPS:
                run = found[name]
                simulated = simulated_seconds(name, SIZE, block, ranks, found)
                values = (run["seconds"], simulated, run["gets"], run["adds"], run["error"])
                rows.append(Row(f"{name}, blocks of {block}, {ranks} ranks", values))
    heads = ("loops", "measured", "simulated", "Gets", "Accumulates", "largest error")
    return (Table(f"Real ranks of this machine: {SIZE} square, seconds", heads, tuple(rows)),)
