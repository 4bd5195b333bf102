"""The machine that ranks were measured on, as a model for the simulator: so two nodes tell of two hundred."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy

from tilewise.cost import CostModel, estimate
from tilewise.cost.sample import program
from tilewise.execute.mpi.measure import Measured
from tilewise.hardware.model import MachineModel, Rates
from tilewise.hardware.this_machine import MOLECULE

NAME = "measured"
AHEAD = 4
"""Tasks for which a rank gets panels ahead of the one that computes."""


def cluster(
    measured: Measured, node: MachineModel, model: CostModel, threads: int, nodes: int | None = None
) -> MachineModel:
    """A node of this machine is a rank with its threads: between ranks data move, within one they do not.

    `node` is what was measured of the cores of one node, `model` how long tasks take on one of them. Where
    ranks share a node they slow each other down, whatever the model knows of as a node.
    """
    crowded = measured.nodes < measured.ranks
    return replace(
        node,
        speed=1.0 / node.crowding if crowded else 1.0,
        crowding=1.0 if crowded else node.crowding,
        name=NAME,
        nodes=nodes or measured.ranks,
        cores=threads,
        rates=flat_rates(model),
        noise=0.02,
        latency=measured.get_latency,
        bandwidth=measured.get_bandwidth,
        links=True,
        counter_service=measured.counter_service,
        counter_latency=measured.counter_latency,
        barrier=measured.barrier,
        prefetch=AHEAD,
        ready_service=node.counter_shared,
        ready_latency=measured.message_latency,
        ready_activation=measured.message_cost,
    )


def flat_rates(model: CostModel) -> Rates:
    """The rates at which a typical iteration takes as long as by the model, its products and its sorts."""
    graph = program(MOLECULE).graph
    seconds, flops, words = estimate(graph, model), graph.flops, graph.sorted_words
    products = flops > 0
    measures = np.column_stack([flops, graph.operand_words])[products]
    of_flop, of_word = scipy.optimize.nnls(measures / measures.max(axis=0), seconds[products])[0]
    of_flop, of_word = np.array([of_flop, of_word]) / measures.max(axis=0)
    known = float(seconds[products].sum() / (measures @ [of_flop, of_word]).sum())
    return Rates(
        1.0 / (known * of_flop),
        float(words[~products].sum() / seconds[~products & (words > 0)].sum()),
        1.0 / (known * of_word) if of_word > 0 else math.inf,
    )
