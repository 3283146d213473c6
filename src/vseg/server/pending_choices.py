"""What is chosen ahead for one session of an adaptive study, as this process knows it.

The database has the choices; this is what the hot route needs of them: which to send with a reply, and whether it is
time to choose more. Items count through the session; a part is the real trials of one image.
"""

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from vseg import store
from vseg.store.choices import EarlyStop, Pair
from vseg.store.sessions import SessionTrials
from vseg.store.studies import StudyRow
from vseg.study.trials import Trials

PLACES = ("x1", "y1", "x2", "y2")
Places = tuple[float, float]


@dataclass(frozen=True)
class Part:
    """The real trials of one image: items in order, each with its own pair; `until` is the first item behind.

    As arrays, since this is kept of thousands of sessions.
    """

    image: str
    items: "array[int]"
    i: "array[int]"
    j: "array[int]"
    until: int


@dataclass(frozen=True)
class Need:
    """Where pairs are wanted: in this part from its item number `first` on; `left` trials before they are needed."""

    part: Part
    first: int
    left: int


@dataclass
class Ahead:
    """The choices of one session; `asked` is the highest item that was answered so far, -1 before the first."""

    study: StudyRow
    session: int
    name: str
    parts: list[Part]
    choices: dict[int, Pair] = field(default_factory=dict)
    stops: list[EarlyStop] = field(default_factory=list)
    asked: int = -1
    quiet_until: int = -1
    _centres: dict[str, list[Places]] = field(default_factory=dict)

    @classmethod
    def of(cls, study: StudyRow, row: SessionTrials) -> "Ahead | None":
        """Of a session that has just begun or was not heard of before; None if its study chooses nothing."""
        return cls(study, row.id, row.name, _parts(row.trials)) if study.study.design.adaptive else None

    def reload(self, db: store.Database) -> None:
        """Read what was chosen, perhaps by another worker."""
        self.choices = store.choices.get_chosen_pairs(db, self.session)
        with db.reading() as connection:
            self.stops = store.choices.list_stops(connection, self.session)

    def answered(self, items: list[int]) -> None:
        """These items were answered."""
        self.asked = max([self.asked, *items])

    def need(self, margin: int) -> Need | None:
        """Where pairs are wanted now: where the next trial without a choice is at most `margin` trials ahead."""
        away = 0
        stopped = {stop.image for stop in self.stops}
        for part in self.parts:
            done = bisect_right(part.items, self.asked)
            if done == len(part.items) or part.image in stopped:
                continue
            first = self._first_without(part, done)
            if first < len(part.items) and away + first - done <= margin:
                return Need(part, first, away + first - done)
            away += len(part.items) - done
            if away > margin:
                return None
        return None

    def _first_without(self, part: Part, done: int) -> int:
        """Behind all that is chosen; and behind the trial under way and the next, which may begin any moment."""
        last = max((item for item in self.choices if item <= part.items[-1]), default=-1)
        chosen = bisect_right(part.items, last)
        if chosen > done:
            return chosen
        start = 0 if self.study.study.design.shared else self.study.study.start
        return max(start, done + 2 if self.asked >= part.items[0] else done)

    def pending(self, need: Need, good: Collection[int]) -> list[Pair]:
        """The pairs of the items before those that are wanted, but for items that have a good answer."""
        part = need.part
        before = zip(part.items[: need.first], part.i, part.j, strict=False)
        return [self.choices.get(item, (i, j)) for item, i, j in before if item not in good]

    def told(self, among: Iterable[int] | None = None) -> dict[str, Any]:
        """What a page is told: chosen pairs as columns, of these items or of all still ahead; where questions end."""
        items = [item for item in self.choices if item > self.asked] if among is None else among
        columns: dict[str, list[Any]] = {name: [] for name in ("item", "i", "j", *PLACES)}
        for item in items:
            i, j = self.choices[item]
            centres = self._places_on(self._image(item))
            values = (item, i, j, *centres[i], *centres[j])
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
        return {"choices": columns, "stops": [stop.item for stop in self.stops]}

    def _image(self, item: int) -> str:
        return next(part.image for part in self.parts if item < part.until)

    def _places_on(self, image: str) -> list[Places]:
        if image not in self._centres:
            shown, layout = self.study.images[image], self.study.study.layout.build()
            centres = layout.pixels(shown.width_px, shown.height_px).round(2).tolist()
            self._centres[image] = [(x, y) for x, y in centres]
        return self._centres[image]


def _parts(trials: Trials) -> list[Part]:
    """One for each image, in the order in which they are shown: an adaptive design has one block."""
    items: dict[str, list[int]] = {}
    for item, image in enumerate(trials.image):
        if not (trials.practice[item] or trials.catch[item]):
            items.setdefault(image, []).append(item)
    firsts = [own[0] - trials.trial[own[0]] for own in items.values()]  # a catch trial may come first
    return [
        Part(
            image,
            array("i", own),
            array("i", map(trials.i.__getitem__, own)),
            array("i", map(trials.j.__getitem__, own)),
            until,
        )
        for (image, own), until in zip(items.items(), [*firsts[1:], len(trials)], strict=True)
    ]
