"""What Stathopoulos and Ynnerman measured, and the same runs simulated by their literal rules and by ours."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

from scipy.optimize import brentq

from tilewise.hardware.machines import MachineModel, find_machine
from tilewise.lazy import cached_property
from tilewise.schedule import Policy, policy_named
from tilewise.schedule.loops import Chunk, Factoring
from tilewise.studies.columns import (
    LoopRun,
    factoring_steps,
    ideal_seconds,
    least_columns,
    run_loop,
    triangle,
    with_jobs,
)
from tilewise.studies.study import Constant

COLUMNS = 7158
ELEMENTS = COLUMNS * (COLUMNS + 1) / 2
PROCESSORS = 4
UNLOADED = 2028.0
"""Seconds of the paper's fastest run without load: what the processors take if they are never idle."""
WORK = PROCESSORS * UNLOADED

INTERLEAVED, TSS, FACTORING_2, FACTORING_4 = "interleaved", "TSS", "factoring f=2", "factoring f=4"
POLICIES = {
    INTERLEAVED: "interleaved",
    TSS: "chunk(size=0, delta={delta}, literal={literal})",  # trapezoid self-scheduling of the elements
    FACTORING_2: "factoring(f=2, delta={delta}, literal={literal})",
    FACTORING_4: "factoring(f=4, delta={delta}, literal={literal})",
}
DYNAMIC = (TSS, FACTORING_2, FACTORING_4)
LETTER, OURS = "by the letter", "our rule"
RULES = {LETTER: True, OURS: False}
"""Two readings of the paper's policies, and whether they are its literal rules."""

# Seconds and imbalance in the paper.
Paper = dict[str, tuple[tuple[float, float], ...]]
ALLOWED = (0.5, 5, 30, 90)
TABLE_1: Paper = {
    TSS: ((2733, 0.4), (2740, 1.8), (2679, 26.8), (2700, 14.5)),
    FACTORING_2: ((2677, 0.8), (2678, 0.9), (2730, 6.9), (2736, 10.2)),
    FACTORING_4: ((2779, 0.9), (2687, 1.1), (2736, 16.4), (2734, 3.2)),
}
LOADS = ("1-1-1-1", "2-2-1-1", "2-2-2-1", "3-2-2-1")
TABLE_2: Paper = {
    INTERLEAVED: ((2067, 16), (4016, 1932), (3998, 1938), (6083, 3974)),
    TSS: ((2067, 3.6), (2679, 26.8), (3392, 3.6), (3643, 22.7)),
    FACTORING_2: ((2028, 0.5), (2677, 0.8), (3262, 0.3), (3495, 0.5)),
    FACTORING_4: ((2048, 1.4), (2687, 1.1), (3204, 3.0), (3418, 2.7)),
}
LOAD_1 = LOADS[1]
DELTAS_2: dict[str, float] = {INTERLEAVED: 0.0, TSS: 30, FACTORING_2: 0.5, FACTORING_4: 5}


@dataclass(frozen=True)
class Trial:
    """A policy of the paper, with its delta, under a load; by the letter of the paper or by our rule."""

    name: str
    delta: float
    machine: MachineModel
    literal: bool = False

    @property
    def policy(self) -> Policy:
        return policy_named(POLICIES[self.name].format(delta=self.delta, literal=self.literal))

    @cached_property
    def run(self) -> LoopRun:
        return run_loop(triangle(COLUMNS, WORK), self.policy, self.machine)

    @property
    def above_ideal(self) -> float:
        """Per cent by which the run is longer than if no processor were ever idle."""
        return 100.0 * (self.run.seconds / ideal_seconds(WORK, self.machine) - 1.0)

    @property
    def formula(self) -> float | None:
        """Steps as N/c and equation 5 have them, by the speed of the slowest processor."""
        jobs = max((load.jobs for load in self.machine.loads), default=1)
        columns = least_columns(self.delta, ELEMENTS / WORK / jobs)
        if isinstance(self.policy, Chunk):
            return COLUMNS / columns
        if isinstance(self.policy, Factoring):
            least = columns * (columns + 1) / 2 / self.chunks_of_floor
            return factoring_steps(ELEMENTS, least, self.policy.f, PROCESSORS)
        return None

    @property
    def chunks_of_floor(self) -> int:
        """Chunks that together hold at least c columns: by the letter those of a factoring step."""
        return PROCESSORS if self.literal else 1


@cache
def fitted_slowness() -> float:
    """How much longer the last workstation takes: so much that the interleaved run without load is as uneven
    as in the paper.
    """
    seconds, policy = triangle(COLUMNS, WORK), policy_named(POLICIES[INTERLEAVED])

    def excess(slowness: float) -> float:
        return run_loop(seconds, policy, _cluster(slowness)).imbalance - TABLE_2[INTERLEAVED][0][1]

    return float(brentq(excess, 0.0, 0.1, xtol=1e-6))


def even_imbalance() -> float:
    """Of the interleaved run without load, if all workstations were alike."""
    return run_loop(triangle(COLUMNS, WORK), policy_named(POLICIES[INTERLEAVED]), _cluster(0.0)).imbalance


def _cluster(slowness: float) -> MachineModel:
    return replace(find_machine("pvm"), speed=(*(1.0,) * (PROCESSORS - 1), 1.0 / (1.0 + slowness)))


def loaded(*times: tuple[float, float, str]) -> MachineModel:
    """The cluster with the jobs of each span of time on its processors, such as "2-2-1-1"."""
    machine = _cluster(fitted_slowness())
    for start, end, text in times:
        machine = with_jobs(machine, [int(jobs) for jobs in text.split("-")], start, end)
    return machine


def always(load: str) -> MachineModel:
    return loaded((0.0, math.inf, load))


def constants() -> tuple[Constant, ...]:
    """What both tables rest on and the paper does not give."""
    here, machine = "src/tilewise/studies/stathopoulos_runs.py", "src/tilewise/machines/pvm.toml"
    slowness = f"{100 * fitted_slowness():.2f} %"
    model = find_machine("pvm")
    return (
        Constant(
            "UNLOADED", f"{UNLOADED:.0f} s", here, "all times", "fitted to the fastest run without load"
        ),
        Constant(
            "fitted_slowness",
            slowness,
            here,
            "imbalance of interleaved runs",
            f"fitted to {TABLE_2[INTERLEAVED][0][1]} s of imbalance without load",
        ),
        Constant("speed with k jobs", "1/k", here, "all times under load", "chosen: even time slices"),
        Constant(
            "counter.service",
            f"{1e3 * model.counter_service:g} ms",
            machine,
            "what a step costs, and who asks first",
            "chosen: the paper speaks of a few milliseconds",
        ),
        Constant(
            "counter.latency",
            f"{1e3 * model.counter_latency:g} ms",
            machine,
            "what a step costs, and who asks first",
            "chosen: the paper speaks of a few milliseconds",
        ),
        Constant("noise", f"{model.noise:g}", machine, "nothing is left to chance", "chosen"),
        Constant(
            "barrier, network, counter.shared",
            f"{1e3 * model.barrier:g} ms, 10 Mbit/s, {1e3 * model.counter_shared:g} ms",
            machine,
            "nothing in these tables: columns move no data",
            "chosen: Ethernet of the time",
        ),
    )
