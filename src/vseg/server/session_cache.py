"""Sessions in memory: what the hot route needs to know of them, small, so that thousands fit.

This saves a query a post; it is no authority. Whether a session still takes records, and under this token, is asked
by the writer in the transaction that stores them. So one whose people have left or were erased may stay until others
need its place: a number, a hash and what was asked, nothing of anybody's.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from itertools import compress
from operator import not_, or_
from threading import Lock
from typing import Any, Self

from vseg.errors import InvalidInput
from vseg.server.pending_choices import Ahead
from vseg.store.sessions import SessionTrials
from vseg.store.studies import StudyRow
from vseg.store.validation import EventLimits
from vseg.study.trials import Trials

MAX_SESSIONS = 5000
MAX_TRIALS = 3_000_000  # of all sessions together; one takes 20 bytes, of an adaptive study 32
RECORDS_PER_TRIAL, EXTRA_RECORDS = 4, 1000
EXTRA_EVENTS, CONTOURS_BESIDE = 200, 2


class CachedSession:
    """The trials of one session, by item."""

    __slots__ = ("_flags", "_image", "_images", "_numbers", "ahead", "limits", "session", "study")

    def __init__(self, session: int, study: str, trials: Trials, ahead: Ahead | None = None):
        self.session = session
        self.study = study
        self.ahead = ahead  # what was chosen for it, if its study chooses
        # Without loops of Python's own: after a restart everybody's trials are read at once.
        self._images = sorted(set(trials.image))
        number = {name: at for at, name in enumerate(self._images)}
        self._image = array("H", map(number.__getitem__, trials.image))
        self._numbers = {name: array("i", getattr(trials, name)) for name in ("block", "trial", "i", "j")}
        self._flags = {name: bytes(getattr(trials, name)) for name in ("practice", "catch")}
        shown = set(compress(trials.image, map(not_, map(or_, trials.practice, trials.catch))))
        self.limits = EventLimits(EXTRA_EVENTS + len(trials), CONTOURS_BESIDE + len(shown))

    @classmethod
    def of(cls, study: StudyRow, row: SessionTrials) -> Self:
        """A session as it is stored."""
        return cls(row.id, study.name, row.trials, Ahead.of(study, row))

    def __len__(self) -> int:
        return len(self._image)

    @staticmethod
    def most_records(trials: int) -> int:
        """How many records a session of so many trials may send."""
        return RECORDS_PER_TRIAL * trials + EXTRA_RECORDS

    def rows(self, records: Iterable[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Responses, with what was asked filled in, and events; `InvalidInput` for what is not of this session."""
        responses, events = [], []
        seen: set[int] = set()
        for record in records:
            seq = record["seq"]
            if seq >= (most := self.most_records(len(self))):
                raise InvalidInput(f"seq {seq} is out of range; this session has fewer than {most} records.")
            if seq in seen:
                raise InvalidInput(f"seq {seq} comes twice in one post; number records from 0, each once.")
            seen.add(seq)
            if record["kind"] == "response":
                responses.append(self._response(record))
            else:
                events.append(record)
        return responses, events

    def _response(self, record: Any) -> dict[str, Any]:
        item = record["item"]
        if item >= len(self):
            raise InvalidInput(f"item {item} is not of this session, whose items are 0..{len(self) - 1}.")
        numbers, flags = self._numbers, self._flags
        i, j = self._pair(item, record.get("chosen", False))
        return {
            "chosen": False,
            **record,
            "image": self._images[self._image[item]],
            "block": numbers["block"][item], "trial": numbers["trial"][item],
            "i": i, "j": j,
            "practice": flags["practice"][item] == 1, "catch": flags["catch"][item] == 1,
        }  # fmt: skip

    def unknown_choices(self, records: Iterable[Any]) -> bool:
        """Whether records speak of choices that this process does not know: another one may have made them."""
        return self.ahead is not None and any(
            record["kind"] == "response" and record.get("chosen") and record["item"] not in self.ahead.choices
            for record in records
        )

    def _pair(self, item: int, chosen: bool) -> tuple[int, int]:
        """The pair of an item: the one that was chosen, if the page has shown that, else that of the trials."""
        if not chosen:
            return self._numbers["i"][item], self._numbers["j"][item]
        if self.ahead is None or (pair := self.ahead.choices.get(item)) is None:
            raise InvalidInput(f"No pair was chosen for item {item}; leave out chosen, or say false.")
        return pair


class SessionCache:
    """The sessions whose tokens were used last, by the tokens' hashes: so many, and so many trials of them all."""

    def __init__(self, most: int = MAX_SESSIONS, most_trials: int = MAX_TRIALS):
        self._most, self._most_trials = most, most_trials
        self._trials = 0
        self._by_hash: OrderedDict[str, CachedSession] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, hashed: str) -> bool:
        return hashed in self._by_hash

    def of(self, hashed: str, study: str) -> CachedSession | None:
        """The session of this token in this study, if it is remembered."""
        with self._lock:
            known = self._by_hash.get(hashed)
            if known is None or known.study != study:
                return None
            self._by_hash.move_to_end(hashed)
            return known

    def remember(self, hashed: str, known: CachedSession) -> CachedSession:
        """Keep a session, and say which is kept: one that is there already stays. Those used longest ago make room."""
        with self._lock:
            if hashed in self._by_hash:
                self._by_hash.move_to_end(hashed)
                return self._by_hash[hashed]
            self._by_hash[hashed] = known
            self._trials += len(known)
            while len(self._by_hash) > self._most or self._trials > self._most_trials:
                self._drop(next(iter(self._by_hash)))
            return known

    def forget(self, session: int) -> None:
        """Drop every token of a session, since it has been given a new one."""
        with self._lock:
            for hashed in [hashed for hashed, known in self._by_hash.items() if known.session == session]:
                self._drop(hashed)

    def _drop(self, hashed: str) -> None:
        self._trials -= len(self._by_hash.pop(hashed))
