"""What is assumed about the participants of a study that has not been run."""

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from vseg.data.layout import Grid
from vseg.errors import InvalidInput

# Default standard deviation between participants, as a share of the mean entropy: with 0.2 against 0.3 nats this
# gives about the paper's effect size d = 1.
SPREAD_SHARE = 1 / 3

MIN_SPREAD = 1e-5  # as a share of log K: a smaller spread counts as none
MAX_GRID = 64
PLANNED_DESIGNS = ("covering", "balanced", "scattered")
HIGHEST_ENTROPY = 0.999  # as a share of log K, which no map from finite log-odds reaches


@dataclass(frozen=True)
class Assumptions:
    """A study and its participants, as they are expected to be.

    Parameters
    ----------
    grid : int
        N, the number of locations along a side.
    segments : int
        K, the number of segments.
    entropy : float
        Mean entropy of a participant's maps in nats, averaged over participants: how uncertain they are.
    against : float, optional
        The same in a second condition with other participants.
    spread : float, optional
        Standard deviation of the mean entropy between participants; by default a third of the entropy (or of its
        distance from log K, if that is less).
    lapse : float
        Share of trials answered without looking.
    design : str
        Design of the pairs: covering, balanced or scattered.
    smoothness : "auto" or float
        λ of the paper's method.
    catch : int
        Catch trials of a participant, from which the posterior estimates lapses too.

    Examples
    --------
    >>> assumptions = Assumptions(grid=11, segments=2, entropy=0.2, against=0.3)
    >>> assumptions.conditions
    {'first': 0.2, 'second': 0.3}
    >>> round(assumptions.spread_at(0.3), 3)
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
    catch: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.grid, (int, np.integer)) or not 3 <= self.grid <= MAX_GRID:
            raise InvalidInput(
                f"The grid of a study has 3 to {MAX_GRID} locations along a side, got {self.grid!r}."
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
            self._check_entropy(entropy)
        if not 0 <= self.lapse < 1:
            raise InvalidInput(
                f"A lapse rate is a share of the trials from 0 to below 1, got {self.lapse:g}."
            )
        if self.design not in PLANNED_DESIGNS:
            raise InvalidInput(f"Unknown design {self.design!r}; choose one of {', '.join(PLANNED_DESIGNS)}.")
        if self.smoothness != "auto" and not (is_number(self.smoothness) and 0 <= self.smoothness < np.inf):
            raise InvalidInput(f"Smoothness is 'auto' or a number from 0 up, got {self.smoothness!r}.")
        if not isinstance(self.catch, (int, np.integer)) or self.catch < 0:
            raise InvalidInput(f"Expected a whole number of catch trials from 0 up, got {self.catch!r}.")

    @property
    def conditions(self) -> dict[str, float]:
        """The assumed mean entropy of each condition, by its name."""
        second = {} if self.against is None else {"second": self.against}
        return {"first": self.entropy, **second}

    @property
    def layout(self) -> Grid:
        """The locations of the study."""
        return Grid(self.grid)

    def spread_at(self, entropy: float) -> float:
        """Return the standard deviation between participants in a condition with this mean entropy."""
        if self.spread is not None:
            return self.spread
        return SPREAD_SHARE * min(entropy, float(np.log(self.segments)) - entropy)

    def _check_entropy(self, entropy: float) -> None:
        most = float(np.log(self.segments))
        if not 0 <= entropy < most:
            raise InvalidInput(
                f"The mean entropy of {self.segments} segments lies from 0 to below log {self.segments} = {most:.3f} "
                f"nats, got {entropy:g}."
            )
        # Entropies follow a beta distribution; a and b are 1/2 or more, so that it has no peaks at both ends.
        spread, share = self.spread_at(entropy), entropy / most
        widest = most * float(np.sqrt(share * (1 - share) / (1 + 0.5 / max(min(share, 1 - share), 1e-12))))
        if not 0 <= spread <= widest * (1 + 1e-9):
            raise InvalidInput(
                f"With a mean entropy of {entropy:g} nats, participants can differ by a standard deviation from 0 to "
                f"{widest:.3f}, got a spread of {spread:g}."
            )


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number; True and False are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def participant_entropy(entropy: float, spread: float, segments: int, rank: float) -> float:
    """Return the mean entropy of the participant at a rank from 0 to 1.

    Mean entropies of participants follow a beta distribution between 0 and log K with this mean and spread.
    """
    most = float(np.log(segments))
    if spread < MIN_SPREAD * most:
        return entropy
    from scipy.special import betaincinv

    share, variance = entropy / most, (spread / most) ** 2
    strength = share * (1 - share) / variance - 1
    return most * min(float(betaincinv(share * strength, (1 - share) * strength, rank)), HIGHEST_ENTROPY)
