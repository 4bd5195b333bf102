"""Figures 4, 5, 13, 14 and 15 of Ibrahim et al.: sizes of tasks, and what the size of the tiles changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.studies.ibrahim_nodes import CARVER, EDISON, FACTORS, PAPER, TILES_AND_PEAK, copy_rate
from tilewise.studies.libtensor import (
    CLUSTER,
    URACIL,
    BlockRun,
    count_products,
    parallelism,
    stored_bytes,
)
from tilewise.studies.study import COUNTED, FITTED, Constant, Findings, Pair, Row, Say, Study, Table

COARSE = 1e-2
LADDER = "t2_8"

EVENTS = 468_000
"""Allocations and deallocations in the paper, with a factor of 4."""

SECONDS = (12, 30)
"""Of P1 on Edison, in the paper."""

# From a factor of 4 to one of 8, in the paper.
FEWER_ALLOCATIONS, MORE_WORKER_MEMORY, LESS_PARALLELISM, MORE_MEMORY = 5.6, 2.2, 3.6, 1.6

DECADES = np.arange(-7.0, 1.0)
"""Powers of ten of seconds: bounds of the bars of figures 4 and 5."""

ASSUMED = (
    "Lists of tasks are those of the TCE's CCSD, one iteration: a task for each canonical block of a "
    "result, as in libtensor, whose own operations the paper does not list.",
    "P1 is uracil in cc-pVTZ. P3 is taken to be two molecules of 1,3-dimethyluracil and one of water: with "
    "six d functions each they have the paper's 489 functions.",
    "The seconds of P1 are those of the work of one iteration, shared out evenly; the paper does not say "
    "how many iterations its times have.",
    "A block is allocated for each operand of an operation, in the order that its products need, and for "
    "each result when it is first written; each is freed once. Of the ways to count that were tried this "
    "one comes closest: two for each product would be ten times as many.",
    "The workers' memory is that of the ladder (t2_8), whose blocks are largest: its result, and for each "
    "worker a block of it and two operands, as stored and as copied. The paper does not say what was "
    "allocated when; beside the larger result of t2_7_3 the blocks in hand would hardly count.",
    "Parallelism is the number of tasks above 10 ms that an operation has, averaged over their work; "
    "their number in all operations falls less, because larger blocks lift more of them above 10 ms.",
    "The paper's memory of P3 grows by 1.6: blocks on diagonals, which are stored in full and are all "
    "that larger tiles add to the tensors here, do not explain it.",
)

DEFINED = (
    Constant(
        "allocations",
        "one for each operand of an operation and each result",
        "src/tilewise/studies/libtensor.py",
        "events, and how they fall with larger tiles",
        "fitted to the 468,000 events and the fall by 5.6 of figure 13",
    ),
    Constant(
        "LADDER",
        LADDER,
        "src/tilewise/studies/ibrahim.py",
        "how the workers' memory grows",
        "fitted to the growth by 2.2 of figure 14",
    ),
    Constant(
        "parallelism",
        "tasks of an operation, averaged over their work",
        "src/tilewise/studies/libtensor.py",
        "how parallelism falls with larger tiles",
        "fitted to the fall by 3.6 of figure 15",
    ),
)
"""Definitions that were chosen with the paper's numbers in view."""


