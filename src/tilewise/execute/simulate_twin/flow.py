"""Data flow in a simulation: what is ready is given away by priority."""

from __future__ import annotations

import heapq

from tilewise.execute.simulate_twin.phases import Phases


class Flow(Phases):
    """Which worker gets a task that is ready."""

    def release_successors(self, task: int, time: float) -> None:
        first = self.schedule["first_successor"]
        for following in self.schedule["successors"][first[task] : first[task + 1]].tolist():
            self.needed[following] -= 1
            if self.needed[following] > 0:
                continue
            if self.by_dataflow:
                heapq.heappush(self.ready, (-self.schedule["priority"][following], following))
            elif following in self.waiting:
                self.work_on(self.waiting[following], time)

    def give_ready_tasks(self, time: float) -> None:
        """To those that have nothing to do; then to those that may take one ahead."""
        while self.ready and (self.idle or self.hungry):
            w = min(self.idle or self.hungry)
            self.take(w, heapq.heappop(self.ready)[1], time)
            self.offer(w)

    def offer(self, w: int) -> None:
        """Puts a worker where it belongs."""
        me = self.workers[w]
        self.idle.discard(w)
        self.hungry.discard(w)
        if me.unfinished == 0:
            self.idle.add(w)
        elif self.may_take(me):
            self.hungry.add(w)
