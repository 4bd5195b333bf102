"""The store that suits a world: memory that a node shares, or one-sided where that works, or messages."""

from __future__ import annotations

from tilewise.errors import InputError, one_of
from tilewise.execute.mpi.message_store import MessageStore
from tilewise.execute.mpi.world import SelfTest, World
from tilewise.execute.store import Store

STORES = ("auto", "shared", "one-sided", "messages")
"""What a user may ask for; by default the self-test decides."""


def store_of(world: World, wish: str = "auto") -> Store:
    """For the tensors of one calculation."""
    kind = kind_of(world, wish)
    if kind == "messages":
        return MessageStore(world)
    from tilewise.execute.mpi.rma_store import RmaStore

    return RmaStore(world, kind == "shared")


def kind_of(world: World, wish: str = "auto") -> str:
    """Shared, one-sided or messages, on all ranks the same."""
    if wish not in STORES:
        raise one_of("store", wish, STORES)
    if world.communicator is None:
        return "messages"
    nodes = len(world.nodes)
    if wish == "shared" and nodes > 1:
        raise InputError(f"store shared needs all ranks on one node, and they are on {nodes}: take one-sided")
    if wish != "auto":
        return wish
    found = tested(world)
    if not found.has_rma:
        return "messages"
    return "shared" if nodes == 1 and found.is_passive else "one-sided"


def tested(world: World) -> SelfTest:
    """The self-test of one-sided communication, made once in each world, by all ranks together."""
    if world.self_test is None:
        if world.communicator is None:
            world.self_test = SelfTest("", "within one process", 0.0)
        else:
            from tilewise.execute.mpi.selftest import run_selftest

            world.self_test = run_selftest(world)
    return world.self_test
