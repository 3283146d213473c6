"""What is guessed about the people of a study that has not been run."""

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from vseg.data.layout import Grid
from vseg.designs import DESIGNS
from vseg.errors import InvalidInput

# Of the entropy, by which people differ unless told: with 0.2 against 0.3 nats, about the paper's d = 1.
SHARE = 1 / 3

ALIKE = 1e-5  # of log K: people who differ by less do not differ
LARGEST_GRID = 64
HIGHEST = 0.999  # of log K, which no map of finite fields reaches


@dataclass(frozen=True)
class Guess:
    """A study and its people, as you expect them.

    Parameters
    ----------
    grid : int
        N locations along a side.
    segments : int
        K.
    entropy : float
        How unsure people are: the mean entropy of their maps in nats, averaged over people.
    against : float, optional
        The same in a second condition, seen by other people.
    spread : float, optional
        Standard deviation of the mean entropy between people; by default a third of the entropy (or of what is
        missing to log K, if that is less).
    lapse : float
        Share of the trials answered without looking.
    design : str
        Which pairs are asked: covering, balanced or scattered.
    smoothness : "auto" or float
        λ of the paper's method.

    Examples
    --------
    >>> guess = Guess(grid=11, segments=2, entropy=0.2, against=0.3)
    >>> guess.conditions
    {'first': 0.2, 'second': 0.3}
    >>> round(guess.spread_at(0.3), 3)
    0.1
    """

    grid: int
    segments: int
    entropy: float
    against: float | None = None
    spread: float | None = None
    lapse: float = 0.0
    design: str = "covering"
    smoothness: str | float = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.grid, (int, np.integer)) or not 3 <= self.grid <= LARGEST_GRID:
            raise InvalidInput(
                f"The grid of a study has 3 to {LARGEST_GRID} locations along a side, got {self.grid!r}."
            )
        if not isinstance(self.segments, (int, np.integer)) or not 2 <= self.segments <= self.grid**2:
            raise InvalidInput(
                f"Expected a whole number of segments from 2 to {self.grid**2}, got {self.segments!r}."
            )
        for name in ("entropy", "lapse", "against", "spread"):
            value = getattr(self, name)
            if not is_number(value) and not (value is None and name in ("against", "spread")):
                raise InvalidInput(f"Expected a number as {name}, got {value!r}.")
        if self.against == self.entropy:
            raise InvalidInput(
                f"Both conditions have a mean entropy of {self.entropy:g} nats; there is nothing to tell apart."
            )
        for entropy in self.conditions.values():
            self._check(entropy)
        if not 0 <= self.lapse < 1:
            raise InvalidInput(
                f"A lapse rate is a share of the trials from 0 to below 1, got {self.lapse:g}."
            )
        if not isinstance(self.design, str) or self.design not in DESIGNS or self.design == "all":
            names = ", ".join(name for name in DESIGNS if name != "all")
            raise InvalidInput(f"Unknown design {self.design!r}; choose one of {names}.")
        if self.smoothness != "auto" and not (is_number(self.smoothness) and 0 <= self.smoothness < np.inf):
            raise InvalidInput(f"Smoothness is 'auto' or a number from 0 up, got {self.smoothness!r}.")

    @property
    def conditions(self) -> dict[str, float]:
        """The mean entropy of each condition."""
        second = {} if self.against is None else {"second": self.against}
        return {"first": self.entropy, **second}

    @property
    def layout(self) -> Grid:
        """Where people are asked."""
        return Grid(self.grid)

    def spread_at(self, entropy: float) -> float:
        """The standard deviation between the people of a condition of this mean entropy."""
        if self.spread is not None:
            return self.spread
        return SHARE * min(entropy, float(np.log(self.segments)) - entropy)

    def _check(self, entropy: float) -> None:
        most = float(np.log(self.segments))
        if not 0 <= entropy < most:
            raise InvalidInput(
                f"The mean entropy of {self.segments} segments lies from 0 to below log {self.segments} = {most:.3f} "
                f"nats, got {entropy:g}."
            )
        # Entropies follow a beta distribution, which is one hump or a slope as long as a and b do not fall below 1/2.
        spread, share = self.spread_at(entropy), entropy / most
        widest = most * float(np.sqrt(share * (1 - share) / (1 + 0.5 / max(min(share, 1 - share), 1e-12))))
        if not 0 <= spread <= widest * (1 + 1e-9):
            raise InvalidInput(
                f"People whose mean entropy is {entropy:g} nats can differ by a standard deviation from 0 to "
                f"{widest:.3f}, got a spread of {spread:g}."
            )


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is one, True and False aside."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def own_entropy(entropy: float, spread: float, segments: int, rank: float) -> float:
    """The mean entropy of someone at this rank, 0 to 1, among people who are beta distributed between 0 and log K."""
    most = float(np.log(segments))
    if spread < ALIKE * most:
        return entropy
    from scipy.special import betaincinv

    share, variance = entropy / most, (spread / most) ** 2
    strength = share * (1 - share) / variance - 1
    return most * min(float(betaincinv(share * strength, (1 - share) * strength, rank)), HIGHEST)
