"""Figures 5 and 8 of Jagode et al.: beta-carotene on Cascade, level by level and by data flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewise.hardware.machines import find_machine
from tilewise.studies.jagode_codes import (
    AHEAD,
    BARRIERS,
    CONSTANTS,
    DATAFLOW,
    FEWER,
    FREE,
    ONE,
    ORIGINAL,
    PAPER,
    PRODUCTS,
    WORKER,
    Run,
    codes,
)
from tilewise.studies.jagode_routines import PAPER as AUTHORS
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table
from tilewise.tce.inspector import TileGraph

NODES, CORES = (32, 64), (1, 2, 4, 8, 16)
DRAWN = {ORIGINAL: "o--g", DATAFLOW: "o-", PAPER: "o:"}
VARIANTS = (ONE, FREE, DATAFLOW, WORKER, BARRIERS, PAPER, FEWER)
TRACE_NODES, TRACE_CORES = 32, 7

BEST = {32: (8, 16), 64: (4, 16)}
"""In the paper: cores per node at which the original code is fastest, and data flow."""

SHARE = {32: (0.48, False), 64: (0.57, True)}
"""Data flow's best time over the original's, and whether it is derived: "43 % runtime improvement"."""

EVEN_CORES, EVEN_SHARE = (32, 8), (0.56, True)
"""Both codes with 8 cores of each of 32 nodes: data flow runs "44 % faster"."""

ASSUMED = (
    "One iteration is simulated, with all electrons correlated; the paper times whole calculations with "
    "their set-up, and gives shares but no seconds.",
    "The original code has a counter and a barrier for each level, and a process waits for each of its "
    "blocks. Tensors are spread over the nodes in the order of their blocks, so that processes at "
    "neighbouring tuples want data of the same few nodes.",
    "What makes it slower again is fitted, not known: a node has room for so many Gets, and each one beyond "
    "adds to the time of a message there (buffers and resend in cascade.toml), so that the optimum with 32 "
    "nodes is where the paper has it. The optimum with 64 nodes is a result. The counter, which the paper "
    "names, takes hardly any time.",
    f"By data flow all routines run without a barrier, in tasks of up to {PRODUCTS} products; a worker has "
    f"{AHEAD} tasks ahead, and a node, whose communication thread asks for all of them, {AHEAD} Gets under "
    "way. Chains go to the nodes in turn, as the paper says, and all products of a chain to the same node. "
    "Each node has a queue of ready tasks, and the end of a task is told to the nodes of those that wait for "
    "it, in messages that the nodes write and read one after the other. Data do not go with these messages, "
    "but from where they lie.",
    f'"{PAPER}" is data flow within each level of 29 routines and a barrier after it. T1 and the twelve '
    "routines without products run as in the original code, on all cores. Every block is copied from Global "
    "Arrays and every result back, at the rate of a sort; the paper does not say what that takes.",
)

Times = Mapping[str, Mapping[tuple[int, int], float]]


def run_scaling(progress: Say, seed: int) -> Findings:
    progress("beta-carotene")
    machine, every = find_machine("cascade"), codes()
    times: dict[str, dict[tuple[int, int], float]] = {name: {} for name in every}
    working: dict[tuple[int, int], float] = {}
    others: dict[int, float] = {}
    for name, code in every.items():
        for nodes in NODES:
            for cores in CORES if name in DRAWN else CORES[-1:]:
                progress(f"{name}, {nodes} nodes with {cores} cores")
                run = code.run(machine, nodes, cores, seed)
                times[name][nodes, cores] = run.makespan
                if name == ORIGINAL:
                    working[nodes, cores] = run.share("busy")
                if name == PAPER and cores == CORES[-1]:
                    others[nodes] = run.steps[-1].makespan
    tables = (
        *(_seconds_table(times, nodes) for nodes in NODES),
        _best_table(times, working),
        _variants_table(times),
        _others_table(times, others, *(every[name].steps[-1].graph for name in (PAPER, ORIGINAL))),
    )
    return Findings(tables, ASSUMED, _draw_scaling(times))


def fastest(times: Mapping[tuple[int, int], float], nodes: int) -> int:
    """Cores per node."""
    return min((seconds, cores) for (n, cores), seconds in times.items() if n == nodes)[1]


def _seconds_table(times: Times, nodes: int) -> Table:
    rows = tuple(Row(str(cores), tuple(times[name][nodes, cores] for name in DRAWN)) for cores in CORES)
    return Table(f"seconds of an iteration on {nodes} nodes", ("cores per node", *DRAWN), rows)


def _best_table(times: Times, working: Mapping[tuple[int, int], float]) -> Table:
    """Both codes at their best, and with as many cores; `working` is the share of Original's time."""
    rows = []
    for nodes in NODES:
        best = {name: (nodes, fastest(times[name], nodes)) for name in DRAWN}
        cores = (Pair(BEST[nodes][0], best[ORIGINAL][1]), Pair(BEST[nodes][1], best[PAPER][1]))
        rows.append(_compared(f"{nodes} nodes", times, working, best, SHARE[nodes], cores))
    label = f"{EVEN_CORES[0]} nodes, all with {EVEN_CORES[1]} cores"
    even = dict.fromkeys(DRAWN, EVEN_CORES)
    rows.append(_compared(label, times, working, even, EVEN_SHARE, (None, None)))
    columns = (
        "",
        "Original, cores",
        f"{PAPER}, cores",
        f"{PAPER}, time over Original's",
        f"{DATAFLOW}, the same",
        "Original works / %",
    )
    return Table("best runs, cores per node", columns, tuple(rows))


