"""Records that point into whole tensors, moved to parts of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.operations import kinds
from tilewise.tensor.shard import Shard


def moved_tables(graph: TaskGraph, shard_of: Callable[[str], Shard]) -> dict[str, np.ndarray]:
    """Copies of all tables, in which the records of the graph's tasks point into shards.

    Raises if a shard lacks something that a task touches.
    """
    tables = {name: table.copy() for name, table in graph.records.items()}
    for name, kind in kinds.items():
        if not len(graph.records[name]):
            continue
        owner = graph.owners(name)
        for span in kind.spans(graph):
            own = owner[span.record] >= 0
            for number in np.unique(span.buffer[own]).tolist():
                if not 0 <= number < len(graph.buffers) or graph.buffers[number] not in graph.panels:
                    continue
                some = np.flatnonzero(own & (span.buffer == number))
                shard = shard_of(graph.buffers[number])
                first, last = shard.local(span.first[some]), shard.local(span.last[some] - 1)
                held = (first >= 0) & (last - first == span.last[some] - 1 - span.first[some])
                if not held.all():
                    t = int(owner[span.record[some[~held]]][0])
                    raise AssertionError(f"{graph.buffers[number]} is not all there for {graph.describe(t)}")
                tables[span.table][span.offset][span.row[some]] = first
    return tables
