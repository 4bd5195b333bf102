"""A run that hangs ends the tests with a traceback of all threads instead of blocking them."""

import faulthandler
import sys

import pytest

HANGS = 300.0
"""Seconds after which a test of threads hangs: the longest take a few, also beside other work."""


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(HANGS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
