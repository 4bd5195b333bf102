"""Products regrouped by their left operands, as the inverted communication pattern has them.

A task of the graph as it is inspected makes one panel and goes through all that is summed. Here a task holds
one block of the left operand, a constant where it matters, and adds to all panels that it has a part in.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewise.equations.program import Contract
from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.rebuilding import panel_accesses, with_dependencies
from tilewise.inspect.records import ACCUMULATE, READ


def by_left_operands(graph: TaskGraph) -> TaskGraph:
    """The graph with a task for each block of the left operand of each contraction.

    Products add: what the contraction assigns has to be zero before it begins.
    """
    plain = np.array([isinstance(op, Contract) for op in graph.operations], bool)
    tasks = graph.tasks
    inverted = plain[tasks["operation"]]
    gemm = graph.records["gemm"].copy()
    owner = graph.owners("gemm")
    mine = np.flatnonzero((owner >= 0) & inverted[np.maximum(owner, 0)])
    made = [tasks[~inverted]]
    if len(mine):
        operation = tasks["operation"][owner[mine]]
        order = mine[np.lexsort((gemm["b_offset"][mine], gemm["a_offset"][mine], operation))]
        first = len(gemm)
        gemm = np.concatenate([gemm, gemm[order]])
        moved = gemm[first:]
        moved["beta"] = 1.0
        key = np.stack([tasks["operation"][owner[order]], moved["a_offset"], moved["k"] == 0])
        new = np.append(True, (np.diff(key, axis=1) != 0).any(axis=0))
        start = np.flatnonzero(new)
        groups = tasks[owner[order[start]]].copy()
        groups["first"], groups["count"] = first + start, np.diff(np.append(start, len(order)))
        made.append(groups)
    changed = np.concatenate(made)
    changed = changed[np.argsort(changed["operation"], kind="stable")]
    changed["first_lock"] = changed["n_lock"] = 0
    none = np.zeros(0, np.int64)
    whole = replace(graph, tasks=changed, records=graph.records | {"gemm": gemm}, sources=none, targets=none)
    accesses = panel_accesses(whole)
    of_product = plain[changed["operation"][accesses["task"]]]
    accesses["kind"][of_product & (accesses["kind"] != READ)] = ACCUMULATE
    return with_dependencies(whole, accesses, False)
