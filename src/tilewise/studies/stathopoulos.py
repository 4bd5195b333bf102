"""Tables 1 and 2 of Stathopoulos and Ynnerman: self-scheduled columns on four workstations under PVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewise.hardware.machines import MachineModel
from tilewise.schedule.loops import Factoring
from tilewise.studies.columns import factoring_steps, ideal_seconds, run_loop
from tilewise.studies.stathopoulos_rules import (
    MOMENTS,
    MOVED,
    Sweeps,
    over_deltas,
    over_moments,
    own_loads,
    sweep_table,
)
from tilewise.studies.stathopoulos_runs import (
    ALLOWED,
    COLUMNS,
    DELTAS_2,
    FACTORING_2,
    FACTORING_4,
    INTERLEAVED,
    LETTER,
    LOAD_1,
    LOADS,
    OURS,
    PROCESSORS,
    RULES,
    TABLE_1,
    TABLE_2,
    TSS,
    UNLOADED,
    WORK,
    Paper,
    Trial,
    always,
    constants,
    even_imbalance,
    fitted_slowness,
    loaded,
)
from tilewise.studies.study import Findings, Pair, Row, Say, Study, Table

PAPER = "Stathopoulos and Ynnerman"
NEAR = 0.05
"""Relative deviation of a time that counts as agreement."""

ASSUMED = (
    f"The work is four times {UNLOADED:.0f} s, the paper's fastest run without load; elements are spread "
    "evenly, and a processor with k jobs runs at 1/k of its speed.",
    "TSS by the letter: each processor computes 30 columns, then c is decided once, from the times of all of "
    "them. Who asks before that is given 30 more: the paper does not say, but its master serves whoever is "
    "idle.",
    "Equation 3 does not say whose 30 columns it means: those of the slowest of all processors are taken, "
    "for delta is to be a bound; its average column size is taken to be that of these 30.",
    "Factoring by the letter: c is decided by equation 4, and the next p that ask get c/p columns each, "
    "rounded up. The paper's smallest size is that of c, not of c/p: a step of p chunks has at least the c "
    "of equation 3.",
    "Our rule: c and the smallest chunk go by the slowest processor known so far, and speeds are measured "
    "with each chunk. Parts of factoring are equal in elements, each has at least what that processor does "
    "in delta seconds, and none has more than its processor's share of the rest by speed.",
    "The paper prints no numbers of steps: they are derived from N/c and equation 5. Ours are counted after "
    "the first 30 columns of each processor; by the letter those who ask early add a few steps of 30 "
    "columns.",
    "Equation 5 is that of loops of equal iterations, equation 4 shares out elements: steps of factoring "
    "are compared with equation 5 in elements; in columns, as printed, it gives about half as many. By the "
    "letter the smallest step is one of columns, which is reached earlier than one of elements: with f = 4 "
    "fewer steps are needed than equation 5 says.",
)

Trials = Mapping[str, Mapping[str, list[Trial]]]
"""Of each policy and rule, in the order of the paper's table."""


def _table_1(progress: Say, seed: int) -> Findings:
    machine = always(LOAD_1)
    trials = _trials(TABLE_1, [(machine, delta) for delta in ALLOWED])
    names = [f"delta {delta:g} s" for delta in ALLOWED]
    tables = _compared(f"Table 1: load {LOAD_1}", TABLE_1, trials, names, progress)
    progress("sixty deltas")
    sweeps = over_deltas()
    title = f"60 deltas from 0.5 to 120 s under {LOAD_1} (not in the paper)"
    ideal = ideal_seconds(WORK, machine)
    assumed = (
        *_assumed(),
        f"No run can be shorter than {ideal:.0f} s with that work: the paper's "
        f"{TABLE_1[FACTORING_2][0][0]} s shows that the other jobs did not always take their full share.",
        "The paper calls delta a bound of all its imbalances, but with 0.5 s its factoring has "
        f"{TABLE_1[FACTORING_2][0][1]} and {TABLE_1[FACTORING_4][0][1]} s.",
        *_found_over_deltas(sweeps),
        _many_steps(),
    )
    return Findings(
        (*tables, _equal_iterations(), sweep_table(title, sweeps)),
        assumed,
        lambda figure: _draw_1(figure, trials),
    )


