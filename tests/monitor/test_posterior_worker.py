"""Test that the process which computes posteriors ends with its parent."""

import io
import pickle
import subprocess
import sys

import pytest

from vseg import Grid, Responses
from vseg._support.subprocesses import write_message
from vseg.monitor.posterior_summary import PosteriorQuestion


def question_in_bytes() -> bytes:
    question = PosteriorQuestion(Responses(Grid(3), [0, 1], [1, 2], [True, False]).tally(), 2)
    pipe = io.BytesIO()
    write_message(pipe, pickle.dumps(question))
    return pipe.getvalue()


QUESTION = question_in_bytes()


@pytest.mark.parametrize(
    "sent", [b"", QUESTION[: len(QUESTION) // 2], QUESTION], ids=["nothing", "half a question", "a question"]
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
