"""Measured times take the place of the model, policies learn, and the schedule is renewed when that pays."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from tilewise.execute.runner import Result, Runner
from tilewise.schedule import Policy, Schedule, Team
from tilewise.schedule.observation import Observation, smoothed

EXPECTED_ITERATIONS = 10
"""Runs that are likely to follow, over which a better schedule pays."""

EQUAL_SPEEDS = 0.15
"""Speeds that differ by less are taken for noise."""

TOLERATED = 0.05
"""Part of an iteration by which priorities and deques may be wrong: whoever is idle makes up for that."""


@dataclass
class Refinement:
    """Looks at each run of a graph. `seconds` are those of each task on a worker of speed 1.

    Making a schedule has to pay within the runs that are likely to follow. What other lists would gain can
    be told beforehand. Other priorities may gain what the workers waited for, or nothing: so each attempt
    must promise twice as much as the one before.
    """

    runner: Runner
    policy: Policy
    team: Team
    seconds: np.ndarray
    renewed: int = 0
    _measured: bool = field(init=False, default=False)
    _making: float = field(init=False, default=0.0)
    """Seconds that the next attempt must promise."""
    _path: float = field(init=False, default=0.0)
    """The longest path, when it was looked at last."""

    def observe(self, result: Result) -> None:
        if self.policy.first_runs and not self._making:
            self._made()  # what learns has to know what a change costs
        speeds = self._speeds(result)
        measured = result.seconds * speeds[result.trace["worker"]]
        old, self.policy = self.policy, self.policy.learn(self.runner.graph, self._seen(result, measured))
        self.seconds = smoothed(self.seconds, measured) if self._measured else measured
        self._measured = True
        self.team = replace(self.team, speeds=tuple(speeds.tolist()))
        if self.policy != old:
            self._exchange(self._made())
        elif self.runner.schedule.by_dataflow:
            self._renew_priorities(1e-9 * float(np.ptp([result.trace["start"], result.trace["end"]])))
        else:
            self._renew_lists()

    def _seen(self, result: Result, measured: np.ndarray) -> Observation:
        schedule = self.runner.schedule
        phases = phase_seconds(schedule, 1e-9 * result.trace["end"])
        return Observation(schedule, self.seconds, measured, phases, self._making / EXPECTED_ITERATIONS)

    def _speeds(self, result: Result) -> np.ndarray:
        """Of each worker, the fastest being 1; from operations that several workers had a part in.

        An operation that takes longer than expected on all workers says nothing about them.
        """
        size, operation = self.team.size, self.runner.graph.tasks["operation"]
        cell = operation * size + result.trace["worker"]
        shape = (len(self.runner.graph.operations), size)
        spent, expected = (
            np.bincount(cell, weights=x, minlength=shape[0] * size).reshape(shape)
            for x in (result.seconds, self.seconds)
        )
        known = (spent > 0) & (expected > 0)
        slowness = np.log(np.where(known, spent, 1.0) / np.where(known, expected, 1.0))
        weight = np.where(known & (known.sum(axis=1, keepdims=True) > 1), expected, 0.0)
        together = weight.sum(axis=1, keepdims=True)
        usual = (weight * slowness).sum(axis=1, keepdims=True) / np.where(together > 0, together, 1.0)
        if not (weight.sum(axis=0) > 0).all():
            return np.ones(size)
        speeds = np.exp(-(weight * (slowness - usual)).sum(axis=0) / weight.sum(axis=0))
        speeds /= speeds.max()
        return speeds if speeds.min() < 1 - EQUAL_SPEEDS else np.ones(size)

    def _renew_lists(self) -> None:
        """Deques are judged as if nobody stole."""
        graph, old = self.runner.graph, self.runner.schedule
        now = old.makespan(graph, self.seconds, self.team, thieves=False)
        path = float(graph.longest_path(self.seconds).max(initial=0.0))
        best = max(path, self._share)
        made_up_for = TOLERATED * best if any(phase.steal for phase in old.phases) else 0.0
        if now - best <= made_up_for or not self._pays(now - best):
            return
        new = self._made()
        if self._pays(now - new.makespan(graph, self.seconds, self.team, thieves=False)):
            self._exchange(new)

    def _renew_priorities(self, took: float) -> None:
        if not self._pays(took - max(self._path, self._share)):
            return
        promised, old = self._making, self.runner.schedule.priority
        new = self._made()
        self._making = 2 * max(promised, self._making)
        self._path = float(new.priority.max(initial=0.0))
        if misplaced(old, new.priority) > TOLERATED * max(self._path, self._share):
            self._exchange(new)

    def _pays(self, gain: float) -> bool:
        return EXPECTED_ITERATIONS * gain > self._making

    @property
    def _share(self) -> float:
        """Seconds of each worker if nobody waits."""
        return float(self.seconds.sum()) / sum(self.team.speeds)

    def _made(self) -> Schedule:
        began = time.perf_counter()
        new = self.policy(self.runner.graph, self.seconds, self.team)
        self._making = time.perf_counter() - began
        return new

    def _exchange(self, new: Schedule) -> None:
        self.runner.reschedule(new)
        self.renewed += 1


def misplaced(old: np.ndarray, new: np.ndarray) -> float:
    """By how much, in the new priorities, a later task is ahead of an earlier one in the order of the old."""
    ordered = new[np.argsort(-old, kind="stable")]
    best_of_rest = np.maximum.accumulate(ordered[::-1])[::-1]
    return float((best_of_rest - ordered).max(initial=0.0))


def phase_seconds(schedule: Schedule, ends: np.ndarray) -> np.ndarray:
    """Of each phase, from the end of the one before to its own, if these are the ends of the tasks."""
    last = [float(ends[phase.tasks].max(initial=0.0)) for phase in schedule.phases]
    return np.diff(np.maximum.accumulate([0.0, *last]))
