"""A plan on several ranks: what all of them agree on, and each rank's runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Reference
from tilewise.cost import estimate
from tilewise.errors import InputError
from tilewise.execute.distribution import Distribution, distribute
from tilewise.execute.mpi.executor import Moved
from tilewise.execute.mpi.runner import DistributedRunner
from tilewise.execute.mpi.spread_runner import SpreadRunner
from tilewise.execute.mpi.stores import kind_of, store_of
from tilewise.execute.mpi.world import World
from tilewise.execute.spread import Spread, spread
from tilewise.inspect import TaskGraph
from tilewise.inspect.operations.update import gap_vector
from tilewise.methods.integrals import Vectors
from tilewise.methods.plan import Plan
from tilewise.methods.rank_constants import rank_constants

MANNERS = {
    "dataflow": "block",
    "block": "block",
    "interleaved": "interleaved",
    "lpt": "lpt",
    "buckets": "lpt",
}
"""Policies that share out work between ranks beforehand, and how they share out rows."""

PATTERNS = ("cache", "original", "inverted")
"""How strips are moved: each once for all tasks of a rank, for each task, or for each block of a constant.

By all other policies, and by the last two patterns, any rank may run any task: it gets what the task reads
and adds what it has made where that is at home.
"""


@dataclass(frozen=True)
class RankFigures:
    """What one rank holds, and what it moved in the last iteration."""

    tensor_bytes: int
    """Of all tensors, those of other ranks that it keeps a copy of included."""
    counted_gets: int
    """Gets of an iteration as they were counted beforehand, and their bytes."""
    counted_bytes: int
    gets: int
    adds: int
    bytes: int
    messages: int
    seconds: float
    """In which at least one of them was under way."""
    hidden: float
    """Seconds of these in which the average worker of the rank computed."""

    @classmethod
    def of(cls, distribution: Distribution, rank: int, moved: Moved) -> RankFigures:
        counted = distribution.counted(rank)
        return cls(distribution.bytes(rank), counted.gets, counted.bytes, **asdict(moved))


def is_placed(plan: Plan, pattern: str) -> bool:
    """Whether each task has its rank before the run."""
    return pattern == "cache" and plan.policy.name in MANNERS


def on_ranks(plan: Plan, world: World, pattern: str = "cache", store: str = "auto") -> Plan:
    """The plan of rank 0, with its cost model: decisions are made from it on each rank alike."""
    if plan.deterministic and not is_placed(plan, pattern):
        raise InputError(
            "deterministic on several ranks needs pattern cache and one of the policies "
            f"{', '.join(MANNERS)}, not {pattern} and {plan.policy.name}"
        )
    agreed: Plan = world.bcast(plan.agreed(world.size) if world.rank == 0 else None)
    own = replace(agreed, threads=plan.threads, in_use=plan.in_use, budget=plan.budget)
    own = replace(own, ranks=world.size, on_one_node=kind_of(world, store) == "shared")
    return own.with_what_is_known(plan)


def agreed_reference(reference: AnyReference, world: World) -> AnyReference:
    """The orbitals of rank 0, on every rank: each may have found others, by a sign or a rotation."""
    if world.size == 1:
        return reference
    if isinstance(reference, Reference):
        return _agreed(reference, world)
    alpha, beta = (_agreed(own, world) for own in (reference.alpha, reference.beta))
    overlap, occupied = world.bcast((reference.overlap, reference.occupied))
    return replace(reference, alpha=alpha, beta=beta, overlap=overlap, occupied=occupied)


def _agreed(reference: Reference, world: World) -> Reference:
    """Those of one spin; integrals over basis functions stay where they are."""
    own = {
        field.name: getattr(reference, field.name) for field in fields(reference) if field.name != "integrals"
    }
    names = [name for name in ("coefficients", "occupied") if hasattr(reference.integrals, name)]
    facts, orbitals = world.bcast((own, {name: getattr(reference.integrals, name) for name in names}))
    integrals: Any = reference.integrals
    return Reference(**facts, integrals=replace(integrals, **orbitals) if names else integrals)


def distribution_by(plan: Plan, pattern: str) -> Distribution:
    """Who does and holds what, on the ranks of a plan; of most the plan knows it already."""
    return plan.distribution if is_placed(plan, pattern) else distribution_of(plan, plan.ranks, pattern)


def distribution_of(plan: Plan, ranks: int, pattern: str = "cache") -> Distribution:
    """Who does and holds what, by a plan whose cost model is known."""
    model = plan.model
    assert model is not None

    def seconds(graph: TaskGraph) -> np.ndarray:
        return estimate(graph, model)

    if not is_placed(plan, pattern):
        return spread(plan.program, ranks, seconds, plan.rule, pattern == "inverted")
    manner = MANNERS[plan.policy.name]
    return distribute(
        plan.program, ranks, seconds, plan.rule, plan.deterministic, manner, repeats=not plan.on_one_node
    )


def constants_of_rank(
    world: World,
    plan: Plan,
    distribution: Distribution,
    reference: AnyReference,
    vectors: Vectors | None,
    energies: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """This rank's shards of all constants, and whole vectors of gaps."""
    own = rank_constants(
        plan.equation,
        plan.program,
        reference,
        distribution,
        world,
        plan.threads,
        plan.policy,
        vectors,
        plan.deterministic,
        plan.on_one_node,
    )
    energies = world.bcast(energies)
    for op in plan.program.updates:
        own[op.gaps] = gap_vector(op, plan.program.layouts[op.amplitude], energies)
    return own


def rank_runner(
    world: World,
    plan: Plan,
    distribution: Distribution,
    buffers: dict[str, np.ndarray],
    processors: Sequence[int] = (),
    wish: str = "auto",
) -> DistributedRunner:
    """Of this rank, with its shards of the constants."""
    store = store_of(world, wish)
    if isinstance(distribution, Spread):
        return SpreadRunner(distribution, world, store, plan.policy, plan.team, buffers, processors)
    return DistributedRunner(distribution, world, store, plan.policy, plan.team, buffers, processors)
