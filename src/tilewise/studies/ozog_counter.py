"""Figures 2 and 5 of Ozog et al.: how long a shared counter takes, alone and in calculations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.execute.machines import MachineModel, find_machine
from tilewise.execute.simulated import simulate
from tilewise.inspect.tile_graph import inspect_routines
from tilewise.schedule import Phase, Queue, Schedule, policies
from tilewise.schedule.routines import by_operation
from tilewise.schedule.schedule import NULL
from tilewise.spaces.orbitals import orbitals_named
from tilewise.studies.routines import Iteration, fitted, in_counter, routine_graph
from tilewise.studies.study import Findings, Pair, Row, Say, Study, Table

CALLERS = (2, 8, 25, 50, 100, 150, 200, 300, 400, 500, 700, 1000)
CALLS = 100
"""Of each caller; the paper makes a million in all, but the time of a call does not depend on that."""

TILE = 36
CORES: Mapping[str, tuple[int, ...]] = {
    "water-10": (128, 256, 504, 752, 1000),
    "water-14": (512, 752, 984, 1000),
}
PAPER = {("water-10", 1000): 0.60, ("water-14", 1000): 0.30, ("water-14", 984): 0.37}
POINT = ("water-10", 1000)
"""What the counter is fitted to."""


def flood_seconds(machine: MachineModel, callers: int) -> float:
    """Time of a call of another node when processes of so many nodes, one its host, only call a counter."""
    alone = replace(machine, nodes=callers, cores=1, reserved=0)
    graph = inspect_routines((), orbitals_named("water-1").tiles())
    calls = np.full(CALLS * callers, NULL, np.int64)
    schedule = Schedule("flood", callers, (Phase((Queue(calls, tuple(range(callers))),)),))
    run = simulate(graph, schedule, np.zeros(0), alone)
    return float(run.counter[1:].sum() / run.counts[1:, 0].sum())


def run_flood(progress: Say, seed: int) -> Findings:
    machine = find_machine("fusion")
    plain = replace(machine, counter_buffers=0)
    found = {}
    for callers in CALLERS:
        progress(f"{callers} callers")
        found[callers] = (flood_seconds(plain, callers), flood_seconds(machine, callers))
    rows = tuple(Row(str(n), tuple(1e6 * seconds for seconds in found[n])) for n in CALLERS)
    calls = Table("microseconds per call", ("callers", "a queue alone", "with flow control"), rows)
    gap = Row("callers at the gap", (Pair((150, 200), machine.counter_buffers),))
    assumed = (
        f"The paper gives no times: a call takes {1e6 * machine.counter_service:g} microseconds at the host "
        f"and {1e3 * machine.counter_resend:.3g} milliseconds when it comes while {machine.counter_buffers} "
        "wait; the file fusion.toml says what these are fitted to.",
        "One caller is in the node of the counter, which the paper excludes; it waits in the same queue.",
        "The paper's gap is at 150 to 200 callers; with as few buffers the original code would come to a "
        "standstill on benzene from 200 cores on, where the paper's runs: other messages have other buffers.",
    )
    return Findings((calls, Table("flow control", ("", "callers"), (gap,))), assumed, _draw_flood(found))


def _draw_flood(found: Mapping[int, tuple[float, float]]) -> Any:
    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for k, (label, style) in enumerate((("a queue alone", "o--"), ("with flow control", "o-"))):
            axis.plot(list(found), [1e6 * seconds[k] for seconds in found.values()], style, label=label)
        axis.set(xlabel="processes", ylabel="microseconds per call", yscale="log", title="Flood of a counter")
        axis.legend()

    return draw


def counter_share(
    machine: MachineModel, molecule: str, cores: int, seed: int = 0, *, by_routine: bool = False
) -> float:
    """Of an iteration of the original code, on so many cores with those that are reserved.

    Levels have a counter and a barrier each, or else routines have.
    """
    iteration = Iteration(routine_graph(molecule, TILE), machine)
    workers, policy = cores // machine.cores * machine.working, policies["nxtval"]
    if not by_routine:
        return in_counter(iteration.run(policy, workers, seed=seed))
    schedule = by_operation(iteration.graph, iteration.seconds, machine.team(workers), policy)
    return in_counter(iteration.run(schedule, workers, seed=seed))


def fitted_machine(machine: MachineModel, seed: int = 0) -> MachineModel:
    """The machine with a time of calls without a buffer that gives the paper's share at one point."""

    def share(resend: float) -> float:
        return counter_share(replace(machine, counter_resend=resend), *POINT, seed)

    return replace(machine, counter_resend=fitted(PAPER[POINT], 1e-5, 1e-2, share))


