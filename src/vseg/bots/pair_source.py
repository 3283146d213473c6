"""What one simulated participant is asked: the session's own pairs, and those that the server chooses on the way."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.bots.client import Wire
from vseg.bots.perception import Sight

PAIR = ("i", "j", "x1", "y1", "x2", "y2")


class Asked:
    """P(same) of every item, for the pair that is shown; from an item's first showing on that stays the same.

    Attributes
    ----------
    adaptive : bool
        Whether the server chooses pairs in this study.
    choosing : bool
        Whether it was at it when it said something last.
    """

    def __init__(
        self, session: Mapping[str, Any], pictures: Mapping[str, bytes], sight: Sight, segments: int | str
    ):
        self._trials = {name: np.array(column) for name, column in session["trials"].items()}
        self._pictures, self._sight, self._segments = pictures, sight, segments
        self._fixed = np.full(len(self._trials["image"]), np.nan)
        for name in pictures:
            rows = np.flatnonzero(self._trials["image"] == name)
            if len(rows):
                self._fixed[rows] = self._seen(name, {key: self._trials[key][rows] for key in PAIR})
        self._chosen: dict[int, float] = {}
        self._shown: dict[int, tuple[float, bool]] = {}
        self._stops: set[int] = set()
        self.adaptive, self.choosing = "choices" in session, False
        self.hear(session)

    @classmethod
    async def of(
        cls, wire: Wire, study: Mapping[str, Any], session: Mapping[str, Any], sight: Sight
    ) -> "Asked":
        """Fetch every image of the session, as a page does."""
        pictures = {
            name: (await wire.ask("GET", image["url"])).content for name, image in session["images"].items()
        }
        return cls(session, pictures, sight, study["segments"])

    def hear(self, said: Mapping[str, Any]) -> None:
        """Take in the choices that came with a reply."""
        self.choosing = bool(said.get("choosing"))
        self._stops.update(said.get("stops", ()))
        columns = {name: np.array(column) for name, column in said.get("choices", {}).items()}
        items = columns.pop("item", np.array([], np.int64)).astype(np.int64)
        new = np.array([item not in self._chosen for item in items.tolist()], np.bool_)
        images = self._trials["image"][items]
        for name in np.unique(images[new]).tolist():
            rows = np.flatnonzero(new & (images == name))
            seen = self._seen(name, {key: columns[key][rows] for key in PAIR})
            self._chosen |= dict(zip(items[rows].tolist(), seen.tolist(), strict=True))

    def has_choice(self, item: int) -> bool:
        """Whether a pair was chosen for an item, or it has been shown without."""
        return item in self._chosen or item in self._shown

    def show(self, item: int) -> tuple[float, bool]:
        """P(same) of what an item shows, and whether that is a chosen pair."""
        if item not in self._shown:
            chosen = item in self._chosen
            self._shown[item] = self._chosen[item] if chosen else float(self._fixed[item]), chosen
        return self._shown[item]

    def end(self, block: Sequence[int]) -> float:
        """The first item of a block that is not asked any more; infinity where none was stopped."""
        return min((stop for stop in self._stops if block[0] <= stop <= block[-1]), default=np.inf)

    def _seen(self, image: str, columns: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return self._sight.same_probability(image, self._pictures[image], columns, self._segments)


def blocks(trials: Mapping[str, Sequence[Any]]) -> Iterable[list[int]]:
    """The items of each block; a catch trial shows another image but belongs to the block around it."""
    block: list[int] = []
    before = None
    columns = zip(trials["practice"], trials["image"], trials["block"], trials["catch"], strict=True)
    for item, (practice, image, number, catch) in enumerate(columns):
        here = before if catch else (practice, image, number)
        if block and here != before:
            yield block
            block = []
        block.append(item)
        before = here
    if block:
        yield block
