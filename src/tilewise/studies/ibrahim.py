"""Figures 4, 5, 13, 14 and 15 of Ibrahim et al.: sizes of tasks, and what the size of the tiles changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.execute.machines import Rates
from tilewise.studies import ibrahim_map
from tilewise.studies.libtensor import CLUSTER, URACIL, BlockRun, parallelism, stored_bytes
from tilewise.studies.study import Findings, Pair, Row, Say, Study, Table

PAPER = "Ibrahim et al."
FACTORS = (4, 5, 6, 7, 8)
WORKERS = 24
COARSE = 1e-2
LADDER = "t2_8"

EDISON = Rates(gemm=0.8 * 461e9 / 24, sort=2e8)
CARVER = Rates(gemm=0.8 * 256e9 / 32, sort=1e8)

EVENTS = 468_000
"""Allocations and deallocations in the paper, with a factor of 4."""

# From a factor of 4 to one of 8, in the paper.
FEWER_ALLOCATIONS, MORE_WORKER_MEMORY, LESS_PARALLELISM, MORE_MEMORY = 5.6, 2.2, 3.6, 1.6

DECADES = np.arange(-7.0, 1.0)
"""Powers of ten of seconds: bounds of the bars of figures 4 and 5."""

ASSUMED = (
    "Lists of tasks are those of the TCE's CCSD, one iteration: a task for each canonical block of a "
    "result, as in libtensor, whose own operations the paper does not list.",
    "P1 is uracil in cc-pVTZ; P3 has its 489 functions with two methyluracil and three water molecules, "
    "not with the one water molecule of the paper's formula.",
    "A core does products at 80 % of its peak and copies 0.2 (Edison) or 0.1 (Carver) billion words a "
    "second.",
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


def _granularity(progress: Say, seed: int) -> Findings:
    runs = {}
    for factor in FACTORS:
        progress(f"tiles of {4 * factor} orbitals")
        runs[factor] = BlockRun(URACIL, factor)
    progress("P3")
    width = {factor: parallelism(CLUSTER, factor, CARVER, COARSE) for factor in FACTORS}
    stored = {factor: stored_bytes(CLUSTER, factor) for factor in FACTORS}
    allocations = {factor: float(run.allocations.sum()) for factor, run in runs.items()}
    memory = {factor: run.high_water(LADDER, WORKERS) for factor, run in runs.items()}
    small, large = 4, 8
    changes = Table(
        "From a tiling factor of 4 to one of 8",
        ("quantity", "value"),
        (
            Row("allocations and deallocations, factor 4", (Pair(EVENTS, 2 * allocations[small]),)),
            Row("allocations fall by", (Pair(FEWER_ALLOCATIONS, allocations[small] / allocations[large]),)),
            Row("workers' memory grows by", (Pair(MORE_WORKER_MEMORY, memory[large] / memory[small]),)),
            Row("parallelism of P3 falls by", (Pair(LESS_PARALLELISM, width[small] / width[large]),)),
            Row("memory of P3 grows by", (Pair(MORE_MEMORY, stored[large] / stored[small]),)),
        ),
    )
    by_factor = Table(
        "Figures 13 to 15: P1 on 24 workers; parallelism and memory of P3",
        ("factor", "tasks", "products", "allocations", "workers' MB", "parallelism", "P3 in GB"),
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
                ),
            )
            for factor, run in runs.items()
        ),
    )
    spread = {
        "figure 4: tasks": runs[small].seconds(EDISON),
        "figure 5: products": runs[small].product_seconds(EDISON),
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
    ),
    Study(
        "ibrahim-map",
        f"{PAPER}, figures 8 and 9",
        "time by tile size and quantum, with one heap or with a heap for each thread",
        ibrahim_map.run,
    ),
)
