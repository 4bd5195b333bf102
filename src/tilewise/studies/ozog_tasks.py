"""Table I and figure 3 of Ozog et al.: how many tasks a contraction has, and how unequal they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.lazy import cached_property
from tilewise.spaces import TileSpace, orbitals_named
from tilewise.studies.constants import in_module
from tilewise.studies.ozog_runs import CORE, FROZEN, PAPER, TILE, WATER_TILES
from tilewise.studies.study import COUNTED, FITTED, Findings, Pair, Row, Say, Study, Table
from tilewise.tce import TileGraph, inspect_routines
from tilewise.tce.routines import Routine, routine_named

MONOMER, MONOMER_ROUTINE = "water-aug-cc-pvdz", "t2_8"
LADDERS = {"ccsd": "t2_8", "ccsdt": "t3_7"}
"""The sum over two virtual orbitals of each method."""
NITROGEN, TABLE_BENZENE = "n2-aug-cc-pvtz", "benzene-aug-cc-pvtz"


@dataclass(frozen=True)
class Case:
    """The largest contraction of a calculation; without a tile size each irrep is one tile."""

    name: str
    molecule: str
    method: str
    tile: int | None = None
    frozen: bool = FROZEN

    @property
    def routine_name(self) -> str:
        return LADDERS[self.method]

    @property
    def routine(self) -> Routine:
        return routine_named(self.routine_name, self.method)

    @cached_property
    def space(self) -> TileSpace:
        counts = orbitals_named(self.molecule, frozen=self.frozen)
        return counts.tiles(self.tile or max(*counts.virtual, *counts.occupied))

    @cached_property
    def graph(self) -> TileGraph:
        return inspect_routines([self.routine], self.space)

    @property
    def tuples(self) -> int:
        """Canonical ones, with those that symmetry makes zero."""
        return int(self.graph.tuples[1].sum())

    @property
    def average_input(self) -> float:
        """Words of both operands of a product."""
        m, n, k = self.graph.m, self.graph.n, self.graph.k
        return float((m * k + k * n).mean())


CASES = (
    Case("N2 CCSDT", NITROGEN, "ccsdt"),
    Case("benzene CCSD", TABLE_BENZENE, "ccsd"),
    Case("10 H2O CCSD", "water-10", "ccsd", TILE),
    Case("14 H2O CCSD", "water-14", "ccsd", TILE),
)
TABLE_1 = {
    "N2 CCSDT": (261_120, 7_418),
    "benzene CCSD": (14_280, 94_674),
    "10 H2O CCSD": (2_100, 2.2e6),
    "14 H2O CCSD": (4_060, 2.7e6),
}
"""Tasks and average input of a product in the paper."""


def _table_1(progress: Say, seed: int) -> Findings:
    rows = []
    for case in CASES:
        progress(case.name)
        tasks, words = TABLE_1[case.name]
        found = (Pair(tasks, case.tuples), len(case.graph), Pair(words, case.average_input))
        rows.append(Row(case.name, (case.routine_name, _tiles(case.space), *found)))
    heads = ("calculation", "contraction", "tiles", "tasks", "not null", "mk + kn")
    assumed = (
        "The paper names neither the contractions nor the tiles: t2_8 and t3_7, the sums over two virtual "
        "orbitals, give its numbers of tasks, with tiles of up to "
        f"{TILE} orbitals for water and one tile for each irrep of the others.",
        "The paper does not say whether the core is frozen: the sizes of the water clusters say so, and it "
        "is frozen in all studies of this paper.",
        "Restricted closed shell: of what is not null the TCE leaves out the blocks of beta spin alone.",
        "The basis of N2 is not given; aug-cc-pVTZ is taken. For benzene the text has aug-cc-pVTZ and figure "
        "7 has aug-cc-pVQZ; aug-cc-pVTZ is taken too. With one tile for each irrep, as the numbers of tasks "
        "demand, the paper's averages fit neither: that of N2 lies between cc-pVTZ and aug-cc-pVTZ, that of "
        "benzene between 6-311G** and aug-cc-pVDZ.",
    )
    table = Table("Table I: tasks of the largest contraction", heads, tuple(rows))
    return Findings((table, _with_core()), assumed)


def _with_core() -> Table:
    """What would come out if no core were frozen."""
    rows = []
    for case in CASES:
        whole = replace(case, frozen=False)
        tasks, words = TABLE_1[case.name]
        rows.append(Row(case.name, (Pair(tasks, whole.tuples), Pair(words, whole.average_input))))
    return Table("With the core correlated", ("calculation", "tasks", "mk + kn"), tuple(rows))


def _tiles(space: TileSpace) -> str:
    """Of holes and particles with alpha spin."""
    return f"{len(space.holes) // 2} + {len(space.particles) // 2}"


def _figure_3(progress: Say, seed: int) -> Findings:
    counts = orbitals_named(MONOMER, frozen=FROZEN)
    progress(f"{MONOMER_ROUTINE} of {MONOMER}")
    graph = inspect_routines([routine_named(MONOMER_ROUTINE)], counts.tiles(max(counts.virtual)))
    mega = graph.flops / 1e6
    rows = (
        Row("tuples", (int(graph.tuples[1].sum()),)),
        Row("tasks", (len(graph),)),
        Row("smallest, MFLOP", (float(mega.min()),)),
        Row("mean, MFLOP", (float(mega.mean()),)),
        Row("largest, MFLOP", (float(mega.max()),)),
        Row("largest over mean", (float(mega.max() / mega.mean()),)),
        Row("share of the largest tenth", (_share_of_largest(mega),)),
    )
    assumed = (
        "The paper does not say which T2 contraction it shows, nor its tiles: "
        f"{routine_named(MONOMER_ROUTINE).text} is taken, in C2v with one tile for each irrep.",
    )
    table = Table("Figure 3: work of the tasks of one contraction, water", ("", "ours"), rows)
    return Findings((table,), assumed, lambda figure: _draw_3(figure, mega))


def _share_of_largest(work: np.ndarray) -> float:
    """Of all the work, what the largest tenth of the tasks has."""
    falling = np.sort(work)[::-1]
    return float(falling[: max(1, len(work) // 10)].sum() / work.sum())


def _draw_3(figure: Any, mega: np.ndarray) -> None:
    axis = figure.subplots()
    axis.plot(np.arange(len(mega)), mega, ".", markersize=3)
    axis.set_xlabel("task")
    axis.set_ylabel("MFLOP")
    axis.set_title(f"{MONOMER_ROUTINE}, one water molecule", fontsize="medium")


LADDER = in_module(
    __name__,
    "LADDERS",
    "which contraction is the largest of table I",
    "fitted to table I: the numbers of tasks",
)
BASES = (
    in_module(__name__, "NITROGEN", "average size of its tasks", "chosen: the paper gives no basis"),
    in_module(
        __name__,
        "TABLE_BENZENE",
        "average size of its tasks",
        "chosen: the basis of the text, figure 7 has another",
    ),
)
SHOWN_ROUTINE = in_module(
    __name__, "MONOMER_ROUTINE", "work of the tasks of figure 3", "chosen: the paper names none"
)

STUDIES = (
    Study(
        "ozog-table1",
        f"{PAPER}, table I",
        "tasks of the largest contractions and their sizes",
        _table_1,
        (COUNTED, FITTED),
        constants=lambda: (CORE, WATER_TILES, LADDER, *BASES),
    ),
    Study(
        "ozog-fig3",
        f"{PAPER}, figure 3",
        "the work of each task of a contraction",
        _figure_3,
        (COUNTED, FITTED),
        constants=lambda: (CORE, SHOWN_ROUTINE),
    ),
)
