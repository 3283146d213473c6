"""All responses of a study as columns, in the memory of this process."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, Tally
from vseg.errors import NotFound
from vseg.store.changes import SessionState
from vseg.study.trials import Unit

MOST_CELLS = 1 << 21  # of a table with a place for every pair; beyond, pairs are sorted instead
SUMS = "sums"  # under which the sums of each session are kept, which the next version goes on from
T = TypeVar("T")
COLUMNS = (
    "session", "seq", "item", "image", "block", "trial", "i", "j", "same", "practice", "catch", "flagged", "chosen",
    "correct", "used", "rt_ms", "cue_off_ms", "image_off_ms", "frames_dropped", "refresh_hz", "shown_at_ms",
)  # fmt: skip


@dataclass(frozen=True)
class SessionHead(SessionState):
    """A session without its trials and answers. `last_at_ms`: when something of it arrived last."""

    units: list[Unit]
    simulated: bool


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """What the sessions of a study that are not withdrawn have answered; a row a response, as 1-D columns.

    `session` and `image` are places in `sessions` and `images`. A session's rows are in the order of their `seq`, but
    those of several sessions may lie between each other. `correct` is 1 or 0, and -1 where the answer is not known;
    `used` are those that count (see store.responses.find_used); `chosen` are to pairs that an adaptive study chose;
    `cue_off_ms` and `image_off_ms` are achieved - asked.
    `earlier` is what was worked out for each session before, and which sessions have changed since then.
    """

    layout: Layout
    images: list[str]
    sessions: list[SessionHead]
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
    cue_off_ms: NDArray[np.float32]
    image_off_ms: NDArray[np.float32]
    frames_dropped: NDArray[np.int32]
    refresh_hz: NDArray[np.float32]
    shown_at_ms: NDArray[np.int64]
    earlier: tuple[Any, NDArray[np.bool_]] | None = None
    _kept: dict[Any, Any] = field(default_factory=dict)
    _lock: Any = field(default_factory=RLock)

    def __len__(self) -> int:
        return len(self.session)

    def __repr__(self) -> str:
        return f"<Answers: {len(self)} of {len(self.sessions)} sessions, version {self.version}>"

    def of(self, image: str, participant: str | None = None) -> Responses:
        """The answers that count about one image, of all participants or of one."""
        rows = np.flatnonzero(self._chosen(image, participant))
        names = np.array([head.participant for head in self.sessions], np.str_)
        return Responses(
            self.layout, self.i[rows], self.j[rows], self.same[rows], participant=names[self.session[rows]],
            image=image, block=self.block[rows], trial=self.trial[rows], rt_ms=self.rt_ms[rows],
        )  # fmt: skip

    def tally(self, image: str, participant: str | None = None) -> Tally:
        """How often each pair of an image was asked and answered 'same': `of(…).tally()`, in a fraction of the time."""
        return self.kept(("tally", image, participant), lambda: self._tally(image, participant))

    def _tally(self, image: str, participant: str | None) -> Tally:
        n = len(self.layout)
        if n * n > MOST_CELLS:
            return self.of(image, participant).tally()
        chosen = self._chosen(image, participant)
        cell = self.cells[chosen]
        asked = np.bincount(cell, minlength=n * n)
        same = np.bincount(cell[self.same[chosen]], minlength=n * n)
        pairs = np.flatnonzero(asked)
        return Tally(Pairs(self.layout, *np.divmod(pairs, n)), same[pairs], asked[pairs])

    @cached_property
    def cells(self) -> NDArray[np.int32]:
        """The pair of each row as one number, smaller location times n plus larger."""
        low, high = np.minimum(self.i, self.j), np.maximum(self.i, self.j)
        return low.astype(np.int32) * len(self.layout) + high

    def where(self, rows: NDArray[Any]) -> "Answers":
        """Some of the rows, of the same sessions."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in COLUMNS}
        return replace(self, **columns, earlier=None, _kept={}, _lock=RLock())

    def found_before(self, key: Any) -> Any:
        """What `kept` has under this key, or None."""
        with self._lock:
            return self._kept.get(key)

    def places(self, participant: str) -> list[int]:
        """Where a participant's sessions are in `sessions`; `NotFound` if there are none."""
        found = [place for place, head in enumerate(self.sessions) if head.participant == participant]
        if not found:
            raise NotFound(f"There is no participant {participant!r:.80} in this study, or no longer.")
        return found

    def kept(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` returns, made once for this version of the answers."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            value: T = self._kept[key]
            return value

    def _chosen(self, image: str, participant: str | None) -> NDArray[np.bool_]:
        if image not in self.images:
            raise NotFound(f"This study has no image {image!r:.80}; it has: {', '.join(self.images[:10])}.")
        chosen = self.used & (self.image == self.images.index(image))
        if participant is not None:
            chosen &= np.isin(self.session, self.places(participant))
        return chosen
