"""Figures 2 and 5 of Ozog et al.: how long a shared counter takes, alone and in calculations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.execute.simulated import simulate
from tilewise.hardware.machines import MachineModel, find_machine
from tilewise.schedule import Phase, Queue, Schedule, policies
from tilewise.schedule.routines import by_operation
from tilewise.schedule.schedule import NULL
from tilewise.spaces.orbitals import orbitals_named
from tilewise.studies.constants import in_module
from tilewise.studies.ozog_runs import COUNTER, FUSION, MOLECULES, PAPER, benzene, water, workers_on
from tilewise.studies.routines import SimulatedIteration, fitted, in_counter
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table
from tilewise.tce.inspector import inspect_routines

CALLERS = (2, 8, 25, 50, 100, 150, 200, 300, 400, 500, 700, 1000)
CALLS = 100
"""Of each caller; the paper makes a million in all, but the time of a call does not depend on that."""

CORES: Mapping[int, tuple[int, ...]] = {10: (128, 256, 504, 752, 1000), 14: (512, 752, 1000)}
"""Of clusters with so many molecules."""
FIGURE_5 = {(10, 1000): 0.60, (14, 1000): 0.30}
POINT = (10, 1000)
"""What the counter is fitted to."""

ROOM = (150, 200, 352)
"""Buffers that are tried; the paper's gap is between the first two."""
BENZENE_CORES = (160, 200, 240, 400)


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
        "The paper's gap is at 150 to 200 callers; ozog-fig5 shows why so few buffers do not go with "
        "figure 7.",
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
    machine: MachineModel, molecules: int, cores: int, seed: int = 0, *, by_routine: bool = False
) -> float:
    """Of an iteration of the original code, on so many cores with those that are reserved.

    Levels have a counter and a barrier each, or else routines have.
    """
    iteration = SimulatedIteration(water(molecules).graph, machine)
    workers, policy = workers_on(iteration.machine, cores), policies["nxtval"]
    if not by_routine:
        return in_counter(iteration.run(policy, workers, seed=seed))
    schedule = by_operation(iteration.graph, iteration.seconds, machine.team(workers), policy)
    return in_counter(iteration.run(schedule, workers, seed=seed))


def fitted_machine(machine: MachineModel, seed: int = 0) -> MachineModel:
    """The machine with a time of calls without a buffer that gives the paper's share at one point."""

    def share(resend: float) -> float:
        return counter_share(replace(machine, counter_resend=resend), *POINT, seed)

    return replace(machine, counter_resend=fitted(FIGURE_5[POINT], 1e-5, 1e-2, share))


def run_shares(progress: Say, seed: int) -> Findings:
    progress("counter fitted to 10 H2O on 1000 cores")
    machine = fitted_machine(find_machine("fusion"), seed)
    shares: dict[int, dict[int, float]] = {molecules: {} for molecules in CORES}
    for molecules, counts in CORES.items():
        for cores in counts:
            progress(f"{molecules} H2O on {cores} cores")
            shares[molecules][cores] = counter_share(machine, molecules, cores, seed)
    every = sorted({cores for counts in CORES.values() for cores in counts})
    rows = tuple(Row(str(n), tuple(_shown(shares, molecules, n) for molecules in CORES)) for n in every)
    heads = tuple(f"{molecules} H2O" for molecules in CORES)
    value = Row("milliseconds of a call without a buffer", (1e3 * machine.counter_resend,))
    progress("a counter for each routine")
    quick = replace(machine, counter_service=0.0, counter_latency=0.0, counter_buffers=0)
    least = (
        100 * counter_share(quick, molecules, CORES[molecules][-1], seed, by_routine=True)
        for molecules in CORES
    )
    closing = Row("percent of time", tuple(least))
    assumed = (
        "The time of a call that finds no buffer is fitted to the paper's 60 % for 10 H2O near 1,000 cores; "
        "everything else comes out.",
        "Time in the counter includes the call that closes a level, in which a process waits for all others, "
        "as profiles of NXTVAL do: it is the larger part where tasks are few.",
        "The routines run level by level, with a counter for each level. With a counter and a barrier for "
        "each routine closing calls alone, of a counter that takes no time, would have the shares of the "
        "table above.",
        "The paper gives about 30 % for 14 H2O near 1,000 processes; ozog-fig1 has the 37 % of its figure 1.",
        "Cores are those of whole nodes; of eight, one is ARMCI's and seven work.",
        "The paper's gap of figure 2 asks for 150 to 200 buffers. With so few the original code comes to a "
        "standstill on benzene from 200 or 240 cores on, where the paper's runs: 352 were chosen.",
    )
    tables = (
        Table("percent of time in the counter", ("cores", *heads), rows),
        Table("fitted", ("", "value"), (value,)),
        Table("closing calls of routines on 1000 cores", ("", *heads), (closing,)),
        _room_table(progress, seed),
    )
    return Findings(tables, assumed, _draw_shares(shares))