def _granularity(progress: Say, seed: int) -> Findings:
    runs = {}
    for factor in FACTORS:
        progress(f"tiles of {4 * factor} orbitals")
        runs[factor] = BlockRun(URACIL, factor)
    progress("P3")
    width = {factor: parallelism(CLUSTER, factor, CARVER.rates, COARSE) for factor in FACTORS}
    stored = {factor: stored_bytes(CLUSTER, factor) for factor in FACTORS}
    allocations = {factor: float(run.allocations.sum()) for factor, run in runs.items()}
    memory = {factor: run.high_water(LADDER, EDISON.workers) for factor, run in runs.items()}
    small, large = FACTORS[0], FACTORS[-1]
    even = float(runs[small].seconds(EDISON.rates).sum()) / EDISON.workers
    changes = Table(
        "From a tiling factor of 4 to one of 8",
        ("quantity", "value"),
        (
            Row("allocations and deallocations, factor 4", (Pair(EVENTS, 2 * allocations[small]),)),
            Row("allocations fall by", (Pair(FEWER_ALLOCATIONS, allocations[small] / allocations[large]),)),
            Row("workers' memory grows by", (Pair(MORE_WORKER_MEMORY, memory[large] / memory[small]),)),
            Row("parallelism of P3 falls by", (Pair(LESS_PARALLELISM, width[small] / width[large]),)),
            Row("memory of P3 grows by", (Pair(MORE_MEMORY, stored[large] / stored[small]),)),
            Row("Tflop of P1, factor 4", (float(runs[small].graph.flops.sum()) / 1e12,)),
            Row(f"seconds of P1 on {EDISON.workers} workers, factor 4", (Pair(SECONDS, even),)),
        ),
    )
    by_factor = Table(
        "Figures 13 to 15: P1 on 24 workers; parallelism and memory of P3",
        (
            "factor",
            "tasks",
            "products",
            "allocations",
            "workers' MB",
            "parallelism",
            "P3 in GB",
            "P3 products",
        ),
        tuple(
            Row(
                str(factor),
                (
                    len(run.graph),
                    len(run.graph.products),
                    int(allocations[factor]),
                    memory[factor] / 1e6,
                    width[factor],
                    stored[factor] / 1e9,
                    count_products(CLUSTER, factor),
                ),
            )
            for factor, run in runs.items()
        ),
    )
    spread = {
        "figure 4: tasks": runs[small].seconds(EDISON.rates),
        "figure 5: products": runs[small].product_seconds(EDISON.rates),
    }
    sizes = {name: _shares(seconds) for name, seconds in spread.items()}
    by_size = Table(
        "Figures 4 and 5: per cent of P1's tasks, of its products, and of their time, by size (factor 4)",
        ("seconds", "tasks", "time", "products", "time"),
        tuple(
            Row(
                f"1e{low:.0f} to 1e{low + 1:.0f}",
                tuple(round(float(v), 2) for name in sizes for v in sizes[name][:, k]),
            )
            for k, low in enumerate(DECADES[:-1])
        ),
    )

    def draw(figure: Any) -> None:
        _draw(figure, sizes, allocations, memory, width, stored)

    return Findings((changes, by_factor, by_size), ASSUMED, draw)


def _shares(seconds: np.ndarray) -> np.ndarray:
    """(2, bars): per cent of the tasks and of their time; the first and last bars have what is beyond."""
    bars = len(DECADES) - 1
    bar = np.clip(np.searchsorted(10.0**DECADES, seconds, side="right") - 1, 0, bars - 1)
    counts = np.bincount(bar, minlength=bars)
    time = np.bincount(bar, weights=seconds, minlength=bars)
    return 100.0 * np.array([counts / counts.sum(), time / time.sum()])


def _draw(
    figure: Any,
    sizes: dict[str, np.ndarray],
    allocations: dict[int, float],
    memory: dict[int, float],
    width: dict[int, float],
    stored: dict[int, float],
) -> None:
    """Two histograms above, three quantities against the tiling factor below."""
    figure.set_size_inches(9.0, 5.6)
    above, below = figure.subfigures(2, 1)
    for axis, (name, shares) in zip(above.subplots(1, 2), sizes.items(), strict=True):
        place = np.arange(shares.shape[1])
        axis.bar(place - 0.2, shares[0], 0.4, color="#4c72b0", label="visits")
        axis.bar(place + 0.2, shares[1], 0.4, color="#c44e52", label="time")
        axis.set_xticks(place, [f"1e{low:.0f}" for low in DECADES[:-1]], fontsize="small")
        axis.set_title(name, fontsize="medium")
        axis.set_xlabel("seconds, from")
        axis.set_ylabel("per cent")
        axis.legend(fontsize="small")
    shown = (
        ("figure 13: allocations, P1", allocations, 1.0, "#4c72b0"),
        ("figure 14: workers' MB, P1", memory, 1e-6, "#4c72b0"),
        ("figure 15: parallelism, P3", width, 1.0, "#4c72b0"),
    )
    for axis, (name, values, unit, colour) in zip(below.subplots(1, 3), shown, strict=True):
        axis.bar(
            [str(factor) for factor in values], [unit * value for value in values.values()], color=colour
        )
        axis.set_title(name, fontsize="medium")
        axis.set_xlabel("tiling factor")
    memory_axis = axis.twinx()
    memory_axis.plot(
        [str(factor) for factor in stored], [1e-9 * v for v in stored.values()], "o-", color="#c44e52"
    )
    memory_axis.set_ylabel("GB", color="#c44e52")
    memory_axis.set_ylim(0.0)


STUDIES = (
    Study(
        "ibrahim-granularity",
        f"{PAPER}, figures 4, 5, 13, 14 and 15",
        "sizes of tasks; allocations, memory and parallelism by tile size",
        _granularity,
        (COUNTED, FITTED),
        constants=lambda: (*DEFINED, *TILES_AND_PEAK, copy_rate(EDISON), copy_rate(CARVER)),
    ),
)
