"""Sorts of the set-up that read a large tensor a few rows at a time.

A rank holds some cells of what a sort makes, and none of the integrals that the sort reads: these come in
batches of cells, from whoever makes them, and go. Blocks of a sort are taken apart into their reads, each of
which adds what one cell gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tilewise import native
from tilewise.config import thread_limits
from tilewise.equations.program import Operation, Program
from tilewise.errors import TaskError
from tilewise.inspect import PanelRule, TaskGraph
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.panels import runs
from tilewise.inspect.records import KINDS, TASK
from tilewise.lazy import cached_property
from tilewise.tensor.shard import Cells, Shard

Held = Callable[[str], Shard]
"""What a rank holds of a tensor."""


@dataclass(frozen=True, eq=False)
class Stream:
    """One operation of the set-up; an *item* is what one read adds to one block."""

    program: Program
    operation: Operation
    source: str

    @cached_property
    def _graph(self) -> TaskGraph:
        graph = inspect_operations(self.program, (self.operation,), PanelRule())
        if (graph.tasks["kind"] != KINDS.index("sort")).any():
            raise TaskError(f"operation '{self.operation.text}' of the set-up is no sort")
        return graph

    @cached_property
    def _items(self) -> dict[str, np.ndarray]:
        """Block, read, view and task of each item, and the cell that it reads."""
        graph, records = self._graph, self._graph.records
        blocks = records["sort"]
        block, place = runs(0, blocks["n_read"])
        read = blocks["first_read"][block] + place
        view = records["read"]["first_view"][read]
        number = graph.buffers.index(self.source)
        if (records["read"]["n_view"][read] != 1).any() or (records["view"]["buffer"][view] != number).any():
            raise TaskError(f"operation '{self.operation.text}' of the set-up reads more than {self.source}")
        offset = records["view"]["offset"][view]
        cell = Cells.of(self.program.layouts[self.source]).touched(offset, offset + 1)[0]
        return {
            "block": block,
            "place": place,
            "read": read,
            "view": view,
            "task": graph.owners("sort")[block],
            "cell": cell,
            "offset": offset,
        }

    @property
    def blocks_read(self) -> tuple[np.ndarray, np.ndarray]:
        """The cell and the first element of each block of the source that somebody reads."""
        return self._items["cell"], self._items["offset"]

    def _of(self, held: Held) -> np.ndarray:
        """Items that write to something held."""
        graph, blocks = self._graph, self._graph.records["sort"]
        outs = graph.records["out"]
        is_held = np.zeros(len(outs), bool)
        for name in self.operation.outputs:
            mine = np.flatnonzero(outs["buffer"] == graph.buffers.index(name))
            is_held[mine] = held(name).local(outs["offset"][mine]) >= 0
        before = np.append(0, np.cumsum(is_held))
        first = blocks["first_out"]
        some = before[first + blocks["n_out"]] > before[first]
        return np.flatnonzero(some[self._items["block"]])

    def needed(self, held: Held) -> np.ndarray:
        """Cells of the source that somebody needs who holds this, ascending."""
        return np.unique(self._items["cell"][self._of(held)])

    def add(
        self, held: Held, batch: Shard, values: np.ndarray, outputs: Mapping[str, np.ndarray], workers: int
    ) -> None:
        """Adds what some cells give to the buffers of what is held."""
        mine = self._of(held)
        mine = mine[np.isin(self._items["cell"][mine], batch.cells)]
        if not len(mine):
            return
        mine = mine[np.argsort(self._items["task"][mine], kind="stable")]
        job, names = self._job(mine, held, batch), list(self.operation.outputs)
        buffers = [values, *(outputs[name] for name in names)]
        scratch = np.zeros(native.scratch_size(job) * workers)
        order = np.argsort(-job.tasks["count"], kind="stable")  # the longest first, in turn
        parts = [order[w::workers] for w in range(workers)]
        with thread_limits(1):
            done = native.run(job, native.tables(job), native.static_lists(parts), buffers, scratch, workers)
        if done.failed >= 0:
            raise TaskError(f"{done.reason} in operation '{self.operation.text}'")

    def _job(self, mine: np.ndarray, held: Held, batch: Shard) -> TaskGraph:
        """The items as tasks on the buffers of the batch and of what is held."""
        graph, items = self._graph, {key: value[mine] for key, value in self._items.items()}
        records = graph.records
        blocks = records["sort"][items["block"]]
        count = blocks["n_out"]
        first = np.cumsum(count) - count
        which = np.arange(count.sum()) - np.repeat(first - blocks["first_out"], count)
        outs = self._moved(records["out"][which], held)
        reads, views = records["read"][items["read"]], records["view"][items["view"]]
        reads["first_view"] = np.arange(len(reads))
        views["buffer"], views["offset"] = 0, batch.local(views["offset"])
        blocks["first_coefficient"] += items["place"] * count
        blocks["first_out"], blocks["first_read"], blocks["n_read"] = first, np.arange(len(reads)), 1
        begin = np.flatnonzero(np.diff(items["task"], prepend=-1))
        tasks = graph.tasks[items["task"][begin]]
        tasks["first"], tasks["count"] = begin, np.diff(begin, append=len(mine))
        tasks["first_lock"], tasks["n_lock"] = 0, 0  # no two tasks write to one place
        tables = {"sort": blocks, "out": outs, "read": reads, "view": views}
        made = TaskGraph.bare(tasks.astype(TASK), records | tables, (self.operation,))
        made.scratch, made.arena = graph.scratch, graph.arena
        return made

    def _moved(self, outs: np.ndarray, held: Held) -> np.ndarray:
        """Where blocks go in the buffers that are held; to what is not held nothing goes."""
        graph, numbers = self._graph, outs["buffer"].copy()
        outs["accumulate"], outs["buffer"] = 1, -1
        for k, name in enumerate(self.operation.outputs):
            mine = np.flatnonzero(numbers == graph.buffers.index(name))
            place = held(name).local(outs["offset"][mine])
            outs["buffer"][mine] = np.where(place >= 0, k + 1, -1)
            outs["offset"][mine] = np.maximum(place, 0)
        return outs
