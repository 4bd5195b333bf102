"""What the size of the tiles does to tasks, parallelism and the memory of the workers.

Each block is a task here, as in the programs that libtensor and the TCE run; our own panels hold many blocks,
so that their size does not depend on the tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewise.inspect import PanelRule
from tilewise.inspect.operations.sort import block_traffic
from tilewise.methods.plan import Plan


@dataclass(frozen=True)
class Granularity:
    """Of one tile size, per iteration."""

    tile: int
    tasks: int
    blocks: int
    """Blocks that tasks read and write: what a program with a heap would allocate."""
    parallelism: float
    """Work over the longest path: workers that could be kept busy."""
    worker_bytes: int
    """Blocks that the largest task has in hand."""


def granularity(plan: Plan, tile: int) -> Granularity:
    """Of the same calculation with tiles of this size and a task for each block."""
    made = replace(plan, tile=tile, rule=PanelRule(1, 1))
    graph, seconds = made.graph, made.task_seconds
    gemm = graph.records["gemm"]
    blocks = 3 * len(gemm) + int(block_traffic(graph.records).sum())
    in_hand = 8 * (gemm["m"] * gemm["k"] + gemm["k"] * gemm["n"] + gemm["m"] * gemm["n"])
    path = float(graph.longest_path(seconds).max(initial=0.0))
    return Granularity(
        tile,
        len(graph),
        blocks,
        float(seconds.sum()) / path if path > 0 else 1.0,
        int(in_hand.max(initial=0)),
    )
