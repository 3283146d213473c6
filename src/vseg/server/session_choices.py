"""The pairs chosen ahead for one session of an adaptive study, as far as this process knows them.

The database holds the choices. This is what the participant's routes need of them: which pairs to send with a reply,
and whether it is time to choose more. Items are numbered through the session.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypedDict

from vseg import store
from vseg.adaptive.history import Pair
from vseg.data.responses import is_real_trial
from vseg.store.choices import EarlyStop
from vseg.store.sessions import SessionTrials
from vseg.store.studies import StudyRow
from vseg.study.trials import Trials

Position = tuple[float, float]


class ChoiceColumns(TypedDict):
    """Chosen pairs as the page takes them: items, locations, and the dots' positions in pixels of the image."""

    item: list[int]
    i: list[int]
    j: list[int]
    x1: list[float]
    y1: list[float]
    x2: list[float]
    y2: list[float]


class ChoicesMessage(TypedDict):
    """What a page is told about choices: the pairs, and the items from which on an image is no longer asked about."""

    choices: ChoiceColumns
    stops: list[int]


@dataclass(frozen=True)
class ImageTrials:
    """The real trials of one image: their items in order, each with its fixed pair.

    `until` is the first item behind the image's trials. The columns are arrays, since thousands of sessions are cached.
    """

    image: str
    items: "array[int]"
    i: "array[int]"
    j: "array[int]"
    until: int


@dataclass(frozen=True)
class NeededPairs:
    """Where pairs are needed: `trials.items[first:]`, after `left` more trials."""

    trials: ImageTrials
    first: int
    left: int

    def iterate_fixed(self) -> Iterator[tuple[int, Pair]]:
        """Iterate over the items of the image before the needed ones, each with its fixed pair."""
        trials = self.trials
        return zip(trials.items[: self.first], zip(trials.i, trials.j, strict=True), strict=False)


@dataclass
class SessionChoices:
    """The chosen pairs of one session, by item.

    Attributes
    ----------
    study : StudyRow
    session, name
        The session's id and its name.
    images : list of ImageTrials
        The real trials of each image, in the order in which the images are shown.
    pairs : dict
        All pairs that were chosen for the session, by item.
    stops : list of EarlyStop
        Where an image is known well enough and no longer asked about.
    last_item : int
        The highest item that was answered, -1 before the first.
    quiet_until : int
        No more pairs are requested before this item was answered.
    """

    study: StudyRow
    session: int
    name: str
    images: list[ImageTrials]
    pairs: dict[int, Pair] = field(default_factory=dict)
    stops: list[EarlyStop] = field(default_factory=list)
    last_item: int = -1
    quiet_until: int = -1
    _positions: dict[str, list[Position]] = field(default_factory=dict)

    @classmethod
    def for_session(cls, study: StudyRow, row: SessionTrials) -> "SessionChoices | None":
        """Return the choices of a session, none loaded yet; None unless the study is adaptive."""
        if not study.study.design.is_adaptive:
            return None
        return cls(study, row.id, row.name, _group_by_image(row.trials))

    def reload(self, db: store.Database) -> None:
        """Load all choices and stops, including those of other workers."""
        self.pairs = store.choices.get_chosen_pairs(db, self.session)
        with db.reading() as connection:
            self.stops = store.choices.list_stops(connection, self.session)

    def note_answered(self, items: list[int]) -> None:
        """Take note that these items were answered."""
        self.last_item = max([self.last_item, *items])

    def find_need(self, margin: int) -> NeededPairs | None:
        """Return where pairs are needed, if the next trial without a choice is at most `margin` trials ahead."""
        ahead = 0
        stopped = {stop.image for stop in self.stops}
        for trials in self.images:
            done = bisect_right(trials.items, self.last_item)
            if done == len(trials.items) or trials.image in stopped:
                continue
            first = self._first_without_choice(trials, done)
            if first < len(trials.items) and ahead + first - done <= margin:
                return NeededPairs(trials, first, ahead + first - done)
            ahead += len(trials.items) - done
            if ahead > margin:
                return None
        return None

    def _first_without_choice(self, trials: ImageTrials, done: int) -> int:
        """Return the number of the first trial that can still get a choice.

        It comes after all chosen trials, after the fixed ones at the start, and after the trial under way and the next
        one, which may begin before a choice arrives.
        """
        last = max((item for item in self.pairs if item <= trials.items[-1]), default=-1)
        chosen = bisect_right(trials.items, last)
        if chosen > done:
            return chosen
        start = 0 if self.study.study.design.shared else self.study.study.initial_pairs
        return max(start, done + 2 if self.last_item >= trials.items[0] else done)

    def to_message(self, items: Iterable[int] | None = None) -> ChoicesMessage:
        """Return what the page is told: the pairs of these items, by default of all still ahead, and the stops."""
        if items is None:
            items = [item for item in self.pairs if item > self.last_item]
        columns: ChoiceColumns = {"item": [], "i": [], "j": [], "x1": [], "y1": [], "x2": [], "y2": []}
        for item in items:
            i, j = self.pairs[item]
            positions = self._get_positions(self._get_image(item))
            values = (item, i, j, *positions[i], *positions[j])
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)  # type: ignore[attr-defined]
        return {"choices": columns, "stops": [stop.item for stop in self.stops]}

    def _get_image(self, item: int) -> str:
        return next(trials.image for trials in self.images if item < trials.until)

    def _get_positions(self, image: str) -> list[Position]:
        """Return the position of each location on an image, in pixels."""
        if image not in self._positions:
            size, layout = self.study.images[image], self.study.study.layout.build()
            positions = layout.pixels(size.width_px, size.height_px).round(2).tolist()
            self._positions[image] = [(x, y) for x, y in positions]
        return self._positions[image]


def _group_by_image(trials: Trials) -> list[ImageTrials]:
    """Return the real trials of each image, in the order in which the images are shown; each is one block."""
    items: dict[str, list[int]] = {}
    for item, image in enumerate(trials.image):
        if is_real_trial(practice=trials.practice[item], catch=trials.catch[item]):
            items.setdefault(image, []).append(item)
    firsts = [own[0] - trials.trial[own[0]] for own in items.values()]  # a catch trial may come first
    return [
        ImageTrials(
            image,
            array("i", own),
            array("i", map(trials.i.__getitem__, own)),
            array("i", map(trials.j.__getitem__, own)),
            until,
        )
        for (image, own), until in zip(items.items(), [*firsts[1:], len(trials)], strict=True)
    ]
