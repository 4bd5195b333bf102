"""The codes that Jagode et al. compare: the TCE's, data flow, and data flow as far as the paper had it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tilewise.execute.simulated import Simulation
from tilewise.hardware.machines import MachineModel
from tilewise.schedule import policy_named
from tilewise.studies.constants import in_machine, in_module
from tilewise.studies.jagode_routines import TILE, doubles
from tilewise.studies.routines import SimulatedIteration, routine_graph
from tilewise.studies.study import Constant
from tilewise.tce.inspector import TileGraph
from tilewise.tce.places import block_places
from tilewise.tce.trees import cut

FROZEN = False
"""The paper says that the core is frozen, and that 296 electrons are correlated, which are all."""

PRODUCTS = 16
"""Products of a task by data flow, at most. PaRSEC has one; that many more tasks take minutes to simulate."""

AHEAD = 2
"""By data flow: tasks that a worker has ahead, and Gets that a node has under way."""

ORIGINAL, DATAFLOW, PAPER = "Original", "Data flow", "As in the paper"
ONE, FREE, WORKER = "one queue for all, at no cost", "a queue per node, at no cost", "a queue per worker"
BARRIERS = "barriers between levels; T1 and twelve others as before"
FEWER = "as in the paper, but these others with one process per node"

COUNTER, BY_NODE = "nxtval", "dataflow(alike=0, queues=node)"
"""In the order of their list (alike above 0), neighbours would want data of the same node."""


@dataclass(frozen=True)
class Step:
    """Tasks that run together, and where their data lie."""

    graph: TileGraph
    places: np.ndarray
    policy: str
    cores: int = 0
    """Of each node; 0 for all that there are."""

    @property
    def by_flow(self) -> bool:
        return self.policy.startswith("dataflow")

    def run(self, machine: MachineModel, nodes: int, cores: int, seed: int = 0) -> Simulation:
        """On so many cores of each of so many nodes."""
        cores = self.cores or cores
        used = replace(machine, nodes=nodes, reserved=machine.cores - cores)
        if self.by_flow:
            used = replace(used, prefetch=AHEAD, in_flight=AHEAD)
        iteration = SimulatedIteration(self.graph, used, self.places)
        return iteration.run(policy_named(self.policy), nodes * cores, seed=seed)

    def only(self, kept: np.ndarray) -> Step:
        """Some of the tasks; they wait for none of the others."""
        places = self.places[np.repeat(kept, self.graph.traffic.gets)]
        return replace(self, graph=self.graph.part(np.flatnonzero(kept)), places=places)


@dataclass(frozen=True)
class Run:
    """Steps that were simulated one after the other."""

    steps: tuple[Simulation, ...]

    @property
    def makespan(self) -> float:
        return sum(step.makespan for step in self.steps)

    def share(self, what: str) -> float:
        """Of the time of all workers: "busy", "counter", "communication" or "waiting"."""
        spent = sum(float(getattr(step, what).sum()) for step in self.steps)
        return spent / sum(step.workers * step.makespan for step in self.steps)


@dataclass(frozen=True)
class Code:
    """A variant of the code: steps with a barrier after each."""

    steps: tuple[Step, ...]
    free_queues: bool = False
    """Queues of ready tasks take no time."""

    def run(self, machine: MachineModel, nodes: int, cores: int, seed: int = 0) -> Run:
        if self.free_queues:
            machine = replace(machine, ready_service=0.0, ready_latency=0.0, ready_activation=0.0)
        return Run(tuple(step.run(machine, nodes, cores, seed) for step in self.steps))


@lru_cache(maxsize=2)
def codes(molecule: str = "beta-carotene", tile: int = TILE) -> Mapping[str, Code]:
    """All variants by name."""
    chains = routine_graph(molecule, tile, frozen=FROZEN)
    pieces = with_local_sums(cut(chains, -(-chains.gemms // PRODUCTS)))
    original = Step(chains, block_places(chains), COUNTER)
    flow = Step(pieces, block_places(pieces), BY_NODE)
    others = original.only(~converted(chains))
    levels, copied = levels_of(flow), levels_of(replace(flow, graph=with_copies(pieces)))
    return {
        ORIGINAL: Code((original,)),
        DATAFLOW: Code((flow,)),
        PAPER: Code((*copied, others)),
        ONE: Code((replace(flow, policy="dataflow(alike=0)"),), free_queues=True),
        FREE: Code((flow,), free_queues=True),
        WORKER: Code((replace(flow, policy="dataflow(alike=0, queues=worker)"),)),
        BARRIERS: Code((*levels, others)),
        FEWER: Code((*copied, replace(others, cores=1))),
    }


def converted(graph: TileGraph) -> np.ndarray:
    """Which tasks are of the 29 routines that the paper runs by data flow: those of T2 that have products."""
    names = {routine.name for routine in doubles() if not routine.is_copy}
    return np.array([routine.name in names for routine in graph.operations])[graph.tasks["operation"]]


def levels_of(flow: Step) -> tuple[Step, ...]:
    """The routines that the paper runs by data flow, level by level."""
    level = np.array([routine.level for routine in flow.graph.operations])[flow.graph.tasks["operation"]]
    mine = converted(flow.graph)
    return tuple(flow.only(mine & (level == k)) for k in np.unique(level[mine]).tolist())


def with_local_sums(graph: TileGraph) -> TileGraph:
    """The graph with additions that find both parts in their node."""
    tasks = graph.tasks.copy()
    sums = (tasks["count"] == 0) & (tasks["reads"] < 0)
    tasks["gets"][sums], tasks["bytes_got"][sums] = 0, 0.0
    return replace(graph, tasks=tasks)


def with_copies(graph: TileGraph) -> TileGraph:
    """The graph with all that tasks get and put copied once more, at the rate of a sort."""
    tasks = graph.tasks.copy()
    tasks["sorted"] += (tasks["bytes_got"] + tasks["bytes_put"]) / 8
    return replace(graph, tasks=tasks)


def _of_cascade(key: str, unit: str, decides: str, origin: str) -> Constant:
    return in_machine("cascade", key, unit, decides, origin)


SLOWER = "from how many processes on the original code gets slower"
CONSTANTS = (
    _of_cascade("network.resend", "s", SLOWER, "fitted to figure 8: 8 cores of each of 32 nodes are best"),
    _of_cascade("network.buffers", "Gets", SLOWER, "chosen, and resend fitted with it"),
    _of_cascade("network.latency", "s", "time of a message", "chosen: InfiniBand FDR"),
    _of_cascade("network.bandwidth", "B/s", "time of a message", "chosen: InfiniBand FDR"),
    _of_cascade("rates.gemm", "flop/s", "time of tasks", "chosen: 90 % of the 20.8 Gflop/s of a core"),
    _of_cascade("rates.sort", "words/s", "time of tasks, and of copies to and from Global Arrays", "chosen"),
    _of_cascade("noise", "", "how tasks of one size differ", "chosen"),
    _of_cascade("barrier", "s", "the end of each level", "chosen: next to nothing"),
    _of_cascade("counter.service", "s", "time of a counter's call: next to nothing here", "chosen"),
    _of_cascade("ready.service", "s", "time in a queue of ready tasks: next to nothing here", "chosen"),
    _of_cascade("ready.activation", "s", "when tasks of other nodes are ready: hardly later here", "chosen"),
    in_module(__name__, "FROZEN", "tasks, and which routine is long", "chosen: the paper says both"),
    in_module(__name__, "PRODUCTS", "size of data flow's tasks, at most", "chosen: PaRSEC has 1", "products"),
    in_module(__name__, "AHEAD", "how much data flow waits for data", "chosen", "tasks, and Gets of a node"),
)
