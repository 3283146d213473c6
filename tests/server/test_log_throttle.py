"""The log says the same thing once in a while, and how often it would have."""

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
    """A logger of its own, its clock, and the lines that came through."""
    clock, lines = Clock(), []
    log = logging.Logger("tried")
    log.addFilter(LogThrottle(clock))
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    return log, clock, lines


def test_the_same_words_once_every_ten_seconds(logged):
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


def test_another_failure_under_the_same_words_is_told(logged):
    log, _, lines = logged
    for failure in (ValueError, KeyError, ValueError):
        try:
            raise failure
        except failure:
            log.exception("Exception in ASGI application")
    assert len(lines) == 2


def test_what_is_remembered_has_an_end(logged):
    log, _, lines = logged
    for number in range(3 * MAX_MESSAGES):
        log.warning("number %d", number)
    assert len(lines) == 3 * MAX_MESSAGES
    assert len(log.filters[0]._logged) == MAX_MESSAGES


def test_nonsense_does_not_fill_the_log(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    with run_server_process(study, "--db", f"sqlite:///{tmp_path}/vseg.db") as server:
        where = urlsplit(server.link("participants"))
        for _ in range(50):
            with socket.create_connection((where.hostname, where.port)) as connection:
                connection.sendall(b"nonsense\r\n\r\n")
                assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
        _, _, log = server.stop()
    assert log.count("Invalid HTTP request") in (1, 2), log  # two, where ten seconds went by
