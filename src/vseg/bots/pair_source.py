"""Which pair each trial of one simulated participant shows: the session's own, or one that the server has chosen.

Also what the participant draws on the images of the session.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.bots.client import StudyClient
from vseg.bots.perception import Perception
from vseg.data.contours import Contours
from vseg.study.sections import PRACTICE_IMAGE

PAIR_COLUMNS = ("i", "j", "x1", "y1", "x2", "y2")


class PairSource:
    """P(same) of every trial, for the pair that it shows; an item that was shown once keeps its pair.

    Attributes
    ----------
    adaptive : bool
        Whether the server chooses pairs in this study.
    choosing : bool
        Whether the server was choosing pairs at its last reply.
    """

    def __init__(
        self,
        session: Mapping[str, Any],
        pictures: Mapping[str, bytes],
        perception: Perception,
        segments: int | str,
    ):
        self._trials = {name: np.array(column) for name, column in session["trials"].items()}
        self._pictures, self._perception, self._segments = pictures, perception, segments
        self._fixed = np.full(len(self._trials["image"]), np.nan)
        for name in pictures:
            rows = np.flatnonzero(self._trials["image"] == name)
            if len(rows):
                columns = {key: self._trials[key][rows] for key in PAIR_COLUMNS}
                self._fixed[rows] = self._same_probability(name, columns)
        self._chosen: dict[int, float] = {}
        self._shown: dict[int, tuple[float, bool]] = {}
        self._stops: set[int] = set()
        self.adaptive, self.choosing = "choices" in session, False
        self.update(session)

    @classmethod
    async def fetch(
        cls,
        client: StudyClient,
        study: Mapping[str, Any],
        session: Mapping[str, Any],
        perception: Perception,
    ) -> "PairSource":
        """Fetch every image of the session, as a page does, and return the session's pairs."""
        pictures = {
            name: (await client.request("GET", image["url"])).content
            for name, image in session["images"].items()
        }
        return cls(session, pictures, perception, study["segments"])

    def update(self, reply: Mapping[str, Any]) -> None:
        """Add the chosen pairs and stops that came with a reply of the server."""
        self.choosing = bool(reply.get("choosing"))
        self._stops.update(reply.get("stops", ()))
        columns = {name: np.array(column) for name, column in reply.get("choices", {}).items()}
        items = columns.pop("item", np.array([], np.int64)).astype(np.int64)
        new = np.array([item not in self._chosen for item in items.tolist()], np.bool_)
        images = self._trials["image"][items]
        for name in np.unique(images[new]).tolist():
            rows = np.flatnonzero(new & (images == name))
            probabilities = self._same_probability(name, {key: columns[key][rows] for key in PAIR_COLUMNS})
            self._chosen |= dict(zip(items[rows].tolist(), probabilities.tolist(), strict=True))

    def has_choice(self, item: int) -> bool:
        """Return whether a pair was chosen for an item, or the item was already shown without one."""
        return item in self._chosen or item in self._shown

    def show(self, item: int) -> tuple[float, bool]:
        """Return P(same) of the pair that an item shows, and whether the server chose this pair."""
        if item not in self._shown:
            chosen = item in self._chosen
            self._shown[item] = self._chosen[item] if chosen else float(self._fixed[item]), chosen
        return self._shown[item]

    def find_stop(self, block: Sequence[int]) -> float:
        """Return the first item of a block that is not shown any more; infinity if the block was not stopped."""
        return min((stop for stop in self._stops if block[0] <= stop <= block[-1]), default=np.inf)

    def draw_contours(self, rng: np.random.Generator) -> list[Contours]:
        """Return the lines that the participant draws on each image."""
        return [
            self._perception.draw_contours(name, png, self._segments, rng)
            for name, png in self._pictures.items()
            if name != PRACTICE_IMAGE
        ]

    def _same_probability(self, image: str, columns: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        return self._perception.same_probability(image, self._pictures[image], columns, self._segments)


def split_blocks(trials: Mapping[str, Sequence[Any]]) -> Iterable[list[int]]:
    """Yield the items of each block; a catch trial shows another image but belongs to the block around it."""
    block: list[int] = []
    current = None
    columns = zip(trials["practice"], trials["image"], trials["block"], strict=True)
    for item, (practice, image, number) in enumerate(columns):
        is_catch = image == PRACTICE_IMAGE and not practice
        key = current if is_catch else (practice, image, number)
        if block and key != current:
            yield block
            block = []
        block.append(item)
        current = key
    if block:
        yield block
