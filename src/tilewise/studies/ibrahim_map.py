"""Figures 8 and 9 of Ibrahim et al.: time against tiling factor and quantum, with two kinds of heaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.execute.machines import MachineModel, Rates
from tilewise.execute.simulated import simulate
from tilewise.studies.libtensor import URACIL, BlockRun
from tilewise.studies.study import Findings, Pair, Row, Say, Table

FACTORS, QUANTA = (4, 5, 6, 7, 8), (1, 2, 4, 8)
DEFAULT = (4, 4)
"""Factor and quantum that libtensor has by default."""

EVENT = 8e-5
"""Seconds of an allocation or deallocation, fitted to what one heap loses at the default on Edison."""

QUEUE, BARRIER = 1e-6, 2e-5
"""Seconds of a look into the shared queue, which is locked too, and of a barrier."""


@dataclass(frozen=True)
class Node:
    """A node of the paper, with what its text says of its map."""

    name: str
    figure: int
    workers: int
    rates: Rates
    best_factor: int

    def seconds(self, run: BlockRun, quantum: int, *, one_heap: bool) -> float:
        """Of an iteration. One heap is like a link that all share: each event is a byte, one at a time."""
        machine = MachineModel(
            self.name,
            nodes=self.workers,
            cores=1,
            links=one_heap,
            bandwidth=1.0 / EVENT,
            counter_service=QUEUE,
            barrier=BARRIER,
        )
        events = 2 * run.allocations.astype(np.int64)
        found = simulate(
            run.graph,
            run.schedule(self.workers, quantum),
            run.seconds(self.rates),
            machine,
            bytes_got=events,
            gets=events,
            places=np.ones(int(events.sum())),
        )
        return found.makespan


NODES = (
    Node("Trestles", 8, 32, Rates(gemm=0.8 * 307e9 / 32, sort=1e8), 6),
    Node("Edison", 9, 24, Rates(gemm=0.8 * 461e9 / 24, sort=2e8), 8),
)

Map = Mapping[tuple[int, int], float]
"""Seconds by factor and quantum."""

ASSUMED = (
    "Lists of tasks, operations one after the other, copies and allocations are as in "
    "ibrahim-granularity; a core does products at 80 % of its peak.",
    f"An allocation or deallocation takes {1e6 * EVENT:.0f} microseconds, fitted to the middle of the 20 "
    "to 60 % that the paper's new heaps gain, at the default factor and quantum on Edison.",
    "With one heap these events queue for its lock, but for those of the worker that the heap lies with; "
    "with a heap for each thread they do not.",
    "Memory that is far from a core costs nothing here: what the new heaps gain by locality, of which the "
    "paper says that Trestles gains more, is missing.",
    "The master makes lists of tasks in no time; configurations that the paper marks as out of memory are "
    "run.",
)


def run(progress: Say, seed: int) -> Findings:
    """The study; nothing in it is random."""
    runs = {}
    for factor in FACTORS:
        progress(f"tiles of {4 * factor} orbitals")
        runs[factor] = BlockRun(URACIL, factor)
    maps: dict[tuple[str, bool], Map] = {}
    for node in NODES:
        for one_heap in (True, False):
            progress(f"{node.name}, {_heaps(one_heap)}")
            maps[node.name, one_heap] = {
                (factor, quantum): node.seconds(runs[factor], quantum, one_heap=one_heap)
                for quantum in QUANTA
                for factor in FACTORS
            }
    tables = [_compared(maps)]
    for node in NODES:
        for one_heap in (True, False):
            title = (
                f"Figure {node.figure}: seconds on {node.name}, {node.workers} workers, {_heaps(one_heap)}"
            )
            tables.append(_as_table(title, maps[node.name, one_heap]))
    return Findings(tuple(tables), ASSUMED, lambda figure: _draw(figure, maps))


def _heaps(one_heap: bool) -> str:
    return "one heap" if one_heap else "a heap for each thread"


def _compared(maps: Mapping[tuple[str, bool], Map]) -> Table:
    rows = []
    for node in NODES:
        old, new = maps[node.name, True], maps[node.name, False]
        best = min(new, key=lambda point: new[point])
        coarse = (node.best_factor, QUANTA[-1])
        rows += [
            Row(f"{node.name}: new heaps at the default", (Pair((1.2, 1.6), old[DEFAULT] / new[DEFAULT]),)),
            Row(f"{node.name}: best over the default", (Pair(2.0, old[DEFAULT] / new[best]),)),
            Row(f"{node.name}: best tiling factor", (Pair(node.best_factor, best[0]),)),
            Row(f"{node.name}: best quantum", (Pair(1, best[1]),)),
            Row(f"{node.name}: quantum 8 at that factor", (new[coarse] / new[node.best_factor, 1],)),
        ]
    return Table("Gains in time, and where the best point is", ("map", "value"), tuple(rows))


def _as_table(title: str, seconds: Map) -> Table:
    heads = ("quantum", *(f"factor {factor}" for factor in FACTORS))
    rows = (Row(str(q), tuple(seconds[factor, q] for factor in FACTORS)) for q in QUANTA)
    return Table(title, heads, tuple(rows))


def _draw(figure: Any, maps: Mapping[tuple[str, bool], Map]) -> None:
    """The gain over the default with one heap, as in the paper: bright is fast."""
    figure.set_size_inches(8.0, 5.6)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, one_heap in zip(axes, (True, False), strict=True):
        for axis, node in zip(row, NODES, strict=True):
            seconds, base = maps[node.name, one_heap], maps[node.name, True][DEFAULT]
            gain = np.array([[base / seconds[factor, q] for factor in FACTORS] for q in QUANTA])
            image = axis.imshow(gain, aspect="auto", cmap="viridis", vmin=0.8, vmax=1.8)
            for (y, x), value in np.ndenumerate(gain):
                colour = "black" if value > 1.4 else "white"
                axis.text(x, y, f"{value:.2f}", ha="center", va="center", color=colour)
            axis.set_title(f"{node.name}, {_heaps(one_heap)}", fontsize="medium")
            axis.set_xticks(range(len(FACTORS)), [str(factor) for factor in FACTORS])
            axis.set_yticks(range(len(QUANTA)), [str(quantum) for quantum in QUANTA])
    for axis in axes[-1]:
        axis.set_xlabel("tiling factor")
    for axis in axes[:, 0]:
        axis.set_ylabel("quantum")
    figure.colorbar(image, ax=axes.ravel().tolist(), label="gain over the default with one heap")
