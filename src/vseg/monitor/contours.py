"""Contours that participants drew on an image, and how well they agree with the truth, the maps and each other."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from vseg import store
from vseg.data.contours import Contours
from vseg.data.maps import Maps
from vseg.evaluation.contours import (
    Quartiles,
    compare_contours,
    score_contours_on_maps,
    spacing_tolerance,
    summarise_quartiles,
)
from vseg.store.changes import EventRow, list_events
from vseg.store.studies import StudyRow
from vseg.study.pictures import refine_truth

DRAWINGS_PER_SESSION = 2  # usually one; a participant who comes back may draw again
MAX_PAIRS = 200  # compared for a page, which takes about half a second
MAX_CACHED = 64
SEED = 0


@dataclass(frozen=True)
class Drawing:
    """What one participant drew on one image, as the API returns it.

    `data` has `contours`, lists of points (x, y) in the pixels of a picture of `width_px` by `height_px`.
    """

    participant: str
    session: str
    image: str
    at_ms: int
    data: dict[str, Any]

    @property
    def contours(self) -> Contours:
        """The lines as an object that can be rasterised."""
        return Contours(
            self.data["contours"], self.data["width_px"], self.data["height_px"],
            participant=self.participant, session=self.session, image=self.image,
        )  # fmt: skip


@dataclass(frozen=True)
class DrawingScores:
    """The boundary F of drawings, each as median and quartiles; a count of 0 if there is nothing to compare with.

    Attributes
    ----------
    truth : Quartiles
        Against the true segments of a generated image.
    maps : Quartiles
        Against the maps on the page.
    between : Quartiles
        Between two participants; of one participant, with each of the others.
    """

    truth: Quartiles
    maps: Quartiles
    between: Quartiles


def load_contours(
    db: store.Database,
    study: StudyRow,
    image: str,
    participant: str | None = None,
    *,
    most: int | None = None,
) -> list[Drawing]:
    """Load the contours that were drawn on an image: the last drawing of each session, of at most `most` sessions.

    A drawing is large and takes a millisecond to read, so pages that show only a few limit their number.
    """
    last = {}
    newest = None if most is None else DRAWINGS_PER_SESSION * most
    about = f'"image":{json.dumps(image)}'  # as the store writes it
    drawings = list_events(
        db, study.id, ["contours"], participant=participant, containing=about, newest=newest
    )
    for event in drawings:
        if event["data"].get("image") == image and (drawing := _parse_drawing(event)) is not None:
            last[drawing.session] = drawing
    return list(last.values())[-most if most else 0 :]


def score_drawings(
    study: StudyRow,
    image: str,
    drawings: Sequence[Drawing],
    maps: Maps | None,
    participant: str | None = None,
) -> DrawingScores:
    """Score drawings on an image, all or those of one participant, against the truth, maps and the other drawings.

    The tolerances are those of `vseg.workflows.score_contours`. Of many pairs of drawings, some are compared.
    """
    drawn = tuple((drawing.session, drawing.at_ms) for drawing in drawings)
    digest = None if maps is None else hashlib.blake2b(maps.probabilities.tobytes(), digest_size=16).digest()
    key = (study.digest, image, drawn, digest, participant)
    if (scores := _cache.get(key)) is None:
        scores = _compute_scores(drawings, _load_truth(study, image), maps, participant)
        _cache.put(key, scores)
    assert isinstance(scores, DrawingScores)
    return scores


def _compute_scores(
    drawings: Sequence[Drawing], truth: Maps | None, maps: Maps | None, participant: str | None
) -> DrawingScores:
    contours = [drawing.contours for drawing in drawings]
    chosen = [each for each in contours if participant is None or each.participant == participant]

    def score_on(reference: Maps | None) -> Quartiles:
        if reference is None:
            return summarise_quartiles([])
        return summarise_quartiles(
            [
                score_contours_on_maps(each, reference, tolerance=spacing_tolerance(reference.layout, each)).f
                for each in chosen
            ]
        )

    if participant is None:
        pairs = compare_contours(contours, max_pairs=MAX_PAIRS, seed=SEED)
    else:
        others = [each for each in contours if each.participant != participant]
        compared = [[own, other] for own in chosen for other in others][:MAX_PAIRS]
        pairs = [pair for two in compared for pair in compare_contours(two, seed=SEED)]
    between = summarise_quartiles([pair.f for pair in pairs])
    return DrawingScores(score_on(truth), score_on(maps), between)


def _load_truth(study: StudyRow, image: str) -> Maps | None:
    """Return the true maps of an image; generating it again takes about a second."""
    key = (study.digest, image)
    if (found := _cache.get(key)) is None:
        found = (refine_truth(study.study, image, study.truth(image)),)
        _cache.put(key, found)
    assert isinstance(found, tuple)
    return found[0]


class _Cache:
    """The values used last, by key."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> object | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: object) -> None:
        with self._lock:
            self._values[key] = value
            while len(self._values) > MAX_CACHED:
                self._values.popitem(last=False)


_cache = _Cache()


def _parse_drawing(event: EventRow) -> Drawing | None:
    """Return the drawing that a page reported, or None if the data are not a valid drawing, or an empty one."""
    drawn = Contours.from_record(event["data"], participant=event["participant"], session=event["session"])
    if drawn is None:
        return None
    lines = [line.tolist() for line in drawn.lines]
    data = {"contours": lines, "width_px": drawn.width_px, "height_px": drawn.height_px}
    return Drawing(drawn.participant, drawn.session, drawn.image, event["at_ms"], data)
