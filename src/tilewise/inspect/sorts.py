"""Sort records: which blocks of which tensors make each block of the targets.

Reads are expanded by letters (`reads.py`); the blocks are found in C++ (`src/native/inspect_sort.cpp`).
"""

from __future__ import annotations

import numpy as np

from tilewise.core import core
from tilewise.equations.program import Sort
from tilewise.errors import InputError
from tilewise.inspect.panels import Panels
from tilewise.inspect.reads import ByParity, Reads, Stored
from tilewise.inspect.records import MAX_SUMS, SORT_BLOCK, SORT_OUT, SORT_READ, SORT_VIEW
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Layout

CHUNK = 2048
"""Elements that a worker sorts at a time: a few such chunks fit its second-level cache."""


def inspect_sort(
    op: Sort, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    parities = sorted({label[2] for label in layouts[op.targets[0]].labels})
    if any(len(read.sums) > MAX_SUMS for read in op.terms):
        raise InputError(f"{op.text}: more than {MAX_SUMS} indices are summed without a product")
    passes: list[tuple[tuple[int, ...], ByParity]]
    if op.elementwise:
        reads: ByParity = [
            (((Stored(read.factors[0].name, op.letters, 0, 0),), ""), list(read.coefficients))
            for read in op.terms
        ]
        passes = [((0,), reads)]
    else:
        # A pair that stays packed has another length for each parity: one pass for each.
        apart = any(op.joined) or not any(parities)
        versions = [(parity,) for parity in parities] if apart else [(1, -1)]
        passes = [(version, Reads(op, layouts, version).by_parity()) for version in versions]
    targets = [buffers[name] for name in op.targets]
    sources = [(name, panels[name].places, buffers[name]) for name in op.reads]
    return found_blocks(op, panels[op.targets[0]].places, targets, sources, passes)


def found_blocks(
    op: Sort,
    places: core.Places,
    targets: list[int],
    sources: list[tuple[str, core.Places, int]],
    passes: list[tuple[tuple[int, ...], ByParity]],
) -> Found:
    """What the reads find; a pass makes the panels of the first of its parities into tasks."""
    panel, tasks, blocks, outs, reads, views, coefficients, touches, outputs, scratch = core.inspect_sort(
        places, op.letters, op.joined, op.elementwise, targets, op.accumulate, sources, passes, CHUNK
    )
    return Found(
        "sort",
        panel,
        np.frombuffer(blocks, SORT_BLOCK),
        tasks,
        all(op.accumulate),
        touches=[Touch.of(name, *pairs.T) for (name, *_), pairs in zip(sources, touches, strict=True)],
        outputs=[
            (name, *pairs.T, accumulate) for pairs in outputs for name, accumulate in op.outputs.items()
        ],
        extras={
            "out": np.frombuffer(outs, SORT_OUT),
            "read": np.frombuffer(reads, SORT_READ),
            "view": np.frombuffer(views, SORT_VIEW),
        },
        coefficients=coefficients,
        scratch=scratch,
    )


def sort_scratch(blocks: np.ndarray) -> int:
    """Doubles that a worker needs: an accumulator per output and two gathered views."""
    return core.sort_scratch(blocks.view(np.uint8), CHUNK)
