"""The part of a task graph that one rank runs, on the shards that it holds, with gates to others.

A gate holds tasks back until the main thread opens it: when a strip has come that they read, or when all who
needed a version of a strip have it and it may be written over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewise.execute.distribution import Distribution
from tilewise.execute.moving import moved_tables
from tilewise.execute.transfers import Transfers
from tilewise.inspect.dependencies import Graph
from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.spans import CellTouches
from tilewise.lazy import cached_property


@dataclass
class LocalGraph(TaskGraph):
    """Tasks of one rank. Records point into shards; levels are those of the whole graph."""

    lengths: dict[str, int] = field(default_factory=dict)
    number: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each task, that in the whole graph."""
    whole_levels: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def length_of(self, name: str) -> int:
        return self.lengths[name]

    @cached_property
    def operation_levels(self) -> np.ndarray:
        """Those of the whole graph, by which the lists of all ranks can wait for each other."""
        return self.whole_levels


@dataclass(frozen=True)
class Incoming:
    """A strip that a rank gets: from where to where, and what waits for what."""

    transfer: int
    channel: int
    """Its number among the transfers from its source to this rank."""
    source: int
    name: str
    there: int
    """Offset in the shard of its home; `here` is that in the own one."""
    here: int
    elements: int
    gate: int
    after: np.ndarray
    """Own tasks that read the version before, which must have ended."""
    told: bool
    """Whether its home waits to hear that it has come."""
    need: float = 0.0
    """Seconds of the longest path from a task that reads it to the end: what has more is to come first."""


@dataclass(frozen=True)
class Outgoing:
    """A version of a strip that others get, when the tasks that make it have ended."""

    name: str
    first: int
    """Offset in the own shard."""
    elements: int
    transfers: np.ndarray
    channels: np.ndarray
    """Their numbers among the transfers to the same target."""
    targets: np.ndarray
    after: np.ndarray
    gate: int
    """Opened when all of them have it; -1 if nobody writes over it in this run."""

    @cached_property
    def ways(self) -> list[tuple[int, int, int]]:
        """(transfer, channel, target) of each."""
        columns = (self.transfers.tolist(), self.channels.tolist(), self.targets.tolist())
        return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class StripTables:
    """Strips that come and go, as the native carrier needs them: tensors are numbered in two lists."""

    inbound: np.ndarray
    """Rows of (source, transfer, theirs, offset, ours, offset, elements, gate, group, whether it is told)."""
    theirs: list[tuple[int, str]]
    """(rank, tensor) that strips are taken from."""
    ours: list[str]
    outbound: np.ndarray
    """Rows of (group, gate), -1 if there is none; `ways` has rows of (outbound, target, transfer)."""
    ways: np.ndarray


@dataclass(frozen=True)
class LocalPlan:
    """What one rank does in a run: its tasks, its transfers, and the gates between them."""

    graph: LocalGraph
    incoming: dict[int, Incoming]
    outgoing: list[Outgoing]
    gate_first: np.ndarray
    gate_tasks: np.ndarray
    """Tasks behind gate g are gate_tasks[gate_first[g] : gate_first[g + 1]]."""

    @property
    def n_gates(self) -> int:
        return len(self.gate_first) - 1

    @cached_property
    def made(self) -> list[int]:
        """What goes out after tasks of this rank: numbers in `outgoing`."""
        return [k for k, out in enumerate(self.outgoing) if len(out.after)]

    @cached_property
    def held(self) -> list[int]:
        """What may come only after tasks of this rank: keys of `incoming`."""
        return [k for k, one in self.incoming.items() if len(one.after)]

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """Tasks whose end is waited for: before each that is `made`, then before each that is `held`."""
        return [self.outgoing[k].after for k in self.made] + [self.incoming[k].after for k in self.held]

    @cached_property
    def group_first(self) -> np.ndarray:
        """Tasks of group g are group_tasks[group_first[g] : group_first[g + 1]]."""
        return np.cumsum([0, *map(len, self.groups)])

    @cached_property
    def group_tasks(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *self.groups])

    @cached_property
    def tables(self) -> StripTables:
        """What is needed first comes first."""
        group_out = {k: group for group, k in enumerate(self.made)}
        group_in = {k: len(self.made) + group for group, k in enumerate(self.held)}
        incoming = sorted(self.incoming.items(), key=lambda item: -item[1].need)
        theirs = {place: n for n, place in enumerate(sorted({(i.source, i.name) for _, i in incoming}))}
        ours = {name: n for n, name in enumerate(sorted({i.name for _, i in incoming}))}
        inbound = [
            (
                *(i.source, i.transfer, theirs[i.source, i.name], i.there, ours[i.name], i.here, i.elements),
                *(i.gate, group_in.get(k, -1), i.told),
            )
            for k, i in incoming
        ]
        outbound = [(group_out.get(k, -1), out.gate) for k, out in enumerate(self.outgoing)]
        ways = [
            (k, target, transfer) for k, out in enumerate(self.outgoing) for transfer, _, target in out.ways
        ]
        rows = (np.array(t, np.int64).reshape(-1, n) for t, n in ((inbound, 10), (outbound, 2), (ways, 3)))
        return StripTables(next(rows), list(theirs), list(ours), *rows)

    @cached_property
    def outgoing_of(self) -> dict[int, int]:
        """Of each transfer that leaves this rank, its number in `outgoing`."""
        return {int(t): k for k, out in enumerate(self.outgoing) for t in out.transfers}

    @cached_property
    def gates_of_task(self) -> np.ndarray:
        """How many gates each task is behind."""
        return np.bincount(self.gate_tasks, minlength=len(self.graph)).astype(np.int64)