def _table_2(progress: Say, seed: int) -> Findings:
    trials = _trials(TABLE_2, [(always(load), None) for load in LOADS])
    tables = _compared("Table 2: deltas 30, 0.5 and 5 s", TABLE_2, trials, LOADS, progress)
    ideal = {load: ideal_seconds(WORK, always(load)) for load in LOADS}
    progress("loads of our own")
    title = (
        f"{MOVED[0]}, later {MOVED[1]}: {len(MOMENTS)} runs, from {MOMENTS[0]} to {MOMENTS[-1]} s "
        "(not in the paper)"
    )
    sweeps = over_moments()
    assumed = (
        *_assumed(),
        "The paper's interleaved run is faster under 2-2-2-1 than under 2-2-1-1, and its factoring runs of "
        f"{TABLE_2[FACTORING_4][2][0]} and {TABLE_2[FACTORING_4][3][0]} s are below the ideal "
        f"{ideal[LOADS[2]]:.0f} and {ideal[LOADS[3]]:.0f} s: the other jobs did not take their full share.",
        *_found_over_moments(sweeps),
    )
    return Findings(
        (*tables, own_loads(), sweep_table(title, sweeps)),
        assumed,
        lambda figure: _draw_2(figure, trials),
    )


def _trials(paper: Paper, cases: Sequence[tuple[MachineModel, float | None]]) -> Trials:
    """A policy has the delta of the case or, without one, that of table 2."""
    return {
        name: {
            rule: [
                Trial(name, DELTAS_2[name] if delta is None else delta, machine, literal)
                for machine, delta in cases
            ]
            for rule, literal in RULES.items()
        }
        for name in paper
    }


def _compared(
    title: str, paper: Paper, trials: Trials, names: Sequence[str], progress: Say
) -> tuple[Table, ...]:
    """Times, imbalances and steps of each run by both rules, and what that comes to."""
    times, imbalances, steps = [], [], []
    for policy, rules in trials.items():
        for name, *both, (seconds, imbalance) in zip(names, *rules.values(), paper[policy], strict=True):
            label = f"{policy}, {name}"
            progress(label)
            times.append(Row(label, tuple(Pair(seconds, trial.run.seconds) for trial in both)))
            imbalances.append(Row(label, tuple(Pair(imbalance, trial.run.imbalance) for trial in both)))
            counts = [(trial.formula, trial.run.steps) for trial in both]
            derived = [Pair(formula, count, derived=True) for formula, count in counts if formula is not None]
            if derived:
                steps.append(Row(label, tuple(derived)))
    heads = ("policy", *RULES)
    return (
        Table(f"{title}, seconds", heads, tuple(times)),
        Table(f"{title}, imbalance in seconds", heads, tuple(imbalances)),
        _reached(paper, trials),
        Table("Scheduling steps: N/c for TSS, equation 5 for factoring", heads, tuple(steps)),
    )


def _reached(paper: Paper, trials: Trials) -> Table:
    """What each reading can claim."""
    rows = []
    for policy, rules in trials.items():
        for rule, row in rules.items():
            off = [
                trial.run.seconds / seconds - 1
                for trial, (seconds, _) in zip(row, paper[policy], strict=True)
            ]
            values = (
                _of(abs(x) < NEAR for x in off),
                f"{100 * max(off, key=abs):+.1f} %",
                _of(trial.run.imbalance <= trial.delta for trial in row),
                _of(x <= trial.delta for trial, (_, x) in zip(row, paper[policy], strict=True)),
            )
            rows.append(Row(f"{policy} {rule}", values if policy != INTERLEAVED else (*values[:2], "", "")))
    near = f"within {100 * NEAR:g} %"
    heads = ("policy", f"times {near}", "furthest off", "imbalances within delta", "in the paper")
    return Table("What each rule reaches", heads, tuple(rows))


