"""Figure 8 of Ozog et al.: dynamic buckets against one counter, two contractions of 10 H2O.

Buckets do two things at once: they sort the tasks, longest first, and they give each node a counter of its
own. One counter over the sorted list is the control that tells which of them gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewise.execute.simulated import Simulation
from tilewise.schedule import policy_named
from tilewise.studies.constants import in_module
from tilewise.studies.ozog_balance import HYBRID, INSPECTED, ORIGINAL
from tilewise.studies.ozog_runs import CORE, FUSION, PAPER, SHARED, WATER_TILES, water, workers_on
from tilewise.studies.routines import SimulatedIteration
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table

CONTRACTIONS = ("t2_7", "t2_7_3")
CORES = (120, 240, 400, 560, 752)
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2)
SORTED, BUCKETS = "sorted", "I/E Buckets"
VARIANTS = {
    ORIGINAL: "nxtval",
    INSPECTED: "ie-nxtval",
    SORTED: "ie-nxtval(longest_first=true)",
    HYBRID: "block(barriers=true)",
    BUCKETS: "buckets",
}
GROUP_CORES = (120, 240, 400, 752, 1000, 1200, 1600, 2000)
SLOWER = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
"""Services of a counter beside that of the machine file, up to one that does little else."""
DRAWS = 3
"""Of the noise, over which the gain of groups is averaged."""

Times = Mapping[str, float]


def contraction_runs(iteration: SimulatedIteration, cores: int, seed: int = 0) -> dict[str, Simulation]:
    """Each variant after one refinement."""
    workers = workers_on(iteration.machine, cores)
    costs = iteration.run(policy_named("ie-nxtval"), workers, seed=seed).seconds
    team = iteration.machine.team(workers)
    return {
        variant: iteration.run(policy_named(policy)(iteration.graph, costs, team), workers, seed=seed + 1)
        for variant, policy in VARIANTS.items()
    }


def contraction_times(name: str, cores: int, noise: float | None = None, seed: int = 0) -> Times:
    """Seconds of each variant, under the noise of the machine or another one."""
    iteration = water(10, (name,))
    if noise is not None:
        iteration = iteration.on(noise=noise)
    return {variant: run.makespan for variant, run in contraction_runs(iteration, cores, seed).items()}


def gain(times: Times, variant: str = BUCKETS, over: str = INSPECTED) -> float:
    """Of one variant over another: by default of buckets over one counter."""
    return 1 - times[variant] / times[over]


def groups_gain(iteration: SimulatedIteration, cores: int, seed: int = 0) -> float:
    """What groups add to the sorted list: percent by which buckets are ahead of one counter over it."""
    found = []
    for draw in range(DRAWS):
        runs = contraction_runs(iteration, cores, seed + 2 * draw)
        found.append(100 * (1 - runs[BUCKETS].makespan / runs[SORTED].makespan))
    return float(np.mean(found))


def run(progress: Say, seed: int) -> Findings:
    found: dict[str, dict[int, Times]] = {}
    for name in CONTRACTIONS:
        progress(f"{name} of 10 H2O")
        found[name] = {cores: contraction_times(name, cores, seed=seed) for cores in CORES}
    tables = [_contraction_table(name, times) for name, times in found.items()]
    tables.append(_best_table(found))
    progress("noise")
    tables.append(_noise_table(seed))
    tables.append(_list_table(seed))
    tables.append(_groups_table(progress, seed))
    assumed = (
        "Hybrid has static lists for both contractions; its costs, and those of Buckets, are measured in the "
        "iteration before, under other noise.",
        f"The machine's noise of {100 * water(10).machine.noise:.0f} % is assumed: it is enough to make "
        "Hybrid slower than the original code, as the paper reports.",
        f'"{SORTED}" is the control: one counter over the list that Buckets share out, longest tasks first.',
        "In this model the gain of Buckets is that of its sorted list: a worker gets few tasks, of which the "
        "longest take twice as long as the shortest, and those who draw a long one last keep the others "
        "waiting. The inspected code spends so little time in its counter that counters of groups have "
        "nothing to save, and groups cannot help each other at the end. They pay where the last table is "
        "above 0.",
    )
    return Findings(tuple(tables), assumed, _draw(found))


def _contraction_table(name: str, found: Mapping[int, Times]) -> Table:
    rows = tuple(
        Row(str(cores), (*times.values(), 100 * gain(times, SORTED), 100 * gain(times)))
        for cores, times in found.items()
    )
    columns = ("cores", *(f"{variant} / s" for variant in VARIANTS), "sorted gains / %", "Buckets gain / %")
    return Table(f"{name} of 10 H2O", columns, rows)


def _best_table(found: Mapping[str, Mapping[int, Times]]) -> Table:
    every = [times for runs in found.values() for times in runs.values()]
    rows = (
        Row("Buckets", (Pair(16, 100 * max(map(gain, every))),)),
        Row("one counter, sorted", (100 * max(gain(times, SORTED) for times in every),)),
    )
    return Table("best gain over I/E Nxtval", ("", "percent"), rows)


def _noise_table(seed: int) -> Table:
    name, cores = CONTRACTIONS[0], CORES[-1]
    rows = []
    for noise in NOISE:
        times = contraction_times(name, cores, noise, seed)
        lost = 100 * (times[HYBRID] / times[ORIGINAL] - 1)
        rows.append(Row(f"{100 * noise:.0f} %", (lost, 100 * gain(times, SORTED), 100 * gain(times))))
    columns = ("noise", "Hybrid behind Original / %", "sorted gains / %", "Buckets gain / %")
    return Table(f"{name} on {cores} cores under noise", columns, tuple(rows))


def _list_table(seed: int) -> Table:
    """What there is to gain: from the order of the list, and from the counter."""
    name, cores = CONTRACTIONS[0], CORES[-1]
    iteration = water(10, (name,))
    workers, seconds = workers_on(iteration.machine, cores), iteration.seconds
    inspected = contraction_runs(iteration, cores, seed)[INSPECTED]
    rows = (
        Row("tasks", (len(seconds),)),
        Row("tasks of a worker", (len(seconds) / workers,)),
        Row("shortest task / s", (float(seconds.min()),)),
        Row("longest task / s", (float(seconds.max()),)),
        Row("I/E Nxtval waits for the counter / %", (100 * inspected.share(inspected.counter),)),
        Row("I/E Nxtval waits for the last worker / %", (100 * inspected.share(inspected.waiting),)),
    )
    return Table(f"{name} on {cores} cores: where time is lost", ("", "value"), rows)


def _groups_table(progress: Say, seed: int) -> Table:
    """At which service of the counter, and on how many cores, groups themselves pay."""
    iteration = water(10, (CONTRACTIONS[0],))
    service, resend = iteration.machine.counter_service, iteration.machine.counter_resend
    rows = []
    for slow in (service, *SLOWER):
        progress(f"groups with a counter of {1e3 * slow:g} milliseconds")
        changed = iteration.on(counter_service=slow, counter_resend=max(slow, resend))
        mark = ", as in fusion.toml" if slow == service else ""
        gains = tuple(groups_gain(changed, cores, seed) for cores in GROUP_CORES)
        rows.append(Row(f"{1e3 * slow:g} ms{mark}", gains))
    heads = ("service of the counter", *(f"{cores} cores" for cores in GROUP_CORES))
    title = f"percent by which Buckets are ahead of one counter over the sorted list, {CONTRACTIONS[0]}"
    return Table(title, heads, tuple(rows))


def _draw(found: Mapping[str, Mapping[int, Times]]) -> Any:
    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for name, color in zip(found, ("tab:blue", "tab:red"), strict=True):
            for variant, style in ((INSPECTED, "o--"), (SORTED, "x:"), (BUCKETS, "s-")):
                seconds = [times[variant] for times in found[name].values()]
                axis.plot(list(found[name]), seconds, style, color=color, label=f"{name}, {variant}")
        axis.set(xlabel="cores", ylabel="seconds", yscale="log", title="10 H2O")
        axis.legend()

    return draw


AVERAGED = in_module(__name__, "DRAWS", "chance in the gain of groups", "chosen: a few", "seeds")

STUDIES = (
    Study(
        "ozog-fig8",
        f"{PAPER}, figure 8",
        "dynamic buckets, 10 H2O",
        run,
        (SIMULATED, FITTED),
        constants=lambda: (*FUSION, SHARED, CORE, WATER_TILES, AVERAGED),
    ),
)
