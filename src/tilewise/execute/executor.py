"""What an executor is: it runs the tasks of one graph on buffers, by a schedule, and tells what came of it.

`Threads` computes in the native core, `Serial` with NumPy, task by task, and `Simulated` not at all: it tells
how long the same schedule would take on another machine. A method never asks which of them it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tilewise.inspect import Graph
from tilewise.native import Outcome
from tilewise.schedule import Schedule


@dataclass(frozen=True)
class Job:
    """One run of a graph: on which buffers, in the graph's order, and how."""

    buffers: list[np.ndarray]
    schedule: Schedule
    shift: float = 0.0
    """Level shift of the Jacobi steps, in hartree."""
    tasks: np.ndarray | None = None
    """If given, only these tasks run, level by level: one after the other, or shared by all workers."""
    shared: bool = False
    done: np.ndarray | None = None
    """If given, these tasks have run before, and all others run now."""


class Executor(Protocol):
    """Made for one graph, and then run again and again."""

    name: ClassVar[str]

    @property
    def graph(self) -> Graph: ...

    def prepare(self, schedule: Schedule) -> None:
        """Makes ahead of time what runs by this schedule need."""

    def run(self, job: Job) -> Outcome:
        """Runs all tasks; a failure of one is told in the outcome, and the others stop."""
