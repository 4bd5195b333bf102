"""What comes before the first iteration: enough memory, constants, a runner, and amplitudes to begin with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.errors import MemoryBudgetError
from tilewise.execute import Runner
from tilewise.execute.mpi.runner import DistributedRunner
from tilewise.execute.mpi.world import World
from tilewise.execute.once import run_setup
from tilewise.inspect.operations.update import gap_vector
from tilewise.methods.amplitudes import Amplitudes
from tilewise.methods.integrals import Vectors, constants
from tilewise.methods.plan import Plan
from tilewise.methods.rank_amplitudes import RankAmplitudes
from tilewise.methods.rank_constants import AllConstants, rank_constants
from tilewise.new_memory import zeros
from tilewise.tensor import Tensor

AnyRunner = Runner | DistributedRunner
AnyAmplitudes = Amplitudes | RankAmplitudes


def check_memory(plan: Plan, world: World) -> None:
    """Refuses a plan that one of the ranks has not enough memory for, on all of them."""
    try:
        plan.check_memory()
        refusal = None
    except MemoryBudgetError as error:
        refusal = error
    refusals = [found for found in world.allgather(refusal) if found is not None]
    if refusals:
        raise refusals[0]


def constant_buffers(
    plan: Plan, reference: AnyReference, vectors: Vectors | None, world: World
) -> dict[str, np.ndarray]:
    """Constants of a process that calculates alone, by name."""
    if plan.deterministic:
        return rank_constants(
            *(plan.equation, plan.program, reference, AllConstants(plan.program), world),
            *(plan.threads, plan.policy, vectors, True),
        )
    return constants(plan.equation, plan.program, reference, plan.threads, vectors)


def local_runner(
    plan: Plan,
    energies: Mapping[str, np.ndarray],
    buffers: dict[str, np.ndarray],
    executor: str,
    processors: tuple[int, ...],
) -> Runner:
    """Makes what depends on constants alone, and memory for all the rest.

    `energies` are those of the orbitals in hartree, by the name of their space.
    """
    program = plan.program
    if not plan.deterministic:
        run_setup(program, buffers, plan.policy, plan.threads, executor)
    for op in program.updates:
        buffers[op.gaps] = gap_vector(op, program.layouts[op.amplitude], energies)
    for name, layout in program.layouts.items():
        if name not in buffers:
            buffers[name] = zeros(layout.size, plan.threads)
    return Runner(plan.graph, plan.schedule, buffers, executor, processors)


def started(plan: Plan, runner: AnyRunner, world: World, saved: dict[str, Tensor] | None) -> AnyAmplitudes:
    """Amplitudes to begin with: those of a restart file, or those that the method says."""
    amplitudes: AnyAmplitudes
    if isinstance(runner, DistributedRunner):
        amplitudes = RankAmplitudes(runner.distribution, world)
    else:
        amplitudes = Amplitudes(plan.program)
        amplitudes.bind(runner)
    if saved is not None:
        amplitudes.start_from(saved)
    else:
        amplitudes.vector[:] = amplitudes.first_order(runner, plan.method.start)
    amplitudes.publish(runner)
    return amplitudes


def energy_tasks(plan: Plan, runner: AnyRunner) -> np.ndarray:
    """The few tasks that the energy needs."""
    if isinstance(runner, DistributedRunner):
        return runner.distribution.tasks_for(plan.method.energy)
    needed = plan.program.needed_for(plan.method.energy)
    chosen = np.array([op in needed for op in runner.graph.operations])
    return np.flatnonzero(chosen[runner.graph.tasks["operation"]])
