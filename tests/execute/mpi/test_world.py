"""Worlds of ranks: those of MPI, those that are threads, and a process alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import world_checks

from ranks import run_module, run_script
from tilewise import config
from tilewise.errors import InputError
from tilewise.execute.mpi.local_world import LocalWorld, RankFailed
from tilewise.execute.mpi.world import Alone, world


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_threads_as_ranks(size):
    assert LocalWorld.run(size, world_checks.check) == list(range(size))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_of_mpi(size):
    ended = run_module(Path(world_checks.__file__), size)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_alone():
    world_checks.check(Alone())


def test_long_messages_go_in_pieces():
    ended = run_script(
        """
        import numpy as np
        from tilewise.execute.mpi import mpi_world
        from tilewise.execute.mpi.world import world
        mpi_world.PIECE = 64
        import world_checks
        w = world()
        world_checks.check(w)
        long = np.arange(1000.0)
        assert np.array_equal(w.bcast(long if w.rank == 0 else None), long)
        assert np.array_equal(w.allreduce(long), w.size * long)
        """,
        3,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_thread_that_fails_ends_the_others():
    def work(ranks):
        if ranks.rank == 1:
            ranks.abort("the disk is full")
        ranks.allreduce(np.zeros(1))

    with pytest.raises(RankFailed, match="rank 1: the disk is full"):
        LocalWorld.run(3, work)


def test_abort_ends_all_ranks_with_the_reason():
    ended = run_script(
        """
        from tilewise.execute.mpi.world import world
        w = world()
        if w.rank == 1:
            w.abort("the disk is full", 5)
        w.barrier()
        """,
        3,
    )
    assert ended.returncode == 5
    assert "rank 1: the disk is full" in ended.stderr


def test_mpi4py_is_not_imported_without_a_launcher():
    code = "import sys, tilewise.execute.mpi.world as w; w.world(); assert 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, (1, 4)),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "2"}, (2, 3)),
        ({"PMIX_RANK": "2"}, (2, None)),
        ({"PMIX_RANK": "2", "SLURM_STEP_NUM_TASKS": "5"}, (2, 5)),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "5", "SLURM_STEP_NUM_TASKS": "5"}, None),
    ],
)
def test_launchers_are_recognised(monkeypatch, variables, expected):
    for name in ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = config.launcher()
    assert (found and (found.rank, found.size)) == expected


def test_ranks_without_mpi4py_are_refused():
    ended = run_script(
        """
        import sys
        sys.modules["mpi4py"] = None
        from tilewise.cli import main
        sys.exit(main(["mpi-info"]))
        """,
        2,
    )
    assert ended.returncode == 2
    assert "of 2 that a launcher has started, but mpi4py is not installed" in ended.stderr
    assert "tilewise[mpi]" in ended.stderr


def test_ranks_that_the_library_does_not_see_are_refused(monkeypatch):
    """As if the mpiexec of one library had started processes with another one."""
    code = """
import os
os.environ.update(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="4")
from tilewise.execute.mpi.world import world
world()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "sees 1 rank: start it with the mpiexec of that library" in ended.stderr


def test_what_mpi_may_be():
    with pytest.raises(InputError, match="mpi must be True, False or 'auto'"):
        world("yes")


class Placed(Alone):
    def __init__(self, places):
        self.places = places


@pytest.mark.parametrize(
    ("places", "threads"),
    [
        ([("a", (0, 1, 2, 3))], 4),
        ([("a", (0, 1, 2, 3)), ("a", (0, 1, 2, 3))], 2),
        ([("a", (0, 1)), ("a", (2, 3))], 2),
        ([("a", (0, 1, 2, 3)), ("b", (0, 1, 2, 3))], 4),
        ([("a", (0, 1, 2))] * 4, 1),
    ],
)
def test_default_threads_share_the_processors_of_a_node(monkeypatch, places, threads):
    monkeypatch.setattr("tilewise.execute.mpi.world.available_cpus", lambda: len(places[0][1]))
    assert Placed(places).default_threads() == threads


def test_more_threads_than_processors_are_refused_on_ranks(monkeypatch):
    monkeypatch.setattr("tilewise.execute.mpi.world.available_cpus", lambda: 2)
    ranks = Placed([("a", (0, 1))] * 2)
    ranks.size = 2
    ranks.check_threads(2)
    with pytest.raises(InputError, match="3 threads on rank 0, which may use 2 CPUs"):
        ranks.check_threads(3)
