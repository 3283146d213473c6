"""Test drawn contours: reading what a page reports, and rasterising lines."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vseg.data.contours import Contours
from vseg.errors import InvalidInput
from vseg.evaluation import metrics

SIZE = {"width_px": 8, "height_px": 8}


def draw(*lines, **size) -> Contours:
    return Contours(lines, **SIZE | size)


@pytest.mark.parametrize("resolution", [8, 16, 64])
def test_a_line_along_a_border_of_labels_marks_the_same_pixels(resolution):
    """The border between columns 3 and 4 of eight is at x = 4."""
    labels = (np.arange(resolution) >= resolution // 2).astype(int) + np.zeros((resolution, 1), int)
    drawn = draw([[4, 0], [4, 8]]).rasterise(resolution, resolution)
    assert np.array_equal(drawn, metrics.find_boundaries(labels))


def test_lines_are_connected_and_one_pixel_wide():
    """From (0, 0) to (8, 4) on 8×8 pixels: eight pixels, one in each column."""
    mask = draw([[0, 0], [8, 4]]).rasterise(8, 8)
    assert mask.sum(axis=0).tolist() == [1] * 8
    assert np.abs(np.diff(mask.argmax(axis=0))).max() <= 1


def test_images_of_any_shape_and_resolution():
    """A vertical line at a quarter of an image of 12×4 pixels: column 2 of 12, column 5 of 24."""
    wide = draw([[3, 0], [3, 4]], width_px=12, height_px=4)
    assert np.flatnonzero(wide.rasterise(12, 4).all(axis=0)).tolist() == [2]
    assert np.flatnonzero(wide.rasterise(24, 5).all(axis=0)).tolist() == [5]


@given(
    st.lists(
        st.lists(st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)), min_size=2, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_any_finite_lines_can_be_rasterised(lines):
    contours = draw(*lines)
    assert all(line.min() >= 0 and line.max() <= 8 for line in contours.lines)
    assert contours.rasterise(16, 16).any()


@pytest.mark.parametrize("line", [[[1, 1]], [[1, 2, 3], [1, 2, 3]], [[0, 0], [np.nan, 1]], "ab"])
def test_what_is_no_line_is_refused(line):
    with pytest.raises(InvalidInput, match=r"points"):
        draw(line)


@pytest.mark.parametrize(
    "change",
    [
        {"contours": []}, {"contours": [[[1, 1]]]}, {"contours": "none"}, {"contours": [[["inf", 0], [1, 1]]]},
        {"contours": [[[10**400, 0], [1, 1]]]}, {"contours": [[[0, 0], [1]]]}, {"contours": None}, {"width_px": 0},
        {"width_px": 1e9}, {"height_px": "tall"}, {"height_px": None},
    ],
)  # fmt: skip
def test_a_record_that_is_no_drawing_is_none(change):
    record = {"image": "a", "contours": [[[0, 0], [1, 1]], [[3, 3]]], **SIZE}
    assert len(Contours.from_record(record).lines) == 1
    assert Contours.from_record(record | change) is None
