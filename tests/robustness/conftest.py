"""No fit may hang: compiled code does not listen to exceptions, so a run that takes minutes is ended with its stack."""

import faulthandler
import sys

import pytest

LIMIT_S = 600  # of one test on a machine that is busy with others; none takes a tenth of it by itself


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
