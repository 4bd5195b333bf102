"""The scale limits of table I of Ozog et al.: on how many cores the original code is fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tilewise.hardware.machines import find_machine
from tilewise.spaces.orbitals import orbitals_named
from tilewise.studies.constants import in_module
from tilewise.studies.ozog_profile import original_run
from tilewise.studies.ozog_runs import FROZEN, FUSION, MOLECULES, PAPER, benzene, water
from tilewise.studies.ozog_tasks import BASES, NITROGEN
from tilewise.studies.routines import SimulatedIteration, in_counter
from tilewise.studies.study import FITTED, SIMULATED, Findings, Row, Say, Study, Table
from tilewise.tce import inspect_routines
from tilewise.tce.routines import tce_routines

NEAR = 0.02
"""A time so little above the shortest one counts as the shortest."""

SMALL = (16, 40, 200, 400)
MIDDLE = (40, 80, 120, 200, 240, 320, 400, 504)
LARGE = (120, 200, 320, 400, 504, 600, 696, 752, 800, 896, 1000, 1200, 1600, 2000)

Seconds = Mapping[int, float]


def nitrogen() -> SimulatedIteration:
    """An iteration of CCSDT."""
    counts = orbitals_named(NITROGEN, frozen=FROZEN)
    tiles = counts.tiles(max(*counts.virtual, *counts.occupied))
    return SimulatedIteration(inspect_routines(tce_routines("ccsdt"), tiles), find_machine("fusion"))


CASES: Mapping[str, tuple[Callable[[], SimulatedIteration], tuple[int, ...], int]] = {
    "N2 CCSDT": (nitrogen, SMALL, 200),
    "benzene CCSD": (benzene, MIDDLE, 320),
    "10 H2O CCSD": (lambda: water(10), LARGE, 750),
    "14 H2O CCSD": (lambda: water(14), LARGE, 1200),
}
"""Each calculation, the numbers of cores that are tried, and the paper's limit."""


def original_seconds(iteration: SimulatedIteration, cores: Iterable[int], seed: int = 0) -> Seconds:
    """Of an iteration of the original code."""
    return {n: original_run(iteration, n, seed).makespan for n in cores}


def fastest(seconds: Seconds) -> int:
    """The fewest cores on which the time is the shortest, or nearly so."""
    shortest = min(seconds.values())
    return min(cores for cores, time in seconds.items() if time <= (1 + NEAR) * shortest)


def run(progress: Say, seed: int) -> Findings:
    found, rows = {}, []
    for name, (made, cores, paper) in CASES.items():
        progress(name)
        iteration = made()
        found[name] = original_seconds(iteration, cores, seed)
        plain = original_seconds(iteration.on(counter_buffers=0, counter_resend=0.0), cores, seed)
        best = fastest(found[name])
        share = 100 * in_counter(original_run(iteration, best, seed))
        rows.append(Row(name, (paper, best, share, fastest(plain), cores[-1])))
    heads = ("calculation", "limit, paper", "ours", "in the counter there / %")
    title, more = (
        "Table I: cores on which the original code is fastest",
        ("without flow control", "tried up to"),
    )
    table = Table(title, (*heads, *more), tuple(rows))
    assumed = (
        "The paper does not say what its scale limit is: whether the code fails beyond it or gains nothing "
        f"more. Ours is the fewest cores on which an iteration is within {100 * NEAR:.0f} % of its shortest "
        "time; nothing fails in the simulator.",
        "Nearly all of the time of N2 is that of its counter, by the service that figure 7 asks for: more "
        "cores gain nothing from the start.",
        "Benzene's follows from the number of buffers, which was chosen so that it runs on 400 cores.",
    )
    return Findings((table, *_times(found)), assumed, _draw(found))


def _times(found: Mapping[str, Seconds]) -> tuple[Table, ...]:
    tables = []
    for cores in (SMALL, MIDDLE, LARGE):
        names = [name for name, (_, tried, _) in CASES.items() if tried is cores]
        rows = tuple(Row(str(n), tuple(found[name][n] for name in names)) for n in cores)
        tables.append(Table("seconds of an iteration of the original code", ("cores", *names), rows))
    return tuple(tables)


def _draw(found: Mapping[str, Seconds]) -> Any:
    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for name, seconds in found.items():
            (line,) = axis.plot(list(seconds), list(seconds.values()), "o-", label=name)
            axis.axvline(CASES[name][2], color=line.get_color(), linestyle=":")
        axis.set(xlabel="cores (dotted: the paper's limit)", ylabel="seconds", xscale="log", yscale="log")
        axis.legend()

    return draw


TOLERANCE = in_module(__name__, "NEAR", "which time counts as the shortest", "chosen: above the noise")

STUDIES = (
    Study(
        "ozog-limits",
        f"{PAPER}, table I",
        "on how many cores the original code is fastest",
        run,
        (SIMULATED, FITTED),
        constants=lambda: (*FUSION, *MOLECULES, BASES[0], TOLERANCE),
    ),
)
