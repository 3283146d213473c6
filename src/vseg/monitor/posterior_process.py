"""Compute posteriors in the background, one at a time, in a child process of the server.

Pages request a posterior repeatedly and get the latest one at once; a missing one is queued. The queue holds one
request for each subject: newer answers replace a request that waits, and a request that was not repeated lately is
dropped. The request that is being computed is finished even if newer answers have come, since a busy study would never
see a result otherwise; it is given up if it is not requested any more, or if it takes too long. The work is done by a
child process with low priority (posterior_worker), so that it slows the requests of participants as little as possible.
"""

import hashlib
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from vseg._support.subprocesses import ONE_THREAD, ChildEndedError, PipeWorker
from vseg.errors import VsegError
from vseg.monitor.posterior_summary import PosteriorInputs, PosteriorSummary

MAX_CACHED = 128
FORGET_AFTER_S = 30.0  # open pages repeat their requests every few seconds
LONGEST_S = 600.0  # the first posterior may have to be compiled
PAUSE_FACTOR = 3.0  # pause before a subject is computed again, in durations of its last computation
IDLE_S = 30.0  # without a request, after which the child ends
POLL_S = 0.25
TOO_LONG = (
    f"The posterior took longer than {LONGEST_S:.0f} s and was given up; export the data and compute it with "
    "vseg.posterior."
)
STOPPED = "The process that computes posteriors stopped; perhaps there was not enough memory."

CollectInputs = Callable[[], PosteriorInputs]


@dataclass(frozen=True)
class PosteriorStatus:
    """The latest posterior of a subject, if any, and whether a newer one is being computed.

    `mark` identifies the latest one; `failed` says why the newest one could not be computed.
    """

    latest: PosteriorSummary | None
    mark: str
    is_current: bool
    failed: str = ""

    @property
    def is_pending(self) -> bool:
        """Whether a newer posterior will be there soon."""
        return not (self.is_current or self.failed)


@dataclass
class _Request:
    """A request in the queue; times are those of the service's clock."""

    subject: Hashable
    version: str
    collect_inputs: CollectInputs
    requested_s: float
    started_s: float = 0.0


@dataclass
class _SubjectState:
    """The version of the latest posterior of a subject, and of the latest failure."""

    version: str = ""
    mark: str = ""
    failed_version: str = ""
    failed: str = ""
    pause_until_s: float = 0.0


class GivenUpError(Exception):
    """Nobody requests the posterior any more, or the service is closed."""