def run_shares(progress: Say, seed: int) -> Findings:
    progress("counter fitted to 10 H2O on 1000 cores")
    machine = fitted_machine(find_machine("fusion"), seed)
    shares: dict[str, dict[int, float]] = {molecule: {} for molecule in CORES}
    for molecule, counts in CORES.items():
        for cores in counts:
            progress(f"{molecule} on {cores} cores")
            shares[molecule][cores] = counter_share(machine, molecule, cores, seed)
    every = sorted({cores for counts in CORES.values() for cores in counts})
    rows = tuple(Row(str(n), tuple(_shown(shares, molecule, n) for molecule in CORES)) for n in every)
    table = Table("percent of time in the counter", ("cores", "10 H2O", "14 H2O"), rows)
    value = Row("milliseconds of a call without a buffer", (1e3 * machine.counter_resend,))
    progress("a counter for each routine")
    quick = replace(machine, counter_service=0.0, counter_latency=0.0, counter_buffers=0)
    least = (
        100 * counter_share(quick, molecule, CORES[molecule][-1], seed, by_routine=True) for molecule in CORES
    )
    closing = Row("percent of time", tuple(least))
    assumed = (
        "The time of a call that finds no buffer is fitted to the paper's 60 % for 10 H2O near 1,000 cores; "
        "everything else comes out.",
        "Time in the counter includes the call that closes a level, in which a process waits for all others, "
        "as profiles of NXTVAL do: it is the larger part where tasks are few.",
        "The routines run level by level, with a counter for each level. With a counter and a barrier for "
        "each routine closing calls alone, of a counter that takes no time, would have the shares of the "
        "last table.",
        "The paper gives about 30 % for 14 H2O near 1,000 processes, and 37 % at 861.",
        "Cores are those of whole nodes; of eight, one is ARMCI's and seven work.",
    )
    tables = (
        table,
        Table("fitted", ("", "value"), (value,)),
        Table("closing calls of routines on 1000 cores", ("", "10 H2O", "14 H2O"), (closing,)),
    )
    return Findings(tables, assumed, _draw_shares(shares))


def _shown(shares: Mapping[str, Mapping[int, float]], molecule: str, cores: int) -> Pair | float | None:
    if cores not in shares[molecule]:
        return None
    ours, paper = 100 * shares[molecule][cores], PAPER.get((molecule, cores))
    return ours if paper is None else Pair(100 * paper, ours)


def _draw_shares(shares: Mapping[str, Mapping[int, float]]) -> Any:
    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for molecule, color in zip(shares, ("tab:blue", "tab:red"), strict=True):
            found = shares[molecule]
            axis.plot(list(found), [100 * s for s in found.values()], color=color, marker="o", label=molecule)
            paper = {cores: share for (name, cores), share in PAPER.items() if name == molecule}
            label = f"{molecule}, paper"
            axis.plot(list(paper), [100 * s for s in paper.values()], "x", color=color, label=label)
        axis.set(xlabel="cores", ylabel="percent of time in the counter", ylim=(0, 100))
        axis.legend()

    return draw


STUDIES = (
    Study("ozog-fig2", "Ozog et al., figure 2", "time of a counter's call under a flood", run_flood),
    Study("ozog-fig5", "Ozog et al., figure 5", "share of the counter, 10 and 14 H2O", run_shares),
)
