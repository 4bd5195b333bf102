"""Where tasks wait that are ready, in a run by data flow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.schedule.team import Team


@dataclass(frozen=True)
class ReadyQueues:
    """Each worker takes from one queue, by priority. Queues form groups, and each task has one as its home.

    A task that becomes ready goes to the queue of the worker that ended the last one which it waited for, if
    that queue is at the task's home; else to one of the queues there. A worker whose queue is empty takes
    from the others of its group; on threads, which share their memory, from all others.
    """

    of_worker: np.ndarray
    """The queue that each worker takes from."""
    group: np.ndarray
    """The group of each queue."""
    home: np.ndarray
    """The group in which each task is ready."""

    @classmethod
    def of_groups(cls, team: Team, home: np.ndarray) -> ReadyQueues:
        """A queue for the workers of each group of the team."""
        return cls(_group_of(team), np.arange(len(team.groups)), home)

    @classmethod
    def of_workers(cls, team: Team, home: np.ndarray) -> ReadyQueues:
        """A queue for each worker."""
        return cls(np.arange(team.size), _group_of(team), home)

    def check(self, workers: int, tasks: int) -> None:
        """Raises unless every worker has a queue, and every task a home with a worker."""
        if len(self.of_worker) != workers or len(self.home) != tasks:
            raise AssertionError(
                f"queues of {len(self.of_worker)} workers and homes of {len(self.home)} tasks "
                f"for {workers} workers and {tasks} tasks"
            )
        if not np.isin(self.of_worker, np.arange(len(self.group))).all():
            raise AssertionError("a worker takes from a queue that does not exist")
        lonely = np.flatnonzero(~np.isin(self.home, self.group[self.of_worker]))
        if len(lonely):
            raise AssertionError(f"task {lonely[0]} would be ready where nobody takes it")

    def arrays(self) -> dict[str, np.ndarray]:
        """As the native core takes them."""
        named = {"ready_queue": self.of_worker, "ready_group": self.group, "home": self.home}
        return {name: np.ascontiguousarray(values, np.int64) for name, values in named.items()}


def _group_of(team: Team) -> np.ndarray:
    """The number of each worker's group."""
    number = np.zeros(team.size, np.int64)
    for k, group in enumerate(team.groups):
        number[list(group)] = k
    return number
