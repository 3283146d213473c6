"""Calls run for real in processes that hang, eat memory, crash and go on."""

import math
import os
import select
import signal
import subprocess
import sys

import pytest

from vseg.errors import InvalidInput
from vseg.evaluation.compare import Fenced


@pytest.fixture(scope="module")
def fenced():
    with Fenced(seconds=60, memory_mb=600) as executor:
        yield executor


def test_calls_give_what_they_give_here(fenced):
    assert list(fenced.map(math.sqrt, range(5))) == [math.sqrt(each) for each in range(5)]


def test_one_process_serves_many_calls(fenced):
    first = fenced.submit(os.getpid).result()
    assert fenced.submit(os.getpid).result() == first != os.getpid()


def test_what_a_call_raises_is_raised_here(fenced):
    with pytest.raises(ValueError, match="math domain error"):
        fenced.submit(math.sqrt, -1).result()
    with pytest.raises(KeyboardInterrupt):
        fenced.submit(signal.raise_signal, signal.SIGINT).result()


def test_what_is_printed_is_no_answer_and_what_is_read_no_call(capfd):
    with Fenced() as executor:
        assert executor.submit(print, "hello", flush=True).result() is None
        assert executor.submit(os.read, 0, 1).result() == b""
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("call", "given", "said"),
    [
        (eval, "[0] * 10**12", "more memory than the 600 MB"),
        (os._exit, 0, "ended without an answer, as if it had called exit"),
        (signal.raise_signal, signal.SIGSEGV, r"crashed \(SIGSEGV\)"),
        (eval, "lambda: 0", "cannot be sent back"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_the_next_call_goes_well(fenced, call, given, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        fenced.submit(call, given).result()
    assert "\n" not in str(caught.value)
    assert fenced.submit(abs, -1).result() == 1


def test_memory_that_grows_is_watched(fenced):
    grows = "held = []\nwhile True: held.append(bytearray(10**6))"
    with pytest.raises(InvalidInput, match="more memory than the 600 MB"):
        fenced.submit(exec, grows, {}).result()


def test_one_that_hangs_is_ended():
    with Fenced(seconds=0.5) as executor, pytest.raises(InvalidInput, match=r"ended after 0\.5 s"):
        executor.submit(exec, "while True: pass").result()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells when another's process has ended")
def test_nothing_is_left_behind():
    """Neither when it is shut down while it works, nor when whoever asks is killed."""
    executor = Fenced()
    process = os.pidfd_open(executor.submit(os.getpid).result())
    hangs = executor.submit(exec, "while True: pass")
    executor.shutdown(cancel_futures=True)
    assert select.select([process], [], [], 30)[0]  # readable once it has ended
    assert hangs.cancelled() or hangs.exception()
    program = (
        "import os, sys; from vseg.evaluation.compare import Fenced\n"
        "executor = Fenced(); print(executor.submit(os.getpid).result(), flush=True)\n"
        "executor.submit(exec, 'while True: pass'); sys.stdin.read()"
    )
    asking = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    orphan = os.pidfd_open(int(asking.stdout.readline()))
    asking.kill()
    asking.communicate()
    assert select.select([orphan], [], [], 30)[0]