class PosteriorService:
    """All posteriors of this process; any thread may request them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: OrderedDict[Hashable, _Request] = OrderedDict()
        self._running: _Request | None = None
        self._states: OrderedDict[Hashable, _SubjectState] = OrderedDict()
        self._cache: OrderedDict[tuple[Hashable, str], PosteriorSummary] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._closed = False

    def request(self, subject: Hashable, version: str, collect_inputs: CollectInputs) -> PosteriorStatus:
        """Return the latest posterior of a subject; if it is not of this version, compute that in the background.

        A subject is what a posterior is about, such as an image and a participant; a version identifies the answers
        that it follows from. `collect_inputs` is called in the background.
        """
        with self._changed:
            state = self._states.setdefault(subject, _SubjectState())
            self._states.move_to_end(subject)
            while len(self._states) > 4 * MAX_CACHED:
                self._states.popitem(last=False)
            if version not in (state.version, state.failed_version) and not self._closed:
                self._enqueue(_Request(subject, version, collect_inputs, self._clock()))
            else:
                self._waiting.pop(subject, None)
            latest = self._cache.get((subject, state.mark))
            if latest is None and state.version == version:  # it was dropped from the cache
                state.version = ""
            # During the pause after a failure nothing is computed, so the message about the earlier answers is shown.
            is_pausing = self._clock() < state.pause_until_s
            failed = state.failed if state.failed_version == version or is_pausing else ""
            is_current = latest is not None and state.version == version
            return PosteriorStatus(latest, state.mark, is_current, failed)

    def find(self, subject: Hashable, mark: str) -> PosteriorSummary | None:
        """Return the posterior with the mark of an earlier `PosteriorStatus`, if it is still in the cache."""
        with self._changed:
            return self._cache.get((subject, mark))

    def wait(self, seconds: float) -> None:
        """Wait until a posterior was computed or has failed, at most this number of seconds."""
        with self._changed:
            self._changed.wait(seconds)

    def close(self) -> None:
        """Give up what is being computed, and begin nothing more."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _enqueue(self, request: _Request) -> None:
        if self._thread is not None and not self._thread.is_alive():  # it has died
            self._thread = self._running = None
        running = self._running
        if running is not None and running.subject == request.subject:
            running.requested_s = request.requested_s
            if running.version == request.version:
                return
        waiting = self._waiting.setdefault(
            request.subject, request
        )  # newer answers keep the place in the queue
        waiting.version, waiting.collect_inputs = request.version, request.collect_inputs
        waiting.requested_s = request.requested_s
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="vseg-posteriors", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        with _PosteriorChild() as child:
            while (request := self._next()) is not None:
                result: PosteriorSummary | str | None
                try:
                    result = child.compute(request.collect_inputs(), partial(self._is_given_up, request))
                except VsegError as error:
                    result = str(error)
                except Exception as error:
                    result = f"The answers could not be read: {type(error).__name__}: {error}"
                self._store(request, result)

    def _next(self) -> _Request | None:
        """Return the request that has waited longest and is due; None if there was none for a while."""
        until = self._clock() + IDLE_S
        with self._changed:
            while True:
                now = self._clock()
                forgotten = [
                    request.subject
                    for request in self._waiting.values()
                    if now - request.requested_s > FORGET_AFTER_S
                ]
                for subject in forgotten:
                    del self._waiting[subject]
                due = [
                    request
                    for request in self._waiting.values()
                    if self._pause_until_s(request.subject) <= now
                ]
                if due:
                    until = now + IDLE_S
                    self._running = self._waiting.pop(due[0].subject)
                    self._running.started_s = now
                    return self._running
                if self._closed or now > until:
                    self._thread = None
                    return None
                self._changed.wait(POLL_S if self._waiting else until - now + POLL_S)

    def _pause_until_s(self, subject: Hashable) -> float:
        state = self._states.get(subject)
        return state.pause_until_s if state else 0.0

    def _is_given_up(self, request: _Request) -> bool:
        return self._closed or self._clock() - request.requested_s > FORGET_AFTER_S

    def _store(self, request: _Request, result: PosteriorSummary | str | None) -> None:
        """Store a posterior or a failure; None is a request that was given up."""
        with self._changed:
            self._running = None
            state = self._states.setdefault(request.subject, _SubjectState())
            if isinstance(result, PosteriorSummary):
                state.version, state.mark = request.version, _make_mark(request)
                state.failed_version = state.failed = ""
                state.pause_until_s = self._clock() + PAUSE_FACTOR * result.seconds
                self._cache[request.subject, state.mark] = result
                self._cache.move_to_end((request.subject, state.mark))
                while len(self._cache) > MAX_CACHED:
                    self._cache.popitem(last=False)
            elif result is not None:
                state.failed_version, state.failed = request.version, result
                now = self._clock()
                state.pause_until_s = now + PAUSE_FACTOR * (now - request.started_s)
            self._changed.notify_all()


class _PosteriorChild:
    """The child process: started when it is needed, and again after it was killed."""

    def __init__(self) -> None:
        self._worker: PipeWorker | None = None

    def __enter__(self) -> "_PosteriorChild":
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.kill()

    def compute(
        self, inputs: PosteriorInputs, is_given_up: Callable[[], bool]
    ) -> PosteriorSummary | str | None:
        """Return the posterior, or a sentence if there is none; None if the request was given up."""
        if is_given_up():  # while its answers were read
            return None
        deadline = time.monotonic() + LONGEST_S

        def check() -> None:
            if is_given_up():
                raise GivenUpError
            if time.monotonic() > deadline:
                raise TimeoutError

        worker = self._worker or PipeWorker(["-m", "vseg.monitor.posterior_worker"], environment=ONE_THREAD)
        self._worker = None  # after an exception it has been killed
        try:
            reply = worker.request(pickle.dumps(inputs), check)
        except GivenUpError:
            return None
        except TimeoutError:
            return TOO_LONG
        except ChildEndedError:
            return STOPPED
        self._worker = worker
        result: PosteriorSummary | str = pickle.loads(reply)
        return result


def _make_mark(request: _Request) -> str:
    return hashlib.blake2b(repr((request.subject, request.version)).encode(), digest_size=9).hexdigest()
