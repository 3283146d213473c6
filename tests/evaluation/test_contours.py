"""Test the F of drawn contours against maps and each other, on cases computed by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vseg import Grid, Maps
from vseg.data.contours import Contours
from vseg.errors import InvalidInput
from vseg.evaluation import contours as drawn

HALVES = Maps.one_hot(Grid(4), [0, 0, 1, 1] * 4)  # a border at x = 50 of 100


def draw(*lines, participant="", image="", width=100, height=100) -> Contours:
    return Contours(lines, width, height, participant=participant, image=image)


def score(*lines, tolerance=0.0075, resolution_px=100):
    return drawn.score_contours_on_maps(
        draw(*lines), HALVES, tolerance=tolerance, resolution_px=resolution_px
    )


def test_a_line_on_the_border_scores_1():
    assert score([[50, 0], [50, 100]]) == (1, 1, 1)


def test_a_quarter_of_the_border_has_a_recall_of_a_quarter():
    """25 of 100 pixels: P = 1, R = 1/4, F = 2/5."""
    assert score([[50, 0], [50, 25]]) == pytest.approx((1, 0.25, 0.4))


def test_a_line_too_many_halves_precision():
    """Two lines of 100 pixels, one of them on the border: P = 1/2, R = 1, F = 2/3."""
    assert score([[50, 0], [50, 100]], [[80, 0], [80, 100]]) == pytest.approx((0.5, 1, 2 / 3))


def test_doubled_lines_are_matched_one_to_one():
    """Two lines 10 pixels apart, both within the tolerance: each pixel of the border is matched once."""
    assert score([[45, 0], [45, 100]], [[55, 0], [55, 100]], tolerance=0.05) == pytest.approx((0.5, 1, 2 / 3))


@pytest.mark.parametrize(("off_px", "f"), [(0, 1), (1, 1), (2, 0), (-1, 1), (-2, 0)])
def test_the_tolerance_is_a_share_of_the_diagonal(off_px, f):
    """0.0075 of a diagonal of 141.4 pixels is 1.06 pixels, to either side."""
    assert score([[50 + off_px, 0], [50 + off_px, 100]]).f == f


def test_an_oblique_line_is_as_good_as_an_upright_one():
    """Boundaries of labels are two pixels wide there; without thinning F would be 2/3."""
    fine = Grid(128)
    x, y = fine.positions.T
    maps = Maps.one_hot(fine, (x > y).astype(int))
    assert drawn.score_contours_on_maps(draw([[0, 0], [100, 100]]), maps).f > 0.98


def test_coarse_maps_get_the_tolerance_of_their_spacing():
    """Locations 25 pixels apart are 25 / 141.4 of the diagonal apart; on a finer grid the given tolerance is larger."""
    line = draw([[0, 0], [1, 1]])
    assert drawn.spacing_tolerance(Grid(4), line) == pytest.approx(25 / np.hypot(100, 100))
    assert drawn.spacing_tolerance(Grid(128), line, 0.02) == 0.02
    wide = draw([[0, 0], [1, 1]], width=400)
    assert drawn.spacing_tolerance(Grid(4), wide) == pytest.approx(50 / np.hypot(400, 100))


def test_every_two_people_are_compared_and_nobody_with_themselves():
    people = [draw([[0, 10 * at], [100, 10 * at]], participant=f"P{at}", image="a") for at in (3, 3, 4, 9)]
    people.append(draw([[0, 30], [100, 30]], participant="P3", image="b"))
    pairs = drawn.compare_contours(people, seed=0)
    assert {pair.image for pair in pairs} == {"a"}
    assert [(pair.participant, pair.other) for pair in pairs] == [
        ("P3", "P4"), ("P3", "P9"), ("P3", "P4"), ("P3", "P9"), ("P4", "P9"),
    ]  # fmt: skip
    assert all(pair.f == 0 for pair in pairs)
    assert drawn.compare_contours(people, tolerance=0.08, seed=0)[0].f == 1


def test_of_very_many_pairs_some_are_drawn():
    people = [draw([[0, at], [100, at]], participant=f"P{at}") for at in range(1, 21)]
    pairs = drawn.compare_contours(people, max_pairs=30, seed=1)
    assert len(pairs) == len(set(pairs)) == 30
    assert pairs == drawn.compare_contours(people, max_pairs=30, seed=1)
    assert pairs != drawn.compare_contours(people, max_pairs=30, seed=2)


points = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=5)


@given(points, points)
def test_f_does_not_depend_on_who_is_the_truth(one, other):
    first, second = draw(one, participant="A"), draw(other, participant="B")
    pairs = [
        drawn.compare_contours(order, resolution_px=64, seed=0)
        for order in ([first, second], [second, first])
    ]
    assert pairs[0][0].f == pairs[1][0].f


def test_quartiles():
    assert drawn.summarise_quartiles([0.1, 0.2, 0.3, 0.4, 0.5]) == drawn.Quartiles(5, 0.2, 0.3, 0.4)
    assert drawn.summarise_quartiles([]).count == 0
    assert str(drawn.summarise_quartiles([0.5, 0.7, 0.9])) == "0.70 (quartiles 0.60 to 0.80)"


def test_a_useless_resolution_is_refused():
    with pytest.raises(InvalidInput, match=r"at least 8 whole pixels, got 2"):
        score([[0, 0], [1, 1]], resolution_px=2)


def test_drawings_that_report_other_proportions_are_not_compared():
    """A page may report anything; the others are compared all the same."""
    sizes = {"a": (512, 512), "b": (512, 1), "c": (256, 256), "d": (100_000, 99_000)}
    people = [
        draw([[0, 0], [1, 1]], participant=name, width=width, height=height)
        for name, (width, height) in sizes.items()
    ]
    assert [pair[1:3] for pair in drawn.compare_contours(people, seed=0)] == [("a", "c")]
