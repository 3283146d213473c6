"""All responses of a study as columns, in the memory of this process."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, Tally
from vseg.errors import NotFound
from vseg.store.changes import SessionState
from vseg.study.trials import Unit

if TYPE_CHECKING:
    from vseg.monitor.participants import SessionSums

MAX_CELLS = 1 << 21  # largest table with a cell for every pair; larger ones are sorted instead
SESSION_SUMS = "sums"  # cache key of the sums of each session, from which the next version's are computed
T = TypeVar("T")
COLUMNS = (
    "session", "seq", "item", "image", "block", "trial", "i", "j", "same", "practice", "catch", "flagged", "chosen",
    "correct", "used", "rt_ms", "presentation_ms", "cue_off_ms", "image_off_ms", "frames_dropped", "refresh_hz",
    "shown_at_ms",
)  # fmt: skip


@dataclass(frozen=True)
class LiveSession(SessionState):
    """A session without its trials and answers.

    `last_at_ms` is when its last record arrived, `answered_at_ms` when its last answer did.
    """

    units: list[Unit]
    simulated: bool
    answered_at_ms: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """The responses of all sessions of a study that are not withdrawn, as 1-D columns with a row for each response.

    `session` and `image` are indices into `sessions` and `images`. The rows of a session are in the order of `seq`, but
    rows of several sessions may alternate. `correct` is 1 or 0, or -1 if the right answer is not known; `used` marks
    the answers that count (see `vseg.data.responses.mark_used`); `chosen` marks answers to pairs that an adaptive study
    chose; `presentation_ms` is the measured duration of dots and image, `cue_off_ms` and `image_off_ms` are measured
    minus planned durations. `previous` has the sums of each session for an earlier version of these answers, and which
    sessions have changed since then.
    """

    layout: Layout
    images: list[str]
    sessions: list[LiveSession]
    withdrawn: int
    version: str
    session: NDArray[np.int32]
    seq: NDArray[np.int32]
    item: NDArray[np.int32]
    image: NDArray[np.int16]
    block: NDArray[np.int16]
    trial: NDArray[np.int32]
    i: NDArray[np.int16]
    j: NDArray[np.int16]
    same: NDArray[np.bool_]
    practice: NDArray[np.bool_]
    catch: NDArray[np.bool_]
    flagged: NDArray[np.bool_]
    chosen: NDArray[np.bool_]
    correct: NDArray[np.int8]
    used: NDArray[np.bool_]
    rt_ms: NDArray[np.float64]
    presentation_ms: NDArray[np.float32]
    cue_off_ms: NDArray[np.float32]
    image_off_ms: NDArray[np.float32]
    frames_dropped: NDArray[np.int32]
    refresh_hz: NDArray[np.float32]
    shown_at_ms: NDArray[np.int64]
    previous: "tuple[SessionSums, NDArray[np.bool_]] | None" = None
    _cache: dict[Hashable, Any] = field(default_factory=dict)
    _lock: Any = field(default_factory=RLock)

    def __len__(self) -> int:
        return len(self.session)

    def __repr__(self) -> str:
        return f"<Answers: {len(self)} of {len(self.sessions)} sessions, version {self.version}>"

    def responses(self, image: str, participant: str | None = None) -> Responses:
        """Return the answers that count about one image, of all participants or of one."""
        rows = np.flatnonzero(self._is_used(image, participant))
        names = np.array([session.participant for session in self.sessions], np.str_)
        return Responses(
            self.layout, self.i[rows], self.j[rows], self.same[rows], participant=names[self.session[rows]],
            image=image, block=self.block[rows], trial=self.trial[rows], rt_ms=self.rt_ms[rows],
        )  # fmt: skip

    def tally(self, image: str, participant: str | None = None) -> Tally:
        """Return `responses(…).tally()`, in a fraction of the time: answers and 'same' answers to each pair."""
        return self.get_or_compute(("tally", image, participant), lambda: self._tally(image, participant))

    def _tally(self, image: str, participant: str | None) -> Tally:
        return self._tally_rows(np.flatnonzero(self._is_used(image, participant)))

    def earlier_tallies(self, image: str) -> list[Tally]:
        """Return the tallies of the first n, 1.4n, 2n, 2.8n, … answers about an image, n being the number of locations.

        The order is that of the participants' clocks, so that it is the same in all processes of a server.
        """
        return self.get_or_compute(("earlier", image), lambda: self._earlier_tallies(image))

    def _earlier_tallies(self, image: str) -> list[Tally]:
        rows = np.flatnonzero(self._is_used(image, None))
        shown_at = self.shown_at_ms[rows]
        steps = np.arange(2 * len(rows).bit_length())
        last = (len(self.layout) * 2 ** (steps / 2)).astype(np.int64) - 1
        last = last[last < len(rows)]
        return [self._tally_rows(rows[shown_at <= end]) for end in np.partition(shown_at, last)[last]]

    def _tally_rows(self, rows: NDArray[np.int64]) -> Tally:
        n = len(self.layout)
        if n * n > MAX_CELLS:
            return Responses(self.layout, self.i[rows], self.j[rows], self.same[rows]).tally()
        cell = self.cells[rows]
        answered = np.bincount(cell, minlength=n * n)
        same = np.bincount(cell[self.same[rows]], minlength=n * n)
        pairs = np.flatnonzero(answered)
        return Tally(Pairs(self.layout, *np.divmod(pairs, n)), same[pairs], answered[pairs])

    def list_participants(self, image: str) -> list[str]:
        """Return the names of the participants with answers that count about an image, sorted."""
        return self.get_or_compute(("participants", image), lambda: self._list_participants(image))

    def _list_participants(self, image: str) -> list[str]:
        sessions = np.unique(self.session[self._is_used(image, None)]).tolist()
        return sorted({self.sessions[session].participant for session in sessions})

    @cached_property
    def cells(self) -> NDArray[np.int32]:
        """The pair of each row as one number: smaller location times n plus larger."""
        low, high = np.minimum(self.i, self.j), np.maximum(self.i, self.j)
        return low.astype(np.int32) * len(self.layout) + high

    def select(self, rows: NDArray[Any]) -> "Answers":
        """Return some of the rows, with all sessions."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in COLUMNS}
        return replace(self, **columns, previous=None, _cache={}, _lock=RLock())

    def session_indices(self, participant: str) -> list[int]:
        """Return the indices of a participant's sessions; raise `NotFound` if there are none."""
        indices = [index for index, session in enumerate(self.sessions) if session.participant == participant]
        if not indices:
            raise NotFound(f"There is no participant {participant!r:.80} in this study, or no longer.")
        return indices

    def get_or_compute(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what `compute` returns; it is called once for this version of the answers."""
        with self._lock:
            if key not in self._cache:
                self._cache[key] = compute()
            value: T = self._cache[key]
            return value

    def get_cached(self, key: Hashable) -> Any:
        """Return the cached value of this key, or None."""
        with self._lock:
            return self._cache.get(key)

    def _is_used(self, image: str, participant: str | None) -> NDArray[np.bool_]:
        if image not in self.images:
            raise NotFound(f"This study has no image {image!r:.80}; it has: {', '.join(self.images[:10])}.")
        rows = self.used & (self.image == self.images.index(image))
        if participant is not None:
            rows &= np.isin(self.session, self.session_indices(participant))
        return rows
