"""Maps of an image from its answers so far.

Labels of segments are arbitrary. So that a segment keeps its colour while answers arrive, maps take the labels of the
maps of earlier answers, see `find_label_reference`. This depends on the stored answers alone, not on what was shown:
all processes of a server, and the process that computes posteriors, use the same labels.
"""

import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.designs.pair_designs import minimal_trials
from vseg.designs.pair_graphs import count_pairs
from vseg.designs.precision import advised_answers, describe_precision
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.monitor.answers import Answers

if TYPE_CHECKING:
    from vseg.reconstruction.reconstruct import Reconstruction

MIN_SEGMENTS, MAX_SEGMENTS = 2, 12
MAX_SMOOTHNESS = 1e6
MAX_CACHED_FITS = 512
SEED = 0  # that of `vseg fit` unless another is given, so that the same answers give the same maps
LABEL_SMOOTHNESS = (
    3.0  # λ of maps that only labels are taken from: much faster than a chosen one, and as good for that
)
DIRECTION = (1.0, 2.0)  # in which segments are ordered where there are no earlier maps: right, and down


@dataclass(frozen=True)
class MapReadiness:
    """Whether the answers suffice: distinct pairs answered and needed for a penalised map, answers advised.

    `advised` is meant for one observer. `observers` is the number of participants who gave the answers; 1 if they are
    one participant's, or if the study pools the answers of all.
    """

    segments: int
    answers: int
    observers: int
    distinct_pairs: int
    needed: int
    advised: int
    locations: int
    locations_asked: int

    @property
    def missing(self) -> int:
        """Number of distinct pairs still to be answered before a map can be fitted."""
        return max(self.needed - self.distinct_pairs, 0)

    @property
    def answers_each(self) -> int:
        """The mean number of answers of an observer, which is to be compared with `advised`."""
        return round(self.answers / max(self.observers, 1))

    @property
    def precision(self) -> str:
        """A sentence about the precision of an observer's posterior to expect, now and with the advised answers."""
        sentence = describe_precision(self.segments, self.answers_each)
        return (
            sentence if self.observers <= 1 else f"For one participant: {sentence[0].lower()}{sentence[1:]}"
        )

    @property
    def message(self) -> str:
        """A sentence about what is missing, or "" if a map can be fitted."""
        if not self.missing:
            return ""
        return (
            f"Only {self.distinct_pairs} distinct {'pair was' if self.distinct_pairs == 1 else 'pairs were'} answered; "
            f"a map of {self.segments} segments on {self.locations} locations needs at least {self.needed}: "
            f"{self.missing} {'is' if self.missing == 1 else 'are'} missing."
        )


def count_pairs_needed(layout: Layout, segments: int) -> int:
    """Return how many distinct pairs penalised maps of K segments need: (K-1)n, or all pairs if there are fewer."""
    return min(minimal_trials(layout, segments), count_pairs(len(layout)))


def check_map_readiness(
    answers: Answers,
    image: str,
    *,
    participant: str | None = None,
    segments: int,
    pooled: bool = True,
) -> MapReadiness:
    """Compare the distinct pairs answered with those a map needs, and the answers of an observer with those advised.

    With `pooled`, the answers are taken as one observer's (see `DesignSection.is_pooled`). `NotFound` is raised for an
    unknown image or participant.
    """
    tally = answers.tally(image, participant)
    needed = count_pairs_needed(answers.layout, _check_segments(segments))
    with_answers = int((tally.pairs.partners > 0).sum())
    locations = len(answers.layout)
    advised = advised_answers(segments)
    observers = 1 if pooled or participant is not None else len(answers.list_participants(image))
    return MapReadiness(
        segments, tally.trials, observers, len(tally), needed, advised, locations, with_answers
    )


def fit_maps(
    answers: Answers,
    image: str,
    *,
    participant: str | None = None,
    segments: int,
    smoothness: float | str = "auto",
) -> "Reconstruction":
    """Fit the maps of an image to all answers that count, or to one participant's.

    `InvalidInput` says how many distinct pairs are missing. A fit that stopped before it reached its tolerance is
    returned as well; its `message` says so.
    """
    smoothness = _check_smoothness(smoothness)
    readiness = check_map_readiness(answers, image, participant=participant, segments=segments)
    if readiness.missing:
        raise InvalidInput(readiness.message)
    reference = find_label_reference(answers.earlier_tallies(image), segments)
    return _fit_cache.fit(answers.tally(image, participant), segments, smoothness, reference)


