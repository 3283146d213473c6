"""Annotators as observers: answers follow their segmentations, and P(same) is known."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bsds import HALVES, write_bsds
from reproduction.annotators.observers import LAPSE, AnnotatorObserver, load_scene
from vseg.data.layout import Grid
from vseg.designs import all_pairs
from vseg.errors import InvalidInput

LAYOUT = Grid(4)
label_arrays = st.lists(st.lists(st.integers(0, 3), min_size=16, max_size=16), min_size=1, max_size=4).map(
    np.array
)


@given(labels=label_arrays)
def test_p_same_ignores_label_values_and_annotator_order(labels):
    same = AnnotatorObserver(LAYOUT, labels).same
    assert np.array_equal(same, same.T)
    assert (np.diag(same) == 1).all()
    np.testing.assert_allclose(same, AnnotatorObserver(LAYOUT, (7 - labels)[::-1]).same)


@given(labels=label_arrays, seed=st.integers(0, 99))
def test_unanimous_pairs_have_a_certain_answer(labels, seed):
    """Without lapses, a pair of probability 0 or 1 has one possible answer."""
    observer = AnnotatorObserver(LAYOUT, labels)
    answers = observer.answer(all_pairs(LAYOUT), np.random.default_rng(seed))
    q = observer.same[answers.i, answers.j]
    assert (answers.same[q == 1]).all()
    assert not (answers.same[q == 0]).any()


def test_answer_frequencies_match_p_same():
    """16,384 pairs of probability 1/2 and as many of 1; with 10 % lapses the latter are 0.95; 4 standard errors."""
    layout, halves = Grid(16), np.arange(256) // 128
    pairs = all_pairs(layout)
    across = halves[pairs.i] != halves[pairs.j]
    for lapse, inside in ((0.0, 1.0), (0.1, 0.95)):
        observer = AnnotatorObserver(layout, np.array([halves, np.zeros(256, np.int64)]), lapse)
        answers = observer.answer(pairs, np.random.default_rng(0)).same
        assert answers[across].mean() == pytest.approx(0.5, abs=0.016)
        assert answers[~across].mean() == pytest.approx(inside, abs=0.007)


def test_the_error_is_zero_for_the_truth_and_counts_each_pair_once():
    observer = AnnotatorObserver(LAYOUT, np.array([[0] * 8 + [1] * 8]))
    assert observer.error(observer.same) == 0
    assert observer.error(1 - observer.same) == 1
    one_off = observer.same.copy()
    one_off[0, 1] = one_off[1, 0] = 0
    assert observer.error(one_off) == pytest.approx(1 / 120)


def test_a_scene_offers_aggregate_individual_and_others(tmp_path):
    seen = load_scene(write_bsds(tmp_path), "7", 4)
    assert (seen.picture.shape, seen.labels.shape) == ((64, 64, 3), (3, 16))
    crowd, one, others = seen.observer("aggregate"), seen.observer("individual"), seen.others
    assert (len(crowd.labels), len(one.labels), len(others.labels)) == (3, 1, 2)
    assert (crowd.lapse, one.lapse, others.lapse) == (0.0, LAPSE, LAPSE)
    np.testing.assert_allclose(crowd.same, (one.same + 2 * others.same) / 3)
    # Counts of segments are 2, 4 and 2: the second of two equal ones is in the middle.
    assert seen.individual_index == 2


def test_one_annotator_is_not_enough(tmp_path):
    with pytest.raises(InvalidInput, match="The photograph 7 has 1 annotator, expected two or more"):
        load_scene(write_bsds(tmp_path, people=(HALVES,)), "7", 4)
