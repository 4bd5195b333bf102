"""Machines, graphs and random runs for the tests of the simulator."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from random_programs import bare_graph
from random_spaces import SEEDS
from schedule_cases import bare_graphs, costs
from tilewise import policies
from tilewise.execute.simulated import simulate
from tilewise.hardware.machines import Load, MachineModel
from tilewise.schedule import policy_named

COSTLY = MachineModel(
    "costly",
    nodes=3,
    cores=2,
    speed=(1.0, 0.5, 2.0, 1.0, 1.0, 0.25),
    noise=0.3,
    barrier=0.01,
    latency=1e-3,
    bandwidth=1e4,
    counter_service=2e-3,
    counter_latency=5e-3,
    counter_shared=1e-4,
    ready_service=1e-3,
    ready_latency=2e-3,
    ready_activation=5e-4,
    loads=(Load(0, 3, 0.5, 1.5), Load(0, 2, 2.0, 4.0), Load(3, 2)),
)
WORKERS = st.integers(1, 6)
PREFETCH = st.sampled_from([0, 1, 3])
EXACT = 1e-9
FLOWS = (
    "dataflow",
    "dataflow(queues=node)",
    "dataflow(queues=node, placement=lpt)",
    "dataflow(queues=worker)",
)
NAMES = (*(name for name in policies if name != "dataflow"), *FLOWS)
"""Every policy of the registry; data flow with all its queues."""


def free(workers):
    """A machine on which nothing but the work takes time."""
    return MachineModel("free", 1, workers)


def one_level(n):
    return bare_graph([0] * n, [])


@st.composite
def runs(draw, name):
    """A simulated run on a machine on which everything takes time, the numbers of messages, and the graph."""
    graph, workers = draw(bare_graphs()), draw(WORKERS)
    seconds, rng = draw(costs(len(graph))), np.random.default_rng(draw(SEEDS))
    gets, puts = (rng.integers(0, 4, len(graph)) for _ in range(2))
    got, put = (1e3 * rng.random(len(graph)) * (count > 0) for count in (gets, puts))
    model = replace(
        COSTLY,
        prefetch=draw(PREFETCH),
        overlap=draw(st.booleans()),
        links=draw(st.booleans()),
        in_flight=draw(st.integers(0, 2)),
        link_buffers=draw(st.integers(0, 2)),
        link_resend=0.01,
    )
    places = draw(st.sampled_from([None, rng.random(gets.sum())]))
    schedule = policy_named(name)(graph, seconds, model.team(workers))

    def run(seed=0):
        return simulate(
            graph,
            schedule,
            seconds,
            model,
            bytes_got=got,
            bytes_put=put,
            gets=gets,
            puts=puts,
            places=places,
            seed=seed,
        )

    return graph, int(gets.sum() + puts.sum()), run
