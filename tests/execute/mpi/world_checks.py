"""What every world must do, checked by each of its ranks: `check(world)`."""

import time

import numpy as np

PAUSE = 1e-4
"""Seconds between two looks: ranks share cores, and who spins keeps others from what it waits for."""


def check(world):
    check_values(world)
    check_arrays(world)
    check_messages(world)
    check_posts(world)
    check_places(world)
    check_shared(world)
    return world.rank


def check_values(world):
    rank, size = world.rank, world.size
    for root in range(size):
        sent = {"rank": rank, "data": np.arange(5.0) + rank, "nothing": np.zeros(0)} if rank == root else None
        found = world.bcast(sent, root)
        assert found["rank"] == root
        assert np.array_equal(found["data"], np.arange(5.0) + root)
        found["data"] += 1  # what has come may be changed
        gathered = world.gather((rank, np.full(rank, 1.0)), root)
        assert (gathered is None) == (rank != root)
        if gathered is not None:
            assert [k for k, _ in gathered] == list(range(size))
            assert [len(array) for _, array in gathered] == list(range(size))
    assert world.allgather("x" * rank) == ["x" * k for k in range(size)]
    world.barrier()


def check_arrays(world):
    rank, size = world.rank, world.size
    values = np.array([[rank, 1.0], [-rank, 0.5]])
    assert np.array_equal(world.allreduce(values), np.sum([[[k, 1], [-k, 0.5]] for k in range(size)], axis=0))
    assert np.array_equal(world.allreduce(values, "max"), [[size - 1, 1.0], [0, 0.5]])
    assert np.array_equal(world.allreduce(np.array([rank]), "min"), [0])
    assert world.total(0.5) == 0.5 * size
    found = world.alltoallv([np.full(rank + 2 * to, 10.0 * rank + to) for to in range(size)])
    assert [list(part) for part in found] == [
        [10.0 * source + rank] * (source + 2 * rank) for source in range(size)
    ]


def check_shared(world):
    found = world.shared(world.size)
    if found is None:
        assert world.size == 1
        return
    found[world.rank] = world.rank + 1
    world.barrier()
    assert found.tolist() == list(range(1, world.size + 1))
    world.give_back(found)
    if world.communicator is not None and world.size > 1:
        assert world.shared(1 << 60) is None  # there is not so much


def check_messages(world):
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    if right == world.rank:
        return
    found = [np.empty(3) for _ in range(2)]
    requests = [world.receive_panel(left, tag, array) for tag, array in enumerate(found)]
    sent = [np.arange(3.0) + 100 * world.rank + 1000 * tag for tag in range(2)]
    requests += [world.send_panel(right, tag, array) for tag, array in enumerate(sent)]
    while not all(request.done() for request in requests):
        time.sleep(PAUSE)
    for tag, array in enumerate(found):
        assert np.array_equal(array, np.arange(3.0) + 100 * left + 1000 * tag)


def check_posts(world):
    """From each to each other, some in a row; they come in order, and none is lost."""
    others = [rank for rank in range(world.size) if rank != world.rank]
    with world.watched():
        for number in range(50):
            for to in others:
                world.post(to, np.arange(number % 7) + 1000 * world.rank)
        found = {rank: [] for rank in others}
        while any(len(numbers) < 50 for numbers in found.values()):
            time.sleep(PAUSE)
            for source, numbers in world.arrived():
                found[source].append(numbers)
        for source, posts in found.items():
            for number, numbers in enumerate(posts):
                assert np.array_equal(numbers, np.arange(number % 7) + 1000 * source)
    world.barrier()
    assert not world.arrived()


def check_places(world):
    assert world.nodes == [list(range(world.size))]
    assert world.is_local(world.size - 1)
    assert world.local_ranks == list(range(world.size))
    assert world.default_threads() >= 1


if __name__ == "__main__":
    from tilewise.execute.mpi.world import world

    check(world(True))
