"""Scores of predictions, the floor and ceilings to set them against, and bootstrap intervals.

bits, brier, compute_calibration   scores of P(same) given the answers
compute_references                 predictions from the answers themselves:
  floor      the share of 'same' in the other folds
  within     the same participant's other answers to the same pair
  between    other participants' answers to the same pair
  entropy    the share of 'same' of each participant's pair in hindsight: no model that sees images can do better
draw_bootstrap_weights             resampling of participants and images
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.responses import Responses
from vseg.evaluation.folds import pair_keys

MIN_PROBABILITY = 0.005
"""Predictions are clipped here, as if one answer in a hundred were a lapse, so that no answer costs infinitely much."""
REFERENCE_NAMES = ("floor", "within", "between", "entropy")
PSEUDO_COUNT = (
    0.5  # added to the counts of both answers, so that a single 'same' does not predict with certainty
)
MIN_UNITS = 3  # participants or images; an interval from resampling fewer would not be meaningful


def bits(q: ArrayLike, same: ArrayLike) -> NDArray[np.float64]:
    """Return log2 of the probability given to each answer: 0 at best, -1 for P(same) = 0.5.

    Examples
    --------
    >>> bits([0.5, 1.0], [True, True]).round(3)
    array([-1.   , -0.007])
    """
    p = np.clip(np.asarray(q, np.float64), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.log2(np.where(np.asarray(same, bool), p, 1 - p))


def brier(q: ArrayLike, same: ArrayLike) -> NDArray[np.float64]:
    """Return the Brier score (q - answer)² of each answer: 0 at best, 0.25 for P(same) = 0.5."""
    return (np.asarray(q, np.float64) - np.asarray(same, np.float64)) ** 2


@dataclass(frozen=True)
class CalibrationCurve:
    """Predictions in bins of equal count: mean prediction, share of 'same' among the answers, and number of answers."""

    predicted: list[float]
    observed: list[float]
    count: list[int]


def compute_calibration(q: ArrayLike, same: ArrayLike, bins: int = 10) -> CalibrationCurve:
    """Compare predicted with observed shares of 'same' in bins of equal count.

    Examples
    --------
    >>> compute_calibration([0.1, 0.1, 0.9, 0.9], [0, 0, 1, 1], bins=2)
    CalibrationCurve(predicted=[0.1, 0.9], observed=[0.0, 1.0], count=[2, 2])
    """
    predictions, answers = np.asarray(q, np.float64), np.asarray(same, np.float64)
    order = np.argsort(predictions, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return CalibrationCurve(
        [float(predictions[part].mean()) for part in parts],
        [float(answers[part].mean()) for part in parts],
        [len(part) for part in parts],
    )


@dataclass(frozen=True)
class ReferencePrediction:
    """P(same) of each answer by a reference; NaN where it has nothing to predict from."""

    name: str
    q: NDArray[np.float64]
    description: str

    @property
    def is_available(self) -> bool:
        """Whether it predicts any answer at all."""
        return bool(np.isfinite(self.q).any())


def compute_references(responses: Responses, fold: NDArray[np.int64]) -> list[ReferencePrediction]:
    """Return the predictions of the floor and of the three ceilings."""
    return [
        predict_by_base_rate(responses, fold),
        predict_by_own_answers(responses),
        predict_by_other_participants(responses),
        predict_in_hindsight(responses),
    ]


def predict_by_base_rate(responses: Responses, fold: NDArray[np.int64]) -> ReferencePrediction:
    """Predict each answer by the share of 'same' among the answers of the other folds."""
    q = np.empty(len(responses))
    for number in np.unique(fold):
        q[fold == number] = responses.same[fold != number].mean()
    return ReferencePrediction("floor", q, "the share of 'same' among the other answers")


def predict_by_own_answers(responses: Responses) -> ReferencePrediction:
    """Predict each answer by the participant's other answers to the same pair; NaN for pairs answered once."""
    same, count = _count_by_key(_participant_pair_keys(responses), responses.same)
    q = _smoothed_share(same - responses.same, count - 1)
    description = "the same participant's other answers to the same pair"
    return ReferencePrediction(
        "within",
        q,
        description if np.isfinite(q).any() else "not available: nobody answered a pair twice",
    )