def _of(holds: Iterator[bool]) -> str:
    """How often, such as "3 of 4"."""
    found = list(holds)
    return f"{sum(found)} of {len(found)}"


def _equal_iterations() -> Table:
    """Equation 5 as it is printed, on the loop that it is right for."""
    rows = []
    seconds = np.full(COLUMNS, WORK / COLUMNS)
    for f, delta in ((2.0, 5.0), (2.0, 30.0), (4.0, 5.0), (4.0, 30.0)):
        pairs = []
        for literal in RULES.values():
            run = run_loop(seconds, Factoring(delta=delta, f=f, literal=literal), loaded())
            least = delta / seconds[0] / (PROCESSORS if literal else 1)
            pairs.append(Pair(factoring_steps(COLUMNS, least, f, PROCESSORS), run.steps, derived=True))
        rows.append(Row(f"factoring f={f:g}, delta {delta:g} s", tuple(pairs)))
    title = "Equation 5 as it is printed: the same work in as many equal iterations, without load, steps"
    return Table(title, ("policy", *RULES), tuple(rows))


def _assumed() -> tuple[str, ...]:
    return (
        *ASSUMED,
        f"The last workstation takes {100 * fitted_slowness():.2f} % longer than the others, fitted to the "
        f"{TABLE_2[INTERLEAVED][0][1]} s of imbalance of the interleaved run without load: even columns on "
        f"even workstations would leave {even_imbalance():.1f} s.",
    )


def _found_over_deltas(sweeps: Sweeps) -> tuple[str, ...]:
    """What a single column of table 1 cannot say."""
    letter, ours = sweeps[TSS, LETTER], sweeps[TSS, OURS]
    small, large = sweeps[FACTORING_2, LETTER], sweeps[FACTORING_2, OURS]
    return (
        f"TSS: neither rule is better. Over many deltas they end {letter.above_ideal.mean():.2f} (by the "
        f"letter) and {ours.above_ideal.mean():.2f} % (ours) above the ideal time; that ours is nearer to "
        "the paper with 90 s is chance.",
        f"TSS stays within delta in {letter.within_delta} (by the letter) and {ours.within_delta} (ours) of "
        f"{len(ours.trials)} runs, for its last chunk but one is three times as long as the last. The "
        "paper's seven runs all stay within it, which is not reproduced.",
        "Factoring: the paper's rule keeps the smaller imbalance, for at the end its p chunks together have "
        f"no more than one of ours: with f = 2 the median is {np.median(small.imbalance_over_delta):.2f} "
        f"against {np.median(large.imbalance_over_delta):.2f} delta. Both stay within delta in all of these "
        "runs.",
    )


def _found_over_moments(sweeps: Sweeps) -> tuple[str, ...]:
    slow = always("3-1-1-1")
    letter, ours = (
        Trial(FACTORING_2, DELTAS_2[FACTORING_2], slow, literal).run for literal in RULES.values()
    )
    worst = [sweeps[name, rule].above_ideal.max() for name in (FACTORING_2, FACTORING_4) for rule in RULES]
    return (
        "Factoring: our rule is better where one processor is much slower than the others: under 3-1-1-1 "
        f"with f = 2 it has its first chunk after the probe until {letter.seconds:.0f} s by the letter, and "
        f"all end within {ours.seconds:.0f} s by our rule (ideal {ideal_seconds(WORK, slow):.0f} s).",
        "A chunk is not taken back: where a load comes late, a processor may be stuck with one of the large "
        f"first chunks of f = 2. When one job moves, that costs up to {worst[0]:.1f} % by the letter and "
        f"{worst[1]:.1f} % by our rule; with f = 4 it is {worst[2]:.1f} and {worst[3]:.1f} %.",
    )


