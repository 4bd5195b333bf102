"""Figures 11, 12 and 16 of Ibrahim et al.: a second problem, where the time goes, and more workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewise.execute.simulated import Simulation
from tilewise.studies.ibrahim_nodes import (
    ASSUMED,
    DEFAULT,
    EDISON,
    EVENT,
    FACTORS,
    HEAP,
    PAPER,
    QUANTA,
    TILES_AND_PEAK,
    copy_rate,
)
from tilewise.studies.libtensor import DIMER, URACIL, BlockRun
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table

PROBLEMS = {"P1": URACIL, "P2": DIMER}
BEST_GAIN = 1.94
"""Of P2, in the paper."""
FACTOR = 6
"""Of the upper half of figure 12."""
WORKERS = (1, 4, 8, 16, 24)

Runs = Mapping[int, BlockRun]
Lines = Mapping[str, Mapping[int, float]]
"""Seconds by the number of workers, of each kind of runs."""

NOT_SIMULATED = (
    "P2 is taken to be 1,3-dimethyluracil with a water molecule in its plane: it has the paper's 302 "
    "functions.",
    "Of figure 12 the master's part, making lists of tasks, is not simulated, nor are the limits by Amdahl's "
    "law in figure 16, which are made of it. Nothing here is faster by being spread over the memory of both "
    "sockets, so that P2 does not gain more than in proportion to its workers.",
    "Figure 10 is not simulated: the lists of P3 are too long, as ibrahim-granularity counts.",
)


def _run(progress: Say, seed: int) -> Findings:
    """Nothing in it is random."""
    tables: list[Table] = []
    lines: dict[str, Lines] = {}
    for name, molecule in PROBLEMS.items():
        progress(f"{name}: tiles")
        runs = {factor: BlockRun(molecule, factor) for factor in FACTORS}
        progress(f"{name}: factors and quanta")
        tables += ONCE[name](runs)
        progress(f"{name} on 1 to {WORKERS[-1]} workers")
        lines[name] = _scaled(runs)
    tables += (_scaling(name, found) for name, found in lines.items())
    return Findings(tuple(tables), (*ASSUMED, *NOT_SIMULATED), lambda figure: _draw(figure, lines))


def _map_of_second(runs: Runs) -> tuple[Table, Table]:
    """Figure 11 has the map with new heaps alone."""
    factor, quantum = DEFAULT
    base = EDISON.run(runs[factor], quantum, one_heap=True).makespan
    gain = {(f, q): base / EDISON.run(runs[f], q, one_heap=False).makespan for q in QUANTA for f in FACTORS}
    best = max(gain, key=lambda point: gain[point])
    compared = Table(
        "P2 on Edison, new heaps",
        ("", "value"),
        (
            Row("best over the default", (Pair(BEST_GAIN, gain[best]),)),
            Row("best tiling factor", (best[0],)),
            Row("best quantum", (best[1],)),
        ),
    )
    rows = tuple(Row(str(q), tuple(gain[f, q] for f in FACTORS)) for q in QUANTA)
    title = "Figure 11: gain over the default with one heap, P2 on Edison"
    return compared, Table(title, ("quantum", *(f"factor {f}" for f in FACTORS)), rows)


def _decomposition(runs: Runs) -> tuple[Table, Table]:
    """Figure 12 has P1 with one factor, and with one quantum."""
    by_quantum = {str(q): EDISON.run(runs[FACTOR], q, one_heap=False) for q in QUANTA}
    by_factor = {str(f): EDISON.run(runs[f], 1, one_heap=False) for f in FACTORS}
    return (
        _spent(f"Figure 12, top: P1 on Edison, new heaps, factor {FACTOR}", "quantum", by_quantum),
        _spent("Figure 12, bottom: P1 on Edison, new heaps, quantum 1", "factor", by_factor),
    )


def _spent(title: str, label: str, found: Mapping[str, Simulation]) -> Table:
    """Seconds of an average worker."""
    rows = []
    for name, run in found.items():
        parts = (run.busy, run.counter + run.communication, run.waiting)
        rows.append(Row(name, (run.makespan, *(float(part.mean()) for part in parts))))
    return Table(
        title, (label, "seconds", "in tasks", "in the queue and heap", "waiting for others"), tuple(rows)
    )


ONCE = {"P1": _decomposition, "P2": _map_of_second}
"""What is shown of one problem alone."""


def _scaled(runs: Runs) -> Lines:
    factor, quantum = DEFAULT
    base = {workers: _seconds(runs[factor], quantum, workers, one_heap=True) for workers in WORKERS}
    best = {
        workers: min(_seconds(run, 1, workers, one_heap=False) for run in runs.values())
        for workers in WORKERS
    }
    return {"one heap, default": base, "new heaps, best factor": best}


def _seconds(run: BlockRun, quantum: int, workers: int, *, one_heap: bool) -> float:
    """A single worker has any heap to itself, and pays for its events all the same."""
    if workers == 1:
        return float(run.seconds(EDISON.rates).sum() + EVENT * 2 * run.allocations.sum())
    return EDISON.run(run, quantum, one_heap=one_heap, workers=workers).makespan


def _scaling(name: str, lines: Lines) -> Table:
    rows = []
    for label, seconds in lines.items():
        rows.append(Row(label, tuple(seconds[workers] for workers in WORKERS)))
    base, best = lines.values()
    rows.append(Row("gain", tuple(base[workers] / best[workers] for workers in WORKERS)))
    rows.append(Row("speed-up of the best", tuple(best[1] / best[workers] for workers in WORKERS)))
    heads = ("runs", *(f"{workers} workers" if workers > 1 else "1 worker" for workers in WORKERS))
    return Table(f"Figure 16: seconds of {name} on Edison", heads, tuple(rows))


def _draw(figure: Any, lines: Mapping[str, Lines]) -> None:
    """Speed-up over one worker of the base, which the paper takes as its measure."""
    figure.set_size_inches(9.0, 4.0)
    for axis, (name, found) in zip(figure.subplots(1, len(lines)), lines.items(), strict=True):
        one = found["one heap, default"][1]
        for label, seconds in found.items():
            axis.plot(WORKERS, [one / seconds[workers] for workers in WORKERS], "o-", label=label)
        axis.plot(WORKERS, WORKERS, "--", color="grey", label="linear")
        axis.set(xlabel="workers", ylabel="speed-up over the default on one")
        axis.set_title(f"{name} on Edison", fontsize="medium")
        axis.legend(fontsize="small")


STUDIES = (
    Study(
        "ibrahim-scaling",
        f"{PAPER}, figures 11, 12 and 16",
        "a second problem, where the time of workers goes, and more workers",
        _run,
        (SIMULATED, FITTED),
        constants=lambda: (*HEAP, *TILES_AND_PEAK, copy_rate(EDISON)),
    ),
)
