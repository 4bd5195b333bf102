"""What a calculation would take on another machine, by policy and number of workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.cost import CostModel, estimate, load_or_calibrate
from tilewise.execute.rehearsal import rehearsed
from tilewise.execute.simulated import Simulated, Simulation
from tilewise.hardware.machines import MachineModel
from tilewise.inspect import Graph
from tilewise.lazy import cached_property
from tilewise.schedule import Policy, Schedule


@dataclass(frozen=True)
class PredictionRow:
    """One iteration in numbers: seconds, and shares of the time of all workers."""

    policy: str
    workers: int
    tasks: int
    seconds: float
    efficiency: float
    imbalance: float
    counters: float
    communication: float
    waiting: float
    counter_calls: int
    steals: int
    messages: int


@dataclass(frozen=True)
class Prediction:
    """One simulated iteration."""

    policy: Policy
    graph: Graph
    seconds: np.ndarray
    schedule: Schedule
    simulation: Simulation

    @property
    def row(self) -> PredictionRow:
        run = self.simulation
        return PredictionRow(
            policy=str(self.policy),
            workers=run.workers,
            tasks=len(self.graph),
            seconds=run.makespan,
            efficiency=run.efficiency,
            imbalance=run.imbalance,
            counters=run.share(run.counter),
            communication=run.share(run.communication),
            waiting=run.share(run.waiting),
            counter_calls=run.counter_calls,
            steals=run.steals,
            messages=run.messages,
        )


@dataclass(frozen=True)
class Predictor:
    """Simulates iterations of a graph; costs are by the rates of the machine, or by the model of this one."""

    graph: Graph
    machine: MachineModel
    seed: int = 0

    @cached_property
    def _model(self) -> CostModel:
        return load_or_calibrate()[0]

    @cached_property
    def _seconds(self) -> np.ndarray:
        return self._cost(self.graph)

    def _cost(self, graph: Graph) -> np.ndarray:
        if self.machine.rates:
            return self.machine.rates.seconds(graph.flops, graph.sorted_words, graph.operand_words)
        return estimate(graph, self._model)

    def __call__(self, policy: Policy, workers: int) -> Prediction:
        team = self.machine.team(workers)
        graph = policy.prepared(self.graph, self._seconds, workers)
        seconds = self._seconds if graph is self.graph else self._cost(graph)

        def run(schedule: Schedule, number: int) -> Simulation:
            return Simulated(graph, seconds, self.machine, self.seed + number).simulation(schedule)

        schedule = rehearsed(policy, graph, seconds, team, run)
        return Prediction(policy, graph, seconds, schedule, run(schedule, 0))
