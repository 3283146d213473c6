"""PairScheduler: chooses the pairs of adaptive sessions in background threads, outside of requests.

A session with few chosen trials left requests more pairs; the session with the fewest is served first. A second thread
helps only when a session is about to run out: otherwise it would take the core from requests that store answers. A job
brings the chooser of the session (or of the image, if sessions share it) up to date from the database, chooses a batch,
stores it, and only then makes it available to replies. If a choice comes too late, the page has shown the pair that was
fixed when the session began, and reports so.
"""

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from vseg import store
from vseg.adaptive.chooser import Chooser, derive_seed, warm_up_chooser
from vseg.adaptive.history import AdaptiveAnswer, Pair
from vseg.server.lazy_app import IMPORT_LOCK, LOAD_DELAY_S
from vseg.server.session_choices import NeededPairs, SessionChoices
from vseg.store.choices import ChoiceBatch, ContributingSession, EarlyStop, SessionBasis
from vseg.study.schema import Study

if TYPE_CHECKING:
    from sqlalchemy import Connection

MAX_THREADS = min(2, os.cpu_count() or 1)
URGENT_TRIALS = 3  # the second thread serves only sessions with at most this many trials left
RECHECK_S = 0.2
MAX_CHOOSERS = 256
MIN_MARGIN, MAX_MARGIN = 4, 32  # trials: a choice made after one reply is sent with the next
QUICK_ANSWER_S = 0.4
CLOSE_TIMEOUT_S = 5
RETRY_AFTER = 4  # trials to wait after a job that chose nothing
IDLE_S = 300  # a session without answers for this long is not expected to answer the pairs chosen for it
REFRESH_S = 1.0  # shared answers are read this often; requests in between use the same draws
MAX_PENDING = 200  # pairs of other sessions that a choice takes into account

Key = tuple[str, int]

log = logging.getLogger("vseg.server")


