"""How a calculation that is shared out between ranks runs on a model of a machine, whose nodes are ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.errors import InputError
from tilewise.execute.distribution import Distribution
from tilewise.execute.local_graph import local_plan
from tilewise.execute.mpi.runner import ALIKE
from tilewise.execute.simulated import Simulation, simulate
from tilewise.hardware.model import MachineModel
from tilewise.schedule import Phase, Policy, Queue, Schedule, Team
from tilewise.schedule.ready import ReadyQueues
from tilewise.schedule.schedule import WHOLE


def simulate_ranks(
    distribution: Distribution,
    policy: Policy,
    threads: int,
    machine: MachineModel,
    seconds: np.ndarray | None = None,
    seed: int = 0,
) -> Simulation:
    """One run of all tasks, where the placement has them, by the policy within each rank.

    `seconds` of each task are those on a core of speed 1; by default those of the distribution.
    """
    if machine.working != threads:
        raise InputError(f"machine {machine.name}: {threads} cores of a node are to work, one per thread")
    schedule = schedule_of_ranks(distribution, policy, threads)
    moved = GetsOfTasks.of(distribution)
    return simulate(
        distribution.graph,
        schedule,
        distribution.seconds if seconds is None else seconds,
        machine,
        bytes_got=moved.bytes_got,
        gets=moved.gets,
        places=moved.places,
        seed=seed,
    )


def schedule_of_ranks(distribution: Distribution, policy: Policy, threads: int) -> Schedule:
    """What the ranks decide, each for its own tasks, as one schedule of all workers."""
    ranks = distribution.ranks
    groups = tuple(tuple(range(r * threads, (r + 1) * threads)) for r in range(ranks))
    team = Team(ranks * threads, groups=groups)
    own = [local_plan(distribution, rank).graph for rank in range(ranks)]
    made = [policy(graph, distribution.seconds[graph.number], Team(threads)) for graph in own]
    if made[0].by_dataflow:
        priority = np.zeros(len(distribution.graph))
        for graph in own:
            step = ALIKE * float(distribution.seconds[graph.number].sum()) / threads
            urgency = distribution.urgency[graph.number]
            priority[graph.number] = step * np.round(urgency / step) if step > 0 else urgency
        ready = ReadyQueues.of_groups(team, distribution.placement.task_rank)
        return Schedule(policy.name, team.size, (), priority, ready=ready)
    lists: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(team.size)]
    for rank, (graph, schedule) in enumerate(zip(own, made, strict=True)):
        for queue in schedule.queues:
            if len(queue.workers) != 1:
                raise InputError(f"policy {policy}: counters within ranks are not simulated")
            lists[rank * threads + queue.workers[0]].append(graph.number[queue.tasks])
    tasks = [np.concatenate(mine) for mine in lists]
    levels = distribution.graph.levels
    phases = tuple(
        Phase(tuple(Queue(mine[levels[mine] == level], (w,), WHOLE) for w, mine in enumerate(tasks)))
        for level in np.unique(levels).tolist()
    )
    return Schedule(policy.name, team.size, phases, waits=True)


@dataclass(frozen=True)
class GetsOfTasks:
    """Each transfer as a Get of the task that needs it first: who reads it later finds it there."""

    gets: np.ndarray
    bytes_got: np.ndarray
    """Of each task, how many there are and how many bytes they have."""
    places: np.ndarray
    """Of each Get, task after task, where its data lie: from 0 on the first rank to 1 on the last."""

    @classmethod
    def of(cls, distribution: Distribution) -> GetsOfTasks:
        table, (transfer, reader) = distribution.transfers.table, distribution.transfers.readers
        order = np.lexsort((reader, -distribution.urgency[reader], transfer))
        first = order[np.flatnonzero(np.append(True, np.diff(transfer[order]) != 0)[: len(order)])]
        task, n = reader[first], len(distribution.graph)
        places = table["source"][np.argsort(task, kind="stable")] / max(1, distribution.ranks - 1)
        gets = np.bincount(task, minlength=n)
        return cls(gets, np.bincount(task, 8.0 * table["elements"], n), places)
