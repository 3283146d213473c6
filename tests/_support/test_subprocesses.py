"""Test child processes for real: requests, limits, killing, and what is left when the parent is killed."""

import io
import os
import select
import signal
import subprocess
import sys

import pytest

from vseg._support.subprocesses import (
    ChildEndedError,
    LimitReachedError,
    Limits,
    PipeWorker,
    describe_exit,
    kill_group,
    measure_memory_mb,
    read_message,
    start_program,
    start_python,
    stop_group,
    wait_within_limits,
    write_message,
)

SERVE = "from vseg._support.subprocesses import serve_requests; "
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
linux_only = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux to watch other processes")


class GivenUpError(Exception):
    """Raised by a check that gives up."""


def give_up():
    raise GivenUpError


def go_on():
    pass


def worker(handle):
    return PipeWorker(["-c", f"{SERVE}serve_requests({handle})"])


def test_a_worker_answers_requests_in_turn():
    echo = worker("lambda message: message[::-1]")
    large = os.urandom(1 << 20)  # more than a pipe holds
    assert [echo.request(message, go_on) for message in (b"abc", b"", large)] == [b"cba", b"", large[::-1]]
    echo.kill()
    echo.kill()  # has no effect
    assert echo.process.returncode == -signal.SIGKILL


def test_a_worker_that_exits_or_crashes():
    for code, returncode in (("__import__('os')._exit(3)", 3), ("__import__('os').abort()", -signal.SIGABRT)):
        with pytest.raises(ChildEndedError) as caught:
            worker(f"lambda message: {code}").request(b"", go_on)
        assert caught.value.returncode == returncode


def test_giving_up_kills_the_worker():
    slow = worker("lambda message: __import__('time').sleep(600)")
    with pytest.raises(GivenUpError):
        slow.request(b"", give_up)
    assert slow.process.returncode == -signal.SIGKILL


def test_killing_a_worker_ends_a_request_in_another_thread():
    slow = worker("lambda message: __import__('time').sleep(600)")
    with pytest.raises(ChildEndedError):
        slow.request(b"", slow.kill)


def test_a_message_that_is_cut():
    pipe = io.BytesIO()
    write_message(pipe, b"whole")
    whole = pipe.getvalue()
    assert read_message(io.BytesIO(whole)) == b"whole"
    for length in range(len(whole)):
        with pytest.raises(EOFError):
            read_message(io.BytesIO(whole[:length]))


def test_limits_of_a_child_that_runs_once():
    quick = start_python(["-c", "import sys; sys.exit(7)"], **QUIET)
    assert wait_within_limits(quick, Limits(60, 1000)) == 7
    kill_group(quick)
    for code, limits, limit in (
        ("while True: pass", Limits(0.5, 1000), "time"),
        ("held = b'x' * 10**9\nwhile True: pass", Limits(60, 100), "memory"),
    ):
        process = start_python(["-c", code], **QUIET)
        with pytest.raises(LimitReachedError) as caught:
            wait_within_limits(process, limits)
        assert caught.value.limit == limit
        kill_group(process)
        assert process.returncode == -signal.SIGKILL


def test_memory_is_that_of_the_whole_group():
    """Test that memory of a grandchild counts."""
    grandchild = "held = b'x' * 200_000_000; print(flush=True); import time; time.sleep(600)"
    process = start_python(
        ["-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"]
    )
    process.stdout.readline()
    assert measure_memory_mb(process.pid) > 200_000_000 / 2**20
    kill_group(process)
    process.stdout.close()
    process.stdin.close()


@pytest.mark.parametrize(
    ("returncode", "message"),
    [
        (0, "ended without an answer, as if it had called exit"),
        (-signal.SIGKILL, "ended by SIGKILL, as happens when memory runs out; it may use 600 MB"),
        (-signal.SIGABRT, "gave up (SIGABRT), as libraries do when memory runs out; it may use 600 MB"),
        (-signal.SIGSEGV, "crashed (SIGSEGV)"),
    ],
)
def test_how_a_child_ended_is_one_sentence(returncode, message):
    assert message in describe_exit(returncode, 600)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize(
    ("trap", "timeout_s", "sent"), [("", 30, signal.SIGTERM), ("trap '' TERM;", 0.1, signal.SIGKILL)]
)
def test_stopping_a_program_asks_first(trap, timeout_s, sent, tmp_path):
    ready = tmp_path / "ready"
    process = start_program(["sh", "-c", f"{trap} touch {ready}; sleep 600; true"])
    while not ready.exists():
        pass
    stop_group(process, timeout_s)
    assert process.returncode == -sent
    stop_group(process, timeout_s)  # has no effect


@linux_only
@pytest.mark.parametrize(
    "child",
    [
        f"{SERVE}import os; print(os.getpid(), file=sys.stderr, flush=True); serve_requests(lambda message: message)",
        "import time; from vseg._support.subprocesses import exit_with_parent; exit_with_parent()\n"
        "import os; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)",
    ],
    ids=["serve_requests", "exit_with_parent"],
)
def test_a_child_ends_when_its_parent_is_killed(child):
    program = (
        "import time; from vseg._support.subprocesses import start_python\n"
        f"child = start_python(['-c', {'import sys; ' + child!r}], stderr=None); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    orphan = os.pidfd_open(int(parent.stderr.readline()))
    parent.kill()
    assert select.select([orphan], [], [], 30)[0]  # readable once it has ended
    parent.communicate()
