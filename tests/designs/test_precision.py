import numpy as np
import pytest

from vseg.designs import advised_answers, expected_precision
from vseg.designs.precision import ADVISED_HALF_WIDTH, advised_precision, describe_precision
from vseg.errors import InvalidInput


@pytest.mark.parametrize("segments", [2, 3, 5, 12])
def test_the_advised_answers_give_the_stated_precision(segments):
    answers = advised_answers(segments)
    limit = ADVISED_HALF_WIDTH * np.log(segments)
    assert expected_precision(segments, answers) == advised_precision(segments)
    assert advised_precision(segments).entropy_half_width == pytest.approx(limit)
    assert expected_precision(segments, answers - 1).entropy_half_width > limit


def test_four_times_the_answers_halve_the_errors():
    one, four = expected_precision(3, 200), expected_precision(3, 800)
    assert four.error == pytest.approx(one.error / 2)
    assert four.entropy_half_width == pytest.approx(one.entropy_half_width / 2)


def test_nothing_is_stated_where_nothing_was_simulated():
    assert expected_precision(3, 59) is None
    assert expected_precision(3, 60) is not None
    assert expected_precision(2, 0) is None


def test_the_sentence_names_both_numbers():
    assert describe_precision(2, 0) == (
        "With 200 answers, expect the mean entropy to ±0.07 nats and probabilities to be off by 0.08."
    )
    assert describe_precision(2, 200) == describe_precision(2, 0)
    assert describe_precision(2, 800) == (
        "With 800 answers, expect the mean entropy to ±0.03 nats and probabilities to be off by 0.04; "
        "with 200, ±0.07 nats and 0.08."
    )


def test_one_segment_is_refused():
    with pytest.raises(InvalidInput, match="segments from 2 up, got segments=1"):
        advised_answers(1)
