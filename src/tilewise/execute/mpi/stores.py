"""The store that suits a world: one-sided where that works, else messages."""

from __future__ import annotations

from tilewise.errors import one_of
from tilewise.execute.mpi.message_store import MessageStore
from tilewise.execute.mpi.world import SelfTest, World
from tilewise.execute.store import Store

STORES = ("auto", "one-sided", "messages")
"""What a user may ask for; by default the self-test decides."""


def store_of(world: World, wish: str = "auto") -> Store:
    """For the tensors of one calculation."""
    if wish not in STORES:
        raise one_of("store", wish, STORES)
    if wish == "messages" or world.communicator is None or (wish == "auto" and not tested(world).has_rma):
        return MessageStore(world)
    from tilewise.execute.mpi.rma_store import RmaStore

    return RmaStore(world, len(world.nodes) == 1 and tested(world).is_passive)


def tested(world: World) -> SelfTest:
    """The self-test of one-sided communication, made once in each world, by all ranks together."""
    if world.self_test is None:
        if world.communicator is None:
            world.self_test = SelfTest("", "within one process", 0.0)
        else:
            from tilewise.execute.mpi.selftest import run_selftest

            world.self_test = run_selftest(world)
    return world.self_test
