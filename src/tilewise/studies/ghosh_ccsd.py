"""Figures 1 and 2 of Ghosh et al.: iterations of CCSD in three communication patterns, simulated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewise.spaces import orbitals_named
from tilewise.studies.constants import in_module
from tilewise.studies.ghosh import PAPER, TILE, TILES, UNROLLED
from tilewise.studies.pattern_runs import (
    CACHE,
    INVERTED,
    ORIGINAL,
    SCOPES,
    SPENT,
    Costs,
    PatternedMolecule,
)
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table
from tilewise.studies.tukey import ADDED, CONSTANTS, RATES, Tukey, shown_rate
from tilewise.tce.patterns import PATTERNS

PER_NODE = 8
"""Processes on each node."""

NODES = (16, 32, 64, 96)
FIGURES = {"8 H2O": "Figure 1", "9 H2O": "Figure 2"}
POINT = ("8 H2O", 32)
"""Molecule and nodes for which the last tables are; contractions are chosen on the most nodes too."""

BETTER = {ORIGINAL: 20, INVERTED: 10}
"""Per cent by which the cache is better on average, in the paper."""

UNEVEN = 6
"""Routines that a table shows."""

SCOPE = "all with integrals"
SUMMED = 1

BARRIERS = {False: "a barrier after each routine", True: "a barrier after each level"}
BY_LEVEL = False
"""Of the first tables; both kinds of barriers are shown."""
BASE = Costs(Tukey(PER_NODE), SUMMED, BY_LEVEL)

CHOSEN_HERE = (
    in_module(
        __name__, "SCOPE", "whether the inverted loops win", "chosen: the paper does not say which routines"
    ),
    in_module(
        __name__,
        "BY_LEVEL",
        "whether the inverted loops win: a barrier after each routine, or after each level",
        "chosen: the paper does not say; both are shown",
    ),
    in_module(
        __name__,
        "SUMMED",
        "cost of a Get of integrals",
        "chosen: the paper says that Gets are added up, not what it costs",
        "sort of each word",
    ),
    in_module(
        __name__,
        "NODES",
        "averages: new patterns gain with the nodes",
        "chosen: the numbers of the figures are not in the text",
    ),
)


@dataclass
class Runs:
    """What has been simulated; each run once."""

    seed: int
    molecules: dict[str, PatternedMolecule] = field(default_factory=dict)
    found: dict[tuple[object, ...], np.ndarray] = field(default_factory=dict)

    def spent(
        self, molecule: str, nodes: int, pattern: str, scope: str = SCOPE, costs: Costs = BASE
    ) -> np.ndarray:
        key = (molecule, nodes, pattern, scope if pattern != ORIGINAL else "", costs)
        if key not in self.found:
            run = self.molecule(molecule).run(pattern, scope)
            self.found[key] = run.spent(costs, nodes, self.seed)
        return self.found[key]

    def molecule(self, name: str) -> PatternedMolecule:
        if name not in self.molecules:
            counts = orbitals_named(f"water-{name.split()[0]}", frozen=True)
            self.molecules[name] = PatternedMolecule(counts.tiles(TILE))
        return self.molecules[name]

    def seconds(
        self, molecule: str, nodes: int, pattern: str, scope: str = SCOPE, costs: Costs = BASE
    ) -> float:
        return float(self.spent(molecule, nodes, pattern, scope, costs).sum())

    def ratio(self, molecule: str, nodes: int, pattern: str, scope: str, costs: Costs) -> float:
        """Of the time to that of the original: below 1 the new pattern is faster."""
        whole = self.seconds(molecule, nodes, ORIGINAL, scope, costs)
        return self.seconds(molecule, nodes, pattern, scope, costs) / whole


def _figures(progress: Say, seed: int) -> Findings:
    runs, tables = Runs(seed), []
    for molecule in FIGURES:
        for by_level in BARRIERS:
            progress(f"{molecule}, {BARRIERS[by_level]}")
            tables.append(_seconds(runs, molecule, by_level))
    progress("which contractions are in the new pattern")
    tables.append(_scopes(runs))
    progress("what messages cost")
    tables += [_sensitivity(runs), *(_breakdown(runs, by_level) for by_level in BARRIERS), _uneven(runs)]
    tables.insert(0, _average(runs))
    runs.molecules.clear()  # the figure needs the times alone
    return Findings(tuple(tables), _assumed(), lambda figure: _draw(figure, runs))


def _assumed() -> tuple[str, ...]:
    return (
        "The figures are pictures, and the text does not say on how many nodes they run: ours have "
        f"{', '.join(map(str, NODES))} with {PER_NODE} processes each. One iteration is simulated.",
        "The text does not say which contractions the new patterns are used in: those with integrals, whose "
        "Gets they are to save, are assumed.",
        "Nor does it say how routines follow each other. The code of the TCE has had a counter and a barrier "
        "for each routine, and later for each level of routines; both are shown.",
        "Molecules and tiles are those of table I. The original loops and the cache draw null tuples too; "
        "the inverted loops do not.",
        "A block that is kept is sorted once. Each Get of integrals is added up in a buffer, as the paper "
        "says of its TCE_Get, at the rate of sorts.",
        f"As in ghosh-proxy a node adds up {shown_rate(ADDED)} GB/s for Accumulates, here for {PER_NODE} "
        "processes, and a process waits until its result is in place.",
        "An improvement is the part of the other pattern's time that is saved, averaged over the nodes and "
        "over both molecules.",
    )


def _average(runs: Runs) -> Table:
    """Per cent of the other pattern's time that the cache saves."""
    rows = []
    for by_level, barriers in BARRIERS.items():
        costs = replace(BASE, by_level=by_level)
        for other, paper in BETTER.items():
            saved = [
                1.0
                - runs.seconds(molecule, nodes, CACHE, costs=costs)
                / runs.seconds(molecule, nodes, other, costs=costs)
                for molecule in FIGURES
                for nodes in NODES
            ]
            rows.append(Row(f"over the {other}, {barriers}", (Pair(paper, 100.0 * float(np.mean(saved))),)))
    return Table("Average improvement by the cache, per cent", ("cache", "saved"), tuple(rows))


