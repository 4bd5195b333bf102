"""A runner of one rank: owns its shards and its schedule, and runs its part of the graph with all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilewise import native
from tilewise.config import thread_limits
from tilewise.errors import InputError, TaskError, one_of
from tilewise.execute.distribution import Distribution
from tilewise.execute.local_graph import LocalGraph, LocalPlan, local_plan
from tilewise.execute.mpi.executor import Carried, Moved, Posted, Traffic, run_local
from tilewise.execute.mpi.world import World
from tilewise.execute.runner import Result
from tilewise.execute.store import Store
from tilewise.inspect.bounds import first_outside
from tilewise.inspect.graph import TaskGraph
from tilewise.inspect.records import TRACE
from tilewise.new_memory import zeros
from tilewise.schedule import Policy, Schedule, Team

ALIKE = 0.02
"""Part of a worker's share by which paths may differ and count as equal: such tasks keep their order."""


@dataclass
class RankResult(Result):
    """What a run gives on one rank. Scalars are sums over all ranks; trace and counts are of this one."""

    moved: Moved = field(default_factory=Moved)
    moved_by_rank: tuple[Moved, ...] = ()
    """Of each rank, where the result is that of all."""


@dataclass
class _Part:
    """Tasks that are run together: all, or some."""

    plan: LocalPlan
    schedule: Schedule
    tables: dict[str, np.ndarray]
    arrays: dict[str, np.ndarray]
    scratch: np.ndarray


