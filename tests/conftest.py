"""One hypothesis profile for all tests, the same examples on every machine; and the command line."""

import pytest
from hypothesis import HealthCheck, settings

from command_line import CommandLine

settings.register_profile(
    "tilewise",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tilewise")


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """The command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return CommandLine()
