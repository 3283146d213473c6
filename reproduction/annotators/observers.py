"""A photograph and the people who segmented it, as observers whose P(same) is known for every pair.

'aggregate' is a crowd: each trial is answered by an annotator drawn at random. 'individual' is one annotator, who
answers one trial in twenty without looking.
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
LAPSE = 0.05  # of an individual
FEWEST_ANNOTATORS = 2


@dataclass(frozen=True, eq=False)
class Observer:
    """Whoever answers: at each trial one of these people, drawn at random.

    Attributes
    ----------
    labels : (A, n) the segment of each location, by each of A people
    lapse : share of the trials answered without looking

    Examples
    --------
    >>> two = Observer(Grid(3), np.array([[0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 1, 2] * 3]))
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
        """(n, n) P(same) of every pair, lapses left out: what is to be found."""
        return np.asarray(np.mean(self.labels[:, :, None] == self.labels[:, None, :], axis=0))

    def answer(self, pairs: Pairs, rng: np.random.Generator) -> Responses:
        """What they say, a trial a pair."""
        who = rng.integers(len(self.labels), size=len(pairs))
        seen = self.labels[who, pairs.i] == self.labels[who, pairs.j]
        lapsed, guess = rng.random((2, len(pairs)))
        return Responses(self.layout, pairs.i, pairs.j, np.where(lapsed < self.lapse, guess < 0.5, seen))

    def error(self, q: NDArray[np.float64]) -> float:
        """Mean |q̂ - q| over all pairs of different locations."""
        every = np.triu_indices(len(self.layout), 1)
        return float(np.abs(q[every] - self.same[every]).mean())


@dataclass(frozen=True, eq=False)
class Scene:
    """A photograph's central square, (S, S, 3) uint8, and the segment of each location by each annotator, (A, n)."""

    layout: Layout
    picture: NDArray[np.uint8]
    labels: NDArray[np.int64]

    @property
    def one(self) -> int:
        """The annotator who is the individual: the one with a middling number of segments."""
        counts = [len(np.unique(labels)) for labels in self.labels]
        return int(np.argsort(counts, kind="stable")[len(counts) // 2])

    def observer(self, kind: str) -> Observer:
        """The crowd, or one of them."""
        if kind == "aggregate":
            return Observer(self.layout, self.labels)
        return Observer(self.layout, self.labels[[self.one]], LAPSE)

    @property
    def others(self) -> Observer:
        """All but the individual, who lapse as often."""
        return Observer(self.layout, np.delete(self.labels, self.one, axis=0), LAPSE)


def scene(folder: str | Path, image: str, grid: int) -> Scene:
    """A photograph of a copy of BSDS500, asked about on a grid."""
    held, layout = Bsds(folder), Grid(grid)
    labels = np.array([maps.labels for maps in held.annotator_maps(image, layout)])
    if len(labels) < FEWEST_ANNOTATORS:
        raise InvalidInput(
            f"The photograph {image} has {len(labels)} annotator, expected two or more: an individual is helped by the "
            "others' answers."
        )
    return Scene(layout, held.image(image), labels)
