"""Tests on ranks have limits of their own (`ranks.py`): the ranks are ended, and one test fails."""

import pytest


@pytest.fixture(autouse=True)
def no_hang():
    """Nothing ends the process of the tests: their limits are longer than those of threads."""
