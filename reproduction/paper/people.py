"""The texture experiment with simulated people: what they see, what they believe, what they answer.

A person knows how much energy each of the two textures has at each of 36 orientations and takes what a location shows
for a sample of one of them: the log-likelihood ratio, times the person's own gain, plus a noise that stays for the
session, is the log-odds of the first texture. The two labels of a pair are drawn from these beliefs at every trial, but
for lapses. The paper's people are not public; these settings are ours.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vseg import designs, features
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.observers import LapsingObserver
from vseg.stimuli import textures

LAYOUT = Grid(11)
BLOCKS = 5
SIZE_PX = 352
CONDITIONS = ("low", "high")
PARTICIPANTS = 15

GAIN, GAIN_SPREAD = 0.7, 0.18  # median over people and s.d. of its logarithm
NOISE = 0.5  # s.d. of the log-odds
LAPSE, MOST_LAPSES = 0.03, 0.3  # mean of the exponential distribution over people, and its end
CHANNEL_NOISE = 0.1  # energy that each channel adds, as a share of the largest


@dataclass(frozen=True, eq=False)
class Seen:
    """A picture of one condition.

    Attributes
    ----------
    image : (SIZE_PX, SIZE_PX) uint8
    truth : Maps, one-hot
    energies : (n, 36), of mean 1
    weights : (36,) what an energy adds to the log-odds of the first texture at a gain of 1: the person's ω₁ - ω₂
    """

    image: NDArray[np.uint8]
    truth: Maps
    energies: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def by_texture(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(36,) mean energies where the first texture is, and where the second is."""
        first = self.truth.labels == 0
        return self.energies[first].mean(axis=0), self.energies[~first].mean(axis=0)

    @property
    def edge(self) -> NDArray[np.bool_]:
        """(n,) the locations that have a neighbour of the other texture."""
        i, j = LAYOUT.neighbours.T
        apart = self.truth.labels[i] != self.truth.labels[j]
        found = np.zeros(len(LAYOUT), bool)
        found[i[apart]] = found[j[apart]] = True
        return found


@cache
def seen(condition: str, picture: int = 0) -> Seen:
    """The picture of that number; both conditions of one number have the same two areas.

    Examples
    --------
    >>> seen("low").energies.shape
    (121, 36)
    """
    stimulus = textures.composite(size_px=SIZE_PX, preset=textures.PRESETS[condition], seed=picture)
    energies = features.orientation(features.as_image(stimulus.image), LAYOUT)
    truth = stimulus.truth_maps(LAYOUT)
    found = Seen(stimulus.image, truth, energies / energies.mean(), np.zeros(energies.shape[1]))
    first, second = found.by_texture
    floor = CHANNEL_NOISE * max(first.max(), second.max())
    return Seen(found.image, truth, found.energies, 1 / (second + floor) - 1 / (first + floor))


def belief(picture: Seen, rng: np.random.Generator) -> Maps:
    """What a new person believes of a picture."""
    gain = GAIN * np.exp(GAIN_SPREAD * rng.standard_normal())
    log_odds = gain * picture.energies @ picture.weights + NOISE * rng.standard_normal(len(LAYOUT))
    first = 1 / (1 + np.exp(-log_odds))
    return Maps(LAYOUT, np.stack([first, 1 - first], axis=1))


def answers(believed: Maps, rng: np.random.Generator) -> Tally:
    """One session: KN² = 242 covering pairs, the same in each of five blocks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> answers(belief(seen("low"), rng), rng)
    <Tally: 1210 trials of 242 pairs on an 11x11 grid>
    """
    pairs = designs.covering(LAYOUT, segments=2, seed=rng)
    lapse = min(rng.exponential(LAPSE), MOST_LAPSES)
    same = rng.binomial(BLOCKS, LapsingObserver(lapse)(believed, pairs))
    return Tally(pairs, same, np.full(len(pairs), BLOCKS))


def shuffled(tally: Tally, rng: np.random.Generator) -> Tally:
    """The same answers given to other trials: as many 'same', nothing left of the picture."""
    every = np.arange(tally.n.max()) < tally.k[:, None]  # every pair was asked equally often
    return Tally(tally.pairs, rng.permuted(every.ravel()).reshape(every.shape).sum(axis=1), tally.n)
