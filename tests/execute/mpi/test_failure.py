"""Whatever ends one rank ends all of them, with its number and the reason."""

import time
from pathlib import Path

import pytest

from ranks import run_script

LIMIT = 30  # seconds; the job itself must end within ten of them, which the campaign measures

START = """
    import os, signal, sys, time
    import numpy as np
    import tilewise
    from tilewise.errors import InputError, TaskError
    from tilewise.execute.mpi.failure import together
    from tilewise.execute.mpi.world import world
    ranks = world()
    ranks.barrier()
"""

WAIT = """
    ranks.allreduce(np.zeros(1))
    time.sleep(60)
"""

ACCIDENTS = {
    "exception": (
        "raise OSError(28, 'No space left on device')",
        "rank 1: OSError: [Errno 28] No space",
    ),
    "our own": ("raise TaskError('NaN in R2')", "rank 1: NaN in R2"),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", "rank 1: interrupted"),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", "has ended without a word"),
    "SIGSEGV": (
        "open(f'{os.environ[\"TMPDIR\"]}/tilewise-{os.getppid()}-ended', 'w').close(); "  # of a job long ago
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "rank 1: Fatal Python error: Segmentation fault",
    ),
    "_exit": ("os._exit(3)", "has ended without a word"),
}


@pytest.mark.parametrize("name", ACCIDENTS)
def test_an_accident_of_one_rank_ends_all(name, tmp_path):
    code, reason = ACCIDENTS[name]
    text = f"{START}\n    if ranks.rank == 1:\n        {code}\n{WAIT}"
    ended = run_script(text, 3, LIMIT, TMPDIR=str(tmp_path))
    assert ended.returncode != 0
    said = [line for line in ended.stderr.splitlines() if line.startswith("rank ")]
    assert len(said) == 1
    assert reason in said[0]


def test_ranks_end_with_the_process_that_started_them(tmp_path):
    text = f"""{START}
    open(f"{tmp_path}/{{os.getpid()}}", "w").close()
    ranks.barrier()
    if ranks.rank == 1:
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    """
    ended = run_script(text, 2, LIMIT)
    assert ended.returncode != 0
    numbers = [path.name for path in tmp_path.iterdir()]
    assert len(numbers) == 2
    until = time.monotonic() + 10
    while any(Path("/proc", number).exists() for number in numbers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [number for number in numbers if Path("/proc", number).exists()]


def test_an_error_that_is_caught_on_one_rank_ends_all_the_same():
    text = f"""{START}
    try:
        with together(ranks):
            if ranks.rank == 0:
                raise TaskError("NaN in R2")
            ranks.barrier()
    except TaskError:
        pass
    {WAIT}"""
    ended = run_script(text, 2, LIMIT)
    assert "rank 0: NaN in R2" in ended.stderr


def test_an_error_while_ranks_meet_ends_all():
    text = """
    from tilewise.config import launcher
    from tilewise.execute.mpi import mpi_world
    from tilewise.execute.mpi.world import world

    def fails(self, value):
        raise RuntimeError("met nobody")

    if launcher().rank == 1:
        mpi_world.MpiWorld.allgather = fails
    world()
    """
    ended = run_script(text, 2, LIMIT)
    assert ended.returncode != 0
    assert "rank 1: RuntimeError: met nobody" in ended.stderr


def test_an_error_of_all_ranks_can_be_caught():
    text = f"""{START}
    try:
        with together(ranks):
            raise InputError("no such basis")
    except InputError:
        print("caught")
    ranks.barrier()
    """
    ended = run_script(text, 3, LIMIT)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("caught") == 3


def test_an_error_of_all_ranks_is_told_once():
    ended = run_script(f"{START}\n    raise InputError('no such basis')", 3, LIMIT)
    assert ended.returncode == 1
    assert ended.stderr.count("InputError: no such basis") == 1
    assert "rank" not in ended.stderr.replace("ranks", "")


def test_an_error_before_the_first_call_of_mpi_ends_all():
    text = """
    import os, time
    import tilewise
    if os.environ["PMI_RANK"] == "1":
        raise ValueError("too early")
    from tilewise.execute.mpi.world import world
    world()
    time.sleep(60)
    """
    ended = run_script(text, 2, LIMIT)
    assert "rank 1: ValueError: too early" in ended.stderr
