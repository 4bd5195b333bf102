"""Figure 8 of Ozog et al.: dynamic buckets against one counter, two contractions of 10 H2O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewise.execute.machines import find_machine
from tilewise.schedule import policy_named
from tilewise.studies.ozog_balance import HYBRID, INSPECTED, ORIGINAL, workers_on
from tilewise.studies.ozog_counter import TILE
from tilewise.studies.routines import Iteration, measured, routine_graph
from tilewise.studies.study import Findings, Pair, Row, Say, Study, Table

CONTRACTIONS = ("t2_7", "t2_7_3")
CORES = (120, 240, 400, 560, 752)
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2)
BUCKETS = "I/E Buckets"
VARIANTS = {ORIGINAL: "nxtval", INSPECTED: "ie-nxtval", HYBRID: "block(barriers=true)", BUCKETS: "buckets"}

Times = Mapping[str, float]


def contraction_times(name: str, cores: int, noise: float | None = None, seed: int = 0) -> Times:
    """Seconds of each variant after one refinement, under the noise of the machine or another one."""
    iteration = Iteration(routine_graph("water-10", TILE, (name,)), find_machine("fusion"))
    if noise is not None:
        iteration = iteration.on(noise=noise)
    workers = workers_on(iteration, cores)
    costs = measured(iteration.run(policy_named("ie-nxtval"), workers, seed=seed))
    team = iteration.machine.team(workers)
    return {
        variant: iteration.run(
            policy_named(policy)(iteration.graph, costs, team), workers, seed=seed + 1
        ).makespan
        for variant, policy in VARIANTS.items()
    }


def gain(times: Times) -> float:
    """Of buckets over one counter."""
    return 1 - times[BUCKETS] / times[INSPECTED]


def run(progress: Say, seed: int) -> Findings:
    found: dict[str, dict[int, Times]] = {}
    tables = []
    for name in CONTRACTIONS:
        progress(f"{name} of 10 H2O")
        found[name] = {cores: contraction_times(name, cores, seed=seed) for cores in CORES}
        rows = tuple(
            Row(str(cores), (*times.values(), 100 * gain(times))) for cores, times in found[name].items()
        )
        columns = ("cores", *(f"{variant} / s" for variant in VARIANTS), "Buckets gain / %")
        tables.append(Table(f"{name} of 10 H2O", columns, rows))
    best = max(gain(times) for runs in found.values() for times in runs.values())
    tables.append(
        Table("best gain of Buckets", ("", "percent"), (Row("over I/E Nxtval", (Pair(16, 100 * best),)),))
    )
    progress("noise")
    tables.append(_noise_table(seed))
    assumed = (
        "Hybrid has static lists for both contractions; its costs, and those of Buckets, are measured in the "
        "iteration before, under other noise.",
        f"The machine's noise of {100 * find_machine('fusion').noise:.0f} % is assumed: it is enough to make "
        "Hybrid slower than the original code, as the paper reports.",
    )
    return Findings(tuple(tables), assumed, _draw(found))


def _noise_table(seed: int) -> Table:
    name, cores = CONTRACTIONS[0], CORES[-1]
    rows = []
    for noise in NOISE:
        times = contraction_times(name, cores, noise, seed)
        lost = 100 * (times[HYBRID] / times[ORIGINAL] - 1)
        rows.append(Row(f"{100 * noise:.0f} %", (lost, 100 * gain(times))))
    columns = ("noise", "Hybrid behind Original / %", "Buckets gain / %")
    return Table(f"{name} on {cores} cores under noise", columns, tuple(rows))


def _draw(found: Mapping[str, Mapping[int, Times]]) -> Any:
    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for name, color in zip(found, ("tab:blue", "tab:red"), strict=True):
            for variant, style in ((INSPECTED, "o--"), (BUCKETS, "s-")):
                seconds = [times[variant] for times in found[name].values()]
                axis.plot(list(found[name]), seconds, style, color=color, label=f"{name}, {variant}")
        axis.set(xlabel="cores", ylabel="seconds", yscale="log", title="10 H2O")
        axis.legend()

    return draw


STUDIES = (Study("ozog-fig8", "Ozog et al., figure 8", "dynamic buckets, 10 H2O", run),)
