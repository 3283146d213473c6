"""Maps of an image as its answers stand, and contours as participants drew them."""

import hashlib
import json
import math
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from vseg import store
from vseg.data.layout import Layout
from vseg.data.responses import Tally
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.monitor.answers import Answers
from vseg.store.changes import EventRow, list_events
from vseg.store.studies import StudyRow

if TYPE_CHECKING:
    from vseg.reconstruction.reconstruct import Reconstruction

MIN_SEGMENTS, MAX_SEGMENTS = 2, 12
MAX_SMOOTHNESS = 1e6
MAX_CACHED_FITS = 256
DRAWINGS_A_SESSION = 2  # usually one; who comes back may draw again
SEED = 0  # the same answers give the same maps


@dataclass(frozen=True)
class MapReadiness:
    """How many answers there are for a map of so many segments, and how many distinct pairs it takes."""

    segments: int
    answers: int
    distinct_pairs: int
    needed: int
    advised: int
    locations: int
    locations_asked: int

    @property
    def missing(self) -> int:
        """Distinct pairs still to be answered before there is a map."""
        return max(self.needed - self.distinct_pairs, 0)

    @property
    def sentence(self) -> str:
        """What is missing, or "" if there is enough for a map."""
        if not self.missing:
            return ""
        return (
            f"Only {self.distinct_pairs} distinct {'pair was' if self.distinct_pairs == 1 else 'pairs were'} answered; "
            f"a map of {self.segments} segments on {self.locations} locations needs at least {self.needed}: "
            f"{self.missing} {'is' if self.missing == 1 else 'are'} missing."
        )


@dataclass(frozen=True)
class Contours:
    """What one participant drew on one image.

    `data` has `contours`, lines of x, y in the pixels of a picture of `width_px` by `height_px`.
    """

    participant: str
    session: str
    image: str
    at_ms: int
    data: dict[str, Any]


def count_pairs_needed(layout: Layout, segments: int) -> tuple[int, int]:
    """Distinct pairs that maps of K segments need, (K-1)n, and that are advised, Kn; never more than there are."""
    n = len(layout)
    there = n * (n - 1) // 2
    return min((segments - 1) * n, there), min(segments * n, there)


def check_map_readiness(
    answers: Answers, image: str, *, participant: str | None = None, segments: int
) -> MapReadiness:
    """How many answers there are, and how many a map takes; `NotFound` for an unknown image or participant."""
    tally = answers.tally(image, participant)
    needed, advised = count_pairs_needed(answers.layout, _checked_segments(segments))
    asked = int((tally.pairs.partners > 0).sum())
    return MapReadiness(segments, tally.trials, len(tally), needed, advised, len(answers.layout), asked)


def fit_maps(
    answers: Answers,
    image: str,
    *,
    participant: str | None = None,
    segments: int,
    smoothness: float | str = "auto",
) -> "Reconstruction":
    """The maps of an image from all answers that count, or from one participant's.

    `InvalidInput` says how many distinct pairs are missing where there are too few. A fit that stopped before its
    tolerance is shown all the same; its `message` says so.
    """
    smoothness = _checked_smoothness(smoothness)
    wanted = check_map_readiness(answers, image, participant=participant, segments=segments)
    if wanted.missing:
        raise InvalidInput(wanted.sentence)
    return _fits.of(answers.tally(image, participant), segments, smoothness)


def answers_fingerprint(answers: Answers, image: str, participant: str | None = None) -> str:
    """A word for the answers that maps follow from: others give another one."""
    return _fingerprint(answers.tally(image, participant)).hex()


def load_contours(
    db: store.Database,
    study: StudyRow,
    image: str,
    participant: str | None = None,
    *,
    most: int | None = None,
) -> list[Contours]:
    """The contours that were drawn on an image, the last drawing of each session; at `most` of so many sessions.

    A drawing is large and takes a millisecond to read, so that those who show a few ask for a few.
    """
    last = {}
    newest = None if most is None else DRAWINGS_A_SESSION * most
    about = f'"image":{json.dumps(image)}'  # as the store writes it
    found = list_events(db, study.id, ["contours"], participant=participant, containing=about, newest=newest)
    for event in found:
        if event["data"].get("image") == image and (drawn := _drawn(event)) is not None:
            last[drawn.session] = drawn
    return list(last.values())[-most if most else 0 :]


class _Fits:
    """Reconstructions by what they are made from, the last ones kept; one is made at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Reconstruction] = OrderedDict()
        self._lock = Lock()
        self._fitting = Lock()

    def of(self, tally: Tally, segments: int, smoothness: float | str) -> "Reconstruction":
        key = (_fingerprint(tally), tally.layout, segments, smoothness)
        if (found := self._found(key)) is not None:
            return found
        with self._fitting:  # on a page of many maps the first cores would only take time from each other
            if (found := self._found(key)) is None:
                found = fit_tally(tally, segments, smoothness)
                with self._lock:
                    self._kept[key] = found
                    while len(self._kept) > MAX_CACHED_FITS:
                        self._kept.popitem(last=False)
            return found

    def _found(self, key: Any) -> "Reconstruction | None":
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)


_fits = _Fits()


def fit_tally(tally: Tally, segments: int, smoothness: float | str) -> "Reconstruction":
    """Of these answers, made anew; one that stopped before its tolerance is shown all the same."""
    # loaded with the first map, not with the server
    from vseg.reconstruction.reconstruct import Reconstruction, reconstruct

    with warnings.catch_warnings():
        # Locations that nobody was asked about yet are no news while a study runs; `Need` counts them.
        warnings.simplefilter("ignore", VsegWarning)
        try:
            return reconstruct(tally, segments=segments, smoothness=smoothness, seed=SEED)
        except NotConverged as error:
            if isinstance(error.result, Reconstruction):
                return error.result
            raise


def _fingerprint(tally: Tally) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for column in (tally.pairs.i, tally.pairs.j, tally.k, tally.n):
        digest.update(column.tobytes())
    return digest.digest()


def _checked_segments(segments: int) -> int:
    if not MIN_SEGMENTS <= segments <= MAX_SEGMENTS:
        raise InvalidInput(
            f"A map has {MIN_SEGMENTS} to {MAX_SEGMENTS} segments, got {segments}; choose a number between."
        )
    return segments


def _checked_smoothness(smoothness: float | str) -> float | str:
    if smoothness == "auto":
        return smoothness
    try:
        number = float(smoothness)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MAX_SMOOTHNESS:
        raise InvalidInput(
            f"Smoothness is 'auto' or a number from 0 to {MAX_SMOOTHNESS:g}, got {smoothness!r:.40}."
        )
    return number


def _drawn(event: EventRow) -> Contours | None:
    """A drawing as a page reported it, which may be anything: None where it is not one."""
    data = event["data"]
    try:
        cleaned = {
            "contours": [[[_finite(x), _finite(y)] for x, y in line] for line in data["contours"]],
            **{name: _finite(data[name]) for name in ("width_px", "height_px")},
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return Contours(event["participant"], event["session"], data["image"], event["at_ms"], cleaned)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):  # "inf" is a number to Python, and none in JSON
        raise ValueError
    return number
