"""The confidence level of an interval."""

from vseg.errors import InvalidInput


def check_confidence(confidence: float) -> float:
    """Return the confidence level if it is between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidInput(f"A confidence level lies between 0 and 1, such as 0.95, got {confidence!r}.")
    return confidence


def interval_quantiles(confidence: float) -> tuple[float, float]:
    """Return the quantiles at the ends of a central interval.

    Examples
    --------
    >>> interval_quantiles(0.5)
    (0.25, 0.75)
    """
    level = check_confidence(confidence)
    return (1 - level) / 2, (1 + level) / 2
