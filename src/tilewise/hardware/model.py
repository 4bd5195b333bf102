"""The model of a machine: nodes, cores, network, counters, and the load of other users."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from tilewise.arguments import whole_number
from tilewise.errors import InputError
from tilewise.hardware.checks import OF_NAME, OF_TYPE, above_zero, moment, speeds
from tilewise.schedule import Team
from tilewise.wording import counted


@dataclass(frozen=True)
class Load:
    """Jobs on a core for some time, our own included."""

    core: int
    jobs: int
    start: float = 0.0
    end: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "core", whole_number("core", self.core, least=0))
        object.__setattr__(self, "jobs", whole_number("jobs", self.jobs))
        object.__setattr__(self, "start", moment("start", self.start))
        object.__setattr__(self, "end", math.inf if self.end == math.inf else moment("end", self.end))


@dataclass(frozen=True)
class Rates:
    """Of a core of speed 1: operations and operands of products, and words of sorts, per second.

    A product takes the seconds of its operations and besides those of the words of its operands: without the
    rate of these, `stream`, all products run at one rate, whether they are square or narrow.
    """

    gemm: float
    sort: float
    stream: float = math.inf

    def __post_init__(self) -> None:
        for name in ("gemm", "sort"):
            object.__setattr__(self, name, above_zero(name, getattr(self, name)))
        if self.stream != math.inf:
            object.__setattr__(self, "stream", above_zero("stream", self.stream))

    def seconds(self, flops: np.ndarray, words: np.ndarray, operands: np.ndarray | float = 0.0) -> np.ndarray:
        """Of tasks that do so many operations, sort so many words, and have operands of so many words."""
        return flops / self.gemm + words / self.sort + operands / self.stream


STANDARD = Rates(gemm=3e10, sort=3e8)
"""Of a core that a machine file says nothing of: assumed, of the order of a server's in the 2020s. Nothing
that is measured on the machine at hand stands in for them, so that a simulation gives the same bits
everywhere."""


@dataclass(frozen=True)
class MachineModel:
    """A machine to simulate. Worker w runs on core w, counted over the cores of all nodes that work.

    Without further arguments everything but the work itself is free.
    """

    name: str
    """By which it is known."""
    nodes: int
    """How many there are."""
    cores: int
    """Of a node."""
    speed: float | tuple[float, ...] = 1.0
    """Of all cores, or of each one, relative to the core that seconds of tasks are given for."""
    crowding: float = 1.0
    """How much longer a core takes when all cores of its node work; the more of them, the longer."""
    noise: float = 0.0
    """Relative standard deviation of a task's time."""
    drift: float = 0.0
    """Relative standard deviation of a core's speed, which lasts for `stretch` seconds at a time."""
    stretch: float = 0.1
    """Seconds for which a drift lasts."""
    barrier: float = 0.0
    """Seconds of a barrier of all workers."""
    prefetch: int = 0
    """Tasks that a worker takes ahead, to get their data while it computes."""
    latency: float = 0.0
    """Seconds of each Get and each Accumulate, besides its bytes."""
    bandwidth: float = math.inf
    """Bytes per second of a message."""
    counter_service: float = 0.0
    """Seconds of a call at its host, which answers one after the other."""
    counter_latency: float = 0.0
    """Seconds to reach a counter in another node, and again for the way back."""
    counter_shared: float = 0.0
    """Seconds of a call of a counter in the shared memory of one node."""
    loads: tuple[Load, ...] = ()
    """Jobs of other users."""
    reserved: int = 0
    """Cores of a node for communication alone."""
    overlap: bool = False
    """Whether a task gets its next data while it computes on the last."""
    rates: Rates | None = None
    """None for the machine at hand: its tasks take what its own cost model says."""
    links: bool = False
    """Whether the cores of a node share its link: messages queue at both ends."""
    link_buffers: int = 0
    """Gets that a node has room for while they wait; 0 for all."""
    link_resend: float = 0.0
    """Seconds that each Get beyond adds to the time of a message there."""
    in_flight: int = 0
    """Gets that a node has under way; 0 for one of each worker."""
    counter_buffers: int = 0
    """Calls that the host of a counter has room for; 0 for all."""
    counter_resend: float = 0.0
    """Seconds of service of a call that comes when there is no room."""
    ready_service: float = 0.0
    """Seconds in which a queue of ready tasks gives one task."""
    ready_latency: float = 0.0
    """Seconds to reach a queue in another node, and again for the way back."""
    ready_activation: float = 0.0
    """Seconds to write a message that a task has ended to another node, and again to read it."""

    def __post_init__(self) -> None:
        """Refuses values that no machine has; a file with them is refused, with the line, before that."""
        checks = {field.name: OF_TYPE[field.type] for field in fields(self) if field.type in OF_TYPE}
        for name, check in (checks | OF_NAME).items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        whole_number("reserved", self.reserved, least=0, most=self.cores - 1)
        object.__setattr__(self, "speed", speeds(self.speed, self.size))
        if not isinstance(self.loads, tuple) or not all(isinstance(load, Load) for load in self.loads):
            raise InputError(f"loads={self.loads!r}: loads must be a tuple of Load objects")
        if not (self.rates is None or isinstance(self.rates, Rates)):
            raise InputError(f"rates={self.rates!r}: rates must be a Rates object or None")

    @property
    def size(self) -> int:
        """Cores of all nodes that work."""
        return self.nodes * self.working

    @property
    def working(self) -> int:
        """Cores of a node that work."""
        return self.cores - self.reserved

    def speeds(self, workers: int) -> np.ndarray:
        """Speed of each worker, with all others at work and without external load."""
        self.check(workers)
        alone = self.speed[:workers] if isinstance(self.speed, tuple) else [self.speed] * workers
        node = self.node_of(workers)
        others = np.bincount(node)[node] - 1
        slower = 1.0 + (self.crowding - 1.0) * others / max(1, self.working - 1)
        together: np.ndarray = np.array(alone, np.float64) / slower
        return together

    def node_of(self, workers: int) -> np.ndarray:
        """Node of each worker, from 0 up."""
        nodes: np.ndarray = np.arange(workers, dtype=np.int64) // self.working
        return nodes

    def team(self, workers: int) -> Team:
        """What a policy knows of the workers: their speeds, and which of them share a node."""
        size = self.working
        groups = (tuple(range(first, min(first + size, workers))) for first in range(0, workers, size))
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
            "drift": self.drift,
            "stretch": self.stretch,
            "latency": self.latency,
            "bandwidth": self.bandwidth,
            "links": self.links,
            "link_buffers": self.link_buffers,
            "link_resend": self.link_resend,
            "in_flight": self.in_flight,
            "counter_service": self.counter_service,
            "counter_latency": self.counter_latency,
            "counter_shared": self.counter_shared,
            "counter_buffers": self.counter_buffers,
            "counter_resend": self.counter_resend,
            "ready_service": self.ready_service,
            "ready_latency": self.ready_latency,
            "ready_activation": self.ready_activation,
            "barrier": self.barrier,
            "prefetch": self.prefetch,
            "overlap": self.overlap,
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: null stands for a bandwidth, a rate or an end without limit."""
        shown = asdict(self)
        for values in (shown, shown["rates"] or {}, *shown["loads"]):
            values.update({key: None for key, value in values.items() if value == math.inf})
        return shown

    def check(self, workers: int) -> None:
        """Raises InputError if there are not that many cores."""
        if not 1 <= workers <= self.size:
            raise InputError(
                f"{counted(workers, 'worker')} on machine {self.name}: "
                f"from 1 to {self.size} are possible, one per core"
            )
