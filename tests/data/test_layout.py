"""Grid and Scatter: the positions of the locations in fractions and pixels, and their neighbours."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from strategies import grids, layouts, scatters
from vseg.data.layout import Grid, Layout, Scatter, refine
from vseg.errors import InvalidInput

sizes_px = st.integers(1, 60)


@pytest.mark.parametrize(("size", "first", "last"), [(3, -1, 1), (5, -2, 2), (4, -2, 1), (16, -8, 7)])
def test_grid_coordinates_are_those_of_s2(size, first, last):
    """S2: -(N-1)/2..(N-1)/2 for odd N, -N/2..N/2-1 for even N, numbered row by row from the top left."""
    coordinates = Grid(size).coordinates
    assert coordinates[0].tolist() == [first, first]
    assert coordinates[1].tolist() == [first + 1, first]
    assert coordinates[-1].tolist() == [last, last]
    assert sorted(map(tuple, coordinates.tolist())) == [
        (x, y) for x in range(first, last + 1) for y in range(first, last + 1)
    ]


@given(grids())
def test_grid_positions_follow_its_coordinates(grid):
    shifted = grid.coordinates - grid.coordinates[0]
    assert np.allclose(grid.positions, (shifted + 0.5) / grid.size)


@given(layouts(), sizes_px, sizes_px)
def test_pixels_are_positions_times_image_size(layout, width, height):
    assert np.allclose(layout.pixels(width, height), layout.positions * [width, height])
    assert (layout.pixels(width, height) <= [width, height]).all()


def test_centres_of_known_grids():
    """A 16x16 grid on 512 px has cells of 32 px, so the first centre is at 16."""
    assert Grid(16).pixels(512, 512)[[0, 1, 16, 255]].tolist() == [[16, 16], [48, 16], [16, 48], [496, 496]]
    assert Grid(4).pixels(100, 60)[0].tolist() == [12.5, 7.5]


@given(layouts(), sizes_px, sizes_px)
def test_each_pixel_belongs_to_its_nearest_location(layout, width, height):
    cells = layout.cells(width, height)
    assert cells.shape == (height, width)
    y, x = np.mgrid[:height, :width] + 0.5
    distance = np.hypot(*(np.stack([x, y])[..., None] - layout.pixels(width, height).T[:, None, None, :]))
    chosen = np.take_along_axis(distance, cells[..., None], axis=2)[..., 0]
    assert np.allclose(chosen, distance.min(axis=2))


@given(grids(), st.integers(8, 60), st.integers(8, 60))
def test_the_pixel_under_a_centre_belongs_to_its_location(grid, width, height):
    x, y = grid.pixels(width, height).astype(int).T
    assert grid.cells(width, height)[y, x].tolist() == list(range(len(grid)))


@given(grids())
def test_grid_neighbours_share_a_side(grid):
    i, j = grid.neighbours.T
    assert (np.abs(grid.coordinates[i] - grid.coordinates[j]).sum(axis=1) == 1).all()
    assert len(grid.neighbours) == 2 * grid.size * (grid.size - 1)


@given(layouts())
def test_neighbours_are_unique_ordered_and_connected(layout):
    i, j = layout.neighbours.T
    assert (i < j).all()
    assert len(np.unique(layout.neighbours, axis=0)) == len(layout.neighbours)
    reached, frontier = {0}, {0}
    while frontier:
        frontier = {
            int(b) for pair in layout.neighbours for a, b in (pair, pair[::-1]) if a in frontier
        } - reached
        reached |= frontier
    assert len(reached) == len(layout)


def test_scatter_neighbours_of_a_known_triangulation():
    """Four corners and the middle: each corner has two other corners and the middle as neighbours."""
    layout = Scatter([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    assert layout.neighbours.tolist() == [[0, 1], [0, 2], [0, 4], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]


@given(layouts())
def test_arrays_are_read_only(layout):
    for array in (layout.positions, layout.neighbours):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


def test_scatter_copies_the_array_it_is_given():
    given_array = np.array([[0.1, 0.1], [0.9, 0.2], [0.5, 0.5], [0.2, 0.9]])
    Scatter(given_array)
    given_array[0] = 0


@given(scatters())
def test_scatter_from_pixels_is_the_inverse_of_pixels(layout):
    assert np.allclose(Scatter.from_pixels(layout.pixels(640, 480), 640, 480).positions, layout.positions)


@given(scatters())
def test_equal_scatters_have_equal_hashes(layout):
    again = Scatter(layout.positions.copy())
    assert layout == again
    assert hash(layout) == hash(again)
    assert layout != Scatter(layout.positions[::-1])


@given(layouts())
def test_grid_and_scatter_are_layouts(layout):
    assert isinstance(layout, Layout)


def test_layouts_as_text():
    assert str(Grid(16)) == "a 16x16 grid"
    assert str(Scatter([[0, 0], [1, 0], [0, 1], [1, 1]])) == "a scatter of 4 points"
    assert Grid(np.int64(4)) == Grid(4)


WHOLE_PX = "Expected whole numbers of pixels, got "
NEEDS = "A scatter needs at least 4 positions (x, y), got an array of shape "


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Grid(2), "Expected an integer grid size of at least 3, got 2."),
        (lambda: Grid(4.5), "Expected an integer grid size of at least 3, got 4.5."),
        (lambda: Grid(True), "Expected an integer grid size of at least 3, got True."),
        (lambda: Grid("16"), "Expected an integer grid size of at least 3, got '16'."),
        (lambda: Grid(4).pixels(0, 5), "Expected an image of at least 1x1 pixels, got 0x5."),
        (lambda: Grid(4).pixels(float("nan"), 5), WHOLE_PX + "width nan and height 5."),
        (lambda: Grid(4).cells(5, 2.5), WHOLE_PX + "width 5 and height 2.5."),
        (lambda: Scatter([[0, 0], [1, 0], [0, 1], [1, 1]]).cells(5.0, 0), WHOLE_PX + "width 5.0 and height 0."),
        (lambda: Grid(4).cells(5, -1), "Expected an image of at least 1x1 pixels, got 5x-1."),
        (lambda: Scatter([[0, 0], [1, 1], [0, 1]]), NEEDS + "(3, 2)."),
        (lambda: Scatter([0.1, 0.2]), NEEDS + "(2,)."),
        (lambda: Scatter.from_pixels([[1, 2, 3]] * 4, 10, 10), NEEDS + "(4, 3)."),
        (
            lambda: Scatter([[0, 0], [1, 0], [0, 1], [3, 1]]),
            "Positions are fractions of the image's width and height from 0 to 1, got values from 0 to 3; "
            "Scatter.from_pixels takes pixels.",
        ),
        (
            lambda: Scatter([[0, 0], [1, 0], [0, 1], [0, 1]]),
            "Expected distinct positions; some of these 4 are equal.",
        ),
        (
            lambda: Scatter([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]]),
            "All positions lie on one line; a scatter needs positions in two dimensions.",
        ),
        (lambda: Scatter([["a", "b"]]), "Expected numbers for positions, got [['a', 'b']]."),
    ],
)  # fmt: skip
def test_invalid_input(call, message):
    with pytest.raises(InvalidInput) as error:
        call()
    assert str(error.value) == message


def test_positions_must_be_finite():
    with pytest.raises(InvalidInput, match="fractions of the image's width and height"):
        Scatter([[0, 0], [1, 0], [0, 1], [np.nan, 1]])


@given(
    interest=st.lists(st.floats(0.01, 10), min_size=16, max_size=16),
    points=st.integers(1, 24),
)
def test_refine_keeps_locations_and_adds_some_between_neighbours(interest, points):
    grid = Grid(4)
    more = refine(grid, interest, points=points)
    assert np.array_equal(more.positions[:16], grid.positions)
    halves = grid.positions[grid.neighbours].mean(axis=1)
    added = more.positions[16:]
    assert len(added) == points
    assert np.isclose(added[:, None], halves[None]).all(axis=2).any(axis=1).all()


def test_refine_adds_locations_where_interest_is_high():
    interest = (Grid(8).positions[:, 0] < 0.3).astype(float)
    assert refine(Grid(8), interest, points=12).positions[64:, 0].max() < 0.4


@pytest.mark.parametrize(
    ("interest", "points", "message"),
    [
        ([1.0] * 9, 2, r"for each of the 16 locations of a 4x4 grid, got an array of shape \(9,\)"),
        ([-1.0] * 16, 2, "from 0 up"),
        ([np.nan] * 16, 2, "with negative or infinite values"),
        ([1.0] * 16, 0, "whole number of points from 1 up, got 0"),
        ([1.0] * 16, 25, "has room for 24 points between neighbours with interest, got 25"),
    ],
)
def test_invalid_input_of_refine(interest, points, message):
    with pytest.raises(InvalidInput, match=message):
        refine(Grid(4), interest, points=points)
