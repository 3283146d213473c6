"""Simulated participants of the texture experiment: their images, beliefs and answers.

A participant knows the mean energy of each of the two textures at 36 orientations and treats the energies at a location
as a sample of one of them. The participant's log-odds of the first texture are the log-likelihood ratio times the
participant's gain, plus noise that is constant within the session. At every trial the two labels of a pair are drawn
from these beliefs, unless the participant lapses. The paper's data are not public; these settings are ours.
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
FINE_LAYOUT = Grid(176)
BLOCKS = 5
SIZE_PX = 352
CONDITIONS = ("low", "high")
PARTICIPANTS = 15

GAIN, GAIN_SPREAD = 0.7, 0.18  # median over participants and s.d. of its logarithm
NOISE = 0.5  # s.d. of the log-odds
LAPSE, MAX_LAPSE = 0.03, 0.3  # mean of the exponential distribution over participants, and its maximum
CHANNEL_NOISE = 0.1  # energy that each channel adds, as a share of the largest


@dataclass(frozen=True, eq=False)
class TextureImage:
    """The image of one condition.

    Attributes
    ----------
    image : (SIZE_PX, SIZE_PX) uint8 array
        The pixels.
    truth : Maps
        The true segments, one-hot.
    energies : (n, 36) array
        Energy of each location at each orientation; the mean is 1.
    weights : (36,) array
        Contribution of an energy to the log-odds of the first texture at a gain of 1: the participant's ω₁ - ω₂.
    """

    image: NDArray[np.uint8]
    truth: Maps
    energies: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def by_texture(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean energies (36,) over the locations of the first texture, and over those of the second."""
        first = self.truth.labels == 0
        return self.energies[first].mean(axis=0), self.energies[~first].mean(axis=0)

    @property
    def edge(self) -> NDArray[np.bool_]:
        """Boolean array (n,) of the locations that have a neighbour of the other texture."""
        i, j = LAYOUT.neighbours.T
        apart = self.truth.labels[i] != self.truth.labels[j]
        at_edge = np.zeros(len(LAYOUT), bool)
        at_edge[i[apart]] = at_edge[j[apart]] = True
        return at_edge


@cache
def make_texture_image(condition: str, number: int = 0) -> TextureImage:
    """Make the image with this number; both conditions with the same number have the same segments.

    Examples
    --------
    >>> make_texture_image("low").energies.shape
    (121, 36)
    """
    stimulus = textures.composite(size_px=SIZE_PX, preset=textures.PRESETS[condition], seed=number)
    energies = features.orientation(features.as_image(stimulus.image), LAYOUT)
    truth = stimulus.truth_maps(LAYOUT)
    unweighted = TextureImage(stimulus.image, truth, energies / energies.mean(), np.zeros(energies.shape[1]))
    first, second = unweighted.by_texture
    floor = CHANNEL_NOISE * max(first.max(), second.max())
    return TextureImage(
        unweighted.image, truth, unweighted.energies, 1 / (second + floor) - 1 / (first + floor)
    )


@cache
def make_fine_truth(number: int = 0) -> Maps:
    """Return the segments of the image with this number on a fine grid, to compare drawn contours with."""
    return textures.composite(size_px=SIZE_PX, seed=number).truth_maps(FINE_LAYOUT)


def simulate_belief(image: TextureImage, rng: np.random.Generator) -> Maps:
    """Simulate a new participant's belief about an image."""
    gain = GAIN * np.exp(GAIN_SPREAD * rng.standard_normal())
    log_odds = gain * image.energies @ image.weights + NOISE * rng.standard_normal(len(LAYOUT))
    first = 1 / (1 + np.exp(-log_odds))
    return Maps(LAYOUT, np.stack([first, 1 - first], axis=1))


def simulate_answers(belief: Maps, rng: np.random.Generator) -> Tally:
    """Simulate one session: KN² = 242 covering pairs, the same in each of five blocks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> simulate_answers(simulate_belief(make_texture_image("low"), rng), rng)
    <Tally: 1210 trials of 242 pairs on an 11x11 grid>
    """
    pairs = designs.covering(LAYOUT, segments=2, seed=rng)
    lapse = min(rng.exponential(LAPSE), MAX_LAPSE)
    same = rng.binomial(BLOCKS, LapsingObserver(lapse)(belief, pairs))
    return Tally(pairs, same, np.full(len(pairs), BLOCKS))


def shuffle_answers(tally: Tally, rng: np.random.Generator) -> Tally:
    """Permute the answers over all trials: the number of 'same' answers stays, their relation to the image is lost."""
    same = np.arange(tally.n.max()) < tally.k[:, None]  # all pairs have the same number of trials
    return Tally(tally.pairs, rng.permuted(same.ravel()).reshape(same.shape).sum(axis=1), tally.n)
