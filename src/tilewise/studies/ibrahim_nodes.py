"""The nodes of Ibrahim et al., table II, and an iteration on them with one heap or a heap for each thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.execute.simulated import Simulation, simulate
from tilewise.hardware.machines import MachineModel, Rates
from tilewise.studies.constants import in_module, quantity
from tilewise.studies.libtensor import BlockRun
from tilewise.studies.study import Constant

PAPER = "Ibrahim et al."
FACTORS, QUANTA = (4, 5, 6, 7, 8), (1, 2, 4, 8)
DEFAULT = (4, 4)
"""Factor and quantum that libtensor has by default."""

OF_PEAK = 0.8
"""Part of its peak at which a core does products."""

EVENT = 1.1e-4
"""Seconds of an allocation or deallocation."""

QUEUE, BARRIER = 1e-6, 2e-5
"""Seconds of a look into the shared queue, which is locked too, and of a barrier."""


@dataclass(frozen=True)
class Node:
    name: str
    workers: int
    peak: float
    """Operations per second of all cores together."""
    copied: float
    """Words per second that a core copies."""

    @property
    def rates(self) -> Rates:
        return Rates(gemm=OF_PEAK * self.peak / self.workers, sort=self.copied)

    def run(
        self,
        run: BlockRun,
        quantum: int,
        *,
        one_heap: bool,
        workers: int | None = None,
        event: float = EVENT,
    ) -> Simulation:
        """An iteration. One heap is like a link that all share: each event is a byte, one at a time."""
        workers = workers or self.workers
        machine = MachineModel(
            self.name,
            nodes=workers,
            cores=1,
            links=one_heap,
            bandwidth=1.0 / event,
            counter_service=QUEUE,
            barrier=BARRIER,
        )
        events = 2 * run.allocations.astype(np.int64)
        return simulate(
            run.graph,
            run.schedule(workers, quantum),
            run.seconds(self.rates),
            machine,
            bytes_got=events,
            gets=events,
            places=np.ones(int(events.sum())),
        )


TRESTLES = Node("Trestles", 32, 307e9, 1e8)
EDISON = Node("Edison", 24, 461e9, 2e8)
CARVER = Node("Carver", 32, 256e9, 1e8)

ASSUMED = (
    "Lists of tasks, operations one after the other, copies and allocations are as in "
    f"ibrahim-granularity; a core does products at {100 * OF_PEAK:.0f} % of its peak.",
    f"An allocation or deallocation takes {1e6 * EVENT:g} microseconds: at the default factor and quantum "
    "new heaps then gain the middle of the 20 to 60 % that the paper says of Trestles. It gives no such "
    "number for Edison.",
    "With one heap these events queue for its lock, but for those of the worker that the heap lies with; "
    "with a heap for each thread they do not.",
    "Memory that is far from a core costs nothing here: what new heaps gain by locality, of which the paper "
    "says that Trestles gains more, is in the time of an event instead.",
    "The master makes lists of tasks in no time; configurations that the paper marks as out of memory are "
    "run.",
)
"""Of all studies that simulate heaps."""

_UNKNOWN = "chosen: the paper gives none"


def copy_rate(node: Node) -> Constant:
    """How fast a node copies, which table II does not say."""
    value, file = quantity(node.copied, "words/s of a core"), "src/tilewise/studies/ibrahim_nodes.py"
    return Constant(f"{node.name}.copied", value, file, "gain by larger tiles, absolute times", _UNKNOWN)


TILES_AND_PEAK = (
    in_module(
        BlockRun.__module__,
        "HOLE_TILE",
        "numbers of tasks and allocations",
        "chosen: the default of libtensor; the paper changes tiles of virtual orbitals",
        "orbitals",
    ),
    in_module(__name__, "OF_PEAK", "absolute times, weight of the heap", _UNKNOWN),
)
HEAP = (
    in_module(
        __name__,
        "EVENT",
        "gain of new heaps, and by how much larger tiles help one heap",
        "fitted to a gain of 1.4 at the default on Trestles, the middle of 20 to 60 %",
        "s",
    ),
    in_module(__name__, "QUEUE", "cost of small quanta", _UNKNOWN, "s"),
    in_module(__name__, "BARRIER", "the end of each operation: next to nothing", _UNKNOWN, "s"),
)
