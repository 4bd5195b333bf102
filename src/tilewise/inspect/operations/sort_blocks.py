"""The inspection of sorts: which blocks of which tensors make each block of the targets.

Reads are expanded by letters (`sort_reads`); the blocks are found in C++ (`src/native/inspect_sort.cpp`).
"""

from __future__ import annotations

import numpy as np

from tilewise.core import core
from tilewise.equations.program import Sort
from tilewise.errors import InputError
from tilewise.inspect.operations.inspector import Inspector, Setting
from tilewise.inspect.operations.sort import CHUNK, MAX_SUMS, SORT_BLOCK, SORT_OUT, SORT_READ, SORT_VIEW
from tilewise.inspect.operations.sort_reads import ByParity, Reads, Stored
from tilewise.inspect.tasks import Found, Touch

Passes = list[tuple[tuple[int, ...], ByParity]]
"""Parities of the targets, and what is read for them."""


def inspect_sort(op: Sort, setting: Setting) -> Found:
    panels, buffers = setting.panels, setting.buffers
    targets = [buffers[name] for name in op.targets]
    sources = [(name, panels[name].places, buffers[name]) for name in op.reads]
    return found_blocks(op, panels[op.targets[0]].places, targets, sources, passes_of(op, setting))


def passes_of(op: Sort, setting: Setting) -> Passes:
    """A pair that stays packed has another length for each parity: one pass for each."""
    layouts = setting.layouts
    if any(len(read.sums) > MAX_SUMS for read in op.terms):
        raise InputError(f"{op.text}: more than {MAX_SUMS} indices are summed without a product")
    if op.elementwise:
        reads: ByParity = [
            (((Stored(read.factors[0].name, op.letters, 0, 0),), ""), list(read.coefficients))
            for read in op.terms
        ]
        return [((0,), reads)]
    parities = sorted({label[2] for label in layouts[op.targets[0]].labels})
    apart = any(op.joined) or not any(parities)
    versions = [(parity,) for parity in parities] if apart else [(1, -1)]
    return [(version, Reads(op, layouts, version).by_parity()) for version in versions]


def found_blocks(
    op: Sort,
    places: core.Places,
    targets: list[int],
    sources: list[tuple[str, core.Places, int]],
    passes: Passes,
) -> Found:
    """What the reads find; a pass makes the panels of the first of its parities into tasks."""
    panel, tasks, blocks, outs, reads, views, coefficients, touches, outputs, scratch = core.inspect_sort(
        places, op.letters, op.joined, op.elementwise, targets, op.accumulate, sources, passes, CHUNK
    )
    tables = {
        "sort": np.frombuffer(blocks, SORT_BLOCK),
        "out": np.frombuffer(outs, SORT_OUT),
        "read": np.frombuffer(reads, SORT_READ),
        "view": np.frombuffer(views, SORT_VIEW),
        "coefficients": coefficients,
    }
    return Found(
        "sort",
        panel,
        tables,
        tasks,
        all(op.accumulate),
        touches=[Touch.of(name, *pairs.T) for (name, *_), pairs in zip(sources, touches, strict=True)],
        outputs=[
            (name, *pairs.T, accumulate) for pairs in outputs for name, accumulate in op.outputs.items()
        ],
        scratch=scratch,
    )


INSPECTOR = Inspector(inspect_sort)
