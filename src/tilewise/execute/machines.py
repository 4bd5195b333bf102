"""Machines to simulate: nodes, cores, network and counters, read from small TOML files.

A file gives all of these, times in seconds and sizes in bytes; only `[[load]]` may be left out:

    nodes = 4                # each with
    cores = 8                # that many cores
    speed = 1.0              # of a core, 1 being the machine whose costs are given; or a list over all cores
    noise = 0.02             # relative standard deviation of the time of a task
    barrier = 1e-5           # seconds, after the last worker has come
    prefetch = 0             # tasks that a worker takes ahead, to get their data while it computes

    [network]                # of each Get and each Accumulate
    latency = 2e-6
    bandwidth = 4e9          # bytes per second

    [counter]
    service = 1e-6           # its host answers one call after the other
    latency = 2e-6           # to reach it from another node, and again for the way back
    shared = 1e-7            # service of a counter in the shared memory of one node

    [[load]]                 # of other users on one core
    core = 0                 # counted from 0 over all nodes
    from = 0.0               # seconds; 0 if it is left out
    to = 60.0                # without end if it is left out
    jobs = 2                 # on the core, our own included: with k jobs each has 1/k of its speed
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import InputError, one_of
from tilewise.execute.machine_text import MachineText
from tilewise.schedule import Team


@dataclass(frozen=True)
class Load:
    """Jobs on a core for some time, our own included."""

    core: int
    jobs: int
    start: float = 0.0
    end: float = math.inf


@dataclass(frozen=True)
class MachineModel:
    """A machine to simulate. Worker w runs on core w; the cores of a node are counted one after the other.

    Without further arguments everything but the work itself is free.
    """

    name: str
    nodes: int
    cores: int
    speed: float | tuple[float, ...] = 1.0
    noise: float = 0.0
    barrier: float = 0.0
    prefetch: int = 0
    latency: float = 0.0
    bandwidth: float = math.inf
    counter_service: float = 0.0
    counter_latency: float = 0.0
    counter_shared: float = 0.0
    loads: tuple[Load, ...] = ()

    @property
    def size(self) -> int:
        """Cores of all nodes."""
        return self.nodes * self.cores

    def speeds(self, workers: int) -> np.ndarray:
        """Of each worker, without external load."""
        self.check(workers)
        if isinstance(self.speed, tuple):
            return np.array(self.speed[:workers], np.float64)
        return np.full(workers, float(self.speed))

    def node_of(self, workers: int) -> np.ndarray:
        return np.arange(workers, dtype=np.int64) // self.cores

    def team(self, workers: int) -> Team:
        """What a policy knows of the workers: their speeds, and which of them share a node."""
        groups = (
            tuple(range(first, min(first + self.cores, workers))) for first in range(0, workers, self.cores)
        )
        return Team(workers, tuple(self.speeds(workers).tolist()), tuple(groups))

    def arrays(self, workers: int) -> dict[str, Any]:
        """The machine as the native simulator takes it."""
        loads = sorted(
            (load for load in self.loads if load.core < workers), key=lambda load: (load.core, load.start)
        )
        cores = np.array([load.core for load in loads], np.int64)
        return {
            "speed": self.speeds(workers),
            "node": self.node_of(workers),
            "first_load": np.searchsorted(cores, np.arange(workers + 1)).astype(np.int64),
            "load_from": np.array([load.start for load in loads], np.float64),
            "load_to": np.array([load.end for load in loads], np.float64),
            "load_jobs": np.array([load.jobs for load in loads], np.float64),
            "latency": self.latency,
            "bandwidth": self.bandwidth,
            "counter_service": self.counter_service,
            "counter_latency": self.counter_latency,
            "counter_shared": self.counter_shared,
            "barrier": self.barrier,
            "prefetch": self.prefetch,
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: null stands for a bandwidth or an end without limit."""
        shown = asdict(self)
        for values in (shown, *shown["loads"]):
            values.update({key: None for key, value in values.items() if value == math.inf})
        return shown

    def check(self, workers: int) -> None:
        """Raises InputError if there are not that many cores."""
        if not 1 <= workers <= self.size:
            raise InputError(
                f"{workers} workers on machine {self.name}: from 1 to {self.size} are possible, one per core"
            )


def shipped_machines() -> dict[str, Path]:
    """The machine files that come with tilewise, by name."""
    return {path.name: path for path in sorted(Path(str(files("tilewise.machines"))).glob("*.toml"))}


def find_machine(text: str) -> MachineModel:
    """A machine by the path of its file or by the name of a shipped one, with or without ".toml"."""
    known = shipped_machines()
    if Path(text).is_file():
        return read_machine(Path(text))
    name = text if text.endswith(".toml") else f"{text}.toml"
    if name not in known:
        raise one_of("machine", text, known)
    return read_machine(known[name])


def read_machine(path: Path) -> MachineModel:
    """Raises InputError, with the line, for a missing, unknown, negative or contradictory value."""
    text = MachineText.read(path)
    text.only(
        (), ("nodes", "cores", "speed", "noise", "barrier", "prefetch", "network", "counter"), ("load",)
    )
    text.only(("network",), ("latency", "bandwidth"))
    text.only(("counter",), ("service", "latency", "shared"))
    nodes, cores = text.whole(("nodes",), least=1), text.whole(("cores",), least=1)
    return MachineModel(
        name=path.stem,
        nodes=nodes,
        cores=cores,
        speed=_speed(text, nodes * cores),
        noise=text.number(("noise",)),
        barrier=text.number(("barrier",)),
        prefetch=text.whole(("prefetch",)),
        latency=text.number(("network", "latency")),
        bandwidth=text.number(("network", "bandwidth"), positive=True, infinite=True),
        counter_service=text.number(("counter", "service")),
        counter_latency=text.number(("counter", "latency")),
        counter_shared=text.number(("counter", "shared")),
        loads=_loads(text, nodes * cores),
    )


def _speed(text: MachineText, size: int) -> float | tuple[float, ...]:
    value = text.value(("speed",))
    if not isinstance(value, list):
        return text.number(("speed",), positive=True)
    if len(value) != size:
        raise text.wrong(
            ("speed",), f"{len(value)} speeds for {size} cores: give one for each, or one number"
        )
    return tuple(text.number(("speed", k), positive=True) for k in range(size))


def _loads(text: MachineText, size: int) -> tuple[Load, ...]:
    loads: list[Load] = []
    for k in range(text.tables("load")):
        text.only(("load", k), ("core", "jobs"), ("from", "to"))
        load = Load(
            core=text.whole(("load", k, "core")),
            jobs=text.whole(("load", k, "jobs"), least=1),
            start=text.number(("load", k, "from"), default=0.0),
            end=text.number(("load", k, "to"), infinite=True, default=math.inf),
        )
        if load.core >= size:
            raise text.wrong(("load", k, "core"), f"there is no core {load.core}: the last one is {size - 1}")
        if load.end <= load.start:
            raise text.wrong(
                ("load", k, "to"), f"the load ends at {load.end:g} s, before it begins at {load.start:g} s"
            )
        for other in loads:
            if other.core == load.core and load.start < other.end and other.start < load.end:
                raise text.wrong(
                    ("load", k),
                    f"core {load.core} has two loads at the same time: give one, with all the jobs",
                )
        loads.append(load)
    return tuple(loads)
