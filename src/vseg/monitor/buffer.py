"""The rows of one study that were read so far, in arrays that grow at their end.

Rows are only ever added behind the last one, and removed by copying: whoever looks at an earlier state keeps it.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import mark_used
from vseg.monitor.answers import SUMS, Answers, SessionHead
from vseg.store.changes import RESPONSE_COLUMNS, SessionState, StudyReader
from vseg.store.studies import StudyRow
from vseg.study.pictures import PRACTICE

TYPES: dict[str, Any] = {
    "session": np.int32, "seq": np.int32, "item": np.int32, "image": np.int16, "block": np.int16, "trial": np.int32,
    "i": np.int16, "j": np.int16, "same": np.bool_, "practice": np.bool_, "catch": np.bool_, "flagged": np.bool_,
    "chosen": np.bool_, "correct": np.int8, "rt_ms": np.float64, "cue_off_ms": np.float32, "image_off_ms": np.float32,
    "frames_dropped": np.int32, "refresh_hz": np.float32, "shown_at_ms": np.int64,
}  # fmt: skip
BITS = ("same", "practice", "catch", "flagged", "chosen")
GROWTH = 1.3

Told = Callable[[float], None]


@dataclass
class _Session:
    """One session: where it is in `sessions`, and how much of it is here."""

    head: SessionHead
    place: int
    count: int = 0
    last: int = -1
    is_whole: bool = False  # it has ended, and all of it is here


class Held:
    """What is here of one study; one thread at a time brings it up to date."""

    def __init__(self, study: StudyRow):
        self.digest = study.digest
        self.layout = study.study.layout.build()
        self.images = [*(image.name for image in study.study.images), PRACTICE]
        truth = study.truth(PRACTICE) if PRACTICE in study.images else None
        self._practice_labels = None if truth is None else truth.labels
        self._sessions: dict[int, _Session] = {}
        self._arrays = {name: np.empty(0, kind) for name, kind in TYPES.items()}
        self._used = np.zeros(0, np.bool_)
        self._size = 0
        self._undecided: set[int] = set()  # sessions with rows whose `used` is not known yet
        self._withdrawn = 0
        self._changed: set[int] = set()  # sessions with rows that no Answers have yet
        self._summed: Any = (
            None  # what earlier ones worked out for each session, if places are still the same
        )
        self._changed_since: set[int] = set()
        self._moved = False
        self.answers: Answers | None = None

    def __len__(self) -> int:
        return self._size

    def refresh(self, now: StudyReader, study: StudyRow, told: Told) -> Answers:
        """Read what is new, and the answers as they are now; `told` hears which share of it was read."""
        heads, self._withdrawn = now.list_sessions(), now.count_withdrawn()
        # By name, too: SQLite gives the number of a session that was erased to the next one.
        there = {head.id: head.name for head in heads}
        gone = [number for number, known in self._sessions.items() if there.get(number) != known.head.name]
        self._forget(gone)
        may_have_more = [head.id for head in heads if self._may_have_more(head)]
        counts = now.count_responses(may_have_more)
        self._enter(heads, now)
        news = [number for number, of in counts.items() if self._session_is_behind(number, of)]
        self._learn_who_is_simulated(news, now)
        self._reserve(sum(counts[number][0] - self._sessions[number].count for number in news))
        late = []
        for done, number in enumerate(news):
            if not self._read(number, counts[number][0], now):
                late.append(number)
            told((done + 1) / len(news))
        if late:  # read anew, since a session's rows are to be in their order
            self._empty(late)
            for number in late:
                self._read(number, 0, now)
        for head in heads:  # only now: a look that failed half-way is to be made up for
            self._sessions[head.id].is_whole = head.status != "active"
        self._decide()
        return self._as_answers(study)

    def _may_have_more(self, head: SessionState) -> bool:
        known = self._sessions.get(head.id)
        return known is None or not known.is_whole

    def _session_is_behind(self, number: int, counted: tuple[int, int]) -> bool:
        known = self._sessions[number]
        return (known.count, known.last) != counted

    def _enter(self, heads: Sequence[SessionState], now: StudyReader) -> None:
        """Take note of new sessions and of what changed about the others."""
        new = [head.id for head in heads if head.id not in self._sessions]
        units = now.list_units(new)
        for head in heads:
            known = self._sessions.get(head.id)
            if known is None:
                full = SessionHead(**vars(head), units=units.get(head.id, []), simulated=False)
                self._sessions[head.id] = _Session(full, len(self._sessions))
            elif (known.head.status, known.head.last_at_ms) != (head.status, head.last_at_ms):
                known.head = replace(known.head, **vars(head))

    def _learn_who_is_simulated(self, news: Sequence[int], now: StudyReader) -> None:
        for number in now.find_simulated([one for one in news if not self._sessions[one].head.simulated]):
            known = self._sessions[number]
            known.head = replace(known.head, simulated=True)

    def _read(self, number: int, expected: int, now: StudyReader) -> bool:
        """Add a session's rows behind its last one; False, with nothing added, if others came late below it."""
        known = self._sessions[number]
        rows = now.read_responses(number, known.last)
        count = len(rows[0])
        if known.count + count < expected:
            return False
        if count:
            self._append(known.place, dict(zip(RESPONSE_COLUMNS, rows, strict=True)))
            known.count, known.last = known.count + count, rows[0][-1]
            self._undecided.add(known.place)
            self._changed.add(known.place)
        return True

    def _append(self, place: int, rows: dict[str, Sequence[Any]]) -> None:
        count = len(rows["seq"])
        self._reserve(count)
        here = slice(self._size, self._size + count)
        bits = np.array(rows["bits"], np.uint8)
        for name in TYPES:
            if name in rows and name != "image":
                self._arrays[name][here] = np.array(rows[name], TYPES[name])
        for position, name in enumerate(BITS):
            self._arrays[name][here] = (bits >> position) & 1
        self._arrays["session"][here] = place
        self._arrays["image"][here] = self._places_of_images(rows["image"])
        self._arrays["correct"][here] = self._correct(here)
        self._size += count

    def _places_of_images(self, names: Sequence[str]) -> NDArray[np.int16]:
        distinct = dict.fromkeys(names)
        self.images += [name for name in distinct if name not in self.images]
        place = {name: self.images.index(name) for name in distinct}
        return np.array([place[name] for name in names], np.int16)

    def _correct(self, here: slice) -> NDArray[np.int8]:
        """Known answers follow from the truth of the practice picture, which is stored with the study."""
        i, j, same, practice, catch = (
            self._arrays[name][here] for name in ("i", "j", "same", "practice", "catch")
        )
        if self._practice_labels is None:
            return np.full(len(i), -1, np.int8)
        right = (self._practice_labels[i] == self._practice_labels[j]) == same
        return np.where(practice | catch, right, -1).astype(np.int8)

    def _reserve(self, more: int) -> None:
        needed, room = self._size + more, len(self._arrays["seq"])
        if needed <= room:
            return
        room = int(needed * GROWTH)
        for name, old in self._arrays.items():
            self._arrays[name] = np.empty(room, old.dtype)
            self._arrays[name][: self._size] = old[: self._size]

    def _forget(self, numbers: Collection[int]) -> None:
        """Drop sessions that are withdrawn or erased, and all their rows."""
        if not numbers:
            return
        self._empty(numbers)
        self._moved = True
        for number in numbers:
            del self._sessions[number]
        moved = np.zeros(1 + max((one.place for one in self._sessions.values()), default=0), np.int32)
        undecided = set()
        for place, known in enumerate(self._sessions.values()):
            moved[known.place] = place
            if known.place in self._undecided:
                undecided.add(place)
            known.place = place
        self._undecided = undecided
        # A new array: those who look at an earlier state go on with its own numbers.
        self._arrays["session"] = moved[self._arrays["session"][: self._size]]
        self._arrays = {name: array[: self._size] for name, array in self._arrays.items()}

    def _empty(self, numbers: Collection[int]) -> None:
        """Drop the rows of these sessions, by copying the others."""
        chosen = np.zeros(len(self._sessions), np.bool_)
        for number in numbers:
            known = self._sessions[number]
            chosen[known.place] = True
            known.count, known.last = 0, -1
        kept = ~chosen[self._arrays["session"][: self._size]]
        self._arrays = {name: array[: self._size][kept] for name, array in self._arrays.items()}
        decided = min(len(self._used), self._size)
        used = np.zeros(self._size, np.bool_)
        used[:decided] = self._used[:decided]
        self._used = used[kept]
        self._size = int(kept.sum())

    def _decide(self) -> None:
        """Say which rows count of the sessions that have new ones."""
        if not self._undecided and len(self._used) == self._size:
            return
        used = np.zeros(self._size, np.bool_)
        used[: len(self._used)] = self._used
        chosen = np.zeros(len(self._sessions), np.bool_)
        chosen[list(self._undecided)] = True
        session = self._arrays["session"][: self._size]
        rows = np.flatnonzero(chosen[session])
        out = [self._arrays[name][rows] for name in ("practice", "catch", "flagged")]
        used[rows] = mark_used(session[rows], self._arrays["item"][rows], ~np.logical_or.reduce(out))
        self._used = used
        self._undecided.clear()

    def _as_answers(self, study: StudyRow) -> Answers:
        version = self._version(study)
        if self.answers is None or self.answers.version != version:
            arrays: dict[str, Any] = {name: array[: self._size] for name, array in self._arrays.items()}
            self.answers = Answers(
                self.layout, list(self.images), [known.head for known in self._sessions.values()], self._withdrawn,
                version, used=self._used, earlier=self._earlier(), **arrays,
            )  # fmt: skip
        return self.answers

    def _earlier(self) -> tuple[Any, NDArray[np.bool_]] | None:
        """What was worked out before for each session, and for which of them it no longer holds."""
        latest = None if self.answers is None else self.answers.found_before(SUMS)
        if self._moved:
            self._summed = latest = None
        if latest is not None:
            self._summed, self._changed_since = latest, set()
        self._changed_since |= self._changed
        self._changed, self._moved = set(), False
        if self._summed is None:
            return None
        changed = np.zeros(len(self._sessions), np.bool_)
        changed[list(self._changed_since)] = True
        changed[len(self._summed.answers) :] = True  # who has come since
        return self._summed, changed

    def _version(self, study: StudyRow) -> str:
        """Follows from what is stored alone, so that all workers say the same."""
        told = [f"{study.digest} {study.status} {self._withdrawn}"]
        for known in self._sessions.values():
            head = known.head
            told.append(
                f"{head.id} {head.status} {head.last_at_ms} {known.count} {known.last} {head.simulated}"
            )
        return hashlib.blake2b("\n".join(told).encode(), digest_size=12).hexdigest()
