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
        """Work per second of each worker, the fastest being 1."""
        size = self.team.size
        spent = np.bincount(result.trace["worker"], weights=result.seconds, minlength=size)
        expected = np.bincount(result.trace["worker"], weights=self.seconds, minlength=size)
        if not (spent > 0).all() or not (expected > 0).all():
            return np.ones(size)
        speeds = expected / spent
        speeds /= speeds.max()
        return speeds if speeds.min() < 1 - EQUAL_SPEEDS else np.ones(size)

    def _renew(self) -> None:
        """Makes a new schedule if what it may gain is worth the time of making it."""
        graph, old = self.machine.graph, self.machine.schedule
        if old.by_dataflow:  # only priorities may change, and those of the first measurement will do
            if not self.renewed:
                self._exchange(self.policy(graph, self.seconds, self.team))
            return
        now = old.makespan(graph, self.seconds)
        path = float(graph.longest_path(self.seconds).max(initial=0.0))
        best = max(path, float(self.seconds.sum()) / self.team.size)
        if EXPECTED_ITERATIONS * (now - best) <= self._making:
            return
        began = time.perf_counter()
        new = self.policy(graph, self.seconds, self.team)
        self._making = time.perf_counter() - began
        uneven = min(self.team.speeds) < 1
        if uneven or EXPECTED_ITERATIONS * (now - new.makespan(graph, self.seconds)) > self._making:
            self._exchange(new)

    def _exchange(self, new: Schedule) -> None:
        self.machine.reschedule(new)
        self.renewed += 1
