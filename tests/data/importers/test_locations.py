"""Dots in pixels become locations, or an error that names the row."""

import numpy as np
import pytest

from vseg import Grid, Scatter
from vseg.data.importers.locations import locate_dots, read_points
from vseg.data.importers.mapping import complete_mappings
from vseg.data.importers.rows import Row
from vseg.data.importers.trials import read_trials
from vseg.errors import InvalidInput, NotFound


def make_trials(*cells: dict):
    rows = [Row({"same": 1, **row}, "data.csv", number, 1, "line") for number, row in enumerate(cells, 2)]
    return read_trials(rows, complete_mappings({}, rows))[0]


def dots(*points, **more):
    return make_trials(*({"x1": a, "y1": b, "x2": c, "y2": d, **more} for a, b, c, d in points))


SIZES = {"image": (400.0, 200.0)}


def test_dots_are_assigned_to_the_nearest_location():
    found = locate_dots(dots((51, 26, 349, 170), (150, 25, 50, 75)), Grid(4), sizes=SIZES)
    assert found.i.tolist() == [0, 1]
    assert found.j.tolist() == [15, 4]
    assert found.remarks == [
        "Dots lie at most 0.10 of the distance between locations (5.1 px) from the locations of a 4x4 grid."
    ]
    assert found.dots_px.tolist() == [[51, 26, 349, 170], [150, 25, 50, 75]]


def test_a_dot_too_far_from_any_location():
    with pytest.raises(InvalidInput) as error:
        locate_dots(dots((50, 25, 350, 175), (50, 25, 100, 50)), Grid(4), sizes=SIZES)
    assert str(error.value).startswith(
        "data.csv, line 3: the dots (50, 25) and (100, 50) are not on a 4x4 grid: one lies 0.71 of the "
        "distance between locations (55.9 px) from the nearest location, and 0.5 is the most."
    )


def test_fractions_need_no_size():
    found = locate_dots(dots((0.125, 0.125, 0.875, 0.875)), Grid(4))
    assert (found.i.tolist(), found.j.tolist(), found.dots_px) == ([0], [15], None)
    assert found.remarks[0].startswith("All coordinates are from 0 to 1, so they are read as fractions")


def test_a_row_can_have_the_size_of_its_image():
    found = locate_dots(dots((1, 1, 7, 7), image_width=8, image_height=8), Grid(4), units="px")
    assert (found.i.tolist(), found.j.tolist()) == ([0], [15])


def test_without_a_layout_the_dots_are_the_locations():
    found = locate_dots(dots((10, 10, 390, 20), (200, 100, 10, 180)), None, sizes=SIZES)
    assert isinstance(found.layout, Scatter)
    assert found.layout.positions.tolist() == [[0.025, 0.05], [0.975, 0.1], [0.5, 0.5], [0.025, 0.9]]
    assert (found.i.tolist(), found.j.tolist()) == ([0, 2], [1, 3])
    assert found.remarks == ["The dots' 4 distinct positions are the locations."]


def test_dots_on_a_grid_without_a_layout():
    centres = Grid(3).pixels(300, 300).tolist()
    shown = dots(*((*centres[0], *other) for other in centres[1:]))
    found = locate_dots(shown, None, sizes={"image": (300, 300)})
    assert found.remarks == [
        "The dots lie on a 3x3 grid; vseg.Grid(3) as the layout would keep its neighbours."
    ]
    assert (found.i.tolist(), found.j.tolist()) == ([0] * 8, list(range(1, 9)))


@pytest.mark.parametrize(
    ("point", "sizes", "message"),
    [
        ((-5, 10, 20, 30), SIZES, "line 2: the dots (-5, 10) and (20, 30) do not both lie in an image of 400x200 px"),
        ((5, 10, 20, 201), SIZES, "do not both lie in an image of 400x200 px; coordinates are measured from its top"),
        ((5, 10, 20, 30), {}, "the dots are in pixels, but the size of the image 'image' is unknown; give "
                              "the image size or the folder of the images, or map image_width"),
        ((50, 25, 51, 26), SIZES, "line 2: both dots are location 0 of a 4x4 grid"),
    ],
)  # fmt: skip
def test_impossible_dots(point, sizes, message):
    with pytest.raises(InvalidInput) as error:
        locate_dots(dots(point), Grid(4), sizes=sizes)
    assert message in str(error.value)


def test_too_few_positions_for_a_layout():
    with pytest.raises(
        InvalidInput, match="The dots' 2 distinct positions cannot be a layout: A scatter needs"
    ):
        locate_dots(dots((10, 10, 20, 20)), None, sizes=SIZES)


def test_too_many_positions_for_a_layout():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="distinct positions, and 4096 is the most; give a grid"):
        locate_dots(dots(*rng.uniform(2, 100, (2100, 4)).tolist()), None, sizes=SIZES)


def test_locations_by_number():
    found = locate_dots(make_trials({"i": 0, "j": 15}), Grid(4), sizes=SIZES)
    assert found.dots_px.tolist() == [[50, 25, 350, 175]]
    one = make_trials({"i": 1, "j": 16}, {"i": 3, "j": 2})
    with pytest.raises(
        InvalidInput,
        match=r"line 2: locations 1 and 16, but a 4x4 grid has 0\.\.15; the file counts from 1, so count_from",
    ):
        locate_dots(one, Grid(4))
    assert locate_dots(one, Grid(4), count_from=1).j.tolist() == [15, 1]
    with pytest.raises(InvalidInput, match="so the layout is needed: a grid, or the points"):
        locate_dots(one, None)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("x,y\n0.1,0.2\n0.9,0.2\n0.5,0.5\n0.2,0.9\n", None),
        ("0.1;0.2\n0.9;0.2\n0.5;0.5\n0.2;0.9\n", None),
        ("[[0.1, 0.2], [0.9, 0.2], [0.5, 0.5], [0.2, 0.9]]", None),
        ('[{"x": 10, "y": 20}, {"x": 90, "y": 20}, {"x": 50, "y": 50}, {"x": 20, "y": 90}]', (100, 100)),
    ],
)
def test_points_in_a_file(tmp_path, text, size):
    path = tmp_path / "points.csv"
    path.write_text(text)
    assert read_points(path, size) == Scatter([[0.1, 0.2], [0.9, 0.2], [0.5, 0.5], [0.2, 0.9]])


@pytest.mark.parametrize(
    "text", ["", "a,b\n", "[1, 2", "[[1], 2]", '[{"x": 1}]', "0.1,0.2\n", "10,20\n30,40\n", "[[[]]]"]
)
def test_invalid_points(tmp_path, text):
    (tmp_path / "points.csv").write_text(text)
    with pytest.raises(InvalidInput):
        read_points(tmp_path / "points.csv")
    with pytest.raises(NotFound):
        read_points(tmp_path / "none.csv")
