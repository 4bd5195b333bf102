"""A run that hangs ends the tests with a traceback of all threads instead of blocking them."""

import faulthandler
import sys

import pytest


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
