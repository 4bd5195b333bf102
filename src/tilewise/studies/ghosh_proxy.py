"""Figures 3 to 6 of Ghosh et al.: a product of two matrices in two communication patterns, simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tilewise.execute.simulated import simulate
from tilewise.schedule import policy_named
from tilewise.spaces import TileSpace
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table
from tilewise.studies.tukey import ADDED, CONSTANTS, FREE, RATES, Tukey, shown_rate
from tilewise.tce.patterns import Pattern, inverted, original
from tilewise.tce.routines import parse_routine

PAPER = "Ghosh et al."
PROXY = parse_routine("proxy", "c(h1|p2) += a(h1|p3) b(p3|p2)")
PER_NODE = 4
"""Processes on each node."""

ORIGINAL, INVERTED = "original", "inverted"


@dataclass(frozen=True)
class Figure:
    """A square matrix on several numbers of nodes; with a counter, or tasks shared out beforehand."""

    name: str
    library: str
    size: int
    blocks: tuple[int, ...]
    nodes: tuple[int, ...]

    @property
    def dynamic(self) -> bool:
        return self.library == "GA"

    def pattern(self, name: str, block: int, nodes: int) -> Pattern:
        """Tasks that are shared out beforehand have the rows of one process in the original loops."""
        strips = name == ORIGINAL and not self.dynamic
        rows = self.size // (PER_NODE * nodes) if strips else block
        return pattern_of(name, self.size, block, rows)


FIGURES = (
    Figure("Figure 3", "GA", 24_000, (600, 1000, 1200), (40, 50, 60, 70)),
    Figure("Figure 4", "GA", 32_000, (800, 1200, 1600), (50, 60, 70, 80)),
    Figure("Figure 5", "MPI", 24_000, (600, 1000, 1200), (40, 50, 60)),
    Figure("Figure 6", "MPI", 32_000, (800, 1200, 1600), (50, 80)),
)

Times = dict[tuple[str, int, int, str], float]
"""Seconds by figure, size of blocks, nodes and pattern."""


@lru_cache(maxsize=4)
def pattern_of(name: str, size: int, block: int, rows: int) -> Pattern:
    """A pattern with square blocks, or with blocks of fewer rows in the first matrix and the result."""
    space = TileSpace((size,), (size,), block, hole_tile=rows)
    if name == ORIGINAL:
        return original(PROXY, space)
    return inverted(PROXY, space, skipped=False, buffered=True)


def run_pattern(pattern: Pattern, nodes: int, *, dynamic: bool, added: float = ADDED, seed: int = 0) -> float:
    """Seconds of a product of matrices; the inverted loops compute while a result is under way."""
    graph, tukey = pattern.graph, Tukey(PER_NODE, added)
    moved, machine = graph.traffic, tukey.machine
    seconds = graph.flops / tukey.rates.gemm + tukey.accumulating(moved.bytes_put)
    draws = 1
    if pattern.name == INVERTED:
        machine = replace(machine, prefetch=1)
        draws = len(graph) // pattern.gets  # all products with one block of the second matrix
    policy = policy_named(f"ie-nxtval(quantum={draws})" if dynamic else "block(barriers=true)")
    schedule = policy(graph, seconds, machine.team(PER_NODE * nodes))
    return simulate(graph, schedule, seconds, machine, **vars(moved), seed=seed).makespan


def _proxy(progress: Say, seed: int) -> Findings:
    by_rate: dict[float, Times] = {added: {} for added in RATES}
    for figure in FIGURES:
        for block in figure.blocks:
            progress(f"{figure.name}: blocks of {block}")
            for nodes, name in product(figure.nodes, (ORIGINAL, INVERTED)):
                pattern = figure.pattern(name, block, nodes)
                for added, times in by_rate.items():
                    seconds = run_pattern(pattern, nodes, dynamic=figure.dynamic, added=added, seed=seed)
                    times[figure.name, block, nodes, name] = seconds
    times = by_rate[ADDED]
    tables = (_wins(by_rate), _speed_ups(times), *(_seconds(figure, times) for figure in FIGURES))
    sizes = ", ".join(map(str, sorted({block for figure in FIGURES for block in figure.blocks})))
    assumed = (
        "The text has few numbers of these figures: what it says of them is compared. 24K and 32K are 24,000 "
        f"and 32,000, and blocks, of which it names some, have {sizes} rows.",
        "With Global Arrays tasks are drawn from a counter. With MPI they are shared out beforehand: in the "
        "original loops each process has its rows of the result, for the paper wants their number to be a "
        "multiple of the processes.",
        f"A node adds up {shown_rate(ADDED)} GB/s for the Accumulates of its {PER_NODE} processes, which "
        "takes their time. This was chosen so that the original loops win, and it decides who wins: the "
        "faster Accumulates are, the more runs go to the inverted loops, which compute while results are "
        "under way.",
        "By its algorithms 1 and 2 a product of square matrices has as many tasks either way, so that with a "
        "counter our inverted loops do not scale better; the paper suspects that the original has fewer.",
        "The paper sees 12 s between blocks of 800 and 1600 with MPI on 320 processes, and next to nothing "
        "on 200; nothing in the model makes such a difference.",
    )
    return Findings(tables, assumed, lambda figure: _draw(figure, times))


def _seconds(figure: Figure, times: Times) -> Table:
    rows = []
    for block in figure.blocks:
        for name in (ORIGINAL, INVERTED):
            found = tuple(times[figure.name, block, nodes, name] for nodes in figure.nodes)
            rows.append(Row(f"{name}, blocks of {block}", found))
    heads = ("pattern", *(f"{nodes} nodes" for nodes in figure.nodes))
    return Table(f"{figure.name}: {figure.size} square, {figure.library}, seconds", heads, tuple(rows))


def _wins(by_rate: Mapping[float, Times]) -> Table:
    """How often the original is the faster one, which the paper says of all runs."""
    rows, total = [], np.zeros((len(by_rate) + 1), int)
    for figure in FIGURES:
        runs = [(figure.name, block, nodes) for block in figure.blocks for nodes in figure.nodes]
        wins = [sum(t[*run, ORIGINAL] < t[*run, INVERTED] for run in runs) for t in by_rate.values()]
        total += [len(runs), *wins]
        rows.append(_counted(f"{figure.name}, {figure.library}", len(runs), wins))
    rows.append(_counted("all", int(total[0]), total[1:].tolist()))
    heads = ("figure", *(_heading(added) for added in by_rate))
    title = "Runs in which the original is faster, by GB/s that a node (a process) adds up for Accumulates"
    return Table(title, heads, tuple(rows))


def _counted(label: str, runs: int, wins: list[int]) -> Row:
    """The first rate is the one that is assumed; that the original wins all runs follows from the text."""
    return Row(label, (Pair(runs, wins[0], derived=True), *wins[1:]))


def _heading(added: float) -> str:
    return shown_rate(added) if added == FREE else f"{shown_rate(added)} ({shown_rate(added / PER_NODE)})"


def _speed_ups(times: Times) -> Table:
    """From the fewest nodes to the most, by the size of the blocks."""
    rows = []
    for figure in FIGURES:
        first, last = figure.nodes[0], figure.nodes[-1]
        for block in figure.blocks:
            gains = [
                times[figure.name, block, first, name] / times[figure.name, block, last, name]
                for name in (ORIGINAL, INVERTED)
            ]
            rows.append(Row(f"{figure.name}, blocks of {block}", (last / first, *gains)))
    heads = ("figure", "nodes", ORIGINAL, INVERTED)
    return Table("Growth from the fewest nodes to the most, and the speed-up", heads, tuple(rows))


def _draw(figure: Any, times: Times) -> None:
    """A panel for each figure: bars by nodes, a pair of patterns for each size of blocks."""
    figure.set_size_inches(10, 7)
    for axis, one in zip(figure.subplots(2, 2).ravel(), FIGURES, strict=True):
        width = 0.8 / (2 * len(one.blocks))
        for k, block in enumerate(one.blocks):
            for j, name in enumerate((ORIGINAL, INVERTED)):
                place = np.arange(len(one.nodes)) + (2 * k + j) * width
                values = [times[one.name, block, nodes, name] for nodes in one.nodes]
                axis.bar(
                    place,
                    values,
                    width,
                    color=f"C{k}",
                    alpha=1.0 if j == 0 else 0.5,
                    label=f"{name}, {block}",
                )
        axis.set_xticks(np.arange(len(one.nodes)) + 0.4 - width / 2, [str(nodes) for nodes in one.nodes])
        axis.set_xlabel(f"nodes with {PER_NODE} processes")
        axis.set_ylabel("seconds")
        axis.set_title(f"{one.name}: {one.size} square, {one.library}", fontsize="medium")
        axis.set_ylim(top=1.25 * axis.get_ylim()[1])  # room for the legend
        axis.legend(fontsize="x-small", ncols=len(one.blocks))


def _on_ranks(progress: Say, seed: int) -> tuple[Table, ...]:
    from tilewise.studies.ghosh_proxy_loops import proxy_tables

    return proxy_tables(progress, seed)


STUDIES = (
    Study(
        "ghosh-proxy",
        f"{PAPER}, figures 3 to 6",
        "two patterns on a product of matrices, simulated",
        _proxy,
        (SIMULATED, FITTED),
        constants=lambda: CONSTANTS,
        for_real=_on_ranks,
    ),
)
