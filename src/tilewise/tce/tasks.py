"""Tasks over tiles, each a chain of products, and the blocks that they read and write."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewise.inspect.dependencies import Graph, Traffic, numbered
from tilewise.inspect.records import Table
from tilewise.inspect.tasks import unique_pairs
from tilewise.lazy import cached_property
from tilewise.spaces import TileSpace
from tilewise.tce.loops import Loops
from tilewise.tce.routines import Routine

# `place` is the tuple among all of its routine, `first` and `count` are its products; `reads` and `writes`
# are the blocks that a copy reads and that the task adds to, or -1; `sorted` counts words.
TILE_TASK = np.dtype(
    [(name, np.int64) for name in ("kind", "operation", "place", "first", "count", "reads", "writes")]
    + [(name, np.int64) for name in ("gets", "puts")]
    + [(name, np.float64) for name in ("bytes_got", "bytes_put", "sorted")]
)

# A product C[m, n] += A[m, k] B[k, n]: the blocks of both operands, and the messages that bring them.
TILE_PRODUCT = np.dtype([(name, np.int64) for name in ("m", "n", "k", "a", "b", "gets_a", "gets_b")])


@dataclass
class TileGraph(Graph):
    """Tasks of routines, and the products that they are chains of."""

    operations: tuple[Routine, ...]
    space: TileSpace
    counts: tuple[int, ...]
    """Tuples of each operation, null ones included; 0 where chains are cut."""
    tasks: Table
    products: Table
    sources: np.ndarray
    targets: np.ndarray

    @property
    def m(self) -> np.ndarray:
        return self.products["m"]

    @property
    def n(self) -> np.ndarray:
        return self.products["n"]

    @property
    def k(self) -> np.ndarray:
        return self.products["k"]

    @property
    def gemms(self) -> np.ndarray:
        """Length of each task's chain."""
        return self.tasks["count"]

    @cached_property
    def chains(self) -> np.ndarray:
        """A tuple of a routine, with the operations into which the routine may be cut."""
        routines = {routine.name: k for k, routine in enumerate(self.operations)}
        number = np.array([routines[routine.name] for routine in self.operations], np.int64)
        return numbered(number[self.tasks["operation"]], self.tasks["place"])

    @property
    def sorted_words(self) -> np.ndarray:
        """Words that each task rearranges: both operands of every product, and each result it puts."""
        return self.tasks["sorted"]

    @cached_property
    def owners(self) -> np.ndarray:
        """The task of each product, or -1."""
        owner = np.full(len(self.products), -1, np.int64)
        first, count = self.tasks["first"], self.tasks["count"]
        position = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        owner[np.repeat(first, count) + position] = np.repeat(np.arange(len(self)), count)
        return owner

    def per_task(self, values: np.ndarray) -> np.ndarray:
        """Sums values of the products over each task."""
        kept = self.owners >= 0
        return np.bincount(self.owners[kept], weights=values[kept], minlength=len(self))

    @cached_property
    def flops(self) -> np.ndarray:
        p = self.products
        return self.per_task(2.0 * p["m"] * p["n"] * p["k"])

    @property
    def traffic(self) -> Traffic:
        return Traffic(*(self.tasks[key] for key in ("gets", "puts", "bytes_got", "bytes_put")))

    @cached_property
    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        """Canonical tuples of the loops; where chains are cut, the tasks alone."""
        operation, counts = self.tasks["operation"], np.array(self.counts, np.int64)
        cut = counts == 0
        numbers = np.bincount(operation, minlength=len(counts))
        first = np.searchsorted(operation, np.arange(len(counts)))
        place = np.where(cut[operation], np.arange(len(self)) - first[operation], self.tasks["place"])
        return place, np.where(cut, numbers, counts)

    @cached_property
    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A block is one of an operand of a product."""
        p, kept = self.products, self.owners >= 0
        blocks = np.concatenate([p["a"][kept], p["b"][kept]])
        size = np.concatenate([(p["m"] * p["k"])[kept], (p["k"] * p["n"])[kept]])
        names, which = np.unique(blocks, return_inverse=True)
        largest = np.zeros(len(names))
        np.maximum.at(largest, which, 8.0 * size)
        block, task = unique_pairs(which, np.tile(self.owners[kept], 2))
        return task, block, largest

    def describe(self, task: int) -> str:
        record = self.tasks[task]
        routine = self.operations[record["operation"]]
        tiles = Loops(routine.loops, self.space).tiles(record["place"])
        sides = (routine.target.upper, routine.target.lower)
        shown = "|".join(" ".join(f"{index}={int(tiles[index])}" for index in side) for side in sides)
        return f"operation '{routine.text}', block {routine.target.name}({shown})"


def messages(products: Table) -> dict[str, np.ndarray]:
    """What each product gets and sorts, by the field of its task."""
    a, b = products["m"] * products["k"], products["k"] * products["n"]
    gets_a, gets_b = products["gets_a"], products["gets_b"]
    return {"gets": gets_a + gets_b, "bytes_got": 8.0 * (a * gets_a + b * gets_b), "sorted": a + b}


def with_edges(graph: TileGraph) -> TileGraph:
    """The graph with its dependencies: who writes a block comes before those that read it."""
    tasks, p = graph.tasks, graph.products
    written = np.flatnonzero(tasks["puts"] > 0)
    order = np.argsort(tasks["writes"][written], kind="stable")
    writer, block = written[order], tasks["writes"][written][order]
    copies = np.flatnonzero(tasks["reads"] >= 0)
    task = np.concatenate([graph.owners, graph.owners, copies])
    read = np.concatenate([p["a"], p["b"], tasks["reads"][copies]])
    known = np.isin(read, block) & (task >= 0)
    task, read = unique_pairs(task[known], read[known])
    low = np.searchsorted(block, read)
    count = np.searchsorted(block, read, side="right") - low
    position = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    sources, targets = unique_pairs(writer[np.repeat(low, count) + position], np.repeat(task, count))
    own = sources != targets
    return replace(graph, sources=sources[own], targets=targets[own])
