"""The literal rules of Stathopoulos and Ynnerman against ours, where the paper has no runs.

A single run says little: where a loop ends depends on how its chunks happen to fit. So there are sweeps, over
delta and over the time at which a load moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tilewise.hardware.machines import MachineModel
from tilewise.studies.columns import ideal_seconds
from tilewise.studies.stathopoulos_runs import DELTAS_2, DYNAMIC, LOAD_1, RULES, WORK, Trial, always, loaded
from tilewise.studies.study import Row, Table

DELTAS = tuple(np.geomspace(0.5, 120.0, 60).tolist())
"""Of the sweep over the imbalance that is allowed, in seconds."""
MOMENTS = tuple(range(50, 2501, 50))
"""Seconds after which the load moves, in the sweep over that."""
MOVED = ("1-2-1-1", "1-1-2-1")

CHANGES = {
    "3-1-1-1": ((0.0, math.inf, "3-1-1-1"),),
    "6-1-1-1": ((0.0, math.inf, "6-1-1-1"),),
    "2-2-1-1, after 1000 s 1-1-2-2": ((0.0, 1000.0, "2-2-1-1"), (1000.0, math.inf, "1-1-2-2")),
    "3-1-1-1 from 600 to 1800 s": ((600.0, 1800.0, "3-1-1-1"),),
    "2-1-1-1, 2-3-1-1 from 500 to 2000 s": (
        (0.0, 500.0, "2-1-1-1"),
        (500.0, 2000.0, "2-3-1-1"),
        (2000.0, math.inf, "2-1-1-1"),
    ),
    "1-2-1-1, after 600 s 1-1-2-1": ((0.0, 600.0, "1-2-1-1"), (600.0, math.inf, "1-1-2-1")),
}
"""Loads of our own, constant ones first, as (from, to, jobs)."""


@dataclass(frozen=True)
class Sweep:
    """Runs of one rule that differ in one thing."""

    trials: tuple[Trial, ...]

    @property
    def above_ideal(self) -> np.ndarray:
        return np.array([trial.above_ideal for trial in self.trials])

    @property
    def imbalance_over_delta(self) -> np.ndarray:
        return np.array([trial.run.imbalance / trial.delta for trial in self.trials])

    @property
    def within_delta(self) -> int:
        return int((self.imbalance_over_delta <= 1.0).sum())

    @property
    def row(self) -> tuple[float | str, ...]:
        """As the headings of `sweep_table` say."""
        above, imbalance = self.above_ideal, self.imbalance_over_delta
        steps = np.mean([trial.run.steps for trial in self.trials])
        numbers = (above.mean(), above.max(), np.median(imbalance), imbalance.max())
        within = f"{self.within_delta} of {len(self.trials)}"
        return (*(round(float(number), 2) for number in numbers), within, round(float(steps), 1))


Sweeps = dict[tuple[str, str], Sweep]
"""By policy and rule."""


def over_deltas() -> Sweeps:
    machine = always(LOAD_1)
    return _sweeps(lambda name, literal: (Trial(name, delta, machine, literal) for delta in DELTAS))


def over_moments() -> Sweeps:
    machines = [_moving(moment) for moment in MOMENTS]
    return _sweeps(lambda name, literal: (Trial(name, DELTAS_2[name], m, literal) for m in machines))


def _moving(moment: float) -> MachineModel:
    return loaded((0.0, moment, MOVED[0]), (moment, math.inf, MOVED[1]))


def _sweeps(trials: Callable[[str, bool], Iterable[Trial]]) -> Sweeps:
    return {
        (name, rule): Sweep(tuple(trials(name, literal)))
        for name in DYNAMIC
        for rule, literal in RULES.items()
    }


def sweep_table(title: str, sweeps: Sweeps) -> Table:
    heads = (
        "policy",
        "above ideal, %",
        "at most",
        "imbalance / delta, median",
        "at most",
        "within delta",
        "steps",
    )
    rows = tuple(Row(f"{name} {rule}", sweep.row) for (name, rule), sweep in sweeps.items())
    return Table(title, heads, rows)


def own_loads() -> Table:
    """Runs that the paper has not: one slow processor, and loads that come and go."""
    rows = []
    for text, times in CHANGES.items():
        machine = loaded(*times)
        ideal = ideal_seconds(WORK, machine)
        for name, delta in DELTAS_2.items():
            runs = [Trial(name, delta, machine, literal).run for literal in RULES.values()]
            ends = [value for run in runs for value in (run.seconds, run.imbalance)]
            rows.append(Row(text, (name, ideal, *ends)))
    heads = [f"{what}, {rule}" for rule in RULES for what in ("seconds", "imbalance")]
    return Table("Loads of our own (none in the paper)", ("load", "policy", "ideal", *heads), tuple(rows))
