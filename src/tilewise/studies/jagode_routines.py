"""Figures 2 and 7 of Jagode et al.: the graph of the T2 routines, their load, the lengths of their chains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.spaces import orbitals_named
from tilewise.studies.study import COUNTED, Findings, Pair, Row, Say, Study, Table
from tilewise.tce import TileGraph, inspect_routines
from tilewise.tce.routines import Routine, family, levels_of, routine_named, tce_routines, waits_for

PAPER = "Jagode et al."
TILE = 45
LEVELS = (29, 8, 3, 1)
"""The paper's text gives the first; its figure shows the others without a number."""
SHOWN = 0.001
"""Share of the load from which on a routine is shown."""
HEAVIEST = 5


def doubles() -> tuple[Routine, ...]:
    """The routines that make the T2 residual."""
    return family(tce_routines(), "r2")


def _figure_2(progress: Say, seed: int) -> Findings:
    routines = doubles()
    level = levels_of(routines)
    per_level = Counter(level.values())
    rows = [
        Row(f"level {k}", (Pair(paper, per_level[k], derived=k > 1),)) for k, paper in enumerate(LEVELS, 1)
    ]
    copies = sum(routine.is_copy for routine in routines)
    rows += [Row("with products", (Pair(29, len(routines) - copies),)), Row("copies", (Pair(12, copies),))]
    waited = waits_for(routine_named("t2_2_2"), routines)
    second = [routine for routine in waited if level[routine.name] == 2]
    first = {r.name for one in second for r in waits_for(one, routines)}
    rows += [
        Row("level 2 routines that t2_2_2 waits for", (Pair(3, len(second)),)),
        Row("level 1 routines that those wait for", (Pair(10, len(first)),)),
    ]
    assumed = (
        "A routine waits for those of lower levels that write to a tensor which it reads (dotted) or adds to "
        "(solid). As sums commute, the dotted ones alone would do.",
        "Levels follow from the dotted edges.",
    )
    table = Table("Figure 2: 41 routines", ("", "routines"), tuple(rows))
    return Findings((table,), assumed, lambda figure: _draw_2(figure, routines, level))


def _draw_2(figure: Any, routines: Sequence[Routine], level: dict[str, int]) -> None:
    """Levels from top to bottom; an edge from each routine to those that wait for it."""
    figure.set_size_inches(13, 5)
    axis = figure.subplots()
    place = {}
    for k in sorted(set(level.values())):
        mine = [routine.name for routine in routines if level[routine.name] == k]
        place.update({name: ((i + 0.5) / len(mine), -k) for i, name in enumerate(mine)})
    for routine in routines:
        reads = {part.name for part in routine.inputs}
        for other in waits_for(routine, routines):
            style = ":" if other.target.name in reads else "-"
            ends = zip(place[other.name], place[routine.name], strict=True)
            axis.plot(*ends, style, color="0.5", linewidth=0.8, zorder=1)
    for routine in routines:
        colour = "0.6" if routine.is_copy else "black"
        axis.annotate(
            routine.name,
            place[routine.name],
            rotation=90 if level[routine.name] == 1 else 0,
            color=colour,
            fontsize=7,
            ha="center",
            va="center",
            bbox={"facecolor": "white", "edgecolor": colour, "boxstyle": "round,pad=0.25", "linewidth": 0.6},
        )
    axis.set_xlim(0, 1)
    axis.set_ylim(-max(level.values()) - 0.5, -0.4)
    axis.set_yticks(
        [-k for k in sorted(set(level.values()))], [f"level {k}" for k in sorted(set(level.values()))]
    )
    axis.set_xticks([])
    for side in ("top", "right", "bottom", "left"):
        axis.spines[side].set_visible(False)


@lru_cache(maxsize=2)
def carotene(frozen: bool) -> TileGraph:
    """The T2 routines of beta-carotene."""
    return inspect_routines(doubles(), orbitals_named("beta-carotene", frozen=frozen).tiles(TILE))


def _figure_7(progress: Say, seed: int) -> Findings:
    loads, graphs = {}, {}
    for electrons, frozen in ((296, False), (216, True)):
        progress(f"beta-carotene with {electrons} electrons")
        graph = graphs[electrons] = carotene(frozen)
        work = np.bincount(graph.tasks["operation"], weights=graph.flops, minlength=len(graph.operations))
        loads[electrons] = work / work.sum()
    names = [routine.name for routine in doubles()]
    order = [
        k for k in np.argsort(-loads[296]).tolist() if max(share[k] for share in loads.values()) >= SHOWN
    ]
    load_rows = [Row(names[k], tuple(float(share[k]) for share in loads.values())) for k in order]
    heaviest = order[:HEAVIEST]
    chain_rows = []
    for electrons, graph in graphs.items():
        for k in heaviest:
            lengths, counts = _chains(graph, k)
            shown = ", ".join(f"{n} of {length}" for length, n in zip(lengths, counts, strict=True))
            chain_rows.append(Row(f"{names[k]}, {electrons} electrons", (int(counts.sum()), shown)))
    ladder = _chains(graphs[296], names.index("t2_8"))[0]
    length_rows = (
        Row("alpha-alpha", (Pair(36, int(ladder[0]), derived=True),)),
        Row("alpha-beta", (Pair(64, int(ladder[-1]), derived=True),)),
    )
    heads = ("routine", *(f"{electrons} electrons" for electrons in loads))
    tables = (
        Table("Figure 7a: share of the floating-point operations", heads, tuple(load_rows)),
        Table("Chains of t2_8", ("spin", "products"), length_rows),
        Table("Figure 7b: lengths of chains", ("routine", "chains", "of products"), tuple(chain_rows)),
    )
    assumed = (
        "The paper freezes the core and correlates 296 electrons, which are all that the molecule has; 216 "
        "are left with the core frozen. Both are shown.",
        "Routines below 0.1 % of the operations are left out, as in the paper. Its figures give bars without "
        "numbers: the lengths 36 and 64 are those of the TCE's loops over the paper's tiles.",
    )
    return Findings(tables, assumed, lambda figure: _draw_7(figure, names, loads[296], order, graphs[296]))


def _chains(graph: TileGraph, operation: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of a routine's chains, and how many there are of each."""
    return np.unique(graph.gemms[graph.tasks["operation"] == operation], return_counts=True)


def _draw_7(figure: Any, names: list[str], load: np.ndarray, order: list[int], graph: TileGraph) -> None:
    shares, chains = figure.subplots(1, 2)
    shares.barh([names[k] for k in order[::-1]], [100 * load[k] for k in order[::-1]])
    shares.set_xlabel("share of the operations, per cent")
    shares.set_xscale("log")
    shares.tick_params(axis="y", labelsize=7)
    for number, k in enumerate(order[:HEAVIEST]):
        lengths, counts = _chains(graph, k)
        chains.bar(lengths + 1.5 * number - 3, counts, 1.4, label=names[k])
    chains.set_xlabel("products in a chain")
    chains.set_ylabel("chains")
    chains.set_yscale("log")
    chains.legend(fontsize="small")


FIGURE_2_STUDY = Study(
    "jagode-fig2",
    f"{PAPER}, figure 2",
    "the T2 routines in their levels, and who waits for whom",
    _figure_2,
    (COUNTED,),
)
FIGURE_7_STUDY = Study(
    "jagode-fig7",
    f"{PAPER}, figure 7",
    "load of the T2 routines and lengths of their chains",
    _figure_7,
    (COUNTED,),
)
STUDIES = (FIGURE_2_STUDY, FIGURE_7_STUDY)
