"""The rows of one study that were read so far, in arrays that grow at their end.

Rows are only appended, and removed by copying the others, so that earlier `Answers`, which share the arrays, do not
change.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import mark_used
from vseg.monitor.answers import SESSION_SUMS, Answers, LiveSession
from vseg.store.changes import RESPONSE_COLUMNS, SessionState, StudyReader
from vseg.store.studies import StudyRow
from vseg.study.sections import PRACTICE_IMAGE

if TYPE_CHECKING:
    from vseg.monitor.participants import SessionSums

TYPES: dict[str, Any] = {
    "session": np.int32, "seq": np.int32, "item": np.int32, "image": np.int16, "block": np.int16, "trial": np.int32,
    "i": np.int16, "j": np.int16, "same": np.bool_, "practice": np.bool_, "catch": np.bool_, "flagged": np.bool_,
    "chosen": np.bool_, "correct": np.int8, "rt_ms": np.float64, "presentation_ms": np.float32,
    "cue_off_ms": np.float32, "image_off_ms": np.float32, "frames_dropped": np.int32, "refresh_hz": np.float32,
    "shown_at_ms": np.int64,
}  # fmt: skip
BITS = ("same", "practice", "catch", "flagged", "chosen")
GROWTH = 1.3


@dataclass
class _BufferedSession:
    """One session: its index in `Answers.sessions`, and how many of its responses were read."""

    session: LiveSession
    index: int
    count: int = 0
    last_seq: int = -1
    is_complete: bool = False  # it has ended, and all of it was read


class StudyBuffer:
    """The responses of one study that were read so far; used by one thread at a time."""

    def __init__(self, study: StudyRow):
        self.digest = study.digest
        self.layout = study.study.layout.build()
        self.images = [*(image.name for image in study.study.images), PRACTICE_IMAGE]
        truth = study.truth(PRACTICE_IMAGE) if PRACTICE_IMAGE in study.images else None
        self._practice_labels = None if truth is None else truth.labels
        self._sessions: dict[int, _BufferedSession] = {}
        self._arrays = {name: np.empty(0, kind) for name, kind in TYPES.items()}
        self._used = np.zeros(0, np.bool_)
        self._size = 0
        self._unmarked: set[int] = set()  # sessions with rows whose `used` is not known yet
        self._withdrawn = 0
        self._changed: set[int] = set()  # sessions with rows that no Answers have yet
        self._sums: SessionSums | None = None  # those of earlier Answers, while indices stay the same
        self._changed_since_sums: set[int] = set()
        self._indices_changed = False
        self.answers: Answers | None = None

    def __len__(self) -> int:
        return self._size

    def refresh(
        self, reader: StudyReader, study: StudyRow, report_fraction: Callable[[float], None]
    ) -> Answers:
        """Read what is new and return the current answers; `report_fraction` is called with the share that was read."""
        states, self._withdrawn = reader.list_sessions(), reader.count_withdrawn()
        # Compare names, too: SQLite may give the number of an erased session to a new one.
        names = {state.id: state.name for state in states}
        removed = [
            number for number, entry in self._sessions.items() if names.get(number) != entry.session.name
        ]
        self._remove(removed)
        counts = reader.count_responses([state.id for state in states if self._may_have_more(state)])
        self._update_sessions(states, reader)
        to_read = [number for number, count in counts.items() if self._is_behind(number, count)]
        self._mark_simulated(to_read, reader)
        self._reserve(sum(counts[number][0] - self._sessions[number].count for number in to_read))
        out_of_order = []
        for done, number in enumerate(to_read):
            if not self._read(number, counts[number][0], reader):
                out_of_order.append(number)
            report_fraction((done + 1) / len(to_read))
        if out_of_order:  # read these sessions again, since their rows must be in the order of `seq`
            self._drop_rows(out_of_order)
            for number in out_of_order:
                self._read(number, 0, reader)
        for state in states:  # only now, so that a refresh that failed half-way is repeated
            self._sessions[state.id].is_complete = state.status != "active"
        self._mark_used()
        return self._as_answers(study)

    def _may_have_more(self, state: SessionState) -> bool:
        entry = self._sessions.get(state.id)
        return entry is None or not entry.is_complete

    def _is_behind(self, number: int, stored: tuple[int, int]) -> bool:
        entry = self._sessions[number]
        return (entry.count, entry.last_seq) != stored

    def _update_sessions(self, states: Sequence[SessionState], reader: StudyReader) -> None:
        """Add new sessions, and update the state of the others."""
        new = [state.id for state in states if state.id not in self._sessions]
        units = reader.list_units(new)
        for state in states:
            entry = self._sessions.get(state.id)
            if entry is None:
                session = LiveSession(**vars(state), units=units.get(state.id, []), simulated=False)
                self._sessions[state.id] = _BufferedSession(session, len(self._sessions))
            elif (entry.session.status, entry.session.last_at_ms) != (state.status, state.last_at_ms):
                entry.session = replace(entry.session, **vars(state))

    def _mark_simulated(self, numbers: Sequence[int], reader: StudyReader) -> None:
        unknown = [number for number in numbers if not self._sessions[number].session.simulated]
        for number in reader.find_simulated(unknown):
            entry = self._sessions[number]
            entry.session = replace(entry.session, simulated=True)

    def _read(self, number: int, expected: int, reader: StudyReader) -> bool:
        """Append a session's rows after its last one; return False, with nothing added, if earlier rows are missing."""
        entry = self._sessions[number]
        rows = reader.read_responses(number, entry.last_seq)
        count = len(rows[0])
        if entry.count + count < expected:
            return False
        if count:
            self._append(entry.index, dict(zip(RESPONSE_COLUMNS, rows, strict=True)))
            entry.count, entry.last_seq = entry.count + count, rows[0][-1]
            answered_at_ms = max(
                entry.session.answered_at_ms or 0, *rows[RESPONSE_COLUMNS.index("received_at_ms")]
            )
            entry.session = replace(entry.session, answered_at_ms=answered_at_ms)
            self._unmarked.add(entry.index)
            self._changed.add(entry.index)
        return True

    def _append(self, index: int, rows: dict[str, Sequence[Any]]) -> None:
        count = len(rows["seq"])
        self._reserve(count)
        new = slice(self._size, self._size + count)
        bits = np.array(rows["bits"], np.uint8)
        for name in TYPES:
            if name in rows and name != "image":
                self._arrays[name][new] = np.array(rows[name], TYPES[name])
        for position, name in enumerate(BITS):
            self._arrays[name][new] = (bits >> position) & 1
        self._arrays["session"][new] = index
        self._arrays["image"][new] = self._image_indices(rows["image"])
        self._arrays["correct"][new] = self._check_correct(new)
        self._size += count

    def _image_indices(self, names: Sequence[str]) -> NDArray[np.int16]:
        distinct = dict.fromkeys(names)
        self.images += [name for name in distinct if name not in self.images]
        indices = {name: self.images.index(name) for name in distinct}
        return np.array([indices[name] for name in names], np.int16)

    def _check_correct(self, rows: slice) -> NDArray[np.int8]:
        """Compare answers to practice and catch trials with the true maps of the practice picture; -1 for others."""
        i, j, same, practice, catch = (
            self._arrays[name][rows] for name in ("i", "j", "same", "practice", "catch")
        )
        if self._practice_labels is None:
            return np.full(len(i), -1, np.int8)
        right = (self._practice_labels[i] == self._practice_labels[j]) == same
        return np.where(practice | catch, right, -1).astype(np.int8)

    def _reserve(self, more: int) -> None:
        needed = self._size + more
        if needed <= len(self._arrays["seq"]):
            return
        capacity = int(needed * GROWTH)
        for name, old in self._arrays.items():
            self._arrays[name] = np.empty(capacity, old.dtype)
            self._arrays[name][: self._size] = old[: self._size]

    def _remove(self, numbers: Collection[int]) -> None:
        """Remove sessions that are withdrawn or erased, and all their rows."""
        if not numbers:
            return
        self._drop_rows(numbers)
        self._indices_changed = True
        for number in numbers:
            del self._sessions[number]
        highest = max((entry.index for entry in self._sessions.values()), default=0)
        new_index = np.zeros(1 + highest, np.int32)
        unmarked = set()
        for index, entry in enumerate(self._sessions.values()):
            new_index[entry.index] = index
            if entry.index in self._unmarked:
                unmarked.add(index)
            entry.index = index
        self._unmarked = unmarked
        # A new array, since earlier Answers share the old one.
        self._arrays["session"] = new_index[self._arrays["session"][: self._size]]
        self._arrays = {name: array[: self._size] for name, array in self._arrays.items()}

    def _drop_rows(self, numbers: Collection[int]) -> None:
        """Drop the rows of these sessions, by copying the others."""
        is_dropped = np.zeros(len(self._sessions), np.bool_)
        for number in numbers:
            entry = self._sessions[number]
            is_dropped[entry.index] = True
            entry.count, entry.last_seq = 0, -1
        remaining = ~is_dropped[self._arrays["session"][: self._size]]
        self._arrays = {name: array[: self._size][remaining] for name, array in self._arrays.items()}
        marked = min(len(self._used), self._size)
        used = np.zeros(self._size, np.bool_)
        used[:marked] = self._used[:marked]
        self._used = used[remaining]
        self._size = int(remaining.sum())

    def _mark_used(self) -> None:
        """Mark which rows count, in the sessions that have new ones."""
        if not self._unmarked and len(self._used) == self._size:
            return
        used = np.zeros(self._size, np.bool_)
        used[: len(self._used)] = self._used
        is_unmarked = np.zeros(len(self._sessions), np.bool_)
        is_unmarked[list(self._unmarked)] = True
        session = self._arrays["session"][: self._size]
        rows = np.flatnonzero(is_unmarked[session])
        kinds = {name: self._arrays[name][rows] for name in ("practice", "catch", "flagged")}
        used[rows] = mark_used(session[rows], self._arrays["item"][rows], **kinds)
        self._used = used
        self._unmarked.clear()

    def _as_answers(self, study: StudyRow) -> Answers:
        version = self._version(study)
        if self.answers is None or self.answers.version != version:
            arrays: dict[str, Any] = {name: array[: self._size] for name, array in self._arrays.items()}
            self.answers = Answers(
                self.layout, list(self.images), [entry.session for entry in self._sessions.values()], self._withdrawn,
                version, used=self._used, previous=self._previous_sums(), **arrays,
            )  # fmt: skip
        return self.answers

    def _previous_sums(self) -> "tuple[SessionSums, NDArray[np.bool_]] | None":
        """Return the sums that were computed for earlier answers, and which sessions have changed since then."""
        latest = None if self.answers is None else self.answers.get_cached(SESSION_SUMS)
        if self._indices_changed:
            self._sums = latest = None
        if latest is not None:
            self._sums, self._changed_since_sums = latest, set()
        self._changed_since_sums |= self._changed
        self._changed, self._indices_changed = set(), False
        if self._sums is None:
            return None
        changed = np.zeros(len(self._sessions), np.bool_)
        changed[list(self._changed_since_sums)] = True
        changed[len(self._sums.answers) :] = True  # new sessions
        return self._sums, changed

    def _version(self, study: StudyRow) -> str:
        """Return a digest of what is stored, so that it is the same in all workers."""
        parts = [f"{study.digest} {study.status} {self._withdrawn}"]
        for entry in self._sessions.values():
            session = entry.session
            parts.append(
                f"{session.id} {session.status} {session.last_at_ms} {entry.count} {entry.last_seq} {session.simulated}"
            )
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
