"""The power of Welch's test between two conditions, from simulated participants who are drawn again and again."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
SIMULATED_STUDIES = 4000  # drawn for the power itself
BOOTSTRAP_SAMPLES = 400  # sets of participants drawn for its interval
CONFIDENCE = 0.95

Values = NDArray[np.float64]


class Condition(NamedTuple):
    """Mean entropies of the simulated participants of a condition, and the distribution they were drawn from.

    Attributes
    ----------
    estimates, truths : (R,) or (…, R)
        Estimated and true mean entropy of each participant, in nats.
    entropy, spread : float
        Assumed mean and standard deviation over participants.
    """

    estimates: Values
    truths: Values
    entropy: float
    spread: float


class PowerEstimate(NamedTuple):
    """The share of studies that find the difference, and its interval over the participants who were simulated."""

    value: float
    low: float
    high: float


def estimate_power(first: Condition, second: Condition, participants: int, *, seed: int) -> PowerEstimate:
    """Estimate the power of a study with this many participants in each condition.

    Simulated participant r has the same areas and random numbers in both conditions; a study draws different
    participants for each condition.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truths = rng.normal(size=(2, 200))
    >>> exact = [Condition(each + mean, each + mean, mean, 1) for mean, each in enumerate(truths)]
    >>> power = estimate_power(*exact, 17, seed=0)  # d = 1 in tables of Student's test: 0.81
    >>> bool(0.78 < power.value < 0.84 and power.low <= power.value <= power.high)
    True
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, participants)))
    matched = match_assumptions(first), match_assumptions(second)
    value = _simulate_power(*matched, participants, rng)
    # The simulated participants are a random sample too: others would have given another power.
    count = len(first.estimates)
    samples = rng.integers(count, size=(BOOTSTRAP_SAMPLES, count))
    resampled = _approximate_power(
        match_assumptions(_resample(first, samples)),
        match_assumptions(_resample(second, samples)),
        participants,
    )
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    deviations = np.quantile(resampled, tails) - _approximate_power(*matched, participants)
    low, high = np.clip(value + deviations, 0, 1)
    return PowerEstimate(value, float(min(low, value)), float(max(high, value)))


def participants_needed(
    first: Condition, second: Condition, target: float, most: int, *, seed: int
) -> int | None:
    """Return the smallest number of participants in each condition, 2 to `most`, with the target power, or None."""
    matched = match_assumptions(first), match_assumptions(second)

    def is_enough(participants: int) -> bool:
        rng = np.random.default_rng(np.random.SeedSequence((seed, participants)))
        return _simulate_power(*matched, participants, rng) >= target

    if not is_enough(most):
        return None
    low, high = 1, most  # power grows with participants: `low` are too few, `high` are enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def match_assumptions(condition: Condition) -> Values:
    """Return (…, R) the estimates of participants whose mean and spread are exactly as assumed.

    R participants drawn at random are a little more or less certain than assumed. Estimates follow the truth along a
    regression line; participants are moved along it until mean and spread fit, and the residuals are widened by the
    two degrees of freedom of the line.
    """
    estimates, truths, entropy, spread = condition
    count = estimates.shape[-1]
    mean, centre = (values.mean(axis=-1, keepdims=True) for values in (estimates, truths))
    off, apart = truths - centre, truths.std(axis=-1, keepdims=True)
    varies = apart > 1e-9
    apart = np.where(varies, apart, 1)
    slope = np.where(varies, np.mean(off * estimates, axis=-1, keepdims=True) / apart**2, 0)
    residuals = (estimates - mean - slope * off) * np.sqrt(count / max(count - 2, 1))
    moved: Values = mean + slope * (entropy - centre + spread * off / apart) + residuals
    return moved


def _resample(condition: Condition, samples: NDArray[np.int64]) -> Condition:
    return condition._replace(estimates=condition.estimates[samples], truths=condition.truths[samples])


def _simulate_power(first: Values, second: Values, participants: int, rng: np.random.Generator) -> float:
    """Return the share of significant studies whose participants are drawn from these with replacement."""
    studies = (
        values[rng.integers(len(values), size=(SIMULATED_STUDIES, participants))]
        for values in (first, second)
    )
    return float(_is_significant(*studies).mean())


def _is_significant(first: Values, second: Values) -> NDArray[np.bool_]:
    """Return whether Welch's test over the last axis is significant."""
    from scipy.special import stdtr

    variances = np.stack([first.var(axis=-1, ddof=1), second.var(axis=-1, ddof=1)])
    t, freedom = _welch(second.mean(axis=-1) - first.mean(axis=-1), variances, first.shape[-1])
    significant: NDArray[np.bool_] = 2 * stdtr(freedom, -t) < ALPHA
    return significant


def _approximate_power(first: Values, second: Values, participants: int) -> Values:
    """Return the power over the last axis for normally distributed estimates: smooth, so good for its differences."""
    from scipy.special import ndtr, stdtrit

    variances = np.stack([first.var(axis=-1), second.var(axis=-1)])
    t, freedom = _welch(second.mean(axis=-1) - first.mean(axis=-1), variances, participants)
    limit = stdtrit(freedom, 1 - ALPHA / 2)
    # Johnson and Welch's approximation of the noncentral t distribution; scipy's own fails in the far tail.
    centre, width = limit * (1 - 1 / (4 * freedom)), np.sqrt(1 + limit**2 / (2 * freedom))
    return np.asarray(ndtr((t - centre) / width) + ndtr((-t - centre) / width), dtype=np.float64)


def _welch(differences: Values, variances: Values, participants: int) -> tuple[Values, Values]:
    """Return |t| and its degrees of freedom for two conditions of equal size; variances (2, …) may be 0."""
    total = np.maximum(variances.sum(axis=0), 1e-300)
    shares = np.sum((variances / total) ** 2, axis=0)
    freedom = (participants - 1) / np.maximum(shares, 0.5)
    return np.abs(differences) / np.sqrt(total / participants), freedom
