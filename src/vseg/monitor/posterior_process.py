"""Posteriors in the background: asked for by pages again and again, worked out one at a time, beside the server.

Whoever asks gets at once what is there, and what is not is begun. Questions wait in a line, one for each subject: newer
answers replace a question that waits, and one that nobody has asked for lately is dropped. The one being worked out
is finished even if newer answers have come, since a busy study would never see a result otherwise; it is given up when
nobody looks any more, or when it takes too long. The work is done by a process of its own (`believing`), so that the
requests of participants share neither the interpreter nor, by its niceness, much of the processor with it.
"""

import hashlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from vseg.errors import VsegError
from vseg.monitor.posterior_summary import Believed, Question

MOST_KEPT = 128
FORGOTTEN_S = 30.0  # pages that are open ask every few seconds
LONGEST_S = 600.0  # the first one may have to be compiled
REST = 3.0  # times as long as the last one of a subject took, before a newer one of it begins
IDLE_S = 30.0  # without a question, after which the process ends
LOOK_S = 0.25
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
TOO_LONG = (
    f"The posterior took longer than {LONGEST_S:.0f} s and was given up; export the data and call: "
    "vseg fit FOLDER --method posterior."
)
STOPPED = "The process that works out posteriors stopped; perhaps there was not enough memory."

Make = Callable[[], Question]


@dataclass(frozen=True)
class Standing:
    """How a question stands: what is known, if anything, and whether a newer one is on its way.

    `mark` names what is known, and `failed` says why the newest one is not.
    """

    latest: Believed | None
    mark: str
    is_current: bool
    failed: str = ""

    @property
    def is_coming(self) -> bool:
        """Whether something new will be there soon."""
        return not (self.is_current or self.failed)


@dataclass
class _Asked:
    subject: Hashable
    version: str
    make: Make
    asked_s: float
    began_s: float = 0.0


@dataclass
class _Known:
    version: str = ""
    mark: str = ""
    failed_version: str = ""
    failed: str = ""
    rested_s: float = 0.0


class Posteriors:
    """All posteriors of this process; any thread may ask."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: OrderedDict[Hashable, _Asked] = OrderedDict()
        self._running: _Asked | None = None
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()
        self._found: OrderedDict[tuple[Hashable, str], Believed] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, subject: Hashable, version: str, make: Make) -> Standing:
        """What is known of a subject; where that is not this version, `make` is called in the background.

        A subject is who and what a question is about, a version the answers it follows from.
        """
        with self._changed:
            known = self._known.setdefault(subject, _Known())
            self._known.move_to_end(subject)
            while len(self._known) > 4 * MOST_KEPT:
                self._known.popitem(last=False)
            if version not in (known.version, known.failed_version) and not self._closed:
                self._enqueue(_Asked(subject, version, make, self._clock()))
            else:
                self._waiting.pop(subject, None)
            latest = self._found.get((subject, known.mark))
            if latest is None and known.version == version:  # it had to make room
                known.version = ""
            # While it rests, what failed with the answers before is all there is to say.
            rests = self._clock() < known.rested_s
            failed = known.failed if known.failed_version == version or rests else ""
            return Standing(latest, known.mark, latest is not None and known.version == version, failed)

    def found(self, mark: str, subject: Hashable) -> Believed | None:
        """What an earlier `Standing` of this subject named by this mark, if it is still kept."""
        with self._changed:
            return self._found.get((subject, mark))

    def wait(self, seconds: float) -> None:
        """Until one is there, or has failed, or so long."""
        with self._changed:
            self._changed.wait(seconds)

    def close(self) -> None:
        """Give up what is being worked out; nothing more is begun."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _enqueue(self, asked: _Asked) -> None:
        running = self._running
        if running is not None and running.subject == asked.subject:
            running.asked_s = asked.asked_s
            if running.version == asked.version:
                return
        waiting = self._waiting.setdefault(asked.subject, asked)  # newer answers keep the place in the line
        waiting.version, waiting.make, waiting.asked_s = asked.version, asked.make, asked.asked_s
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="vseg-posteriors", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        with _Child() as child:
            while (asked := self._next()) is not None:
                came: Believed | str | None
                try:
                    came = child.answer(asked.make(), partial(self._is_given_up, asked))
                except VsegError as error:
                    came = str(error)
                except Exception as error:
                    came = f"The answers could not be read: {type(error).__name__}: {error}"
                self._note(asked, came)

    def _next(self) -> _Asked | None:
        """The question that has waited longest, of those that are due; None when nobody has asked for a while."""
        until = self._clock() + IDLE_S
        with self._changed:
            while True:
                now = self._clock()
                for subject in [
                    each.subject for each in self._waiting.values() if now - each.asked_s > FORGOTTEN_S
                ]:
                    del self._waiting[subject]
                due = [each for each in self._waiting.values() if self._rested_s(each.subject) <= now]
                if due:
                    until = now + IDLE_S
                    self._running = self._waiting.pop(due[0].subject)
                    self._running.began_s = now
                    return self._running
                if self._closed or now > until:
                    self._thread = None
                    return None
                self._changed.wait(LOOK_S if self._waiting else until - now + LOOK_S)

    def _rested_s(self, subject: Hashable) -> float:
        known = self._known.get(subject)
        return known.rested_s if known else 0.0

    def _is_given_up(self, asked: _Asked) -> bool:
        return self._closed or self._clock() - asked.asked_s > FORGOTTEN_S

    def _note(self, asked: _Asked, came: Believed | str | None) -> None:
        with self._changed:
            self._running = None
            known = self._known.setdefault(asked.subject, _Known())
            if isinstance(came, Believed):
                known.version, known.mark = asked.version, _mark(asked)
                known.failed_version = known.failed = ""
                known.rested_s = self._clock() + REST * came.seconds
                self._found[asked.subject, known.mark] = came
                self._found.move_to_end((asked.subject, known.mark))
                while len(self._found) > MOST_KEPT:
                    self._found.popitem(last=False)
            elif came is not None:
                known.failed_version, known.failed = asked.version, came
                now = self._clock()
                known.rested_s = now + REST * (now - asked.began_s)
            self._changed.notify_all()


class _Child:
    """The process, started when it is needed; one that was given up is replaced by another."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def answer(self, asked: Question, is_given_up: Callable[[], bool]) -> Believed | str | None:
        """What came of a question; None if it was given up."""
        if is_given_up():  # while its answers were read
            return None
        process = self._started()
        replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_exchange, args=(process, asked, replies), daemon=True).start()
        until = time.monotonic() + LONGEST_S
        while True:
            try:
                came: Believed | str | None = replies.get(timeout=LOOK_S)
            except queue.Empty:
                if is_given_up():
                    self._end()
                    return None
                if time.monotonic() > until:
                    self._end()
                    return TOO_LONG
            else:
                if came is None:
                    self._end()
                    return STOPPED
                return came

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            command = [sys.executable, "-m", "vseg.monitor.posterior_worker"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # Ctrl+C is the server's to answer
            )  # fmt: skip
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with suppress(OSError):  # what was to be written has nobody to read it
                    pipe.close()
            self._process = None


def _exchange(process: "subprocess.Popen[bytes]", asked: Question, replies: "queue.SimpleQueue[Any]") -> None:
    """Send a question and wait for its reply; None if the process ends first."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(asked, process.stdin)
        process.stdin.flush()
        replies.put(pickle.load(process.stdout))
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        replies.put(None)


def _mark(asked: _Asked) -> str:
    return hashlib.blake2b(repr((asked.subject, asked.version)).encode(), digest_size=9).hexdigest()
