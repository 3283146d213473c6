"""The process in which posteriors are worked out ends with whoever started it."""

import pickle
import subprocess
import sys

import pytest

from vseg import Grid, Responses
from vseg.monitor.posterior_summary import Question

ASKED = pickle.dumps(Question(Responses(Grid(3), [0, 1], [1, 2], [True, False]).tally(), 2))


@pytest.mark.parametrize("said", [b"", ASKED[: len(ASKED) // 2]], ids=["nothing more", "cut in mid-question"])
def test_it_ends_when_its_input_does(said):
    command, pipe, nowhere = (
        [sys.executable, "-m", "vseg.monitor.posterior_worker"],
        subprocess.PIPE,
        subprocess.DEVNULL,
    )
    with subprocess.Popen(command, stdin=pipe, stdout=nowhere, stderr=nowhere) as process:
        process.stdin.write(said)
        process.stdin.close()
        assert process.wait(60) == 0
