"""The test of one-sided communication at the start, with windows that work and with some that do not."""

import pytest

from ranks import run_script
from tilewise.errors import InputError
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.execute.mpi.shared_memory import check_shared_memory

BROKEN = """
import numpy as np
from mpi4py import MPI
from tilewise.execute.mpi.selftest import run_selftest
from tilewise.execute.mpi.world import world


class Window:
    '''A window with one defect.'''

    def __init__(self, defect, *arguments, **more):
        self.defect, self.window = defect, MPI.Win.Allocate(*arguments, **more)

    def __getattr__(self, name):
        return getattr(self.window, name)

    def Rget(self, panel, target):
        if self.defect == "lost":
            return Never()
        request = self.window.Rget(panel, target)
        if self.defect == "stale":
            request.Wait()
            panel[17] = -1.0
        return request

    def Accumulate(self, data, *arguments, **more):
        if self.defect != "adds" or world(True).rank != 1:
            self.window.Accumulate(data, *arguments, **more)

    def Fetch_and_op(self, one, found, *arguments):
        self.window.Fetch_and_op(one, found, *arguments)
        if self.defect == "counter":
            self.window.Flush(0)
            found[:] = 0


class Never:
    def Test(self):
        return False


found = run_selftest(world(True), lambda *a, **k: Window(DEFECT, *a, **k))
answers = world(True).gather((found.has_rma, found.text))
for answer in answers or ():
    print(*answer, sep=";", flush=True)
"""


@pytest.mark.parametrize(
    ("defect", "said"),
    [
        ("lost", "Get gives wrong values or does not end"),
        ("stale", "Get gives wrong values"),
        ("adds", "Accumulate"),
        ("counter", "Fetch_and_op"),
    ],
)
def test_a_defect_is_found(defect, said):
    ended = run_script(f"DEFECT = {defect!r}\n{BROKEN}", 2)
    lines = [line for line in ended.stdout.splitlines() if ";" in line]
    assert len(lines) == 2
    for line in lines:
        has_rma, _, text = line.partition(";")
        assert has_rma == "False"
        assert said in text


@pytest.mark.parametrize("ranks", [2, 4])
def test_windows_of_shared_memory_work(ranks):
    ended = run_script(f"DEFECT = None\n{BROKEN}", ranks)
    assert ended.stdout.count("True;one-sided communication is right, progress") == ranks
    assert ended.stderr == ""


def test_a_network_is_judged_without_an_error():
    """Over TCP a Get may need its target to look, or may be too slow: both are answers."""
    ended = run_script(f"DEFECT = None\n{BROKEN}", 2, MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self")
    assert len(ended.stdout.splitlines()) == 2
    assert ended.returncode == 0


def test_shared_memory_that_is_too_small_is_refused(tmp_path):
    def work(ranks):
        check_shared_memory(ranks, 1000, tmp_path)
        check_shared_memory(ranks, 1 << 60, tmp_path / "nothing here")
        check_shared_memory(ranks, 1 << 60 if ranks.rank == 1 else 0, tmp_path)

    with pytest.raises(InputError, match=r"need .* of shared memory, but .* left: enlarge it"):
        LocalWorld.run(2, work)