class PairScheduler:
    """Chooses pairs for all sessions of this process; requests call only `note_records` and `is_choosing`."""

    def __init__(self, db: store.Database, max_threads: int = MAX_THREADS):
        self._db, self._max_threads = db, max_threads
        self._changed = threading.Condition()
        self._waiting: dict[
            int, tuple[SessionChoices, float]
        ] = {}  # by session, with the time of the request
        self._busy: set[Key] = set()
        self._threads: list[threading.Thread] = []
        self._choosers: OrderedDict[tuple[Key, str], LiveChooser] = OrderedDict()
        self._lock = threading.Lock()  # of the choosers; requests never wait for it
        self._closed = False
        self._latency_s = 0.2  # from a request to stored choices, averaged over the last ones

    def note_records(self, choices: SessionChoices, records: Iterable[Mapping[str, Any]] = ()) -> None:
        """Take note of the records that a session has sent, and request more pairs if few are left."""
        if not self._threads:
            self._start_first_thread()
        choices.note_answered([record["item"] for record in records if record["kind"] == "response"])
        if choices.last_item >= choices.quiet_until and choices.find_need(self._margin(choices)) is not None:
            self._request(choices)

    def is_choosing(self, choices: SessionChoices) -> bool:
        """Return whether pairs are being chosen for this session."""
        return choices.session in self._waiting or _get_key(choices) in self._busy

    def close(self) -> None:
        """Stop all threads; wait a little for choices under way."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(CLOSE_TIMEOUT_S)

    def _margin(self, choices: SessionChoices) -> int:
        """Return how many trials before a session runs out it should request more pairs."""
        timing = choices.study.study.timing
        trial_s = (timing.cue_ms + timing.image_ms + timing.pause_ms) / 1000 + QUICK_ANSWER_S
        return min(max(MIN_MARGIN, 2 + math.ceil(2 * self._latency_s / trial_s)), MAX_MARGIN)

    def _request(self, choices: SessionChoices) -> None:
        with self._changed:
            if self._closed or choices.session in self._waiting:
                return
            self._waiting[choices.session] = choices, time.monotonic()
            self._threads = [thread for thread in self._threads if thread.is_alive()]  # one may have died
            if len(self._threads) < self._max_threads:
                self._start_thread(is_helper=len(self._threads) > 0)
            self._changed.notify_all()

    def _start_first_thread(self) -> None:
        """Start the first thread, which loads the engine while fixed pairs are answered."""
        with self._changed:
            if not self._threads and not self._closed:
                self._start_thread(is_helper=False)

    def _start_thread(self, *, is_helper: bool) -> None:
        thread = threading.Thread(
            target=self._run, args=(is_helper,), name="vseg-pair-scheduler", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _preload(self) -> None:
        with self._changed:  # after a restart requests come first, as they do before the researchers' pages
            self._changed.wait_for(lambda: self._closed, LOAD_DELAY_S)
        try:
            with IMPORT_LOCK:
                import_module("vseg.adaptive.acquisition")
            warm_up_chooser()
        except Exception:
            # The first choice will fail in the same way, and its session continues with its fixed pairs.
            log.exception("The adaptive engine could not be loaded.")

    def _run(self, is_helper: bool) -> None:
        if not is_helper:
            self._preload()
        while True:
            with self._changed:
                while (job := self._take_job(is_helper)) is None and not self._closed:
                    self._changed.wait(RECHECK_S if is_helper and self._waiting else None)
                if job is None or self._closed:
                    return
                choices, requested_s = job
            try:
                self._serve(choices)
                self._latency_s += 0.2 * (time.monotonic() - requested_s - self._latency_s)
            except Exception:  # the session goes on with the pairs it has
                if not self._closed:
                    log.exception("Choosing pairs for session %s failed.", choices.name)
                self._forget(choices)
                choices.quiet_until = choices.last_item + RETRY_AFTER
            finally:
                with self._changed:
                    self._busy.discard(_get_key(choices))
                    self._changed.notify_all()

    def _take_job(self, is_helper: bool) -> tuple[SessionChoices, float] | None:
        """Take the waiting session with the fewest trials left whose chooser is not in use; None if there is none."""
        free = [job for job in self._waiting.values() if _get_key(job[0]) not in self._busy]
        if not free:
            return None
        choices, requested_s = min(free, key=lambda job: (_count_trials_left(job[0]), job[1]))
        if is_helper and _count_trials_left(choices) > URGENT_TRIALS:
            return None
        self._busy.add(_get_key(choices))  # before it is removed: it is always either waiting or busy
        del self._waiting[choices.session]
        return choices, requested_s

    def _serve(self, choices: SessionChoices) -> None:
        """Choose and store a batch for a session, or store that its image is known well enough."""
        choices.reload(self._db)
        need = choices.find_need(self._margin(choices))
        if need is None:  # another worker was quicker
            return
        choices.quiet_until = choices.last_item + RETRY_AFTER
        with self._db.reading() as connection:
            live = self._get_chooser(connection, choices, need.trials.image)
            live.take_new_answers(connection, choices.session)
        if choices.session not in live.sessions or live.chooser.answers < live.min_answers:
            self._forget(choices)
        elif (stop := _find_stop(choices, need, live)) is not None:
            store.choices.save_stop(self._db, choices.session, choices.name, stop)
            choices.reload(self._db)
            self._forget(choices)
        else:
            self._choose(choices, need, live)

    def _choose(self, choices: SessionChoices, need: NeededPairs, live: "LiveChooser") -> None:
        # More pairs at a time if choosing takes long.
        size = max(live.chooser.batch_size, 2 * self._margin(choices))
        batch = _choose_batch(choices, need, live, size)
        number = store.choices.save_batch(
            self._db, batch, after=live.last_batch, session_ids=list(live.sessions)
        )
        if number is None:
            choices.reload(self._db)  # another worker may have chosen; its choices can be sent at once
            self._forget(choices)
            return
        live.last_batch = number
        pairs = dict(zip(batch.items, zip(batch.i, batch.j, strict=True), strict=True))
        live.chooser.history.add_choices(choices.session, pairs)
        choices.pairs = choices.pairs | pairs
        choices.quiet_until = -1

    def _get_chooser(self, connection: "Connection", choices: SessionChoices, image: str) -> "LiveChooser":
        """Return the cached chooser if it is current, else a new one that has taken the stored batches."""
        key, sessions = (_get_key(choices), image), _list_sessions(connection, choices, image)
        live = self._choosers.get(key)
        if live is None or not live.is_current(connection, sessions):
            live = LiveChooser(choices.study.study, image, sessions)
            live.take_stored_batches(connection)
        live.sessions = sessions
        with self._lock:
            self._choosers[key] = live
            self._choosers.move_to_end(key)
            while len(self._choosers) > MAX_CHOOSERS:
                self._choosers.popitem(last=False)
        return live

    def _forget(self, choices: SessionChoices) -> None:
        """Drop a shared chooser that took answers without storing a batch: only batches record the order of answers."""
        if choices.study.study.design.shared:
            with self._lock:
                for key in [key for key in self._choosers if key[0] == _get_key(choices)]:
                    del self._choosers[key]


class OpenPairs(NamedTuple):
    """Pairs that other sessions are to answer, and for each of these sessions the first item behind its pairs."""

    pairs: list[Pair]
    ahead: dict[int, int]


class LiveChooser:
    """The chooser of an image, kept up to date from the database.

    Attributes
    ----------
    chooser : Chooser
    sessions : dict
        The sessions whose answers it takes, by id: one, or all that share their answers about the image.
    min_answers : int
        How many answers it takes before it chooses.
    last_batch : int
        The last batch about the image that it has taken into account.
    """

    def __init__(self, study: Study, image: str, sessions: Mapping[int, ContributingSession]):
        self.chooser: Chooser[int] = Chooser(study, image)
        self.sessions = dict(sessions)
        self.min_answers = study.initial_pairs if study.design.shared else 1
        self.last_batch = 0
        self._image = image
        self._refresh_s = REFRESH_S if study.design.shared else 0.0
        self._refreshed_s = -math.inf
        self._finished: set[int] = set()  # sessions that are over and completely taken
        self._active_s: dict[int, float] = {}  # when records of each session were last taken

    def is_current(self, connection: "Connection", sessions: Mapping[int, ContributingSession]) -> bool:
        """Return whether all sessions it took answers from still exist, and no other worker has chosen since."""
        for session in self.chooser.history.sessions:
            if session not in sessions or sessions[session].name != self.sessions[session].name:
                return False
        return not store.choices.list_bases(connection, self._image, list(sessions), self.last_batch)

    def take_stored_batches(self, connection: "Connection") -> None:
        """Take the answers that stored batches rest on, batch by batch."""
        session_ids = list(self.sessions)
        answers = {
            session: store.choices.read_answers(connection, session).answers for session in session_ids
        }
        for number, basis in store.choices.list_bases(connection, self._image, session_ids).items():
            self.chooser.take_basis(basis, answers)
            self.last_batch = number
        for session, pairs in store.choices.list_chosen_pairs(connection, self._image, session_ids).items():
            self.chooser.history.add_choices(session, pairs)
        self._active_s = dict.fromkeys(self.chooser.history.sessions, time.monotonic())

    def take_new_answers(self, connection: "Connection", asker: int) -> None:
        """Take the answers since; skip this if shared answers, including the asker's, were read a moment ago."""
        taken = self.chooser.history.sessions
        if asker in taken and time.monotonic() - self._refreshed_s < self._refresh_s:
            return
        for session, contributing in self.sessions.items():
            if session in self._finished:
                continue
            before = taken[session].records if session in taken else -1
            new = store.choices.read_answers(connection, session, max(before, 0))
            self._take(session, new.answers, new.records, before)
            if not contributing.is_active:
                self._finished.add(session)
        self._refreshed_s = time.monotonic()

    def _take(self, session: int, answers: list[AdaptiveAnswer], records: int, before: int) -> None:
        if records > before:
            self.chooser.take(session, answers, records)
            self._active_s[session] = time.monotonic()

    def list_open_pairs(self, asker: int) -> OpenPairs:
        """Return the pairs that other sessions are still to answer, at most MAX_PENDING; idle sessions are skipped."""
        others, now = OpenPairs([], {}), time.monotonic()
        for session, history in self.chooser.history.sessions.items():
            if session == asker or now - self._active_s[session] > IDLE_S:
                continue
            choices = history.get_open_choices()
            if choices and len(others.pairs) + len(choices) <= MAX_PENDING:
                others.pairs.extend(choices.values())
                others.ahead[session] = max(choices) + 1
        return others


