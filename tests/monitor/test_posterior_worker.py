"""Test that the process which computes posteriors ends with its parent."""

import io
import pickle
import subprocess
import sys

import pytest

from vseg import Grid, Responses
from vseg._support.subprocesses import write_message
from vseg.monitor.posterior_summary import PosteriorInputs


def make_request() -> bytes:
    inputs = PosteriorInputs(Responses(Grid(3), [0, 1], [1, 2], [True, False]).tally(), 2)
    pipe = io.BytesIO()
    write_message(pipe, pickle.dumps(inputs))
    return pipe.getvalue()


REQUEST = make_request()


@pytest.mark.parametrize(
    "sent", [b"", REQUEST[: len(REQUEST) // 2], REQUEST], ids=["nothing", "half a request", "a request"]
)
def test_it_exits_when_its_input_ends(sent):
    command, pipe, nowhere = (
        [sys.executable, "-m", "vseg.monitor.posterior_worker"],
        subprocess.PIPE,
        subprocess.DEVNULL,
    )
    with subprocess.Popen(command, stdin=pipe, stdout=nowhere, stderr=nowhere) as process:
        process.stdin.write(sent)
        process.stdin.close()
        assert process.wait(60) == 0
