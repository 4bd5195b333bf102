"""Measured times take the place of the model, and the schedule is renewed when that pays."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from tilewise.execute.machine import Machine, Result
from tilewise.schedule import Policy, Schedule, Team

SMOOTHING = 0.5
"""Weight of the newest measurement."""

EXPECTED_ITERATIONS = 10
"""Runs that are likely to follow, over which a better schedule pays."""

EQUAL_SPEEDS = 0.15
"""Speeds that differ by less are taken for noise."""


@dataclass
class Refinement:
    """Looks at each run of a machine. `seconds` are those of each task on a worker of speed 1."""

    machine: Machine
    policy: Policy
    team: Team
    seconds: np.ndarray
    renewed: int = 0
    _measured: bool = field(init=False, default=False)
    _making: float = field(init=False, default=0.0)

    def observe(self, result: Result) -> None:
        speeds = self._speeds(result)
        measured = result.seconds * speeds[result.trace["worker"]]
        if self._measured:
            measured = SMOOTHING * measured + (1 - SMOOTHING) * self.seconds
        self.seconds, self._measured = measured, True
        self.team = replace(self.team, speeds=tuple(speeds.tolist()))
        self._renew()

    def _speeds(self, result: Result) -> np.ndarray:
        """Of each worker, the fastest being 1; from operations that several workers had a part in.

        An operation that takes longer than expected on all workers says nothing about them.
        """
        size, operation = self.team.size, self.machine.graph.tasks["operation"]
        cell = operation * size + result.trace["worker"]
        shape = (len(self.machine.graph.operations), size)
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

    def _renew(self) -> None:
        """Makes a new schedule if what it may gain is worth the time of making it."""
        graph, old = self.machine.graph, self.machine.schedule
        if old.by_dataflow:  # only priorities may change, and those of the first measurement will do
            if not self.renewed:
                self._exchange(self.policy(graph, self.seconds, self.team))
            return
        now = old.makespan(graph, self.seconds, self.team)
        path = float(graph.longest_path(self.seconds).max(initial=0.0))
        best = max(path, float(self.seconds.sum()) / sum(self.team.speeds))
        if EXPECTED_ITERATIONS * (now - best) <= self._making:
            return
        began = time.perf_counter()
        new = self.policy(graph, self.seconds, self.team)
        self._making = time.perf_counter() - began
        if EXPECTED_ITERATIONS * (now - new.makespan(graph, self.seconds, self.team)) > self._making:
            self._exchange(new)

    def _exchange(self, new: Schedule) -> None:
        self.machine.reschedule(new)
        self.renewed += 1
