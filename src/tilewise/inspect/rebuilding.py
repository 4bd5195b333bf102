"""A graph of some tasks of another one whose records were changed: who needs whom is found anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewise.core import core
from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.panels import Panels, runs
from tilewise.inspect.records import ACCESS, ACCUMULATE, ASSIGN, READ, Table
from tilewise.inspect.spans import CellTouches, cell_touches
from tilewise.inspect.tasks import unique_pairs
from tilewise.tensor.shard import Cells


def rebuilt_graph(
    old: TaskGraph,
    tasks: Table,
    tables: dict[str, Table],
    kept: np.ndarray,
    changed: np.ndarray,
    ordered: bool = False,
) -> TaskGraph:
    """The graph of the tasks `kept`, with these records; of those `changed` the reads are looked up again."""
    graph = replace(
        old, tasks=tasks[kept], records=tables, sources=np.zeros(0, np.int64), targets=np.zeros(0, np.int64)
    )
    number = np.full(len(tasks), -1, np.int64)
    number[kept] = np.arange(len(kept))
    known = old.accesses
    known = known[(number[known["task"]] >= 0) & ~(changed[known["task"]] & (known["kind"] == READ))]
    accesses = np.concatenate([_renumbered(known, number), _reads_of(graph, number[np.flatnonzero(changed)])])
    return with_dependencies(graph, accesses, ordered)


def with_dependencies(graph: TaskGraph, accesses: Table, ordered: bool) -> TaskGraph:
    """The graph with locks and edges that follow from accesses (records of type ACCESS)."""
    lengths = [len(graph.panels[name]) if name in graph.panels else 0 for name in graph.buffers]
    firsts = np.cumsum([0, *lengths])
    written = np.unique(accesses["tensor"][accesses["kind"] != READ])
    some = accesses[np.isin(accesses["tensor"], written)]
    some = some[np.argsort(some["task"], kind="stable")]
    panel = firsts[some["tensor"]] + some["panel"]
    adding = np.flatnonzero(some["kind"] == ACCUMULATE)
    adder, lock = unique_pairs(some["task"][adding], panel[adding])
    tasks = graph.tasks.copy()
    tasks["n_lock"] = np.bincount(adder, minlength=len(tasks))
    tasks["first_lock"] = np.cumsum(tasks["n_lock"]) - tasks["n_lock"]
    kinds = some["kind"].astype(np.uint8)
    task = np.ascontiguousarray(some["task"])
    edges = core.dependencies(task, panel, kinds, len(tasks), int(firsts[-1]), ordered)
    return replace(
        graph,
        tasks=tasks,
        locks=lock,
        n_locks=int(firsts[-1]),
        sources=edges[0],
        targets=edges[1],
        find_accesses=lambda: accesses,
    )


def _renumbered(accesses: Table, number: np.ndarray) -> np.ndarray:
    accesses = accesses.copy()
    accesses["task"] = number[accesses["task"]]
    return accesses


def _reads_of(graph: TaskGraph, tasks: np.ndarray) -> np.ndarray:
    """What tasks read, panel by panel, by their records."""
    wanted = np.zeros(len(graph) + 1, bool)
    wanted[tasks] = True
    wanted[-1] = False
    return _panelwise(graph, cell_touches(graph)[0], wanted, READ)


def panel_accesses(graph: TaskGraph) -> Table:
    """What all tasks read and write, panel by panel, by their records."""
    every = np.ones(len(graph), bool)
    read, written = cell_touches(graph)
    writes = _panelwise(graph, written, every, ASSIGN)
    for number, op in enumerate(graph.operations):
        for name, accumulate in op.outputs.items():
            mine = graph.tasks["operation"][writes["task"]] == number
            mine &= writes["tensor"] == graph.buffers.index(name)
            writes["kind"][mine] = ACCUMULATE if accumulate else ASSIGN
    return np.concatenate([_panelwise(graph, read, every, READ), writes])


def _panelwise(graph: TaskGraph, touches: CellTouches, wanted: np.ndarray, kind: int) -> np.ndarray:
    """Touches of cells by the wanted tasks as accesses to panels."""
    parts = [np.zeros(0, ACCESS)]
    for tensor in np.unique(touches.tensor).tolist():
        task, cell = touches.of_tensor(tensor)
        mine = wanted[task]
        first, panels = panels_of_cells(graph.panels[graph.buffers[tensor]])
        which, place = runs(first[cell[mine]], np.diff(first)[cell[mine]])
        count = 1 + int(panels.max(initial=0))
        code = np.unique(task[mine][which] * count + panels[place])  # far sooner than records are sorted
        found: Table = np.zeros(len(code), ACCESS)
        found["task"], found["panel"] = np.divmod(code, count)
        found["tensor"], found["kind"] = tensor, kind
        parts.append(found)
    return np.concatenate(parts)


def strips_of_cells(panels: Panels) -> np.ndarray:
    """The strip of each cell: all columns of a row panel of one sector; numbered in the order of storage."""
    cells = Cells.of(panels.layout)
    if panels.layout.half:
        return np.arange(len(cells))
    of_tuple = panels.row_cut_of_tuple
    cut = of_tuple[cells.of_tuple]
    new = np.append(True, (np.diff(cut) != 0) | (np.diff(cells.sector) != 0))[: len(cells)]
    return np.cumsum(new) - 1


def panels_of_cells(panels: Panels) -> tuple[np.ndarray, np.ndarray]:
    """(first, list): the panels that have rows of cell c are list[first[c] : first[c + 1]]."""
    cells, t = Cells.of(panels.layout), panels.table
    if panels.layout.half:  # any of its panels may have elements of a band
        n = len(panels)
        return np.arange(len(cells) + 1) * n, np.tile(np.arange(n), len(cells))
    key = t["sector"] * (1 + int(t["row_cut"].max(initial=0))) + t["row_cut"]
    order = np.argsort(key, kind="stable")
    wanted = cells.sector * (1 + int(t["row_cut"].max(initial=0))) + panels.row_cut_of_tuple[cells.of_tuple]
    low, high = np.searchsorted(key[order], wanted), np.searchsorted(key[order], wanted, side="right")
    _, place = runs(low, high - low)
    return np.append(0, np.cumsum(high - low)), order[place]
