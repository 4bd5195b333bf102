"""The twin of the native simulator: discrete events in Python, slow, and written to be read.

It takes the arguments of the native `simulate` and fills the same tables; the tests hold the native one
against it. Times are in seconds, sizes in bytes. Its modules are those of `src/native/simulate_*.cpp`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewise.execute.simulate_twin.flow import Flow
from tilewise.execute.simulate_twin.state import What
from tilewise.inspect.records import TRACE, Table


def simulate(
    tasks: Mapping[str, np.ndarray],
    schedule: Mapping[str, np.ndarray],
    machine: Mapping[str, Any],
    trace: Table,
    table: np.ndarray,
) -> list[float]:
    """When each phase ends, or the makespan alone; fills the trace, and a row of the table per worker."""
    simulation = Simulation(tasks, schedule, machine, trace.view(TRACE))
    ends = simulation.run()
    for row, worker in zip(table, simulation.workers, strict=True):
        row[:] = list(worker.sums.values())
    return ends


class Simulation(Flow):
    """Handles one event after the other."""

    def run(self) -> list[float]:
        if self.by_dataflow:
            self.begin_flow()
            self.process()
            return [self.end]
        ends = []
        for phase in range(len(self.schedule["first_queue"]) - 1):
            self.begin_phase(phase)
            self.process()
            self.end += self.machine["barrier"]
            ends.append(self.end)
        return ends or [self.end]

    def process(self) -> None:
        while self.events:
            time, w, what, task = heapq.heappop(self.events)
            self.handle(time, w, what, task)
            # What happens at the same time counts before ready tasks are given away.
            if self.by_dataflow and not (self.events and self.events[0][0] == time):
                self.give_ready_tasks(time)

    def handle(self, time: float, w: int, what: What, task: int) -> None:
        if what == What.BEGUN:
            self.workers[w].ahead -= 1
            self.go_on(w, time)
        elif what == What.PARTLY:
            self.get(w, time)
        elif what == What.COMPUTED:
            self.accumulate(w, task, time)
        elif what == What.DONE:
            self.done(w, task, time)
        elif what == What.LEAVES:
            self.leaves(w, task, time)
        elif what == What.CAME:
            self.came(w, time)
        elif what == What.HERE:
            self.here(w, time)
        elif what == What.PUT:
            self.put(task, w, time)
        elif what == What.ASKED:
            self.draw(w, time)
        elif what == What.ANSWERED:
            self.answered(w, time)
        elif what == What.TURN:
            self.turn(w, task, time)
        elif what == What.GIVEN:
            self.given(w, task, time)
        elif what == What.TOLD:
            self.told(w, task, time)
        else:
            self.count_down(self.activations[task], None)

    def go_on(self, w: int, time: float) -> None:
        if self.by_dataflow:
            self.offer(w)
        else:
            self.work_on(w, time)
