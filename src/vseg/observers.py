"""Simulated observers, who answer same/different questions about given maps, and draw the borders of segments.

An observer is a function `(maps, pairs) -> P(same)` that returns one probability per pair. `ideal_observer` is Eq. 2;
`LapsingObserver` adds lapses to another observer. `simulate` draws the answers; it takes any such function.
`draw_contours` draws the lines that an observer draws at the end of a session.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.contours import Contours
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses
from vseg.errors import InvalidInput

Observer = Callable[[Maps, Pairs], NDArray[np.float64]]

# How contours are drawn; lengths are fractions of the image's diagonal.
HAND_NOISE = 0.004  # standard deviation of a line from the border, in x and in y
HAND_LENGTH = 0.05  # over which these deviations are correlated
SHORTEST_LINE = 0.08  # shorter ones, such as those around specks, are not drawn
STEPS = 2  # points over which a traced border is smoothed
TRACED_PX = 128  # longer side of the raster from which borders are traced
SIMPLIFIED_PX = 0.5  # by how much points may be left out, as by a participant's page


def ideal_observer(maps: Maps, pairs: Pairs) -> NDArray[np.float64]:
    """Return P(same) = <p_i, p_j> of each pair (Eq. 2): both labels are drawn from the maps at every trial.

    Examples
    --------
    >>> from vseg import Grid
    >>> ideal_observer(Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1]), Pairs(Grid(3), [0, 0], [1, 8]))
    array([1., 0.])
    """
    return maps.same_probability(pairs)


@dataclass(frozen=True)
class LapsingObserver:
    """An observer who answers some trials without looking: P(same) = (1 - lapse) q + lapse · bias.

    Parameters
    ----------
    lapse : float
        The share of trials answered without looking.
    bias : float
        The share of 'same' among these answers.
    observer : callable
        The observer who answers the other trials, with probability q of 'same'.

    Examples
    --------
    >>> from vseg import Grid
    >>> maps = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> LapsingObserver(0.1, bias=0.8)(maps, Pairs(Grid(3), [0, 0], [1, 8])).round(3)
    array([0.98, 0.08])
    """

    lapse: float = 0.05
    bias: float = 0.5
    observer: Observer = ideal_observer

    def __post_init__(self) -> None:
        for name in ("lapse", "bias"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"Expected a {name} from 0 to 1, got {getattr(self, name)}.")

    @classmethod
    def from_errors(
        cls, gamma0: float, gamma1: float, observer: Observer = ideal_observer
    ) -> "LapsingObserver":
        """Return the observer with P(same) = γ₀ + (1 - γ₀ - γ₁) q, which has errors γ₀ at q = 0 and γ₁ at q = 1."""
        if min(gamma0, gamma1) < 0 or gamma0 + gamma1 > 1:
            raise InvalidInput(
                f"Expected gamma0 and gamma1 from 0 up with a sum of at most 1, got {gamma0}, {gamma1}."
            )
        lapse = gamma0 + gamma1
        return cls(lapse, gamma0 / lapse if lapse else 0.5, observer)

    @property
    def gamma0(self) -> float:
        """P('same') for a pair to which the observer would certainly answer 'different'."""
        return self.lapse * self.bias

    @property
    def gamma1(self) -> float:
        """P('different') for a pair to which the observer would certainly answer 'same'."""
        return self.lapse * (1 - self.bias)

    def __call__(self, maps: Maps, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of each pair."""
        return (1 - self.lapse) * self.observer(maps, pairs) + self.lapse * self.bias


