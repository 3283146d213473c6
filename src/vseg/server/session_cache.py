"""The sessions in memory that POST /records needs, in a compact form so that thousands fit.

The cache saves a query per request; it does not decide anything. Whether a session still accepts records under its
token is checked by the store's writer in the transaction that stores them. A session whose participant has left or was
erased may therefore stay here until its place is needed: it holds a number, a token's hash and the trials, and nothing
about the participant.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import compress
from operator import not_, or_
from threading import Lock
from typing import Any, Self

from vseg.errors import InvalidInput
from vseg.server.record_validation import DEFAULTS
from vseg.server.session_choices import SessionChoices
from vseg.store.conflicts import EventLimits
from vseg.store.sessions import SessionTrials
from vseg.store.studies import StudyRow
from vseg.study.trials import Trials

MAX_SESSIONS = 5000
MAX_TRIALS = 3_000_000  # of all sessions together; a trial takes 20 bytes, of an adaptive study 32
RECORDS_PER_TRIAL, EXTRA_RECORDS = 4, 1000
EXTRA_EVENTS, EXTRA_CONTOURS = 200, 2

Record = Mapping[str, Any]
"""A validated `Response`, `Event` or `Contours` of record_validation.py."""


class CachedSession:
    """One session: its trials by item, and for an adaptive study the pairs chosen for it."""

    __slots__ = ("_flags", "_image", "_images", "_numbers", "choices", "id", "limits", "study")

    def __init__(self, id: int, study: str, trials: Trials, choices: SessionChoices | None = None):
        self.id = id
        self.study = study
        self.choices = choices
        # No Python loops: after a restart the trials of all sessions are read at once.
        self._images = sorted(set(trials.image))
        image_index = {name: index for index, name in enumerate(self._images)}
        self._image = array("H", map(image_index.__getitem__, trials.image))
        self._numbers = {name: array("i", getattr(trials, name)) for name in ("block", "trial", "i", "j")}
        self._flags = {name: bytes(getattr(trials, name)) for name in ("practice", "catch")}
        images = set(compress(trials.image, map(not_, map(or_, trials.practice, trials.catch))))
        self.limits = EventLimits(EXTRA_EVENTS + len(trials), EXTRA_CONTOURS + len(images))

    @classmethod
    def from_row(cls, study: StudyRow, row: SessionTrials) -> Self:
        """Return the session stored in this row."""
        return cls(row.id, study.name, row.trials, SessionChoices.for_session(study, row))

    def __len__(self) -> int:
        return len(self._image)

    @staticmethod
    def max_records(trials: int) -> int:
        """Return how many records a session with this number of trials may send."""
        return RECORDS_PER_TRIAL * trials + EXTRA_RECORDS

    def build_rows(self, records: Iterable[Record]) -> tuple[list[dict[str, Any]], list[Record]]:
        """Return the responses, with the trial's image and pair filled in, and the events.

        Raise `InvalidInput` for a record that does not belong to this session.
        """
        responses: list[dict[str, Any]] = []
        events: list[Record] = []
        seen: set[int] = set()
        limit = self.max_records(len(self))
        for record in records:
            seq = record["seq"]
            if seq >= limit:
                raise InvalidInput(f"seq {seq} is out of range; this session has fewer than {limit} records.")
            if seq in seen:
                raise InvalidInput(f"seq {seq} comes twice in one post; number records from 0, each once.")
            seen.add(seq)
            if record["kind"] == "response":
                responses.append(self._build_response(record))
            else:
                events.append(record)
        return responses, events

    def _build_response(self, record: Record) -> dict[str, Any]:
        item = record["item"]
        if item >= len(self):
            raise InvalidInput(f"item {item} is not in this session, whose items are 0..{len(self) - 1}.")
        numbers, flags = self._numbers, self._flags
        i, j = self._pair(item, record.get("chosen", False))
        return {
            **DEFAULTS,
            **record,
            "image": self._images[self._image[item]],
            "block": numbers["block"][item], "trial": numbers["trial"][item],
            "i": i, "j": j,
            "practice": flags["practice"][item] == 1, "catch": flags["catch"][item] == 1,
        }  # fmt: skip

    def _pair(self, item: int, is_chosen: bool) -> tuple[int, int]:
        """Return the pair of an item: the adaptively chosen one if the page showed that, else the trial's own."""
        if not is_chosen:
            return self._numbers["i"][item], self._numbers["j"][item]
        if self.choices is None or (pair := self.choices.pairs.get(item)) is None:
            raise InvalidInput(f"No pair was chosen for item {item}; leave out chosen, or set it to false.")
        return pair

    def has_unknown_choices(self, records: Iterable[Record]) -> bool:
        """Return whether records name choices that this process has not loaded: another worker may have made them."""
        return self.choices is not None and any(
            record["kind"] == "response" and record.get("chosen") and record["item"] not in self.choices.pairs
            for record in records
        )


class SessionCache:
    """The most recently used sessions by the hash of their token, limited in sessions and in trials of all sessions."""

    def __init__(self, max_sessions: int = MAX_SESSIONS, max_trials: int = MAX_TRIALS):
        self._max_sessions, self._max_trials = max_sessions, max_trials
        self._trials = 0
        self._sessions: OrderedDict[str, CachedSession] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, token_hash: str) -> bool:
        return token_hash in self._sessions

    def get(self, token_hash: str, study: str) -> CachedSession | None:
        """Return the session of this token in this study, or None if it is not cached."""
        with self._lock:
            session = self._sessions.get(token_hash)
            if session is None or session.study != study:
                return None
            self._sessions.move_to_end(token_hash)
            return session

    def add(self, token_hash: str, session: CachedSession) -> CachedSession:
        """Add a session and return it; if the token is cached already, return that session instead.

        The sessions used longest ago are dropped to make room.
        """
        with self._lock:
            if token_hash in self._sessions:
                self._sessions.move_to_end(token_hash)
                return self._sessions[token_hash]
            self._sessions[token_hash] = session
            self._trials += len(session)
            while len(self._sessions) > self._max_sessions or self._trials > self._max_trials:
                self._drop(next(iter(self._sessions)))
            return session

    def remove(self, session_id: int) -> None:
        """Drop every token of a session, because it has been given a new one."""
        with self._lock:
            for token_hash in [key for key, session in self._sessions.items() if session.id == session_id]:
                self._drop(token_hash)

    def _drop(self, token_hash: str) -> None:
        self._trials -= len(self._sessions.pop(token_hash))
