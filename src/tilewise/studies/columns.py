"""Columns of a lower triangle, shared out on a cluster whose processors have other users' jobs too.

The loop of Stathopoulos and Ynnerman: independent columns, each shorter than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewise.execute.simulated import simulate
from tilewise.hardware.machines import Load, MachineModel
from tilewise.inspect.loop import LoopGraph
from tilewise.schedule import Policy


@dataclass(frozen=True)
class LoopRun:
    """Of one simulated loop."""

    seconds: float
    imbalance: float
    """Seconds between the first processor that is through and the last one."""
    steps: int
    """Chunks that were handed out after the probe of each processor."""


def triangle(size: int, work: float) -> np.ndarray:
    """Seconds of each column, from the longest one to a single element; `work` in all."""
    elements = np.arange(size, 0, -1.0)
    return elements * (work / elements.sum())


def run_loop(seconds: np.ndarray, policy: Policy, machine: MachineModel, seed: int = 0) -> LoopRun:
    """The loop on all processors of the machine, which know neither the loads nor the noise in advance."""
    graph, workers = LoopGraph(len(seconds), "column"), machine.size
    run = simulate(graph, policy(graph, seconds, workers), seconds, machine, seed=seed)
    ends = np.zeros(workers)
    np.maximum.at(ends, run.trace["worker"], 1e-9 * run.trace["end"])
    # The last call of each processor finds nothing left, the first one is its probe.
    return LoopRun(float(ends.max()), float(np.ptp(ends)), max(0, run.counter_calls - 2 * workers))


def with_jobs(
    machine: MachineModel, jobs: Sequence[int], start: float = 0.0, end: float = math.inf
) -> MachineModel:
    """The machine with this many jobs on each processor, ours included, from `start` to `end`."""
    loads = tuple(Load(core, count, start, end) for core, count in enumerate(jobs) if count > 1)
    return replace(machine, loads=machine.loads + loads)


def ideal_seconds(work: float, machine: MachineModel) -> float:
    """The time in which all processors, never idle, do the work."""
    speeds = machine.speeds(machine.size)
    times = sorted({0.0, *(load.start for load in machine.loads), *(load.end for load in machine.loads)})
    for now, then in zip(times, [*times[1:], math.inf], strict=True):
        jobs = np.ones(machine.size)
        for load in machine.loads:
            if load.start <= now < load.end:
                jobs[load.core] = load.jobs
        rate = float((speeds / jobs).sum())
        if work <= rate * (then - now):
            return now + work / rate
        work -= rate * (then - now)
    raise AssertionError("the last time is without end")


def least_columns(delta: float, elements_per_second: float) -> float:
    """Equation 3: the last so many columns take delta seconds."""
    return 0.5 * (math.sqrt(1.0 + 8.0 * delta * elements_per_second) - 1.0)


def factoring_steps(length: float, least: float, f: float, workers: int) -> int:
    """Equation 5: steps until what is handed out falls to the least, and those with that."""
    rounds = (math.log(length) - math.log(workers * f * least)) / (math.log(f) - math.log(f - 1.0))
    return math.ceil(workers * (rounds + f))
