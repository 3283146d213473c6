"""How well anything could do: the floor, and ceilings from the answers themselves.

floor      the base rate of 'same' in the other folds
within     an answer predicted from the same person's other answers to the same pair
between    an answer predicted from other people's answers to the same pair
entropy    the share of 'same' of each person's pair, seen in hindsight: no model that sees images can do better
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import Responses
from vseg.evaluation.folds import pair_keys
from vseg.evaluation.scores import bits

NAMES = ("floor", "within", "between", "entropy")
SHRUNK = 0.5  # added to the counts of both answers, so that one 'same' is not certainty


@dataclass(frozen=True)
class Reference:
    """P(same) of each answer by a reference; NaN where there is nothing to predict it from."""

    name: str
    q: NDArray[np.float64]
    said: str

    @property
    def available(self) -> bool:
        """Whether it could be computed for any answer at all."""
        return bool(np.isfinite(self.q).any())


def references(responses: Responses, fold: NDArray[np.int64]) -> list[Reference]:
    """The floor and the three ceilings."""
    return [floor(responses, fold), within(responses), between(responses), entropy(responses)]


def floor(responses: Responses, fold: NDArray[np.int64]) -> Reference:
    """The share of 'same' among the answers of the other folds."""
    q = np.empty(len(responses))
    for each in np.unique(fold):
        q[fold == each] = responses.same[fold != each].mean()
    return Reference("floor", q, "the share of 'same' among the other answers")


def within(responses: Responses) -> Reference:
    """Predicted from the person's other answers to the same pair; NaN for pairs they answered once."""
    person = np.unique(responses.participant, return_inverse=True)[1]
    key = pair_keys(responses) * (person.max() + 1) + person
    same, count = _totals(key, responses.same)
    q = _share(same - responses.same, count - 1)
    said = "the same person's other answers to the same pair"
    return Reference(
        "within", q, said if np.isfinite(q).any() else "not available: nobody answered a pair twice"
    )


def between(responses: Responses) -> Reference:
    """Predicted from other people's answers to the same pair; NaN where nobody else answered it."""
    pair, person = pair_keys(responses), np.unique(responses.participant, return_inverse=True)[1]
    same, count = _totals(pair, responses.same)
    own_same, own_count = _totals(pair * (person.max() + 1) + person, responses.same)
    q = _share(same - own_same, count - own_count)
    said = "other people's answers to the same pair"
    return Reference(
        "between", q, said if np.isfinite(q).any() else "not available: no two people answered the same pair"
    )


def entropy(responses: Responses) -> Reference:
    """The share of 'same' of each person's pair, the answer itself included: a bound, not a goal."""
    person = np.unique(responses.participant, return_inverse=True)[1]
    same, count = _totals(pair_keys(responses) * (person.max() + 1) + person, responses.same)
    return Reference("entropy", same / count, "the entropy of the answers: a bound for any model")


def mean_bits(reference: Reference, responses: Responses, weight: NDArray[np.float64] | None = None) -> float:
    """Bits per answer over the answers that it predicts."""
    there = np.isfinite(reference.q)
    if not there.any():
        return float("nan")
    scored = bits(reference.q[there], responses.same[there])
    return float(np.average(scored, weights=None if weight is None else weight[there]))


def _totals(
    key: NDArray[np.int64], same: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each answer: how many 'same' and how many answers there are under its key."""
    place = np.unique(key, return_inverse=True)[1]
    totals = np.bincount(place, same).astype(np.float64)
    return totals[place], np.bincount(place)[place].astype(np.float64)


def _share(same: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    share: NDArray[np.float64] = np.where(count > 0, (same + SHRUNK) / (count + 2 * SHRUNK), np.nan)
    return share
