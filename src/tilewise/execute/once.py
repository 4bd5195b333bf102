"""Work that is done once: the set-up of a program, or a program that a user runs a single time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewise.equations.program import Operation, Program
from tilewise.execute.runner import Runner
from tilewise.inspect import TaskGraph
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.panels import PanelRule
from tilewise.new_memory import zeros
from tilewise.schedule import Policy, Schedule
from tilewise.tensor import Tensor

SMALL_SETUP = 1 << 24
"""Bytes of a constant that it does not pay to let go early."""


def run_once(
    program: Program,
    tensors: Mapping[str, Tensor],
    *,
    setup: bool = False,
    policy: Policy,
    workers: int = 1,
    executor: str = "threads",
    rule: PanelRule | None = None,
) -> dict[str, np.ndarray]:
    """Runs the operations of a program (or its setup) once, with rough costs; all tensors and scalars."""
    buffers = {name: tensor.data for name, tensor in tensors.items()}
    for name, layout in program.layouts.items():
        if name not in buffers:
            buffers[name] = zeros(layout.size)
    operations = program.setup if setup else program.operations
    graph = inspect_operations(program, operations, rule or PanelRule())
    graph = policy.prepared(graph, _rough_seconds(graph), workers)
    result = Runner(graph, _roughly(graph, policy, workers), buffers, executor).run()
    return buffers | {name: np.array([value]) for name, value in result.scalars.items()}


def run_setup(
    program: Program, buffers: dict[str, np.ndarray], policy: Policy, workers: int, executor: str = "threads"
) -> None:
    """Makes the tensors that depend on constants alone, and lets go of the constants that only they need."""
    nothing = np.zeros(0)
    later = {name for op in program.operations for name in (*op.reads, *op.outputs)}
    for operations, rest in stages_of(program):
        for name in {name for op in operations for name in op.outputs if name not in buffers}:
            buffers[name] = zeros(program.layouts[name].size, workers)
        graph = inspect_operations(program, operations, PanelRule())
        used = {name for op in operations for name in (*op.reads, *op.outputs)}
        stand_in = {name: buffers[name] if name in used else nothing for name in graph.buffers}
        Runner(graph, _roughly(graph, policy, workers), stand_in, executor).run()
        del stand_in  # it must hold nothing that is let go
        needed = later | {name for op in rest for name in (*op.reads, *op.outputs)}
        for name in [name for name in buffers if name not in needed]:
            buffers[name] = nothing


def stages_of(program: Program) -> list[tuple[tuple[Operation, ...], tuple[Operation, ...]]]:
    """The set-up in two parts, each with what follows: the second one does without the largest constant.

    A small one is done at once.
    """
    setup = program.setup
    later = {name for op in program.operations for name in op.reads}
    passing = {name for op in setup for name in op.reads if name not in later}
    largest = max(passing, key=lambda name: program.layouts[name].size, default="")
    if not largest or program.bytes_of(largest) < SMALL_SETUP:
        return [(setup, ())] if setup else []
    cut = 1 + max(k for k, op in enumerate(setup) if largest in op.reads)
    parts = [(setup[:cut], setup[cut:]), (setup[cut:], ())]
    return [part for part in parts if part[0]]


def _roughly(graph: TaskGraph, policy: Policy, workers: int) -> Schedule:
    """A schedule by flops and bytes, for work that is done once."""
    return policy(graph, _rough_seconds(graph), workers)


def _rough_seconds(graph: TaskGraph) -> np.ndarray:
    return 3e-11 * graph.flops + 1e-10 * graph.bytes
