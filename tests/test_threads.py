"""No oversubscription: busy threads are counted from outside, library pools from inside."""

import os
import resource
import time
from collections import Counter
from pathlib import Path

import pytest
import threadpoolctl

import tilewise
from command_line import GEOMETRIES, WATER, CommandLine
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import run_scf
from tilewise.config import available_cpus, thread_limits

linux = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
MANY = {"OMP_NUM_THREADS": "6", "OPENBLAS_NUM_THREADS": "6", "MKL_NUM_THREADS": "6"}
"""An environment in which every library would use six threads if it were left alone."""


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return CommandLine()


def running_threads(pid: int) -> int:
    """Threads of a process that are on a CPU or wait for one."""
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            count += (task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
        except OSError:
            continue
    return count


@linux
@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_threads_are_busy_than_were_asked_for(cli, threads):
    job = ("ccsd", GEOMETRIES / "benzene.xyz", "--basis", "6-31g", "--frozen", "auto", "--no-checkpoint")
    process = cli.start(*job, "--threads", threads, environment=MANY)
    printed = ""
    while not printed.startswith("group"):  # libraries are loaded from here on
        printed = process.stdout.readline()
    seen: Counter[int] = Counter()
    while process.poll() is None:
        seen[running_threads(process.pid)] += 1
        time.sleep(0.002)
    assert cli.finish(process).code == 0
    assert seen[threads] > 0
    # BLAS and OpenMP threads spin for some milliseconds after their last job, while another pool works.
    too_many = sum(n for count, n in seen.items() if count > threads)
    assert too_many <= 0.15 * seen.total(), seen
    assert sum(count * n for count, n in seen.items()) <= 1.05 * threads * seen.total(), seen


def test_library_pools_are_held_in_the_scf_and_in_the_iterations():
    pools = []

    def count(*_):
        pools.append({pool["num_threads"] for pool in threadpoolctl.threadpool_info()})

    mol = build_molecule(WATER, "sto-3g")
    with threadpoolctl.threadpool_limits(6):
        with thread_limits(2):
            mean_field = run_scf(mol, progress=count)
        assert pools and all(max(sizes) <= 2 for sizes in pools)
        pools.clear()
        tilewise.CCSD(mean_field, threads=2, callback=count).run()
        assert pools and all(sizes == {1} for sizes in pools)  # one thread per worker
        assert max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()) == 6


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks here")
def test_the_default_is_the_number_of_cpus_of_the_affinity_mask(cli):
    cpu = min(os.sched_getaffinity(0))
    process = cli.start("plan", WATER, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    assert "\nthreads     1," in cli.finish(process).out


def test_the_environment_sets_the_default(cli, monkeypatch):
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "1")
    assert "\nthreads     1," in cli.run("plan", WATER).out


def test_pools_are_not_larger_than_the_machine():
    with thread_limits(10_000):
        assert max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()) <= available_cpus()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks here")
def test_more_threads_than_the_system_gives_are_refused(cli, tmp_path):
    def room_for_few() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, resource.RLIM_INFINITY))  # of each thread
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, resource.RLIM_INFINITY))

    assert cli.run("fcidump", WATER, "--basis", "sto-3g", "--out", "water.dump").code == 0
    job = ("ccsd", "water.dump", "--no-checkpoint", "--threads", 100)
    outcome = cli.finish(cli.start(*job, preexec_fn=room_for_few))
    outcome.assert_refused("of 100 threads: ask for fewer")
