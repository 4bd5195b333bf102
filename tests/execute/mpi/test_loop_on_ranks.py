"""Python loops on ranks: every policy, the same results and the same errors on each of them."""

import pytest

import tilewise
from ranks import run_script
from tilewise.errors import InputError, ItemError
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.execute.rank_pool import on_ranks
from tilewise.execute.source import Source
from tilewise.inspect.loop import LoopGraph


def square(x):
    if x == 77:
        raise ValueError("not this one")
    return x * x


@pytest.mark.parametrize("policy", tilewise.policies)
def test_ranks_share_a_loop_by_every_policy(policy):
    def loop(ranks):
        import numpy as np

        schedule = tilewise.policies[policy](LoopGraph(30, "loop"), np.arange(1.0, 31.0), ranks.size)
        return on_ranks(square, range(30), Source(schedule), ranks)

    for found in LocalWorld.run(3, loop):
        assert sorted((done.item, done.value) for done in found) == [(x, x * x) for x in range(30)]


def test_a_script_has_the_same_results_and_errors_on_every_rank():
    done = run_script(
        """
        import tilewise
        from tilewise.execute.mpi.world import world
        from test_loop_on_ranks import square

        ranks = world()
        found = tilewise.parallel_for(square, range(40), executor="mpi", policy="ie-nxtval")
        same = ranks.allgather((list(found) == [x * x for x in range(40)], found.workers))
        try:
            tilewise.parallel_for(square, range(60, 90), executor="mpi")
        except tilewise.TilewiseError as error:
            told = ranks.allgather((type(error).__name__, error.index, str(error.__cause__)))
        if ranks.rank == 0:
            print(same, told)
        """,
        2,
    )
    assert done.returncode == 0, done.stderr
    expected = [(True, 2)] * 2, [(ItemError.__name__, 17, "not this one")] * 2
    assert done.stdout.strip() == " ".join(map(str, expected))


def test_one_process_alone_is_told_to_use_mpiexec():
    with pytest.raises(InputError, match="start the script by mpiexec"):
        tilewise.parallel_for(square, [1, 2], executor="mpi")