def _seconds(runs: Runs, molecule: str, by_level: bool) -> Table:
    costs = replace(BASE, by_level=by_level)
    rows = []
    for pattern in PATTERNS:
        found = [runs.seconds(molecule, nodes, pattern, costs=costs) for nodes in NODES]
        rows.append(Row(pattern, (*found, found[0] / found[-1])))
    title = f"{FIGURES[molecule]}: seconds of an iteration of {molecule}, {BARRIERS[by_level]}"
    return Table(title, ("pattern", *_processes(NODES), "speed-up"), tuple(rows))


def _scopes(runs: Runs) -> Table:
    molecule, few = POINT
    shown = (few, NODES[-1])
    rows = []
    for by_level, barriers in BARRIERS.items():
        costs = replace(BASE, by_level=by_level)
        for pattern in (INVERTED, CACHE):
            for scope in SCOPES:
                ratios = tuple(runs.ratio(molecule, nodes, pattern, scope, costs) for nodes in shown)
                rows.append(Row(f"{pattern}, {scope}, {barriers}", ratios))
    title = f"Time over that of the original, by the contractions in the new pattern: {molecule}"
    return Table(title, ("pattern", *_processes(shown)), tuple(rows))


def _processes(nodes: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{PER_NODE * number} processes" for number in nodes)


def _sensitivity(runs: Runs) -> Table:
    molecule, nodes = POINT
    rows = []
    for by_level, barriers in BARRIERS.items():
        for added, summed in (*((added, SUMMED) for added in RATES), (ADDED, 0)):
            costs = Costs(Tukey(PER_NODE, added), summed, by_level)
            ratios = (runs.ratio(molecule, nodes, pattern, SCOPE, costs) for pattern in (INVERTED, CACHE))
            gets = "" if summed else ", Gets not summed"
            rows.append(Row(f"{shown_rate(added)}{gets}, {barriers}", tuple(ratios)))
    title = f"Time over that of the original, by GB/s that a node adds up for Accumulates: {_point()}"
    return Table(title, ("GB/s", INVERTED, CACHE), tuple(rows))


def _breakdown(runs: Runs, by_level: bool) -> Table:
    costs = replace(BASE, by_level=by_level)
    columns = [runs.spent(*POINT, pattern, costs=costs) for pattern in PATTERNS]
    rows = tuple(Row(what, tuple(float(column[k]) for column in columns)) for k, what in enumerate(SPENT))
    title = f"Where the seconds of a process go: {_point()}, {BARRIERS[by_level]}"
    return Table(title, ("seconds", *PATTERNS), rows)


def _uneven(runs: Runs) -> Table:
    """The routines that lose most to waiting in the original loops."""
    molecule, nodes = POINT
    costs = replace(BASE, by_level=False)
    original, inverted = (
        runs.molecule(molecule).run(pattern, SCOPE).by_routine(costs, nodes, runs.seed)
        for pattern in (ORIGINAL, INVERTED)
    )
    worst = sorted(original, key=lambda name: original[name].even - original[name].seconds)[:UNEVEN]
    rows = (
        Row(name, (one.tasks, one.seconds, one.even, one.longest, other.tasks, other.seconds))
        for name in worst
        for one, other in [(original[name], inverted[name])]
    )
    heads = ("routine", "tasks", "seconds", "shared evenly", "longest task", "inverted: tasks", "seconds")
    title = f"Where the original loops wait for others: {_point()}, {BARRIERS[costs.by_level]}"
    return Table(title, heads, tuple(rows))


def _point() -> str:
    molecule, nodes = POINT
    return f"{molecule}, {PER_NODE * nodes} processes"


def _draw(figure: Any, runs: Runs) -> None:
    """A row for each kind of barriers, a panel for each molecule: bars of the patterns by processes."""
    figure.set_size_inches(9, 7)
    panels = figure.subplots(len(BARRIERS), len(FIGURES), squeeze=False)
    for row, (by_level, barriers) in zip(panels, BARRIERS.items(), strict=True):
        costs = replace(BASE, by_level=by_level)
        for axis, (molecule, name) in zip(row, FIGURES.items(), strict=True):
            place = np.arange(len(NODES))
            for k, pattern in enumerate(PATTERNS):
                values = [runs.seconds(molecule, nodes, pattern, costs=costs) for nodes in NODES]
                axis.bar(place + 0.27 * k, values, 0.25, label=pattern)
            axis.set_xticks(place + 0.27, [str(PER_NODE * nodes) for nodes in NODES])
            axis.set(xlabel="processes", ylabel="seconds of an iteration")
            axis.set_title(f"{name}: {molecule}, {barriers}", fontsize="medium")
            axis.legend(fontsize="small")


STUDIES = (
    Study(
        "ghosh-fig1",
        f"{PAPER}, figures 1 and 2",
        "CCSD of water clusters in three communication patterns, simulated",
        _figures,
        (SIMULATED, FITTED),
        constants=lambda: (*CONSTANTS, TILES, UNROLLED, *CHOSEN_HERE),
    ),
)