def local_plan(distribution: Distribution, rank: int, tasks: np.ndarray | None = None) -> LocalPlan:
    """Of one rank, for a run of all tasks or of some."""
    whole, transfers = distribution.graph, distribution.transfers
    chosen = np.ones(len(whole), bool)
    if tasks is not None:
        chosen[:] = False
        chosen[tasks] = True
        read, written = (_of_tasks(t, chosen) for t in distribution.touches)
        transfers = Transfers.of(distribution.placement, distribution.strips, read, written)
    mine = np.flatnonzero(chosen & (distribution.placement.task_rank == rank))
    graph = _moved(distribution, rank, mine)
    return _Gates(distribution, rank, transfers, graph).plan()


def _of_tasks(touches: CellTouches, chosen: np.ndarray) -> CellTouches:
    some = chosen[touches.task]
    return CellTouches(touches.task[some], touches.tensor[some], touches.cell[some])


def _moved(distribution: Distribution, rank: int, tasks: np.ndarray) -> LocalGraph:
    """Some tasks with their records, moved from the whole tensors to the shards of a rank."""
    whole = distribution.graph
    part = Graph.part(whole, tasks)
    tables = moved_tables(part, lambda name: distribution.shard(name, rank))
    lengths = {name: whole.vectors[name] for name in whole.vectors}
    lengths |= {name: distribution.shard(name, rank).size for name in whole.panels}
    return LocalGraph(
        part.operations,
        part.buffers,
        part.panels,
        part.tasks,
        tables,
        part.locks,
        part.n_locks,
        part.scratch,
        part.sources,
        part.targets,
        part.vectors,
        part.arena,
        part.find_accesses,
        lengths,
        tasks,
        whole.operation_levels,
    )


class _Gates:
    def __init__(
        self, distribution: Distribution, rank: int, transfers: Transfers, graph: LocalGraph
    ) -> None:
        self.distribution, self.rank, self.graph, self.transfers = distribution, rank, graph, transfers
        self.local = np.full(len(distribution.graph), -1, np.int64)
        self.local[graph.number] = np.arange(len(graph))
        self.behind: list[np.ndarray] = []

    def plan(self) -> LocalPlan:
        incoming = self.incoming()
        outgoing = self.outgoing()
        first = np.cumsum([0, *map(len, self.behind)]).astype(np.int64)
        tasks = np.concatenate([np.zeros(0, np.int64), *self.behind]).astype(np.int64)
        return LocalPlan(self.graph, incoming, outgoing, first, tasks)

    def gate(self, tasks: np.ndarray) -> int:
        self.behind.append(tasks)
        return len(self.behind) - 1

    def _overwritten(self) -> np.ndarray:
        """Of each transfer, whether its strip is written again in this run."""
        strip, _, version = self.transfers.writers
        last = np.zeros(len(self.distribution.strips.tensor), np.int64)
        np.maximum.at(last, strip, version)
        table = self.transfers.table
        again: np.ndarray = last[table["strip"]] > table["version"]
        return again

    def incoming(self) -> dict[int, Incoming]:
        table, (transfer, reader) = self.transfers.table, self.transfers.readers
        begin = np.searchsorted(transfer, np.arange(len(table) + 1))
        again, names = self._overwritten(), self.distribution.graph.buffers
        urgency = self.distribution.urgency
        found: dict[int, Incoming] = {}
        before: dict[int, list[np.ndarray]] = {}  # of a strip: readers of the versions before
        for k in np.flatnonzero(table["target"] == self.rank).tolist():  # by strip, then by version
            t = table[k]
            name, strip = names[t["tensor"]], int(t["strip"])
            readers_whole = reader[begin[k] : begin[k + 1]]
            readers = self.local[readers_whole]
            earlier = before.setdefault(strip, [np.zeros(0, np.int64)])
            there = self.distribution.shard(name, int(t["source"])).local(t["first"])
            here = self.distribution.shard(name, self.rank).local(t["first"])
            found[k] = Incoming(
                k,
                int(self.transfers.channel[k]),
                int(t["source"]),
                name,
                int(there),
                int(here),
                int(t["elements"]),
                self.gate(readers),
                np.concatenate(earlier),
                bool(again[k]),
                float(urgency[readers_whole].max(initial=0.0)),
            )
            earlier.append(readers)
        return found

    def outgoing(self) -> list[Outgoing]:
        table, (strips, writer, _) = self.transfers.table, self.transfers.writers
        again = self._overwritten()
        begin = np.searchsorted(strips, np.arange(len(self.distribution.strips.tensor) + 1))
        mine = np.flatnonzero(table["source"] == self.rank)
        keys = np.stack([table["strip"][mine], table["version"][mine]])
        versions, which = np.unique(keys, axis=1, return_inverse=True)
        found = []
        for v, (strip, version) in enumerate(versions.T.tolist()):
            part = mine[which.ravel() == v]
            writers = self.local[writer[begin[strip] : begin[strip + 1]]]
            gate = self.gate(writers[version:]) if again[part[0]] else -1
            one = table[part[0]]
            name = self.distribution.graph.buffers[one["tensor"]]
            here = int(self.distribution.shard(name, self.rank).local(one["first"]))
            targets, elements = table["target"][part], int(one["elements"])
            channels = self.transfers.channel[part]
            found.append(Outgoing(name, here, elements, part, channels, targets, writers[:version], gate))
        return found
