"""Table I of Ghosh et al.: Gets and Accumulates of three communication patterns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.spaces import orbitals_named
from tilewise.studies.constants import in_module
from tilewise.studies.study import COUNTED, FITTED, Findings, Pair, Row, Say, Study, Table
from tilewise.tce.patterns import PATTERNS, cache, inverted
from tilewise.tce.routines import routine_named

PAPER = "Ghosh et al."
TILE = 27
ROUTINE = "t2_8"
TILES = in_module(
    __name__,
    "TILE",
    "all twelve counts",
    "fitted to table I, with frozen cores: the paper names no size",
    "orbitals",
)
UNROLLED = in_module(
    cache.__module__,
    "UNROLL",
    "messages of the cache",
    "fitted to table I: the paper names no number",
    "tiles",
)
TABLE_1 = {
    "8 H2O": {"original": (84_700, 682), "inverted": (32_065, 71_632), "cache": (23_353, 21_582)},
    "9 H2O": {"original": (119_448, 810), "inverted": (45_072, 101_196), "cache": (32_904, 25_650)},
}
"""Gets and Accumulates in the paper."""


def _table_1(progress: Say, seed: int) -> Findings:
    routine = routine_named(ROUTINE)
    rows, counted = [], {}
    for molecule, paper in TABLE_1.items():
        space = orbitals_named(f"water-{molecule.split()[0]}", frozen=True).tiles(TILE)
        for name, pattern in PATTERNS.items():
            progress(f"{molecule}, {name}")
            found = pattern(routine, space)
            gets, accumulates = paper[name]
            counted[molecule, name] = (found.gets, found.accumulates)
            row = (Pair(gets, found.gets), Pair(accumulates, found.accumulates), len(found.graph))
            rows.append(Row(f"{molecule}, {name}", row))
    lean = inverted(routine, space, skipped=False)
    table = Table(
        "Table I: messages of one contraction", ("pattern", "Gets", "Accumulates", "tasks"), tuple(rows)
    )
    assumed = (
        f"The paper does not name the contraction: {ROUTINE} with frozen cores and tiles of up to {TILE} "
        "orbitals gives all twelve numbers.",
        "Gets are those of integrals: a block of one spin is two, direct and exchange; those of amplitudes "
        "are not counted.",
        "The inverted loops get blocks of beta spin alone too, and do nothing with them; without those they "
        f"would have as many Gets as the cache has ({lean.gets} for {molecule}).",
        "The cache unrolls by two tiles, over alpha and beta in one row: where the number of alpha tiles is "
        "odd, one group has tiles of both spins.",
    )
    return Findings((table,), assumed, lambda figure: _draw(figure, counted))


def _draw(figure: Any, counted: dict[tuple[str, str], tuple[int, int]]) -> None:
    """Bars of both counts for each pattern, the paper's pale."""
    axes = figure.subplots(1, len(TABLE_1))
    for axis, (molecule, paper) in zip(axes, TABLE_1.items(), strict=True):
        place = np.arange(len(paper))
        for k, what in enumerate(("Gets", "Accumulates")):
            ours = [counted[molecule, name][k] for name in paper]
            theirs = [counts[k] for counts in paper.values()]
            axis.bar(place + 0.4 * k, theirs, 0.19, color=f"C{k}", alpha=0.4)
            axis.bar(place + 0.4 * k + 0.19, ours, 0.19, color=f"C{k}", label=what)
        axis.set_xticks(place + 0.29, list(paper))
        axis.set_title(f"{molecule}; pale: the paper", fontsize="medium")
        axis.set_yscale("log")
    axes[0].legend(fontsize="small")


def _on_ranks(progress: Say, seed: int) -> tuple[Table, ...]:
    from tilewise.studies.ghosh_messages import message_tables

    return message_tables(progress, seed)


STUDIES = (
    Study(
        "ghosh-table1",
        f"{PAPER}, table I",
        "Gets and Accumulates of three communication patterns",
        _table_1,
        (COUNTED, FITTED),
        constants=lambda: (TILES, UNROLLED),
        for_real=_on_ranks,
    ),
)
