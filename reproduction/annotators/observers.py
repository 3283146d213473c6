"""A photograph and its annotators as observers whose P(same) is known for every pair.

'aggregate': each trial is answered by an annotator drawn at random. 'individual': all trials are answered by one
annotator, who lapses (guesses) on 5 % of the trials.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Grid, Layout
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses
from vseg.errors import InvalidInput
from vseg.stimuli import Bsds

OBSERVERS = ("aggregate", "individual")
LAPSE = 0.05  # lapse rate of an individual annotator
MIN_ANNOTATORS = 2


@dataclass(frozen=True, eq=False)
class AnnotatorObserver:
    """An observer who answers each trial as one of A annotators, drawn at random.

    Attributes
    ----------
    layout : Layout
        The locations.
    labels : (A, n) array
        The segment of each location according to each annotator.
    lapse : float
        Share of the trials answered by guessing.

    Examples
    --------
    >>> two = AnnotatorObserver(Grid(3), np.array([[0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 1, 2] * 3]))
    >>> two.same[0, :4]
    array([1. , 0.5, 0.5, 0.5])
    >>> two.answer(Pairs(Grid(3), [0, 3], [4, 6]), np.random.default_rng(0)).same
    array([False,  True])
    """

    layout: Layout
    labels: NDArray[np.int64]
    lapse: float = 0.0

    @cached_property
    def same(self) -> NDArray[np.float64]:
        """P(same) of every pair without lapses, (n, n): the quantity to estimate."""
        return np.asarray(np.mean(self.labels[:, :, None] == self.labels[:, None, :], axis=0))

    def answer(self, pairs: Pairs, rng: np.random.Generator) -> Responses:
        """Simulate one trial for each pair."""
        annotators = rng.integers(len(self.labels), size=len(pairs))
        same = self.labels[annotators, pairs.i] == self.labels[annotators, pairs.j]
        lapsed, guess = rng.random((2, len(pairs)))
        return Responses(self.layout, pairs.i, pairs.j, np.where(lapsed < self.lapse, guess < 0.5, same))

    def error(self, q: NDArray[np.float64]) -> float:
        """Return the mean |q̂ - q| over all pairs of different locations."""
        upper = np.triu_indices(len(self.layout), 1)
        return float(np.abs(q[upper] - self.same[upper]).mean())


@dataclass(frozen=True, eq=False)
class Scene:
    """A photograph's central square, (S, S, 3) uint8, and the segment of each location by each annotator, (A, n)."""

    layout: Layout
    picture: NDArray[np.uint8]
    labels: NDArray[np.int64]

    @property
    def individual_index(self) -> int:
        """Index of the annotator used as the individual: the one with the median number of segments."""
        counts = [len(np.unique(labels)) for labels in self.labels]
        return int(np.argsort(counts, kind="stable")[len(counts) // 2])

    def observer(self, kind: str) -> AnnotatorObserver:
        """Return the 'aggregate' or the 'individual' observer."""
        if kind == "aggregate":
            return AnnotatorObserver(self.layout, self.labels)
        return AnnotatorObserver(self.layout, self.labels[[self.individual_index]], LAPSE)

    @property
    def others(self) -> AnnotatorObserver:
        """All annotators except the individual, with the same lapse rate."""
        return AnnotatorObserver(self.layout, np.delete(self.labels, self.individual_index, axis=0), LAPSE)


def load_scene(folder: str | Path, image: str, grid: int) -> Scene:
    """Load a photograph and its annotators from a copy of BSDS500, sampled on a square grid."""
    dataset, layout = Bsds(folder), Grid(grid)
    labels = np.array([maps.labels for maps in dataset.annotator_maps(image, layout)])
    if len(labels) < MIN_ANNOTATORS:
        raise InvalidInput(
            f"The photograph {image} has {len(labels)} annotator, expected two or more: the group prior needs the "
            "answers of other annotators."
        )
    return Scene(layout, dataset.image(image), labels)
