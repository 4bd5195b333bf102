"""The simulated executor: the same graphs and schedules, on a machine that is not here.

Discrete events, in the native core: workers take tasks as their schedule says, get the data, compute and
accumulate. Calls to a counter queue at its host, and messages on the links of nodes where the machine says
so: contention grows by itself. A run is a pure function of its arguments. Locks of panels are not simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewise.core import core
from tilewise.errors import InputError
from tilewise.execute.executor import Job
from tilewise.hardware.model import MachineModel
from tilewise.inspect import Graph
from tilewise.inspect.records import TRACE, Table
from tilewise.native import COUNTS, Outcome
from tilewise.schedule import Schedule

COLUMNS: tuple[str, ...] = core.simulated_columns
"""What the native core tells of each worker."""


@dataclass(frozen=True)
class Simulation:
    """One simulated run. Arrays over the workers are seconds that add up to the makespan for each."""

    makespan: float
    busy: np.ndarray
    counter: np.ndarray
    """Waiting for the answer of a counter, of the victim of a theft or of a queue of ready tasks."""
    communication: np.ndarray
    """Waiting for data to come or to be accumulated, computation not going on at the same time."""
    waiting: np.ndarray
    """At barriers, or because no task was ready."""
    counts: np.ndarray
    """A row for each worker: counter calls, steals, messages, activations."""
    trace: Table
    """A record per task, as a real run leaves it."""
    work: float
    """Seconds of all tasks on a core of speed 1, noise included."""
    speed: float
    """Of all cores in use, without external load."""
    phase_ends: np.ndarray
    """When each phase ends, its barrier included; one end for a run by data flow."""

    @property
    def workers(self) -> int:
        return len(self.busy)

    @property
    def seconds(self) -> np.ndarray:
        """Of each task as the run shows them, waiting for data included."""
        return 1e-9 * (self.trace["end"] - self.trace["ready"])

    @property
    def counter_calls(self) -> int:
        return int(self.counts[:, 0].sum())

    @property
    def steals(self) -> int:
        return int(self.counts[:, 1].sum())

    @property
    def messages(self) -> int:
        """Gets and Accumulates."""
        return int(self.counts[:, 2].sum())

    @property
    def activations(self) -> int:
        """By data flow: messages to other nodes that a task has ended."""
        return int(self.counts[:, 3].sum())

    @property
    def phases(self) -> np.ndarray:
        """Seconds of each phase."""
        return np.diff(self.phase_ends, prepend=0.0)

    @property
    def efficiency(self) -> float:
        """The time in which the cores, all at full speed, would do the work, over the makespan."""
        return self.work / (self.speed * self.makespan) if self.makespan > 0 else 1.0

    @property
    def imbalance(self) -> float:
        """Share of the makespan in which the average worker was not busy, as for real runs."""
        return 1.0 - self.share(self.busy) if self.makespan > 0 else 0.0

    def share(self, seconds: np.ndarray) -> float:
        """Of the time of all workers."""
        return float(seconds.mean()) / self.makespan if self.makespan > 0 else 0.0

    @property
    def by_worker(self) -> dict[str, list[float]]:
        """What a trace file keeps of each worker."""
        nothing = [0] * self.workers
        return {
            "counter_calls": self.counts[:, 0].tolist(),
            "steals": self.counts[:, 1].tolist(),
            "counter_seconds": self.counter.tolist(),
            "arena_bytes": nothing,
            "allocations": nothing,
        }


@dataclass(frozen=True)
class Simulated:
    """An executor that computes nothing: its traces and counts are those of a simulated run."""

    name: ClassVar[str] = "simulated"
    graph: Graph
    seconds: np.ndarray
    """Of each task on a core of speed 1."""
    model: MachineModel
    seed: int = 0

    def prepare(self, schedule: Schedule) -> None:
        """It needs nothing."""

    def simulation(self, schedule: Schedule) -> Simulation:
        """The run in all detail, messages included."""
        moved = vars(self.graph.traffic)
        return simulate(self.graph, schedule, self.seconds, self.model, **moved, seed=self.seed)

    def run(self, job: Job) -> Outcome:
        """What a real run would have left; all scalars are zero."""
        if job.tasks is not None or job.done is not None:
            raise InputError("a part of the tasks cannot be simulated: run all of them")
        done = self.simulation(job.schedule)
        counts = np.zeros((done.workers, len(COUNTS)), np.int64)
        counts[:, :2], counts[:, 2] = done.counts[:, :2], 1e9 * done.counter
        return Outcome(-1, "", np.zeros(len(self.graph)), done.trace, counts)


def simulate(
    graph: Graph,
    schedule: Schedule,
    seconds: np.ndarray,
    model: MachineModel,
    *,
    bytes_got: np.ndarray | None = None,
    bytes_put: np.ndarray | None = None,
    gets: np.ndarray | None = None,
    puts: np.ndarray | None = None,
    places: np.ndarray | None = None,
    seed: int = 0,
) -> Simulation:
    """Runs a schedule on the model of a machine.

    `seconds` of each task are those on a core of speed 1. Each task makes `gets` Gets of `bytes_got` in all
    and `puts` Accumulates of `bytes_put`; where the numbers are not given there is one message for any bytes.
    `places` says of each Get, task after task, where its data lie, from 0 at the first node to 1 at the last;
    without it they are spread evenly. It matters where messages share links. The noise of a task depends on
    `seed` and its number alone, the drift of a core on `seed`, its number and the time, so that all policies
    meet the same tasks and cores.
    """
    workers, n = schedule.workers, len(graph)
    machine = model.arrays(workers) | {"seed": seed}
    given = {"seconds": seconds, "bytes_got": bytes_got, "bytes_put": bytes_put}
    tasks = {name: _checked(name, values, n) for name, values in given.items()}
    tasks["seconds"] = tasks["seconds"] * _noise(model.noise, n, seed)
    n_gets = _messages("gets", gets, tasks["bytes_got"])
    tasks["first_get"] = np.concatenate([[0], np.cumsum(n_gets)]).astype(np.int64)
    tasks["puts"] = _messages("puts", puts, tasks["bytes_put"])
    if places is not None:
        tasks["place"] = _places(places, int(tasks["first_get"][-1]))
    schedule.check(graph)
    trace, table = np.zeros(n, TRACE), np.zeros((workers, len(COLUMNS)))
    ends = core.simulate(tasks, schedule.arrays(graph), machine, trace.view(np.uint8), table)
    makespan = ends[-1]
    busy, counter, communication = (table[:, k].copy() for k in range(3))
    return Simulation(
        makespan=makespan,
        busy=busy,
        counter=counter,
        communication=communication,
        waiting=np.maximum(makespan - busy - counter - communication, 0.0),
        counts=table[:, 3:].astype(np.int64),
        trace=trace,
        work=float(tasks["seconds"].sum()),
        speed=float(machine["speed"].sum()),
        phase_ends=np.array(ends),
    )


def _checked(name: str, values: np.ndarray | None, n: int) -> np.ndarray:
    found = np.zeros(n) if values is None else np.ascontiguousarray(values, np.float64)
    if found.shape != (n,) or not (np.isfinite(found) & (found >= 0)).all():
        raise InputError(f"{name}: a number from 0 up is needed for each of {n} tasks")
    return found


def _messages(name: str, values: np.ndarray | None, moved: np.ndarray) -> np.ndarray:
    found = moved > 0 if values is None else np.asarray(values)
    whole = found.astype(np.int64)
    if whole.shape != moved.shape or (whole != found).any() or (whole < (moved > 0)).any():
        raise InputError(
            f"{name}: a whole number is needed for each of {len(moved)} tasks, above 0 where bytes are moved"
        )
    return whole


def _places(values: np.ndarray, n_gets: int) -> np.ndarray:
    found = np.ascontiguousarray(values, np.float64)
    if found.shape != (n_gets,) or not ((found >= 0) & (found <= 1)).all():
        raise InputError(f"places: a number from 0 to 1 is needed for each of {n_gets} Gets")
    return found


def _noise(relative: float, n: int, seed: int) -> np.ndarray:
    """Factors of mean 1 with this standard deviation, log-normal and so never negative."""
    width = np.sqrt(np.log1p(relative**2))
    return np.exp(width * np.random.default_rng(seed).standard_normal(n) - 0.5 * width**2)
