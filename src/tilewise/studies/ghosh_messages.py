"""Table I of Ghosh et al. on real ranks: the tasks of a contraction in three patterns, every message counted.

Tasks, products and blocks are those of the inspector; a block holds a few numbers alone, for messages are
what is counted. All patterns must make the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.execute.mpi.world import World
from tilewise.spaces import orbitals_named
from tilewise.studies.ghosh import ROUTINE, TABLE_1, TILE
from tilewise.studies.on_ranks import run_program
from tilewise.studies.study import Pair, Row, Say, Table
from tilewise.tce.patterns import PATTERNS, Pattern
from tilewise.tce.routines import routine_named

SIDE, RANKS = 2, 2
"""Rows and columns of a block, and ranks."""


def on_ranks(ranks: World, molecule: str, tile: int) -> dict[str, Any]:
    """Messages and seconds of each pattern on all ranks, and how far its result is from that of the first."""
    routine, space = routine_named(ROUTINE), orbitals_named(molecule, frozen=True).tiles(tile)
    made = {name: pattern(routine, space) for name, pattern in PATTERNS.items()}
    puts = made["original"].graph.tasks["puts"]
    found: dict[str, Any] = {}
    first = None
    for name, pattern in made.items():
        run = _Run(ranks, pattern, puts)
        began = time.perf_counter()
        run.tasks(name)
        seconds = ranks.total(time.perf_counter() - began, "max")
        result = run.result()
        first = result if first is None else first
        found[name] = run.messages() | {"seconds": seconds, "error": float(np.abs(result - first).max())}
        found[name]["expected"] = {"gets": pattern.gets, "adds": pattern.accumulates}
        run.close()
    return found


class _Run:
    """The blocks of one pattern, shared by the ranks."""

    def __init__(self, ranks: World, pattern: Pattern, puts: np.ndarray) -> None:
        from tilewise.execute.mpi.blocks import Blocks, Counter

        p = pattern.graph.products
        self.ranks, self.pattern, self.puts = ranks, pattern, puts
        (_, self.a_of), (_, self.b_of) = (np.unique(p[side], return_inverse=True) for side in "ab")
        self.a, self.b = (
            Blocks(ranks, int(blocks.max()) + 1, SIDE * SIDE) for blocks in (self.a_of, self.b_of)
        )
        self.c, self.counter = Blocks(ranks, len(puts), SIDE * SIDE), Counter(ranks)
        for blocks, names in ((self.a, np.unique(p["a"])), (self.b, np.unique(p["b"]))):
            for number in blocks.own:
                blocks.local(number)[:] = np.random.default_rng(int(names[number])).uniform(
                    -1, 1, SIDE * SIDE
                )
        ranks.barrier()

    def tasks(self, name: str) -> None:
        """Draws tasks from a counter until there are none left."""
        graph = self.pattern.graph
        keeps_a, keeps_b, adds_each = name == "cache", name != "original", name == "inverted"
        first, count, gets = (graph.tasks[key].tolist() for key in ("first", "count", "gets"))
        while (task := self.counter.draw()) < len(graph):
            if count[task] == 0:
                self._in_vain(gets[task])
                continue
            self._task(range(first[task], first[task] + count[task]), keeps_a, keeps_b, adds_each)
        self.c.complete()

    def _task(self, products: range, keeps_a: bool, keeps_b: bool, adds_each: bool) -> None:
        p, target = self.pattern.graph.products, self.pattern.targets
        a = self._getter(self.a, self.a_of, p["gets_a"], keeps_a)
        b = self._getter(self.b, self.b_of, p["gets_b"], keeps_b)
        sums: dict[int, np.ndarray] = {}
        for product in products:
            result = a(product) @ b(product)
            if adds_each:
                self._add(int(target[product]), result)
            else:
                sums[int(target[product])] = sums.get(int(target[product]), 0.0) + result
        for block, total in sums.items():
            self._add(block, total)

    def _getter(
        self, blocks: Any, number: np.ndarray, gets: np.ndarray, keeps: bool
    ) -> Callable[[int], np.ndarray]:
        """Gets a product's operand by as many messages as it takes, or finds it if it was kept."""
        kept: dict[int, np.ndarray] = {}

        def operand(product: int) -> np.ndarray:
            block = int(number[product])
            if keeps and block in kept:
                return kept[block]
            data = np.empty((SIDE, SIDE))
            for _ in range(int(gets[product])):  # of integrals one direct, one of exchange
                blocks.get(block, data)
            kept[block] = data
            return data

        return operand

    def _add(self, block: int, data: np.ndarray) -> None:
        """The block of a result may go to several places of the target, by one message each."""
        share = data / self.puts[block]
        for _ in range(int(self.puts[block])):
            self.c.add(block, share)

    def _in_vain(self, gets: int) -> None:
        """Blocks that the published loops get and do nothing with."""
        data = np.empty((SIDE, SIDE))
        for _ in range(gets):
            self.b.get(0, data)

    def messages(self) -> dict[str, int]:
        counts = self.ranks.allreduce(np.array([self.b.gets, self.a.gets, self.c.adds]))
        return dict(zip(("gets", "gets_of_amplitudes", "adds"), map(int, counts), strict=True))

    def result(self) -> np.ndarray:
        """All blocks of the target, on every rank."""
        own = np.zeros((len(self.puts), SIDE * SIDE))
        for block in self.c.own:
            own[block] = self.c.local(block)
        return self.ranks.allreduce(own)

    def close(self) -> None:
        for shared in (self.a, self.b, self.c, self.counter):
            shared.close()


def message_tables(progress: Say, seed: int) -> tuple[Table, ...]:
    """Messages that real ranks sent, beside the paper's and the inspector's."""
    rows = []
    for molecule, paper in TABLE_1.items():
        progress(f"{molecule} on {RANKS} ranks")
        found = run_program("patterns", RANKS, molecule=f"water-{molecule.split()[0]}", tile=TILE)
        for name, run in found.items():
            gets, adds = paper[name]
            counts = (Pair(gets, run["gets"]), Pair(adds, run["adds"]))
            counted = (run["expected"]["gets"], run["expected"]["adds"])
            rows.append(Row(f"{molecule}, {name}", (*counts, *counted, run["seconds"], run["error"])))
    heads = ("pattern", "Gets", "Accumulates", "Gets counted", "Accumulates counted", "seconds", "difference")
    title = f"Messages of {ROUTINE} on {RANKS} real ranks, tasks from a counter"
    return (Table(title, heads, tuple(rows)),)
