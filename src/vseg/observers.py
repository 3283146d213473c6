"""Simulated participants.

An observer is a function `(maps, pairs) -> P(same)`, an array of one probability a pair: how someone who sees
these maps would answer. `ideal` is Eq. 2; `Lapsing` adds finger errors to it or to any other. Any function of
that shape will do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses
from vseg.errors import InvalidInput

Observer = Callable[[Maps, Pairs], NDArray[np.float64]]


def ideal_observer(maps: Maps, pairs: Pairs) -> NDArray[np.float64]:
    """P(same) = <p_i, p_j> (Eq. 2): both labels drawn from the maps, independently, at every trial.

    Examples
    --------
    >>> from vseg import Grid
    >>> ideal(Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1]), Pairs(Grid(3), [0, 0], [1, 8]))
    array([1., 0.])
    """
    return maps.same_probability(pairs)


@dataclass(frozen=True)
class LapsingObserver:
    """An observer who, at some trials, answers without looking: q becomes (1 - lapse) q + lapse · bias.

    Parameters
    ----------
    lapse : float
        Share of trials answered without looking.
    bias : float
        Share of 'same' among those.
    observer : Observer
        Who answers the other trials.

    Examples
    --------
    >>> from vseg import Grid
    >>> certain = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> Lapsing(0.1, bias=0.8)(certain, Pairs(Grid(3), [0, 0], [1, 8])).round(3)
    array([0.98, 0.08])
    """

    lapse: float = 0.05
    bias: float = 0.5
    observer: Observer = ideal_observer

    def __post_init__(self) -> None:
        for name in ("lapse", "bias"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"An observer's {name} is a share from 0 to 1, got {getattr(self, name)}.")

    @classmethod
    def from_errors(cls, gamma0: float, gamma1: float, observer: Observer = ideal_observer) -> "LapsingObserver":
        """The observer with q = γ₀ + (1 - γ₀ - γ₁) q: γ₀ and γ₁ are the errors at q = 0 and at q = 1."""
        if min(gamma0, gamma1) < 0 or gamma0 + gamma1 > 1:
            raise InvalidInput(
                f"gamma0 and gamma1 are shares that add up to 1 at most, got {gamma0}, {gamma1}."
            )
        lapse = gamma0 + gamma1
        return cls(lapse, gamma0 / lapse if lapse else 0.5, observer)

    @property
    def gamma0(self) -> float:
        """P('same') where the observer would surely say 'different'."""
        return self.lapse * self.bias

    @property
    def gamma1(self) -> float:
        """P('different') where the observer would surely say 'same'."""
        return self.lapse * (1 - self.bias)

    def __call__(self, maps: Maps, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of each pair."""
        return (1 - self.lapse) * self.observer(maps, pairs) + self.lapse * self.bias


@dataclass(frozen=True)
class ReactionTimes:
    """Ex-Gaussian reaction times in ms, slower where the answer is uncertain.

    The normal part has the mean mean_ms + slowing_ms · (1 - |2q - 1|). With the defaults the median is about
    0.63 s for sure answers and 0.88 s for coin flips; the paper's median is 0.73 s (1.33 s a trial, 0.6 s of
    them for the presentation). The shape is ours.
    """

    mean_ms: float = 500.0
    sd_ms: float = 60.0
    tail_ms: float = 180.0
    slowing_ms: float = 250.0
    fastest_ms: float = 150.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (np.isfinite(value) and value >= 0):
                raise InvalidInput(f"Reaction times need a {name} of 0 or more, got {value}.")

    def draw(self, same_probability: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """A time for each trial, given its P(same)."""
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
    """Answer the pairs of every block as an observer of these maps would.

    Parameters
    ----------
    maps : Maps, or a sequence of Maps
        What the participant sees. Of several maps, such as those of several annotators, one is drawn for
        each trial; give a single one for a session with one annotator.
    pairs : Pairs, or a sequence of Pairs
        The same pairs in every block, or the pairs of each block; shown in a new random order each time.
    blocks : int, optional
        N_b, 1 by default; with a sequence of pairs, their number.
    observer : callable, optional
        `(maps, pairs) -> P(same)`: `ideal` by default, `Lapsing(...)` or a function of your own.
    reaction_times : ReactionTimes, optional
    participant, image : str
        Names to write into the responses.
    seed : int, SeedSequence or Generator

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> responses = simulate(truth, Pairs(Grid(3), [0, 0], [1, 8]), blocks=10, seed=0)
    >>> responses.tally().k
    array([10,  0])
    """
    listed = [maps] if isinstance(maps, Maps) else list(maps)
    if not listed:
        raise InvalidInput("Expected maps to simulate responses from, got an empty list.")
    ordering, answering, timing = np.random.default_rng(check_seed(seed)).spawn(3)
    shown = [block.take(ordering.permutation(len(block))) for block in _blocks(pairs, blocks)]
    q = np.concatenate([_same_probability(listed, block, observer or ideal_observer) for block in shown])
    return Responses(
        shown[0].layout,
        np.concatenate([block.i for block in shown]),
        np.concatenate([block.j for block in shown]),
        answering.random(len(q)) < q,
        participant=participant,
        image=image,
        block=np.repeat(np.arange(len(shown)), [len(block) for block in shown]),
        rt_ms=(reaction_times or ReactionTimes()).draw(q, timing),
    )


def _blocks(pairs: Pairs | Sequence[Pairs], blocks: int | None) -> list[Pairs]:
    if isinstance(pairs, Pairs):
        count = 1 if blocks is None else blocks
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise InvalidInput(f"Expected one block or more, a whole number, got blocks={count!r}.")
        return [pairs] * count
    listed = list(pairs)
    if not listed or (blocks is not None and blocks != len(listed)):
        raise InvalidInput(
            f"A list of pairs has one entry a block: got {len(listed)} entries and blocks={blocks}; "
            "leave `blocks` out, or give one Pairs for all blocks."
        )
    return listed


def _same_probability(maps: list[Maps], pairs: Pairs, observer: Observer) -> NDArray[np.float64]:
    """P(same) of a trial for which one of the maps is drawn: the mean over the maps."""
    q = np.mean([observer(each, pairs) for each in maps], axis=0)
    if q.shape != (len(pairs),) or not ((q >= 0) & (q <= 1)).all():
        raise InvalidInput(
            f"An observer gives a probability from 0 to 1 for each of the {len(pairs)} pairs, "
            f"got shape {q.shape}{f' from {q.min():g} to {q.max():g}' if q.size else ''}."
        )
    return q
