"""For all tests: hypothesis profiles, a cache folder of their own, one thread for PySCF, the command line."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from pyscf import lib

from command_line import CommandLine
from registers import LANES, at_most

settings.register_profile(
    "tilewise",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "random", settings.get_profile("tilewise"), derandomize=False, database=None, max_examples=30
)
settings.load_profile("tilewise")
"""The same examples each time; `--hypothesis-profile random --hypothesis-seed 1` tries others."""

lib.num_threads(1)
"""What PySCF computes beside us: tests run side by side, and threads that wait for each other spin."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that starts the tests in the background has Ctrl-C ignored, by all that they start, too."""


@pytest.fixture(scope="session", autouse=True)
def own_wisdom(tmp_path_factory):
    """What the user of the machine has tuned changes no test, and tests change nothing for the user."""
    before = os.environ.get("TILEWISE_CACHE_DIR")
    os.environ["TILEWISE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["TILEWISE_CACHE_DIR"]
    else:
        os.environ["TILEWISE_CACHE_DIR"] = before


@pytest.fixture(params=LANES)
def register_lanes(request):
    """A test that runs on each kind of registers that this processor has or can pass for."""
    with at_most(request.param) as lanes:
        yield lanes


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """The command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return CommandLine()
