"""Pairs: unordered, distinct, of two different locations."""

import numpy as np
import pytest
from hypothesis import given

from strategies import some_pairs
from vseg.data.layout import Grid, Scatter
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput


@given(some_pairs())
def test_pairs_are_unordered(pairs):
    assert Pairs(pairs.layout, pairs.j, pairs.i) == pairs
    assert (pairs.i < pairs.j).all()


@given(some_pairs())
def test_the_order_of_pairs_is_kept(pairs):
    assert list(pairs) == list(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))
    backwards = pairs.take(np.arange(len(pairs))[::-1])
    assert list(backwards) == list(pairs)[::-1]
    assert (len(pairs) == 1) == (backwards == pairs)


@given(some_pairs())
def test_number_of_partners(pairs):
    assert pairs.partners.sum() == 2 * len(pairs)
    assert len(pairs.partners) == len(pairs.layout)


@given(some_pairs())
def test_distances_are_those_of_the_positions(pairs):
    positions = pairs.layout.positions
    expected = [np.linalg.norm(positions[i] - positions[j]) for i, j in pairs]
    assert np.allclose(pairs.distances, expected)


@given(some_pairs())
def test_arrays_are_read_only(pairs):
    for array in (pairs.i, pairs.j, pairs.partners):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@given(some_pairs())
def test_take_with_a_mask(pairs):
    mask = np.arange(len(pairs)) % 2 == 0
    assert list(pairs.take(mask)) == list(pairs)[::2]


def test_the_given_arrays_remain_writeable():
    i, j = np.array([0, 1]), np.array([2, 3])
    Pairs(Grid(3), i, j)
    i[0] = 5


def test_empty_pairs():
    none = Pairs(Grid(3), [], [])
    assert len(none) == 0
    assert none.partners.tolist() == [0] * 9
    assert len(Pairs(Grid(3), [0], [1]).take([])) == 0


def test_floats_without_a_fraction_are_accepted():
    assert Pairs(Grid(3), [0.0], [4.0]).j.dtype == np.int64


def test_pairs_on_other_layouts_differ():
    corners = Scatter([[0, 0], [1, 0], [0, 1], [1, 1]])
    assert Pairs(Grid(3), [0], [1]) != Pairs(corners, [0], [1])
    assert Pairs(Grid(3), [0], [1]) != "pairs"


@pytest.mark.parametrize(
    ("i", "j", "message"),
    [
        ([0, 16], [1, 2], "Pairs refer to locations 0..16, but a 4x4 grid has locations 0..15."),
        ([-1], [2], "Pairs refer to locations -1..2, but a 4x4 grid has locations 0..15."),
        ([0, 3], [1, 3], "A pair joins two different locations; pair 1 joins location 3 with itself."),
        ([0, 1], [1, 0], "A block tests each pair once, but some of these pairs occur twice."),
        ([0, 1], [1], "Expected lists i and j of the same length, got shapes (2,) and (1,)."),
        (0, 1, "Expected lists i and j of the same length, got shapes () and ()."),
        ([[0]], [[1]], "Expected lists i and j of the same length, got shapes (1, 1) and (1, 1)."),
        ([0.5], [1], "Expected whole numbers as locations, got [0.5]."),
        ([np.nan], [1], "Expected whole numbers as locations, got [nan]."),
        (["a"], [1], "Expected whole numbers as locations, got ['a']."),
        ([0.5, 1, 2, 3, 4], [1] * 5, "Expected whole numbers as locations, got [0.5, 1.0, 2.0, 3.0, …]."),
        ([None], [1], "Expected whole numbers as locations, got [None]."),
        ([1e300], [1], "Expected whole numbers as locations, got [1e+300]."),
    ],
)
def test_invalid_input(i, j, message):
    with pytest.raises(InvalidInput) as error:
        Pairs(Grid(4), i, j)
    assert str(error.value) == message
