"""Test folds, scores, ceilings and resampling against values computed by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from strategies import grids, seeds, some_responses
from vseg import Grid, Responses
from vseg.errors import InvalidInput
from vseg.evaluation import scores
from vseg.evaluation.folds import assign_folds, group_rows, pair_keys
from vseg.evaluation.scores import (
    MIN_PROBABILITY,
    bits,
    brier,
    compute_calibration,
    draw_bootstrap_weights,
    mean_bits,
)

# Two participants; pair (0, 1) four times, pair (0, 2) once by each, pair (3, 4) once by the first.
TINY = Responses(
    Grid(3),
    [0, 1, 0, 0, 0, 2, 3],
    [1, 0, 1, 1, 2, 0, 4],
    [1, 1, 0, 1, 0, 1, 1],
    participant=["a", "a", "a", "b", "a", "b", "a"],
)


@given(
    some_responses(grids(4)),
    seeds,
    st.integers(2, 6),
    st.sampled_from(["pairs", "blocks", "participants", "images"]),
)
def test_a_unit_is_never_split_between_folds(responses, seed, count, by):
    unit = {"pairs": pair_keys(responses), "blocks": responses.block, "participants": responses.participant,
            "images": responses.image}[by]  # fmt: skip
    units = len(np.unique(unit))
    if units < 2:
        with pytest.raises(InvalidInput, match=f"There is only one of the {by} to hold out"):
            assign_folds(responses, by, count, seed=seed)
        return
    fold = assign_folds(responses, by, count, seed=seed)
    assert all(len(np.unique(fold[unit == each])) == 1 for each in np.unique(unit))
    sizes = [len(np.unique(unit[fold == each])) for each in range(min(count, units))]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


@given(some_responses(grids(4)))
def test_pair_keys_do_not_depend_on_the_order_of_locations(responses):
    turned = Responses(
        responses.layout, responses.j, responses.i, responses.same, image=responses.image, participant="x"
    )
    key = pair_keys(responses)
    assert key.tolist() == pair_keys(turned).tolist()
    named = set(
        zip(
            responses.image,
            np.minimum(responses.i, responses.j),
            np.maximum(responses.i, responses.j),
            strict=True,
        )
    )
    assert len(named) == len(np.unique(key))


@given(some_responses(grids(4)), st.sampled_from(["participant", "image", "all"]))
def test_groups_partition_the_rows(responses, per):
    groups = group_rows(responses, per, "pairs")
    assert np.sort(np.concatenate(list(groups.values()))).tolist() == list(range(len(responses)))


def test_scores_by_hand():
    assert bits([0.5, 0.25, 0.25], [1, 1, 0]) == pytest.approx([-1, -2, np.log2(0.75)])
    assert bits([0.0], [1]) == pytest.approx([np.log2(MIN_PROBABILITY)])
    assert brier([0.5, 0.25, 1.0], [1, 0, 1]).tolist() == [0.25, 0.0625, 0]


def test_calibration_by_hand():
    found = compute_calibration([0.2, 0.8, 0.4, 0.6], [0, 1, 1, 0], bins=2)
    assert found.predicted == pytest.approx([0.3, 0.7])
    assert (found.observed, found.count) == ([0.5, 0.5], [2, 2])
    assert compute_calibration([0.1, 0.9], [0, 1], bins=10).count == [1, 1]


def test_the_floor_by_hand():
    fold = np.array([0, 0, 0, 1, 1, 1, 1])
    assert scores.predict_by_base_rate(TINY, fold).q == pytest.approx([3 / 4] * 3 + [2 / 3] * 4)


def test_the_ceiling_within_by_hand():
    """Predicted from the two other answers of participant a to (0, 1), plus half an answer of each kind."""
    found = scores.predict_by_own_answers(TINY)
    assert found.q == pytest.approx([1.5 / 3, 1.5 / 3, 2.5 / 3, *[np.nan] * 4], nan_ok=True)
    assert found.is_available
    by_hand = (2 * np.log2(0.5) + np.log2(1 - 2.5 / 3)) / 3
    assert mean_bits(found, TINY) == pytest.approx(by_hand)


def test_the_ceiling_between_by_hand():
    found = scores.predict_by_other_participants(TINY)
    assert found.q == pytest.approx([0.75, 0.75, 0.75, 2.5 / 4, 0.75, 0.25, np.nan], nan_ok=True)


def test_the_entropy_by_hand():
    found = scores.predict_in_hindsight(TINY)
    assert found.q == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1, 0, 1, 1])


def test_a_reference_that_is_not_available():
    alone = TINY.take([0, 4, 6])
    found = scores.predict_by_own_answers(alone)
    assert not found.is_available
    assert np.isnan(mean_bits(found, alone))
    assert not scores.predict_by_other_participants(alone).is_available


def simulate_values(participants, images, seed):
    """Return answers of every participant about every image, unequal in number, and a value for each."""
    rng = np.random.default_rng(seed)
    count = rng.integers(30, 90, (participants, images))
    participant, image = (np.repeat(each.ravel(), count.ravel()) for each in np.indices(count.shape))
    m = len(participant)
    values = (
        rng.standard_normal(participants)[participant]
        + rng.standard_normal(images)[image]
        + rng.standard_normal(m)
    )
    responses = Responses(
        Grid(8), np.zeros(m, int), rng.integers(1, 64, m), np.ones(m, bool), participant=participant.astype(str),
        image=image.astype(str),
    )  # fmt: skip
    return responses, values


@pytest.mark.parametrize(
    ("participants", "images", "units"),
    [(8, 5, "participants and images"), (8, 1, "participants"), (2, 6, "images"), (1, 1, "pairs")],
)
def test_intervals_agree_with_a_direct_bootstrap(participants, images, units):
    """Rows are copied as often as their participant and image are drawn: the quantiles agree up to random error."""
    responses, values = simulate_values(participants, images, seed=participants)
    found = draw_bootstrap_weights(responses, 3000, seed=0)
    assert found.units == units
    rng = np.random.default_rng(1)
    index = {
        "participants": np.unique(responses.participant, return_inverse=True)[1],
        "images": np.unique(responses.image, return_inverse=True)[1],
        "pairs": np.unique(pair_keys(responses), return_inverse=True)[1],
    }
    plain = []
    for _ in range(3000):
        weight = np.ones(len(values))
        for name in units.split(" and "):
            count = index[name].max() + 1
            drawn = np.bincount(rng.integers(0, count, count), minlength=count)
            weight *= drawn[index[name]]
        plain.append(np.average(values, weights=weight))
    spread = np.std(plain)
    for level in (0.025, 0.5, 0.975):
        assert np.quantile(found.means(values), level) == pytest.approx(
            np.quantile(plain, level), abs=0.15 * spread
        )


def test_resampled_means_ignore_nan():
    responses, values = simulate_values(12, 3, seed=0)
    values[responses.participant == "0"] = np.nan
    found = draw_bootstrap_weights(responses, 200, seed=0)
    rest = responses.participant != "0"
    weight = found.rows[:, found.row[rest]] * found.columns[:, found.column[rest]]
    assert found.means(values) == pytest.approx(weight @ values[rest] / weight.sum(axis=1))