class DistributedRunner:
    """Runs the tasks of one rank. All ranks make one, and call `run` together."""

    def __init__(
        self,
        distribution: Distribution,
        world: World,
        store: Store,
        policy: Policy,
        team: Team,
        buffers: Mapping[str, np.ndarray],
        processors: Sequence[int] = (),
        poison: bool = False,
    ) -> None:
        """`buffers` are this rank's shards of the constants, and whole vectors.

        With `poison` what is to come from others is NaN before each run.
        """
        self.distribution, self.world, self.store = distribution, world, store
        self.policy, self.team, self.processors, self.poison = policy, team, tuple(processors), poison
        self._whole = self._part(None)
        self._parts: dict[bytes, _Part] = {}
        self.tensors = self._allocated(buffers)
        self._near = store.near(len(distribution.transfers.table))
        self._ghosts = self._found_ghosts() if poison else []
        self._checked = False
        self._runs = 0

    @property
    def graph(self) -> LocalGraph:
        """The tasks of this rank."""
        return self._whole.plan.graph

    @property
    def schedule(self) -> Schedule:
        return self._whole.schedule

    @property
    def seconds(self) -> np.ndarray:
        """Of each task of this rank, as estimated."""
        return self.distribution.seconds[self.graph.number]

    def _allocated(self, buffers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        graph, rank = self.graph, self.world.rank
        shared = [name for name in self.distribution.fetched if name not in buffers]
        tensors = dict(self.store.allocate({name: graph.length_of(name) for name in shared}))
        for name in graph.buffers:
            if name in buffers:
                self._check(name, buffers[name])
                tensors[name] = buffers[name]
            elif name not in tensors:
                length = graph.length_of(name)
                if length and name in self.distribution.constants:
                    raise InputError(f"rank {rank}: no buffer is given for tensor {name}")
                tensors[name] = zeros(length)
        return tensors

    def _check(self, name: str, data: np.ndarray) -> None:
        length = self.graph.length_of(name)
        if data.dtype != np.float64 or data.ndim != 1 or not data.flags.c_contiguous or len(data) != length:
            raise InputError(
                f"tensor {name}: its shard must be a contiguous float64 vector of {length} elements"
            )

    def _found_ghosts(self) -> list[tuple[str, int, int]]:
        found = []
        for one in self._whole.plan.incoming.values():
            found.append((one.name, one.here, one.here + one.elements))
        return found

    def bind(self, name: str, data: np.ndarray) -> None:
        """Uses another buffer for a tensor that no other rank reads, from the next run on."""
        if name not in self.tensors:
            raise one_of("tensor", name, self.tensors)
        self._check(name, data)
        self.tensors[name] = data

    def _part(self, tasks: np.ndarray | None) -> _Part:
        plan = local_plan(self.distribution, self.world.rank, tasks)
        seconds = self.distribution.seconds[plan.graph.number]
        schedule = self.policy(plan.graph, seconds, self.team)
        if schedule.by_dataflow:
            step = ALIKE * float(seconds.sum()) / self.team.size
            urgency = self.distribution.urgency[plan.graph.number]
            if step > 0:
                urgency = step * np.round(urgency / step)
            schedule = replace(schedule, priority=urgency)
        schedule.check(plan.graph)
        scratch = np.zeros(native.scratch_size(plan.graph) * schedule.workers)
        return _Part(plan, schedule, native.tables(plan.graph), _with_gates(schedule, plan), scratch)

    def run(self, tasks: np.ndarray | None = None, shift: float = 0.0) -> RankResult:
        """Runs all tasks, or those of the whole graph that are given, on all ranks together."""
        if tasks is None:
            part = self._whole
        else:
            key = tasks.tobytes()
            part = self._parts.setdefault(key, self._parts.get(key) or self._part(tasks))
        for name, first, last in self._ghosts:
            self.tensors[name][first:last] = np.nan
        plan = part.plan
        buffers = [self.tensors[name] for name in plan.graph.buffers]
        if not self._checked:
            outside = first_outside(plan.graph, np.array([*map(len, buffers), plan.graph.arena]))
            if outside >= 0:
                raise TaskError(f"a record points outside of its buffer in {plan.graph.describe(outside)}")
            self._checked = True
        traffic = self._traffic(plan)
        with thread_limits(1), self.world.watched():
            done, moved = run_local(
                plan,
                part.tables,
                part.arrays,
                buffers,
                part.scratch,
                part.schedule.workers,
                self.processors[: part.schedule.workers],
                shift,
                traffic,
            )
            if done.failed >= 0:
                raise TaskError(f"{done.reason} in {plan.graph.describe(done.failed)}")
        partial = np.zeros(len(self.distribution.graph))
        partial[plan.graph.number] = done.partial
        scalars = scalars_of_all(self.distribution.graph, partial, self.world)
        return RankResult(scalars, done.trace, done.counts, done.partial, moved=moved)

    def _traffic(self, plan: LocalPlan) -> Traffic:
        """Of one more run."""
        self._runs += 1
        if self._near is None:
            return Posted(plan, self.world, self.store, self.tensors)
        return Carried(plan, self.world, self._near, self.tensors, self._runs)

    def of_all(self, result: RankResult) -> RankResult:
        """A result of this rank with the tasks and the workers of all ranks. All ranks call it together.

        Workers are numbered from rank to rank; each rank's times begin when its own run did.
        """
        mine = self._numbers_of(result)
        trace = result.trace if len(mine) == len(result.trace) else result.trace[mine]
        parts = self.world.allgather((mine, trace, result.counts, result.moved))
        whole = np.zeros(len(self.distribution.graph), TRACE)
        for rank, (number, part, _, _) in enumerate(parts):
            whole[number] = part
            whole["worker"][number] += rank * self.team.size
        counts = np.concatenate([part[2] for part in parts])
        moved = tuple(part[3] for part in parts)
        return RankResult(
            result.scalars, whole, counts, result.partial, moved=result.moved, moved_by_rank=moved
        )

    def _numbers_of(self, result: RankResult) -> np.ndarray:
        """Of the tasks that ran here, in the whole graph."""
        return self.graph.number

    def close(self) -> None:
        """Gives memory back that others could read. All ranks call it together."""
        self.store.close()


def scalars_of_all(graph: TaskGraph, partial: np.ndarray, world: World) -> dict[str, float]:
    """Sums over the tasks of all ranks, in their order: the same bits however many ranks there are.

    `partial` is what each task has summed, zero where another rank has run it.
    """
    sums = np.array([bool(op.scalar) for op in graph.operations])
    if not sums.any():
        world.barrier()  # in any case nobody goes on before all have ended
        return {}
    operation = graph.tasks["operation"]
    tasks = np.flatnonzero(sums[operation])
    found = world.allreduce(partial[tasks])
    totals: dict[str, float] = {}
    for k in np.flatnonzero(sums).tolist():
        name = graph.operations[k].scalar
        totals[name] = totals.get(name, 0.0) + float(found[operation[tasks] == k].sum())
    return totals


def _with_gates(schedule: Schedule, plan: LocalPlan) -> dict[str, np.ndarray]:
    """The arrays of a schedule, with gates among what tasks wait for."""
    arrays = schedule.arrays(plan.graph)
    n = len(plan.graph)
    if "n_needed" in arrays:
        return arrays | {"n_needed": arrays["n_needed"] + plan.gates_of_task}
    none = {"first_successor": np.zeros(n + 1, np.int64), "successors": np.zeros(0, np.int64)}
    return arrays | none | {"n_needed": plan.gates_of_task}
