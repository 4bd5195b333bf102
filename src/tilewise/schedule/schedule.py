"""A schedule: a plain value that can be read, checked and printed before anything runs.

Phases follow each other with a barrier between them. A phase has queues; each worker takes tasks
from one queue, `quantum` at a time. A queue with one worker is a static list, a queue with several
is a shared counter. A schedule without phases is by data flow: whatever is ready, by priority.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewise.inspect import TaskGraph


@dataclass(frozen=True)
class Queue:
    """Tasks in the order in which they are handed out, and who takes them."""

    tasks: np.ndarray
    workers: tuple[int, ...]
    quantum: int = 1


@dataclass(frozen=True)
class Schedule:
    policy: str
    workers: int
    phases: tuple[tuple[Queue, ...], ...] = ()
    priority: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def by_dataflow(self) -> bool:
        return not self.phases

    def check(self, graph: TaskGraph) -> None:
        """Raises unless every task runs exactly once and no dependency is broken."""
        if self.by_dataflow:
            if len(self.priority) != len(graph):
                raise AssertionError(f"{len(self.priority)} priorities for {len(graph)} tasks")
            return
        phase_of = np.full(len(graph), -1)
        position = np.zeros(len(graph), np.int64)
        queue_of = np.full(len(graph), -1)
        number = 0
        for p, queues in enumerate(self.phases):
            workers = [w for queue in queues for w in queue.workers]
            if any(not 0 <= w < self.workers for w in workers):
                raise AssertionError(f"phase {p}: a queue is for a worker that does not exist")
            if len(set(workers)) != len(workers):
                raise AssertionError(f"phase {p}: a worker has two queues")
            for queue in queues:
                if len(queue.tasks) and not 0 <= queue.tasks.min() <= queue.tasks.max() < len(graph):
                    raise AssertionError(f"phase {p}: a queue has a task that does not exist")
                if (phase_of[queue.tasks] >= 0).any() or len(np.unique(queue.tasks)) != len(queue.tasks):
                    raise AssertionError(f"phase {p}: a task stands twice")
                if len(queue.tasks) and not queue.workers:
                    raise AssertionError(f"phase {p}: a queue has tasks and no worker")
                phase_of[queue.tasks] = p
                position[queue.tasks] = np.arange(len(queue.tasks))
                queue_of[queue.tasks] = number if len(queue.workers) == 1 else -2 - number
                number += 1
        if (phase_of < 0).any():
            raise AssertionError(f"task {int(np.argmin(phase_of))} is never run")
        before, after = graph.sources, graph.targets
        earlier = phase_of[before] < phase_of[after]
        # Within a phase only the order of one worker's own list can be relied on.
        same_list = (queue_of[before] == queue_of[after]) & (queue_of[before] >= 0)
        same_list &= (phase_of[before] == phase_of[after]) & (position[before] < position[after])
        broken = np.flatnonzero(~(earlier | same_list))
        if len(broken):
            e = broken[0]
            raise AssertionError(f"task {after[e]} may run before task {before[e]}, which it needs")

    def arrays(self, graph: TaskGraph) -> dict[str, np.ndarray]:
        """The schedule as the arrays that the native executor takes."""
        if self.by_dataflow:
            first, following = graph.successors
            return {
                "first_successor": first,
                "successors": following,
                "n_needed": graph.n_needed,
                "priority": np.ascontiguousarray(self.priority, dtype=np.float64),
            }
        queues = [queue for phase in self.phases for queue in phase]
        worker_queue = np.full((len(self.phases), self.workers), -1, np.int64)
        number = 0
        for p, phase in enumerate(self.phases):
            for queue in phase:
                worker_queue[p, list(queue.workers)] = number
                number += 1
        empty = np.zeros(0, np.int64)
        return {
            "first_queue": np.cumsum([0, *(len(phase) for phase in self.phases)]).astype(np.int64),
            "first_task": np.cumsum([0, *(len(queue.tasks) for queue in queues)]).astype(np.int64),
            "tasks": np.concatenate([empty, *(queue.tasks for queue in queues)]).astype(np.int64),
            "worker_queue": worker_queue.ravel(),
            "quantum": np.array([queue.quantum for queue in queues], np.int64),
        }

    def __str__(self) -> str:
        if self.by_dataflow:
            return f"{self.policy}: {len(self.priority)} tasks by data flow on {self.workers} workers"
        shared = sum(len(q.workers) > 1 for phase in self.phases for q in phase)
        kind = f"{shared} shared counters" if shared else "static lists"
        return f"{self.policy}: {len(self.phases)} phases, {kind}, {self.workers} workers"
