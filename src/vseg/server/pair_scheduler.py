"""Choosing pairs in the background: a thread or two for all sessions of this process, never the hot route.

A session that has few chosen trials left asks for more; who has the fewest is served first. A second thread helps only
where someone is about to run out: otherwise it would take the core from those whose answers are being stored. A job
brings the state of the session (of the image, where people share it) up to date from the database, chooses, stores,
and only then lets replies know. If it comes too late, the page has shown the pair that was fixed when the session
began, and said so.
"""

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from vseg import store
from vseg.adaptive.chooser import rehearse, seed_of
from vseg.server.adaptive_history import Knowledge
from vseg.server.lazy_app import IMPORT_LOCK, LOAD_DELAY_S
from vseg.server.pending_choices import Ahead, Need
from vseg.store.choices import ChoiceBatch, EarlyStop, SessionBasis

THREADS = min(2, os.cpu_count() or 1)
HURRY, LOOK_AGAIN_S = 3, 0.2  # the second thread helps whoever has so few trials left
MOST_STATES = 256
LEAST_AHEAD, MOST_AHEAD = 4, 32  # trials: a choice made after one reply travels with the next
QUICK_ANSWER_S = 0.4
FINISH_S = 5
PATIENCE = 4  # trials to wait after a job that chose nothing

log = logging.getLogger("vseg.server")


class Adapting:
    """Everybody's choices; `heard` is all that the hot route calls."""

    def __init__(self, db: store.Database, threads: int = THREADS):
        self._db, self._most_threads = db, threads
        self._changed = threading.Condition()
        self._waiting: dict[int, tuple[Ahead, float]] = {}  # by session, and since when
        self._busy: set[tuple[str, int]] = set()
        self._threads: list[threading.Thread] = []
        self._states: OrderedDict[tuple[tuple[str, int], str], Knowledge] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self._turn_s = 0.2  # from a wish to stored choices, lately

    def heard(self, ahead: Ahead, records: Iterable[Mapping[str, Any]] = ()) -> None:
        """Take note of what a session answered, and choose more if few are left."""
        if not self._threads:
            self._rehearse()
        ahead.answered([record["item"] for record in records if record["kind"] == "response"])
        if ahead.asked >= ahead.quiet_until and ahead.need(self._margin(ahead)) is not None:
            self._want(ahead)

    def is_choosing(self, ahead: Ahead) -> bool:
        """Whether choices for this session are under way."""
        return ahead.session in self._waiting or _key(ahead) in self._busy

    def close(self) -> None:
        """Finish what is being chosen, if that does not take long, and no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(FINISH_S)

    def _margin(self, ahead: Ahead) -> int:
        timing = ahead.study.study.timing
        trial_s = (timing.cue_ms + timing.image_ms + timing.pause_ms) / 1000 + QUICK_ANSWER_S
        return min(max(LEAST_AHEAD, 2 + math.ceil(2 * self._turn_s / trial_s)), MOST_AHEAD)

    def _want(self, ahead: Ahead) -> None:
        with self._changed:
            if self._closed or ahead.session in self._waiting:
                return
            self._waiting[ahead.session] = ahead, time.monotonic()
            if len(self._threads) < self._most_threads:
                self._start(helps=len(self._threads) > 0)
            self._changed.notify_all()

    def _rehearse(self) -> None:
        """Load the engine while fixed pairs are answered, before the first choice is wanted."""
        with self._changed:
            if not self._threads and not self._closed:
                self._start(helps=False)

    def _start(self, *, helps: bool) -> None:
        thread = threading.Thread(target=self._run, args=(helps,), name="vseg-adapting", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _rehearsed(self) -> None:
        with self._changed:  # after a restart those who answer come first, as before the researchers' part
            self._changed.wait_for(lambda: self._closed, LOAD_DELAY_S)
        try:
            with IMPORT_LOCK:
                import_module("vseg.adaptive.acquisition")
            rehearse()
        except Exception:  # whoever is served first meets it again, and goes on with the pairs they have
            log.exception("Choosing pairs could not be rehearsed.")

    def _run(self, helps: bool) -> None:
        if not helps:
            self._rehearsed()
        while True:
            with self._changed:
                while (taken := self._next(helps)) is None and not self._closed:
                    self._changed.wait(LOOK_AGAIN_S if helps and self._waiting else None)
                if taken is None or self._closed:
                    return
                ahead, since = taken
            try:
                self._serve(ahead)
                self._turn_s += 0.2 * (time.monotonic() - since - self._turn_s)
            except Exception:  # the session goes on with the pairs it has
                if not self._closed:
                    log.exception("Choosing pairs for session %s failed.", ahead.name)
                self._forget(ahead)
                ahead.quiet_until = ahead.asked + PATIENCE
            finally:
                with self._changed:
                    self._busy.discard(_key(ahead))
                    self._changed.notify_all()

    def _next(self, helps: bool) -> tuple[Ahead, float] | None:
        """Whoever has the fewest trials left, of those whose state nobody else is at."""
        free = [(ahead, since) for ahead, since in self._waiting.values() if _key(ahead) not in self._busy]
        if not free:
            return None
        ahead, since = min(free, key=lambda each: (_left(each[0]), each[1]))
        if helps and _left(ahead) > HURRY:
            return None
        self._busy.add(_key(ahead))  # first: at no moment is it neither waiting nor busy
        del self._waiting[ahead.session]
        return ahead, since

    def _serve(self, ahead: Ahead) -> None:
        ahead.reload(self._db)
        need = ahead.need(self._margin(ahead))
        if need is None:  # another worker was quicker
            return
        ahead.quiet_until = ahead.asked + PATIENCE
        with self._db.reading() as connection:
            known = self._known(connection, ahead, need.part.image)
            known.take_all(connection, ahead.session)
        if known.chooser.answers < known.least:
            self._forget(ahead)
        elif (stop := _stop(ahead, need, known)) is not None:
            store.choices.save_stop(self._db, ahead.session, ahead.name, stop)
            ahead.reload(self._db)
            self._forget(ahead)
        else:
            self._choose(ahead, need, known)

    def _choose(self, ahead: Ahead, need: Need, known: Knowledge) -> None:
        # More at once when choosing takes long.
        size = max(known.chooser.batch_size(), 2 * self._margin(ahead))
        batch = _chosen(ahead, need, known, size)
        number = store.choices.save_batch(self._db, batch, after=known.last, session_ids=list(known.sessions))
        if number is None:
            ahead.reload(self._db)  # another worker's choices, if that is why, can be told at once
            self._forget(ahead)
            return
        known.last = number
        pairs = dict(zip(batch.items, zip(batch.i, batch.j, strict=True), strict=True))
        known.given[ahead.session] |= pairs
        ahead.choices = ahead.choices | pairs
        ahead.quiet_until = -1

    def _known(self, connection: Any, ahead: Ahead, image: str) -> Knowledge:
        """What was known last, if that still holds; else nothing, to be read anew in the order of the batches."""
        key, sessions = (_key(ahead), image), Knowledge.of_whom(connection, ahead, image)
        known = self._states.get(key)
        if known is None or not known.holds(connection, sessions):
            known = Knowledge(ahead.study.study, image, sessions)
            known.take_in_order(connection)
        known.sessions = sessions
        with self._lock:  # not the one that the hot route may wait for
            self._states[key] = known
            self._states.move_to_end(key)
            while len(self._states) > MOST_STATES:
                self._states.popitem(last=False)
        return known

    def _forget(self, ahead: Ahead) -> None:
        """Nothing was stored: a crowd's answers are to be taken anew, since batches alone tell their order."""
        if ahead.study.study.design.shared:
            with self._lock:
                for key in [key for key in self._states if key[0] == _key(ahead)]:
                    del self._states[key]


