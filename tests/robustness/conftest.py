"""End a fit that hangs with its stack, because compiled code cannot be interrupted by exceptions."""

import faulthandler
import sys

import pytest

LIMIT_S = 600  # for one test on a busy machine; alone, none takes a tenth of it


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