@dataclass(frozen=True)
class ReactionTimes:
    """Ex-Gaussian reaction times in ms, longer for uncertain answers.

    The normal part has the mean mean_ms + slowing_ms · (1 - |2q - 1|), where q is P(same). With the defaults the
    median is about 0.63 s for certain answers and 0.88 s for q = 0.5; the paper's median is 0.73 s (1.33 s per trial,
    of which 0.6 s are the presentation). The paper does not specify a distribution; this one is ours.

    Parameters
    ----------
    mean_ms, sd_ms : float
        Mean and standard deviation of the normal part for certain answers.
    tail_ms : float
        Mean of the exponential part.
    slowing_ms : float
        How much the mean increases for q = 0.5.
    fastest_ms : float
        The shortest time; shorter ones are set to it.
    """

    mean_ms: float = 500.0
    sd_ms: float = 60.0
    tail_ms: float = 180.0
    slowing_ms: float = 250.0
    fastest_ms: float = 150.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"Expected a {name} of 0 or more, got {value}.")

    def draw(self, same_probability: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a reaction time for each trial, given its P(same)."""
        centre = self.mean_ms + self.slowing_ms * (1 - np.abs(2 * same_probability - 1))
        tail = self.tail_ms * rng.standard_exponential(len(centre))
        return np.maximum(centre + self.sd_ms * rng.standard_normal(len(centre)) + tail, self.fastest_ms)


def simulate(
    maps: Maps | Sequence[Maps],
    pairs: Pairs | Sequence[Pairs],
    *,
    blocks: int | None = None,
    observer: Observer | None = None,
    reaction_times: ReactionTimes | None = None,
    participant: str = "simulated",
    image: str = "image",
    seed: Seed,
) -> Responses:
    """Simulate the responses of an observer who sees these maps.

    Parameters
    ----------
    maps : Maps or sequence of Maps
        What the observer sees. If there are several, such as the maps of several annotators, one is drawn for each
        trial.
    pairs : Pairs or sequence of Pairs
        The pairs of every block, or a sequence with the pairs of each block; shown in a new random order each time.
    blocks : int, optional
        The number of blocks N_b, 1 by default; with a sequence of pairs, its length.
    observer : callable, optional
        `(maps, pairs) -> P(same)`: `ideal_observer` by default, a `LapsingObserver`, or your own function.
    reaction_times : ReactionTimes, optional
        The distribution of the reaction times.
    participant, image : str
        Names of the participant and the image in the responses.
    seed : int, SeedSequence or Generator
        Seed of the order of trials, the answers and the reaction times.

    Returns
    -------
    Responses
        The answers of all blocks, in the order in which they were given.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> responses = simulate(truth, Pairs(Grid(3), [0, 0], [1, 8]), blocks=10, seed=0)
    >>> responses.tally().k
    array([10,  0])
    """
    all_maps = [maps] if isinstance(maps, Maps) else list(maps)
    if not all_maps:
        raise InvalidInput("Expected maps to simulate responses from, got an empty list.")
    order_rng, answer_rng, time_rng = np.random.default_rng(check_seed(seed)).spawn(3)
    shuffled = [block.take(order_rng.permutation(len(block))) for block in _list_blocks(pairs, blocks)]
    q = np.concatenate(
        [_mean_same_probability(all_maps, block, observer or ideal_observer) for block in shuffled]
    )
    return Responses(
        shuffled[0].layout,
        np.concatenate([block.i for block in shuffled]),
        np.concatenate([block.j for block in shuffled]),
        answer_rng.random(len(q)) < q,
        participant=participant,
        image=image,
        block=np.repeat(np.arange(len(shuffled)), [len(block) for block in shuffled]),
        rt_ms=(reaction_times or ReactionTimes()).draw(q, time_rng),
    )


def draw_contours(
    maps: Maps,
    *,
    width_px: int = 512,
    height_px: int = 512,
    noise: float = HAND_NOISE,
    participant: str = "simulated",
    image: str = "image",
    seed: Seed,
) -> Contours:
    """Simulate the contours that an observer of these maps draws: the borders of the segments, drawn by hand.

    The borders are those between the most probable segments, slightly smoothed; short ones are left out. The lines
    deviate from them by noise that is correlated along the line.

    Parameters
    ----------
    maps : Maps
        What the observer sees.
    width_px, height_px : int
        The size of the image.
    noise : float
        Standard deviation of the lines from the borders in x and in y, as a fraction of the image's diagonal.
    participant, image : str
        Names of the participant and the image.
    seed : int, SeedSequence or Generator
        Seed of the noise.

    Returns
    -------
    Contours
        The lines; none if the observer sees one segment.

    Examples
    --------
    >>> from vseg import Grid
    >>> halves = Maps.one_hot(Grid(8), [0] * 32 + [1] * 32)
    >>> [line] = draw_contours(halves, noise=0, seed=0).lines
    >>> line.tolist()
    [[512.0, 256.0], [0.0, 256.0]]
    """
    from skimage.measure import approximate_polygon

    if not 0 <= noise < 1:
        raise InvalidInput(f"Expected a noise from 0 to less than 1 of the image's diagonal, got {noise!r}.")
    rng = np.random.default_rng(check_seed(seed))
    diagonal = float(np.hypot(width_px, height_px))
    lines = []
    for border in _trace_borders(maps, width_px, height_px):
        if _measure_length(border) < SHORTEST_LINE * diagonal:
            continue
        drawn = _smooth(border) + noise * diagonal * _draw_hand_noise(border, HAND_LENGTH * diagonal, rng)
        lines.append(approximate_polygon(drawn, SIMPLIFIED_PX).round(1))
    return Contours(lines, width_px, height_px, participant=participant, image=image)


def _trace_borders(maps: Maps, width_px: int, height_px: int) -> list[NDArray[np.float64]]:
    """Return the borders between segments as lines of x, y in pixels of the image, each border once."""
    from scipy.ndimage import gaussian_filter
    from skimage.measure import find_contours

    scale = TRACED_PX / max(width_px, height_px)
    width, height = (max(round(side * scale), 1) for side in (width_px, height_px))
    labels = gaussian_filter(maps.render(width, height), (1, 1, 0)).argmax(axis=2)
    labels = np.pad(labels, 1, mode="edge")  # so that lines reach the edges of the image
    lines: list[NDArray[np.float64]] = []
    for segment in np.unique(labels)[:-1]:
        # The borders with the segments before have been traced: only the rest of the image is left.
        found = find_contours((labels == segment).astype(np.float64), 0.5, mask=labels >= segment)
        lines += [(line[:, ::-1] - 0.5) * (width_px / width, height_px / height) for line in found]
    return [np.clip(line, 0, (width_px, height_px)) for line in lines]


def _smooth(line: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove the steps of the raster from a traced line; its ends stay."""
    from scipy.ndimage import gaussian_filter1d

    if np.allclose(line[0], line[-1]):
        smooth = gaussian_filter1d(line[:-1], STEPS, axis=0, mode="wrap")
        return np.concatenate([smooth, smooth[:1]])
    # Reflecting the line about its ends keeps them in place.
    reach = min(4 * STEPS, len(line) - 1)
    before, after = 2 * line[0] - line[reach:0:-1], 2 * line[-1] - line[-2 : -2 - reach : -1]
    smooth = gaussian_filter1d(np.concatenate([before, line, after]), STEPS, axis=0)
    return smooth[reach : reach + len(line)]


def _measure_length(line: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())


def _draw_hand_noise(
    line: NDArray[np.float64], length_px: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw (m, 2) deviations of unit variance, correlated over this length along the line."""
    from scipy.ndimage import gaussian_filter1d

    closed = np.allclose(line[0], line[-1])
    points = len(line) - closed
    sigma = length_px / (_measure_length(line) / max(len(line) - 1, 1))
    margin = 0 if closed else int(np.ceil(4 * sigma))  # the ends of a filtered series have another variance
    white = rng.standard_normal((points + 2 * margin, 2))
    smooth = gaussian_filter1d(white, sigma, axis=0, mode="wrap") * np.sqrt(2 * np.sqrt(np.pi) * sigma)
    smooth = smooth[margin : margin + points]
    return np.concatenate([smooth, smooth[:1]]) if closed else smooth


def _list_blocks(pairs: Pairs | Sequence[Pairs], blocks: int | None) -> list[Pairs]:
    if isinstance(pairs, Pairs):
        count = 1 if blocks is None else blocks
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise InvalidInput(f"Expected a whole number of blocks from 1 up, got blocks={count!r}.")
        return [pairs] * count
    pairs_of_blocks = list(pairs)
    if not pairs_of_blocks or (blocks is not None and blocks != len(pairs_of_blocks)):
        raise InvalidInput(
            f"A list of pairs has one entry per block: got {len(pairs_of_blocks)} entries and blocks={blocks}; "
            "leave `blocks` out, or give one Pairs for all blocks."
        )
    return pairs_of_blocks


def _mean_same_probability(all_maps: list[Maps], pairs: Pairs, observer: Observer) -> NDArray[np.float64]:
    """Return P(same) of each pair if one of the maps is drawn for each trial: the mean over the maps."""
    q = np.mean([observer(maps, pairs) for maps in all_maps], axis=0)
    if q.shape != (len(pairs),) or not ((q >= 0) & (q <= 1)).all():
        raise InvalidInput(
            f"Expected an observer that returns a probability from 0 to 1 for each of the {len(pairs)} pairs, "
            f"got shape {q.shape}{f' from {q.min():g} to {q.max():g}' if q.size else ''}."
        )
    return q