def _stop(ahead: Ahead, need: Need, known: Knowledge) -> EarlyStop | None:
    """Where the questions end, if the image is known well enough."""
    study, own = ahead.study.study, len(known.good[ahead.session])
    if study.design.target_error is None or own < study.fewest_pairs:
        return None
    if (error := known.chooser.expected_error) > study.design.target_error:
        return None
    part = need.part
    return EarlyStop(part.image, max(ahead.asked + 1, part.items[0]), part.until, own, error)


def _chosen(ahead: Ahead, need: Need, known: Knowledge, size: int) -> ChoiceBatch:
    study, image = ahead.study.study, need.part.image
    pending, items = known.pending(ahead, need), list(need.part.items[need.first : need.first + size])
    seed = seed_of(study, image, ahead.name, items[0])
    i, j = known.chooser.choose(len(items), pending=pending.pairs, seed=seed)
    items = items[: len(i)]  # fewer pairs may be left that nobody was asked
    taken = {
        session: SessionBasis(
            records, items[0] if session == ahead.session else pending.ahead.get(session, 0)
        )
        for session, records in known.records.items()
    }
    return ChoiceBatch(
        ahead.session, ahead.name, image, str(study.design.rule), seed, known.chooser.answers,
        known.chooser.expected_error, taken, items, i, j,
    )  # fmt: skip


def _left(ahead: Ahead) -> int:
    need = ahead.need(10**6)
    return need.left if need else 10**6


def _key(ahead: Ahead) -> tuple[str, int]:
    """What only one thread is at: the states of a session, or of a study whose people share them."""
    shared = ahead.study.study.design.shared
    return ("study", ahead.study.id) if shared else ("session", ahead.session)
