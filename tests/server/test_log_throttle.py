"""Repeated log messages are written once in a while, with the number of repetitions."""

import logging
import socket
from urllib.parse import urlsplit

import pytest

from servers import STUDY, run_server_process
from vseg.server.log_throttle import INTERVAL_S, MAX_MESSAGES, LogThrottle


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def logged():
    """Return a throttled logger, its clock, and the lines it has written."""
    clock, lines = Clock(), []
    log = logging.Logger("test")
    log.addFilter(LogThrottle(clock))
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    return log, clock, lines


def test_a_message_is_written_once_per_interval(logged):
    log, clock, lines = logged
    for _ in range(1000):
        log.error("%s: %s", "VsegError", "the database is away")
    log.error("%s: %s", "VsegError", "the disk is full")
    assert lines == ["VsegError: the database is away", "VsegError: the disk is full"]
    clock.now += INTERVAL_S
    log.error("%s: %s", "VsegError", "the database is away")
    log.error("%s: %s", "VsegError", "the disk is full")
    assert lines[2:] == [
        "VsegError: the database is away (repeated 999 times since the last line)",
        "VsegError: the disk is full",
    ]


def test_another_exception_with_the_same_message_is_written(logged):
    log, _, lines = logged
    for failure in (ValueError, KeyError, ValueError):
        try:
            raise failure
        except failure:
            log.exception("Exception in ASGI application")
    assert len(lines) == 2


def test_the_number_of_remembered_messages_is_limited(logged):
    log, _, lines = logged
    for number in range(3 * MAX_MESSAGES):
        log.warning("number %d", number)
    assert len(lines) == 3 * MAX_MESSAGES
    assert len(log.filters[0]._logged) == MAX_MESSAGES


def test_invalid_requests_do_not_fill_the_log(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    with run_server_process(study, "--db", f"sqlite:///{tmp_path}/vseg.db") as server:
        address = urlsplit(server.link("participants"))
        for _ in range(50):
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(b"nonsense\r\n\r\n")
                assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        _, _, log = server.stop()
    assert log.count("Invalid HTTP request") in (1, 2), log  # two if the requests took ten seconds