def _many_steps() -> str:
    """What the smallest chunks cost in the paper and here."""
    tss, four = TABLE_1[TSS], TABLE_1[FACTORING_4]
    paper = [tss[0][0] / tss[2][0], tss[1][0] / tss[2][0], four[0][0] / four[1][0]]
    shown = [f"{100 * (ratio - 1):.1f}" for ratio in paper]
    return (
        f"In the paper many steps cost time: TSS with 0.5 and 5 s is {shown[0]} and {shown[1]} % slower than "
        f"with 30 s, factoring with f = 4 and 0.5 s {shown[2]} % slower than with 5 s. Here a step costs the "
        "few milliseconds that its text speaks of, and smaller deltas are not slower."
    )


def _draw_1(figure: Any, trials: Trials) -> None:
    """Time and imbalance against delta: ours, the letter's dotted, the paper's dashed."""
    time, imbalance = figure.subplots(1, 2)
    for number, (name, rules) in enumerate(trials.items()):
        for axis, place, value in ((time, 0, _seconds), (imbalance, 1, _imbalance)):
            color = f"C{number}"
            axis.semilogx(ALLOWED, [value(t) for t in rules[OURS]], "o-", color=color, label=name)
            axis.semilogx(ALLOWED, [value(t) for t in rules[LETTER]], "s:", color=color)
            axis.semilogx(
                ALLOWED, [pair[place] for pair in TABLE_1[name]], "o--", color=color, fillstyle="none"
            )
            axis.set_xlabel("delta in seconds")
    imbalance.plot(ALLOWED, ALLOWED, "k-", linewidth=0.5, label="delta")
    imbalance.set_yscale("log")
    time.set_ylabel("seconds")
    imbalance.set_ylabel("imbalance in seconds")
    imbalance.legend(fontsize="small")
    figure.suptitle(f"Load {LOAD_1}; dashed: the paper, dotted: by its letter", fontsize="medium")


def _seconds(trial: Trial) -> float:
    return trial.run.seconds


def _imbalance(trial: Trial) -> float:
    return trial.run.imbalance


def _draw_2(figure: Any, trials: Trials) -> None:
    """Bars for each load: the paper's, by its letter, and ours."""
    axis, width = figure.subplots(), 0.07
    for number, (name, rules) in enumerate(trials.items()):
        place, color = np.arange(len(LOADS)) + 0.23 * number, f"C{number}"
        axis.bar(place, [seconds for seconds, _ in TABLE_2[name]], width, color=color, alpha=0.3)
        axis.bar(place + width, [_seconds(t) for t in rules[LETTER]], width, color=color, alpha=0.6)
        axis.bar(place + 2 * width, [_seconds(t) for t in rules[OURS]], width, color=color, label=name)
    axis.set_xticks(np.arange(len(LOADS)) + 0.415, LOADS)
    axis.set_xlabel("jobs on the four processors")
    axis.set_ylabel("seconds")
    axis.legend(fontsize="small")
    axis.set_title("palest: the paper; pale: by its letter; full: our rules", fontsize="medium")


def _study(
    name: str,
    table: str,
    shows: str,
    run: Callable[[Say, int], Findings],
    for_real: Callable[[Say, int], tuple[Table, ...]] | None = None,
) -> Study:
    return Study(name, f"{PAPER}, {table}", shows, run, ("simulated", "fitted"), constants, for_real)


def _made_here(progress: Say, seed: int) -> tuple[Table, ...]:
    """Loaded when it is wanted: it needs the calculation of atoms."""
    from tilewise.studies.stathopoulos_atom import atom_tables

    return atom_tables(progress, seed)


STUDIES = (
    _study("pvm-table1", "table 1", "self-scheduled columns by the imbalance that is allowed", _table_1),
    _study(
        "pvm-table2", "table 2", "static and self-scheduled columns under four loads", _table_2, _made_here
    ),
)