def predict_by_other_participants(responses: Responses) -> ReferencePrediction:
    """Predict each answer by other participants' answers to the same pair; NaN if nobody else answered it."""
    same, count = _count_by_key(pair_keys(responses), responses.same)
    own_same, own_count = _count_by_key(_participant_pair_keys(responses), responses.same)
    q = _smoothed_share(same - own_same, count - own_count)
    description = "other participants' answers to the same pair"
    return ReferencePrediction(
        "between",
        q,
        description if np.isfinite(q).any() else "not available: no two participants answered the same pair",
    )


def predict_in_hindsight(responses: Responses) -> ReferencePrediction:
    """Predict each answer by the share of 'same' of the participant's pair, including the answer: an upper bound."""
    same, count = _count_by_key(_participant_pair_keys(responses), responses.same)
    return ReferencePrediction("entropy", same / count, "the entropy of the answers: a bound for any model")


def mean_bits(
    reference: ReferencePrediction, responses: Responses, weight: NDArray[np.float64] | None = None
) -> float:
    """Return the bits per answer of a reference, over the answers that it predicts."""
    available = np.isfinite(reference.q)
    if not available.any():
        return float("nan")
    scores = bits(reference.q[available], responses.same[available])
    return float(np.average(scores, weights=None if weight is None else weight[available]))


@dataclass(frozen=True, eq=False)
class BootstrapWeights:
    """How often each unit is drawn in each resample.

    Attributes
    ----------
    rows, columns : NDArray, shape (count, units)
        Number of times that each row unit (participant) and column unit (image) is drawn.
    row, column : NDArray, shape (m,)
        The row unit and the column unit of each answer.
    units : str
        What is resampled, for the reader: "participants and images", for example.
    """

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    units: str

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (count,) the mean over answers of one value per answer in each resample, ignoring NaN."""
        finite = np.isfinite(values)
        shape = self.rows.shape[1], self.columns.shape[1]
        cell = self.row[finite] * shape[1] + self.column[finite]
        total = np.bincount(cell, values[finite], shape[0] * shape[1]).reshape(shape)
        count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        sums, counts = (np.sum((self.rows @ each) * self.columns, axis=1) for each in (total, count))
        return np.asarray(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0))


def draw_bootstrap_weights(responses: Responses, count: int, *, seed: int) -> BootstrapWeights:
    """Draw participants and images independently and with replacement; pairs if there are too few of both."""
    rng = np.random.default_rng(seed)
    indices = {
        name: np.unique(getattr(responses, name), return_inverse=True)[1] for name in ("participant", "image")
    }
    is_drawn = {name: index.max() + 1 >= MIN_UNITS for name, index in indices.items()}
    if not any(is_drawn.values()):
        pair = np.unique(pair_keys(responses), return_inverse=True)[1]
        weights = _draw_counts(rng, int(pair.max()) + 1, count)
        return BootstrapWeights(
            weights, np.ones((count, 1)), pair, np.zeros(len(responses), np.int64), "pairs"
        )
    drawn = {
        name: _draw_counts(rng, int(index.max()) + 1, count)
        if is_drawn[name]
        else np.ones((count, int(index.max()) + 1))
        for name, index in indices.items()
    }
    units = " and ".join(f"{name}s" for name, drawn_too in is_drawn.items() if drawn_too)
    return BootstrapWeights(
        drawn["participant"], drawn["image"], indices["participant"], indices["image"], units
    )


def _draw_counts(rng: np.random.Generator, units: int, count: int) -> NDArray[np.float64]:
    return rng.multinomial(units, np.full(units, 1 / units), count).astype(np.float64)


def _participant_pair_keys(responses: Responses) -> NDArray[np.int64]:
    """Return (m,) a number for each distinct pair of each image and participant."""
    participant = np.unique(responses.participant, return_inverse=True)[1]
    return pair_keys(responses) * (participant.max() + 1) + participant


def _count_by_key(
    key: NDArray[np.int64], same: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each answer the number of 'same' and of all answers with its key."""
    index = np.unique(key, return_inverse=True)[1]
    totals = np.bincount(index, same).astype(np.float64)
    return totals[index], np.bincount(index)[index].astype(np.float64)


def _smoothed_share(same: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    share: NDArray[np.float64] = np.where(
        count > 0, (same + PSEUDO_COUNT) / (count + 2 * PSEUDO_COUNT), np.nan
    )
    return share
