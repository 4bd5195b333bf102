"""The state of a simulation, and its events."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from tilewise.core import core
from tilewise.inspect.records import Table
from tilewise.schedule.loops import Loop


class What(IntEnum):
    """What an event says; those at one time are handled in the order of workers, then in this one."""

    BEGUN = 0  # a task that was taken ahead
    PARTLY = 1  # a task needs its next data
    COMPUTED = 2
    DONE = 3  # a task's result is in place
    LEAVES = 4  # the data of a Get are on the link of their node,
    CAME = 5  # through it,
    HERE = 6  # and at hand
    PUT = 7  # an Accumulate is on the link
    ASKED = 8  # a call has reached its counter
    ANSWERED = 9
    TURN = 10  # a call has reached a queue of ready tasks,
    GIVEN = 11  # and the task is back
    TOLD = 12  # a message about an ended task has come to a node,
    ACTIVATED = 13  # and has been read there; the number of the message stands for a task


@dataclass
class Host:
    """The host of a counter answers one call after the other, and has room for so many that wait."""

    free: float = 0.0
    answers: list[float] = field(default_factory=list)

    def answer(self, time: float, service: float, buffers: int = 0, resend: float = 0.0) -> float:
        waiting = sum(answer > time for answer in self.answers)
        self.free = max(self.free, time) + (resend if buffers and waiting >= buffers else service)
        self.answers.append(self.free)
        return self.free


@dataclass
class Queue:
    """A queue of the present phase."""

    tasks: list[int]
    quantum: int
    loop: Loop | None
    front: int = 0
    back: int = 0
    node: int = -1  # of its counter: that of its first worker
    in_one_node: bool = True
    host: Host = field(default_factory=Host)

    @property
    def left(self) -> int:
        return self.back - self.front


@dataclass
class Fetching:
    """A task whose data come over links."""

    task: int
    taken: float
    got: int = 0
    busy: float = 0.0


@dataclass
class Node:
    out: float = 0.0  # when its link is free, in each direction
    into: float = 0.0
    wanted: int = 0  # Gets of others that wait for its data
    in_flight: int = 0  # Gets of its own workers that are under way
    held: deque[int] = field(default_factory=deque)  # workers whose Gets are held back meanwhile
    messenger: Host = field(default_factory=Host)  # writes and reads its activation messages


@dataclass
class ReadyGroup:
    """Queues of ready tasks that are at one place; their workers help each other out."""

    queues: list[ReadyQueue] = field(default_factory=list)
    node: int = 0


@dataclass(eq=False)
class ReadyQueue:
    """Ready tasks by priority, and the workers that take from here."""

    number: int
    group: ReadyGroup
    tasks: list[tuple[float, int]] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    node: int = 0
    host: Host = field(default_factory=Host)


@dataclass(eq=False)
class Worker:
    node: int
    ready: ReadyQueue | None = None  # by data flow, what it takes from
    own: int = -1  # its queue in this phase
    source: int = -1  # the queue that its chunk [next, last) is from
    next: int = 0
    last: int = 0
    ahead: int = 0  # tasks taken and not begun
    unfinished: int = 0  # tasks taken and not finished
    asking: bool = False
    exhausted: bool = False  # nothing more is to come from its own queue
    measured: bool = False  # it has had a chunk in this phase
    asked: float = 0.0
    answered: float = 0.0
    free: float = 0.0  # end of all work that it has taken and has the data for
    link: float = 0.0  # when its messages are through
    fetching: deque[Fetching] = field(default_factory=deque)
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(core.simulated_columns, 0.0))


class State(ABC):
    """All that changes, and what the parts of a simulation ask of each other."""

    def __init__(
        self,
        tasks: Mapping[str, np.ndarray],
        schedule: Mapping[str, np.ndarray],
        machine: Mapping[str, Any],
        trace: Table,
    ) -> None:
        self.tasks, self.schedule, self.machine, self.trace = tasks, schedule, machine, trace
        self.workers = [Worker(node) for node in machine["node"].tolist()]
        self.nodes = [Node() for _ in range(int(machine["node"][-1]) + 1)]
        self.gets = np.diff(tasks["first_get"]).tolist()
        self.events: list[tuple[float, int, What, int]] = []
        self.queues: dict[int, Queue] = {}
        self.by_dataflow = "first_queue" not in schedule
        self.needed = schedule["n_needed"].tolist() if "n_needed" in schedule else []
        self.waiting: dict[int, int] = {}  # in phases: the worker that has come to a task too early
        self.ready: list[ReadyQueue] = []
        self.groups: list[ReadyGroup] = []
        self.home: list[int] = []  # the group in which each task is ready
        self.changed: list[int] = []  # queues of ready tasks to look at
        self.activations: list[list[int]] = []  # messages: the successors that each tells of
        self.phase, self.end = 0, 0.0

    def at(self, time: float, w: int, what: What, task: int = -1) -> None:
        heapq.heappush(self.events, (time, w, what, task))

    def may_take(self, me: Worker) -> bool:
        prefetch = self.machine["prefetch"]
        return me.ahead < prefetch if prefetch else me.unfinished == 0

    @abstractmethod
    def go_on(self, w: int, time: float) -> None:
        """A worker may take another task."""

    @abstractmethod
    def work_on(self, w: int, time: float) -> None:
        """In phases: takes what it may take now, asks for more, or is through with its queue."""

    @abstractmethod
    def release_successors(self, w: int, task: int, time: float) -> None:
        """A task has ended that others may wait for."""
