"""A schedule: a plain value that can be read, checked and printed before anything runs.

Phases follow each other with a barrier between them. A phase has queues; each worker takes tasks
from one queue. A queue with one worker is a static list, a queue with several is a shared counter
or, with a rule, a self-scheduled loop. Where a phase allows stealing, a worker whose queue is empty takes
from the far end of the others'. A schedule without phases is by data flow: whatever is ready, by priority,
from one queue or from several.
Where all queues are static lists, a schedule may have `waits` instead of barriers: a worker goes on to the
next phase, and each task waits for those that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewise.core import core
from tilewise.inspect import Graph
from tilewise.schedule.ready import ReadyQueues
from tilewise.schedule.team import Team
from tilewise.wording import counted

NULL = -1
"""In the place of a task: a tuple that symmetry makes zero, which is drawn in vain."""

WHOLE = 0
"""The quantum of a list that its one worker goes through without asking."""

TAKING: tuple[str, ...] = core.takings
"""Rules of loops, in the order of their numbers."""


@dataclass(frozen=True)
class Rule:
    """How much of a loop a worker takes at a time; `loops.Loop` says it in Python."""

    taking: str = "fixed"
    f: float = 2.0
    delta: float = 0.0
    probe: int = 30
    literal: bool = False
    taper: bool = False
    most: float = 0.0


@dataclass(frozen=True)
class Queue:
    """Tasks in the order in which they are handed out, and who takes them."""

    tasks: np.ndarray
    workers: tuple[int, ...]
    quantum: int = 1
    rule: Rule = Rule()


@dataclass(frozen=True)
class Phase:
    """Queues that are worked on at the same time."""

    queues: tuple[Queue, ...] = ()
    steal: bool = False

    @property
    def tasks(self) -> np.ndarray:
        """Of all its queues, without null tuples."""
        tasks = np.concatenate([np.zeros(0, np.int64), *(queue.tasks for queue in self.queues)])
        return tasks[tasks != NULL]


@dataclass(frozen=True)
class Schedule:
    policy: str
    workers: int
    phases: tuple[Phase, ...] = ()
    priority: np.ndarray = field(default_factory=lambda: np.zeros(0))
    work: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Estimated seconds of each task, which the rules of loops go by."""
    decision: str = ""
    waits: bool = False
    ready: ReadyQueues | None = None
    """By data flow: the queues of ready tasks, if there is more than one."""

    @property
    def by_dataflow(self) -> bool:
        return not self.phases

    @property
    def queues(self) -> list[Queue]:
        return [queue for phase in self.phases for queue in phase.queues]

    def makespan(
        self, graph: Graph, seconds: np.ndarray, team: Team | None = None, *, thieves: bool = True
    ) -> float:
        """What the schedule should take if tasks took these seconds on a worker of speed 1.

        By data flow, or where tasks wait for others: what it takes at least. Without `thieves` nobody steals.
        """
        speeds = np.array((team or Team(self.workers)).speeds)
        if self.by_dataflow or self.waits:
            path = float(graph.longest_path(seconds).max(initial=0.0)) / float(speeds.max())
            return max(path, self._most_work(seconds, speeds))
        total = 0.0
        for phase in self.phases:
            work = [_sum(queue, seconds) for queue in phase.queues]
            if phase.steal and thieves:
                total += sum(work) / float(speeds.sum())
            else:
                rates = [float(speeds[list(queue.workers)].sum()) for queue in phase.queues]
                total += max((w / r for w, r in zip(work, rates, strict=True) if w), default=0.0)
        return total

    def _most_work(self, seconds: np.ndarray, speeds: np.ndarray) -> float:
        """Seconds of work of the worker that has most; by data flow all have the same."""
        if self.by_dataflow:
            return float(seconds.sum()) / float(speeds.sum())
        load = np.zeros(self.workers)
        for queue in self.queues:
            load[queue.workers[0]] += _sum(queue, seconds)
        return float((load / speeds).max())

    def check(self, graph: Graph) -> None:
        """Raises unless every task runs exactly once and no dependency is broken."""
        if self.by_dataflow:
            if len(self.priority) != len(graph):
                raise AssertionError(f"{len(self.priority)} priorities for {len(graph)} tasks")
            if self.ready:
                self.ready.check(self.workers, len(graph))
            return
        phase_of = np.full(len(graph), -1)
        position = np.zeros(len(graph), np.int64)
        queue_of = np.full(len(graph), -1)
        number = 0
        for p, phase in enumerate(self.phases):
            workers = [w for queue in phase.queues for w in queue.workers]
            if any(not 0 <= w < self.workers for w in workers):
                raise AssertionError(f"phase {p}: a queue is for a worker that does not exist")
            if len(set(workers)) != len(workers):
                raise AssertionError(f"phase {p}: a worker has two queues")
            for queue in phase.queues:
                tasks = queue.tasks[queue.tasks != NULL]
                if len(tasks) and not 0 <= tasks.min() <= tasks.max() < len(graph):
                    raise AssertionError(f"phase {p}: a queue has a task that does not exist")
                if (phase_of[tasks] >= 0).any() or np.bincount(tasks).max(initial=0) > 1:
                    raise AssertionError(f"phase {p}: a task stands twice")
                if len(tasks) and not queue.workers:
                    raise AssertionError(f"phase {p}: a queue has tasks and no worker")
                whole = queue.quantum == WHOLE and len(queue.workers) < 2 and not phase.steal
                if not (queue.quantum > 0 or whole) or queue.rule.taking not in TAKING:
                    raise AssertionError(f"phase {p}: nobody knows how much to take from a queue")
                if self.waits and not whole:
                    raise AssertionError(f"phase {p}: only tasks of static lists can wait for others")
                if queue.rule.taking != "fixed" and (phase.steal or len(self.work) != len(graph)):
                    raise AssertionError(f"phase {p}: a loop needs the work of each task, and no thieves")
                phase_of[tasks] = p
                position[tasks] = np.arange(len(tasks))
                alone = len(queue.workers) == 1 and not phase.steal
                queue_of[tasks] = number if alone else -2 - number
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

    def arrays(self, graph: Graph) -> dict[str, np.ndarray]:
        """The schedule as the arrays that the native executor takes."""
        if not self.by_dataflow and not self.waits:
            return _phase_arrays(self.phases, self.workers, self.work)
        first, following = graph.successors
        needs = {"first_successor": first, "successors": following, "n_needed": graph.n_needed}
        if self.ready:
            # In the order of their homes, so that each home hears of them once.
            source = np.repeat(np.arange(len(graph)), np.diff(first))
            needs["successors"] = following[np.lexsort((self.ready.home[following], source))]
            needs |= self.ready.arrays()
        if self.by_dataflow:
            return needs | {"priority": np.ascontiguousarray(self.priority, dtype=np.float64)}
        return needs | _phase_arrays((_in_one(self.phases, self.workers),), self.workers, self.work)

    def __str__(self) -> str:
        if self.decision:
            return f"{self.policy}: {self.decision}"
        workers = counted(self.workers, "worker")
        if self.by_dataflow:
            return f"{self.policy}: {counted(len(self.priority), 'task')} by data flow on {workers}"
        phases, queues = counted(len(self.phases), "phase"), counted(len(self.queues), "queue")
        return f"{self.policy}: {phases}, {queues}, {workers}"


