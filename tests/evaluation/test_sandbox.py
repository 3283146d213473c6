"""Test SandboxExecutor with calls that hang, fill the memory, crash and succeed in real child processes."""

import math
import os
import select
import signal
import subprocess
import sys

import pytest

from vseg.errors import InvalidInput
from vseg.evaluation.sandbox import SandboxExecutor


@pytest.fixture(scope="module")
def sandbox():
    with SandboxExecutor(seconds=60, memory_mb=600) as executor:
        yield executor


def test_calls_return_what_they_return_in_this_process(sandbox):
    assert list(sandbox.map(math.sqrt, range(5))) == [math.sqrt(number) for number in range(5)]


def test_one_process_serves_many_calls(sandbox):
    first = sandbox.submit(os.getpid).result()
    assert sandbox.submit(os.getpid).result() == first != os.getpid()


def test_exceptions_of_a_call_are_raised_in_the_caller(sandbox):
    with pytest.raises(ValueError, match="math domain error"):
        sandbox.submit(math.sqrt, -1).result()
    with pytest.raises(KeyboardInterrupt):
        sandbox.submit(signal.raise_signal, signal.SIGINT).result()


def test_calls_may_print_and_read_standard_input(capfd):
    with SandboxExecutor() as executor:
        assert executor.submit(print, "hello", flush=True).result() is None
        assert executor.submit(os.read, 0, 1).result() == b""
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("call", "argument", "message"),
    [
        (eval, "[0] * 10**12", "more memory than the 600 MB"),
        (os._exit, 0, "ended without an answer, as if it had called exit"),
        (signal.raise_signal, signal.SIGSEGV, r"crashed \(SIGSEGV\)"),
        (eval, "lambda: 0", "cannot be sent back"),
    ],
)
def test_a_failure_is_one_sentence_and_the_next_call_succeeds(sandbox, call, argument, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        sandbox.submit(call, argument).result()
    assert "\n" not in str(caught.value)
    assert sandbox.submit(abs, -1).result() == 1


def test_growing_memory_is_limited(sandbox):
    grows = "held = []\nwhile True: held.append(bytearray(10**6))"
    with pytest.raises(InvalidInput, match="more memory than the 600 MB"):
        sandbox.submit(exec, grows, {}).result()


def test_what_a_call_returns_is_limited():
    """Without a limit, this process would read as much as the child may use."""
    with SandboxExecutor(memory_mb=2000) as executor:
        with pytest.raises(InvalidInput, match="more than the 100 MB that a result may have"):
            executor.submit(bytes, 100_000_001).result()
        assert executor.submit(bytes, 1_000_000).result() == bytes(1_000_000)


def test_a_call_that_hangs_is_ended():
    with SandboxExecutor(seconds=0.5) as executor, pytest.raises(InvalidInput, match=r"ended after 0\.5 s"):
        executor.submit(exec, "while True: pass").result()


@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="needs Linux to watch the process of another parent"
)
def test_no_process_is_left_behind():
    """Test both a shutdown while a call runs and a parent that is killed."""
    executor = SandboxExecutor()
    process = os.pidfd_open(executor.submit(os.getpid).result())
    hangs = executor.submit(exec, "while True: pass")
    executor.shutdown(cancel_futures=True)
    assert select.select([process], [], [], 30)[0]  # readable once it has ended
    assert hangs.cancelled() or hangs.exception()
    program = (
        "import os, sys; from vseg.evaluation.sandbox import SandboxExecutor\n"
        "executor = SandboxExecutor(); print(executor.submit(os.getpid).result(), flush=True)\n"
        "executor.submit(exec, 'while True: pass'); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    orphan = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert select.select([orphan], [], [], 30)[0]