def answers_fingerprint(answers: Answers, image: str, participant: str | None = None) -> str:
    """Return a short text that changes whenever the answers to an image change."""
    return _fingerprint(answers.tally(image, participant)).hex()


class _FitCache:
    """The most recent reconstructions, by the answers and settings they were fitted to; one fit runs at a time."""

    def __init__(self) -> None:
        self._fits: OrderedDict[Hashable, Reconstruction] = OrderedDict()
        self._lock = Lock()
        self._fitting = Lock()

    def fit(
        self, tally: Tally, segments: int, smoothness: float | str, reference: Maps | None
    ) -> "Reconstruction":
        """Return the reconstruction of a tally with the labels of the reference."""
        key = (_fingerprint(tally), tally.layout, segments, smoothness)
        fit = self._get_or_compute(key, lambda: _fit_tally(tally, segments, smoothness))
        labels = _order_by_position(fit.maps) if reference is None else reference
        return self._get_or_compute((key, labels.probabilities.tobytes()), lambda: fit.align_to(labels))

    def _get_or_compute(self, key: Hashable, compute: Callable[[], "Reconstruction"]) -> "Reconstruction":
        if (fit := self._get(key)) is not None:
            return fit
        with self._fitting:  # the fits of a page with many maps would only compete for the cores
            if (fit := self._get(key)) is None:
                fit = compute()
                with self._lock:
                    self._fits[key] = fit
                    while len(self._fits) > MAX_CACHED_FITS:
                        self._fits.popitem(last=False)
            return fit

    def _get(self, key: Hashable) -> "Reconstruction | None":
        with self._lock:
            if key in self._fits:
                self._fits.move_to_end(key)
            return self._fits.get(key)


_fit_cache = _FitCache()


def find_label_reference(earlier: Sequence[Tally], segments: int) -> Maps | None:
    """Return maps of earlier answers whose labels later maps of the same image take; None if they are too few.

    Parameters
    ----------
    earlier : list of Tally
        The tallies of `Answers.earlier_tallies`, oldest first. The maps of each take the labels of the maps before;
        the first ones take those of the maps with one segment less.
    segments : int
        K.
    """
    reference = None
    for number, tally in enumerate(earlier, 1):
        if not _has_enough_pairs(tally, segments):
            continue
        if reference is None and segments > MIN_SEGMENTS:
            reference = find_label_reference(earlier[:number], segments - 1)
        reference = _fit_cache.fit(tally, segments, LABEL_SMOOTHNESS, reference).maps
    return reference


def _has_enough_pairs(tally: Tally, segments: int) -> bool:
    """Return whether a tally has as many distinct pairs as maps of K segments need."""
    return len(tally) >= count_pairs_needed(tally.layout, segments)


def _order_by_position(maps: Maps) -> Maps:
    """Return the maps with segments ordered from the top left to the bottom right, by their centres."""
    position = maps.layout.positions @ DIRECTION
    weight = maps.probabilities.sum(axis=0)
    return maps.permute(np.argsort(position @ maps.probabilities / np.maximum(weight, 1e-12), kind="stable"))


def _fit_tally(tally: Tally, segments: int, smoothness: float | str) -> "Reconstruction":
    """Fit maps to these answers; a fit that stopped before it reached its tolerance is returned as well."""
    # imported with the first map, not with the server
    from vseg.reconstruction.reconstruct import Reconstruction, reconstruct

    with warnings.catch_warnings():
        # While a study runs, some locations have no answers yet; `MapReadiness` counts them.
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


def _check_segments(segments: int) -> int:
    if not MIN_SEGMENTS <= segments <= MAX_SEGMENTS:
        raise InvalidInput(
            f"A map has {MIN_SEGMENTS} to {MAX_SEGMENTS} segments, got {segments}; choose a number between."
        )
    return segments


def _check_smoothness(smoothness: float | str) -> float | str:
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