def _in_one(phases: Sequence[Phase], workers: int) -> Phase:
    """The lists of each worker, one after the other."""
    lists: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(workers)]
    for phase in phases:
        for queue in phase.queues:
            lists[queue.workers[0]].append(queue.tasks)
    return Phase(tuple(Queue(np.concatenate(mine), (w,), WHOLE) for w, mine in enumerate(lists)))


def _phase_arrays(phases: Sequence[Phase], workers: int, work: np.ndarray) -> dict[str, np.ndarray]:
    queues = [queue for phase in phases for queue in phase.queues]
    worker_queue = np.full((len(phases), workers), -1, np.int64)
    number = 0
    for p, phase in enumerate(phases):
        for queue in phase.queues:
            worker_queue[p, list(queue.workers)] = number
            number += 1
    tasks = np.concatenate([np.zeros(0, np.int64), *(queue.tasks for queue in queues)]).astype(np.int64)
    loops = any(queue.rule.taking != "fixed" for queue in queues)
    return {
        "first_queue": np.cumsum([0, *(len(phase.queues) for phase in phases)]).astype(np.int64),
        "first_task": np.cumsum([0, *(len(queue.tasks) for queue in queues)]).astype(np.int64),
        "tasks": tasks,
        "worker_queue": worker_queue.ravel(),
        "quantum": np.array([queue.quantum for queue in queues], np.int64),
        "steal": np.array([phase.steal for phase in phases], np.int64),
        "taking": np.array([TAKING.index(queue.rule.taking) for queue in queues], np.int64),
        "probe": np.array([queue.rule.probe for queue in queues], np.int64),
        "literal": np.array([queue.rule.literal for queue in queues], np.int64),
        "taper": np.array([queue.rule.taper for queue in queues], np.int64),
        "f": np.array([queue.rule.f for queue in queues], np.float64),
        "delta": np.array([queue.rule.delta for queue in queues], np.float64),
        "most": np.array([queue.rule.most for queue in queues], np.float64),
        "work": np.where(tasks == NULL, 0.0, work[tasks]) if loops else np.zeros(0),
    }


def _sum(queue: Queue, seconds: np.ndarray) -> float:
    return float(seconds[queue.tasks[queue.tasks != NULL]].sum())
