"""How precise a posterior is expected to be: the error at a number of answers, and the number that is advised.

A rule fitted to simulated participants (benchmarks/answers.py, in docs/study.md): 5 % lapses, 20 catch trials, a mean
entropy around 0.45 log K, new pairs in every trial. The number of locations hardly matters, since the smoothness of the
maps ties neighbours together; the number of segments does. Very uncertain participants need more answers, certain ones
fewer.
"""

import math
from dataclasses import dataclass

from vseg.designs.pair_designs import check_segments

# Half-widths are those of the mean entropy's 90 % interval, as shares of log K.
ENTROPY_FACTOR = 1.0  # half-width times √(answers ÷ K)
ERROR_FACTOR = 0.75  # mean error of a probability times √(answers ÷ K)
ADVISED_HALF_WIDTH = 0.1  # at the advised number of answers
FEWEST_PER_SEGMENT = 20  # answers per segment below which no precision is stated: nothing was simulated there


@dataclass(frozen=True)
class ExpectedPrecision:
    """How precise the posterior of one observer and image is expected to be.

    Attributes
    ----------
    answers : int
    entropy_half_width : float
        Half of the width of the 90 % interval of the mean entropy, in nats.
    error : float
        The mean error of one probability of the maps (`vseg.metrics.mae_per_entry`).
    """

    answers: int
    entropy_half_width: float
    error: float

    def __str__(self) -> str:
        half_width = f"{self.entropy_half_width:.2f}"
        return f"the mean entropy to ±{half_width} nats and probabilities to be off by {self.error:.2f}"


def expected_precision(segments: int, answers: int) -> ExpectedPrecision | None:
    """Return how precise a posterior of K segments is expected to be, or None if there are too few answers to say.

    Parameters
    ----------
    segments : int
        K, the number of segments.
    answers : int
        Answers about one image, of one participant or of all taken as one observer; catch trials do not count.

    Returns
    -------
    ExpectedPrecision or None
        None below 20 answers per segment.

    Examples
    --------
    >>> print(expected_precision(3, 300))
    the mean entropy to ±0.11 nats and probabilities to be off by 0.08
    """
    if answers < FEWEST_PER_SEGMENT * check_segments(segments):
        return None
    return _compute_precision(segments, answers)


def advised_answers(segments: int) -> int:
    """Return the number of answers about an image with which the mean entropy is known to ±0.1 log K.

    This is half of the width of the posterior's 90 % interval, as `expected_precision` gives it. The number of
    locations does not matter.

    Parameters
    ----------
    segments : int
        K, the number of segments.

    Returns
    -------
    int
        Answers of one observer: of a participant, or of all participants whose answers are pooled.

    Examples
    --------
    >>> [advised_answers(segments) for segments in (2, 3, 5)]
    [200, 300, 500]
    """
    return round(check_segments(segments) * (ENTROPY_FACTOR / ADVISED_HALF_WIDTH) ** 2)


def advised_precision(segments: int) -> ExpectedPrecision:
    """Return how precise a posterior of K segments is expected to be with the advised number of answers.

    Examples
    --------
    >>> advised_precision(3).answers == advised_answers(3)
    True
    """
    return _compute_precision(segments, advised_answers(segments))


def describe_precision(segments: int, answers: int) -> str:
    """Return a sentence about the precision to expect with these answers, and with the advised number.

    Examples
    --------
    >>> describe_precision(2, 60)[:85]
    'With 60 answers, expect the mean entropy to ±0.13 nats and probabilities to be off by'
    >>> describe_precision(2, 10)[:33]
    'With 200 answers, expect the mean'
    """
    expected = advised_precision(segments)
    if (current := expected_precision(segments, answers)) is None or answers == expected.answers:
        return f"With {expected.answers} answers, expect {expected}."
    return (
        f"With {answers} answers, expect {current}; with {expected.answers}, ±{expected.entropy_half_width:.2f} nats "
        f"and {expected.error:.2f}."
    )


def _compute_precision(segments: int, answers: int) -> ExpectedPrecision:
    share = math.sqrt(segments / answers)
    return ExpectedPrecision(answers, ENTROPY_FACTOR * math.log(segments) * share, ERROR_FACTOR * share)