def _list_sessions(
    connection: "Connection", choices: SessionChoices, image: str
) -> dict[int, ContributingSession]:
    """Return the sessions whose answers count for this one: its own, or all about the image if they are shared."""
    if not choices.study.study.design.shared:
        return {choices.session: ContributingSession(choices.name)}
    return store.choices.list_contributing_sessions(connection, choices.study.id, image)


def _find_stop(choices: SessionChoices, need: NeededPairs, live: LiveChooser) -> EarlyStop | None:
    """Return where to stop asking about the image, or None unless it is known well enough."""
    study = choices.study.study
    own = len(live.chooser.history.sessions[choices.session].answered)
    if study.design.target_error is None or own < study.min_pairs:
        return None
    if (error := live.chooser.expected_error) > study.design.target_error:
        return None
    trials = need.trials
    return EarlyStop(trials.image, max(choices.last_item + 1, trials.items[0]), trials.until, own, error)


def _choose_batch(choices: SessionChoices, need: NeededPairs, live: LiveChooser, size: int) -> ChoiceBatch:
    """Choose pairs for the next items of a session, given what it and other sessions are still to answer."""
    study, chooser, image = choices.study.study, live.chooser, need.trials.image
    own = chooser.history.sessions[choices.session].list_unanswered(need.iterate_fixed())
    others = live.list_open_pairs(choices.session)
    items = list(need.trials.items[need.first : need.first + size])
    seed = derive_seed(study, image, choices.name, items[0])
    i, j = chooser.choose(len(items), pending=own + others.pairs, seed=seed)
    items = items[: len(i)]  # fewer pairs may be left that were not asked
    ahead = others.ahead | {choices.session: items[0]}
    basis = {
        session: SessionBasis(history.records, ahead.get(session, 0))
        for session, history in chooser.history.sessions.items()
    }
    return ChoiceBatch(
        choices.session, choices.name, image, str(study.design.rule), seed, chooser.answers,
        chooser.expected_error, basis, items, i, j,
    )  # fmt: skip


def _count_trials_left(choices: SessionChoices) -> int:
    need = choices.find_need(10**6)
    return need.left if need else 10**6


def _get_key(choices: SessionChoices) -> Key:
    """Return what only one thread works on at a time: a session, or a study whose sessions share their answers."""
    shared = choices.study.study.design.shared
    return ("study", choices.study.id) if shared else ("session", choices.session)