def _room_table(progress: Say, seed: int) -> Table:
    """What the number of buffers decides, calls without one being fitted again for each."""
    rows = []
    for room in ROOM:
        progress(f"{room} buffers")
        machine = fitted_machine(replace(find_machine("fusion"), counter_buffers=room), seed)
        iteration = SimulatedIteration(benzene().graph, machine)
        seconds = (
            iteration.run(policies["nxtval"], workers_on(iteration.machine, cores), seed=seed).makespan
            for cores in BENZENE_CORES
        )
        share = 100 * counter_share(machine, 14, 1000, seed)
        rows.append(Row(str(room), (1e3 * machine.counter_resend, Pair(30, share), *seconds)))
    heads = ("buffers", "call without one / ms", "14 H2O, 1000 cores / %")
    runs = (f"benzene, {cores} cores / s" for cores in BENZENE_CORES)
    return Table("other numbers of buffers, original code", (*heads, *runs), tuple(rows))


def _shown(shares: Mapping[int, Mapping[int, float]], molecules: int, cores: int) -> Pair | float | None:
    if cores not in shares[molecules]:
        return None
    ours, paper = 100 * shares[molecules][cores], FIGURE_5.get((molecules, cores))
    return ours if paper is None else Pair(100 * paper, ours)


def _draw_shares(shares: Mapping[int, Mapping[int, float]]) -> Any:
    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for molecules, color in zip(shares, ("tab:blue", "tab:red"), strict=True):
            found, label = shares[molecules], f"{molecules} H2O"
            axis.plot(list(found), [100 * s for s in found.values()], color=color, marker="o", label=label)
            paper = {cores: share for (size, cores), share in FIGURE_5.items() if size == molecules}
            label += ", paper"
            axis.plot(list(paper), [100 * s for s in paper.values()], "x", color=color, label=label)
        axis.set(xlabel="cores", ylabel="percent of time in the counter", ylim=(0, 100))
        axis.legend()

    return draw


FLOOD_CALLS = in_module(
    __name__, "CALLS", "nothing but chance", "chosen: the paper makes a million in all", "calls of each"
)


def _on_ranks(progress: Say, seed: int) -> tuple[Table, ...]:
    from tilewise.studies.ozog_flood import flood_table

    return flood_table(progress, seed)


STUDIES = (
    Study(
        "ozog-fig2",
        f"{PAPER}, figure 2",
        "time of a counter's call under a flood",
        run_flood,
        (SIMULATED, FITTED),
        constants=lambda: (*COUNTER, FLOOD_CALLS),
        for_real=_on_ranks,
    ),
    Study(
        "ozog-fig5",
        f"{PAPER}, figure 5",
        "share of the counter, 10 and 14 H2O",
        run_shares,
        (SIMULATED, FITTED),
        constants=lambda: (*FUSION, *MOLECULES),
    ),
)