def _compared(
    label: str,
    times: Times,
    working: Mapping[tuple[int, int], float],
    where: Mapping[str, tuple[int, int]],
    paper: tuple[float, bool],
    cores: tuple[Pair | None, Pair | None],
) -> Row:
    share = {name: times[name][at] / times[ORIGINAL][where[ORIGINAL]] for name, at in where.items()}
    compared = Pair(paper[0], share[PAPER], derived=paper[1])
    return Row(label, (*cores, compared, share[DATAFLOW], 100 * working[where[ORIGINAL]]))


def _variants_table(times: Times) -> Table:
    def share(name: str, nodes: int) -> float:
        return times[name][nodes, CORES[-1]] / times[ORIGINAL][nodes, fastest(times[ORIGINAL], nodes)]

    labels = {DATAFLOW: "a queue per node", PAPER: "and copies to and from Global Arrays: as in the paper"}
    rows = tuple(
        Row(labels.get(name, name), tuple(share(name, nodes) for nodes in NODES)) for name in VARIANTS
    )
    title = f"variants of data flow on {CORES[-1]} cores per node, time over Original's best"
    return Table(title, ("", *(f"{nodes} nodes" for nodes in NODES)), rows)


def _others_table(times: Times, others: Mapping[int, float], some: TileGraph, every: TileGraph) -> Table:
    """What the routines take that the paper's version runs as before: `some` of all that there are."""
    shares = (
        Row("of the operations / %", _percent(some.flops.sum() / every.flops.sum())),
        Row("of the Gets / %", _percent(some.traffic.gets.sum() / every.traffic.gets.sum())),
        Row("seconds", tuple(others[nodes] for nodes in NODES)),
        Row(
            "of the time / %",
            tuple(100 * others[nodes] / times[PAPER][nodes, CORES[-1]] for nodes in NODES),
        ),
    )
    title = f"{PAPER}, {CORES[-1]} cores per node: T1 and the twelve routines without products"
    return Table(title, ("", *(f"{nodes} nodes" for nodes in NODES)), shares)


def _percent(share: float) -> tuple[float, ...]:
    """The same for any number of nodes."""
    return (100 * float(share),) * len(NODES)


def _draw_scaling(times: Times) -> Any:
    def draw(figure: Any) -> None:
        axes = figure.subplots(1, len(NODES), sharey=True)
        for axis, nodes in zip(axes, NODES, strict=True):
            for name, style in DRAWN.items():
                axis.plot(CORES, [times[name][nodes, cores] for cores in CORES], style, label=name)
            axis.set(xlabel="cores per node", title=f"{nodes} nodes", xscale="log", yscale="log")
            axis.set_xticks(CORES, [str(cores) for cores in CORES])
            axis.minorticks_off()
        axes[0].set_ylabel("seconds of an iteration")
        axes[0].legend()

    return draw


SPENT = {
    "busy": "work / %",
    "communication": "waiting for data / %",
    "counter": "for counters and queues / %",
    "waiting": "for tasks / %",
}


def run_traces(progress: Say, seed: int) -> Findings:
    machine, runs = find_machine("cascade"), {}
    for name in DRAWN:
        progress(f"{name} on {TRACE_NODES * TRACE_CORES} ranks")
        runs[name] = codes()[name].run(machine, TRACE_NODES, TRACE_CORES, seed)
    rows = tuple(
        Row(name, (run.makespan, *(100 * run.share(what) for what in SPENT))) for name, run in runs.items()
    )
    title = f"an iteration on {TRACE_NODES * TRACE_CORES} ranks"
    assumed = (
        *ASSUMED,
        "Waiting for data is drawn before the work of a task, in one piece; the paper draws every message.",
    )
    table = Table(title, ("", "seconds", *SPENT.values()), rows)
    shown = {name: runs[name] for name in (ORIGINAL, DATAFLOW)}
    return Findings((table,), assumed, _draw_traces(shown))


def _draw_traces(runs: Mapping[str, Run], ranks: int = 28, share: float = 0.06) -> Any:
    def draw(figure: Any) -> None:
        axes = figure.subplots(len(runs), 1)
        for axis, (name, run) in zip(axes, runs.items(), strict=True):
            width = share * run.makespan
            begin = 0.2 * run.makespan if name == ORIGINAL else 0.0
            trace = run.steps[0].trace
            trace = trace[(trace["worker"] < ranks) & (1e-9 * trace["end"] > begin)]
            trace = trace[1e-9 * trace["ready"] < begin + width]
            ready, start, end = (1e-9 * trace[key] - begin for key in ("ready", "start", "end"))
            # By data flow a task is taken ahead: until the one before has ended, nobody waits for it.
            order = np.lexsort((start, trace["worker"]))
            same = np.diff(trace["worker"][order], prepend=-1) == 0
            waits = ready.copy()
            waits[order] = np.maximum(ready[order], np.where(same, np.roll(end[order], 1), -np.inf))
            axis.barh(trace["worker"], start - waits, 1.0, waits, color="tab:blue", label="waiting for data")
            axis.barh(trace["worker"], end - start, 1.0, start, color="tab:red", label="work")
            axis.set(ylabel="rank", title=name, xlim=(0, width))
        axes[0].legend(loc="upper right")
        axes[-1].set_xlabel("seconds")

    return draw


def _study(name: str, figure: str, shows: str, run: Callable[[Say, int], Findings]) -> Study:
    return Study(name, f"{AUTHORS}, {figure}", shows, run, (SIMULATED, FITTED), lambda: CONSTANTS)


STUDIES = (
    _study("jagode-fig5", "figure 5", "two traces, levels and data flow", run_traces),
    _study("jagode-fig8", "figure 8", "beta-carotene on 32 and 64 nodes", run_scaling),
)
