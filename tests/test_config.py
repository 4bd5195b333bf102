"""What is read from the machine and the environment."""

import os

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given
from hypothesis import strategies as st

from tilewise import config
from tilewise.errors import InputError


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A made-up /proc and /sys/fs/cgroup to write files into."""
    monkeypatch.setattr(config, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(config, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


def test_cpus_without_quota_are_the_affinity_mask(machine):
    assert config.available_cpus() == 16


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"cgroup/cpu.max": "250000 100000\n"}, 3),
        ({"cgroup/cpu.max": "max 100000\n"}, 16),
        ({"cgroup/cpu/cpu.cfs_quota_us": "-1\n", "cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 16),
        ({"cgroup/cpu/cpu.cfs_quota_us": "50000\n", "cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"proc/self/cgroup": "0::/job/step\n", "cgroup/job/cpu.max": "400000 100000\n"}, 4),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/job\n",
                "cgroup/cpu/job/cpu.cfs_quota_us": "600000",
                "cgroup/cpu/job/cpu.cfs_period_us": "100000",
            },
            6,
        ),
    ],
)
def test_a_container_quota_cuts_the_cpus(machine, files, count):
    for name, text in files.items():
        machine(name, text)
    assert config.available_cpus() == count


def test_memory_is_cut_by_either_kind_of_cgroup(machine):
    assert config.memory_limit() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    machine("cgroup/memory.max", "300000000\n")
    assert config.memory_limit() == 300_000_000
    machine("cgroup/memory/memory.limit_in_bytes", "200000000\n")
    assert config.memory_limit() == 200_000_000
    machine("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert config.memory_limit() == 300_000_000


def test_default_budget_is_four_fifths_of_what_is_free(machine):
    machine("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    1000000 kB\n")
    assert config.default_memory() == int(0.8 * 1000000 * 1024)
    machine("cgroup/memory.max", "900000000\n")
    machine("cgroup/memory.current", "500000000\n")
    machine("cgroup/memory.stat", "inactive_file 100000000\n")
    assert config.default_memory() == int(0.8 * 500_000_000)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("8GB", 8_000_000_000),
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("8000", 8_000_000_000),
        (8000, 8_000_000_000),
        (0.5, 500_000),
        ("1.5GiB", 3 * 2**29),
        ("2 MiB", 2**21),
        ("4G", 4_000_000_000),
        ("1TB", 10**12),
        ("16kiB", 2**14),
    ],
)
def test_memory_amounts(text, count):
    assert config.parse_memory(text) == count


@pytest.mark.parametrize(
    "text", ["", "GB", "8XB", "-1GB", "0", "1.2.3GB", "nan", "inf", True, -5, "8 GB ram"]
)
def test_bad_memory_amounts_come_with_examples(text):
    with pytest.raises(InputError, match="8GB, 500MB"):
        config.parse_memory(text)


@given(st.integers(1, 10**14))
def test_shown_sizes_read_back_within_rounding(count):
    shown = config.format_bytes(count)
    if shown.endswith(" B"):
        assert shown == f"{count} B"
    else:
        assert config.parse_memory(shown) == pytest.approx(count, rel=0.06)


def test_sizes_read_well():
    assert [config.format_bytes(n) for n in (0, 1.8e9, 512e6, 999_999, 3.2e13)] == [
        "0 B",
        "1.8 GB",
        "512 MB",
        "1.0 MB",
        "32.0 TB",
    ]


def test_threads_from_caller_environment_or_machine(machine, monkeypatch):
    for variable in ("TILEWISE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    assert config.resolve_threads(None) == 16
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert config.resolve_threads(None) == 4
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "64")
    assert config.resolve_threads(None) == 16
    assert config.resolve_threads(40) == 40
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "9" * 5000)
    with pytest.raises(InputError, match="TILEWISE_NUM_THREADS='99"):
        config.resolve_threads()
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "many")
    with pytest.raises(InputError, match="TILEWISE_NUM_THREADS='many'"):
        config.resolve_threads(None)
    for wrong in (0, -2, 1.5, True, 4097):
        with pytest.raises(InputError, match="whole number from 1 to 4096"):
            config.resolve_threads(wrong)


def test_cache_folder_can_be_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path))
    assert config.cache_dir() == tmp_path
    monkeypatch.delenv("TILEWISE_CACHE_DIR")
    assert config.cache_dir().name == "tilewise"


def test_thread_limits_hold_every_pool_and_let_go():
    np.ones((4, 4)) @ np.ones((4, 4))
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    with config.thread_limits(1):
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
        with config.thread_limits(1):
            pass
        with config.thread_limits(2), config.thread_limits(1):
            assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before
    with pytest.raises(InputError), config.thread_limits(0):
        pass
