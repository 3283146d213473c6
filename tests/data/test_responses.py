"""Responses: checks of the columns, selecting and concatenating rows, and the tally."""

import contextlib
import re

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from strategies import grids, same_rows, scatters, seeds, some_maps, some_responses
from vseg.data.layout import Grid, Scatter, find_nearest, refine
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import COLUMNS, Responses, Tally, concatenate
from vseg.errors import InvalidInput, NotFound, VsegWarning
from vseg.observers import simulate


def test_an_array_may_be_wider_than_its_names():
    names = np.array(["Ann"], dtype="U1000")
    assert Responses(Grid(3), [0], [1], [1], participant=names).participants == ["Ann"]


def test_responses_copy_the_arrays_they_are_given():
    i, names = np.array([0, 1]), np.array(["Ann", "Bob"])
    view = names[:]
    view.flags.writeable = False
    made = Responses(Grid(3), i, [4, 5], [1, 0], participant=view)
    i[0], names[0] = 2, "Cem"
    assert (made.i.tolist(), made.participant.tolist()) == ([0, 1], ["Ann", "Bob"])


UNKNOWN = "Column rt_ms holds times in milliseconds from 0 up, NaN where unknown, got "


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"same": ["maybe"]}, "Column same holds 0 or 1 (false or true), got 'maybe'."),
        ({"same": [2]}, "Column same holds 0 or 1 (false or true), got 2."),
        ({"same": [np.nan]}, "Column same holds 0 or 1 (false or true), got nan."),
        ({"same": [None]}, "Column same holds 0 or 1 (false or true), got None."),
        ({"same": [1, 0]}, "Column same has shape (2,), but there are 1 trials."),
        ({"participant": ["a", "b"]}, "Column participant has shape (2,), but there are 1 trials."),
        ({"rt_ms": ["fast"]}, "Expected numbers for rt_ms, got ['fast']."),
        ({"rt_ms": [-5]}, UNKNOWN + "-5."),
        ({"rt_ms": np.inf}, UNKNOWN + "inf."),
        ({"block": [0.5]}, "Column block holds whole numbers from 0 up, got 0.5."),
        ({"block": ["first"]}, "Column block holds whole numbers from 0 up, got 'first'."),
        ({"trial": [-1]}, "Column trial holds whole numbers from 0 up, got -1."),
        ({"i": [1]}, "A pair joins two different locations; pair 0 joins location 1 with itself."),
    ],
)
def test_invalid_columns(columns, message):
    with pytest.raises(InvalidInput) as error:
        Responses(**{"layout": Grid(3), "i": [0], "j": [1], "same": [1]} | columns)
    assert str(error.value) == message


@pytest.mark.parametrize("same", [[1, 0], [True, False], [1.0, 0.0], np.array([True, False], dtype=object)])
def test_types_of_the_column_same(same):
    assert Responses(Grid(3), [0, 1], [1, 2], same).same.tolist() == [True, False]


@given(some_responses())
def test_arrays_are_read_only(responses):
    for name in COLUMNS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(responses, name)[0] = getattr(responses, name)[0]


@given(some_responses(), st.randoms(use_true_random=False))
def test_tally_does_not_depend_on_order(responses, random):
    """Neither the order of the rows nor of i and j matters."""
    rows = list(range(len(responses)))
    random.shuffle(rows)
    shuffled = responses.take(rows)
    flip = np.array([random.random() < 0.5 for _ in rows])
    swapped = Responses(
        responses.layout,
        np.where(flip, shuffled.j, shuffled.i),
        np.where(flip, shuffled.i, shuffled.j),
        shuffled.same,
    )
    one, other = responses.tally(), swapped.tally()
    assert one.pairs == other.pairs
    assert one.k.tolist() == other.k.tolist()
    assert one.n.tolist() == other.n.tolist()


@given(some_responses())
def test_tally_counts_every_trial_once(responses):
    tally = responses.tally()
    assert tally.trials == len(responses)
    assert tally.k.sum() == responses.same.sum()
    assert tally.layout == responses.layout
    assert ((tally.share >= 0) & (tally.share <= 1)).all()


@given(some_responses())
def test_concatenate_is_the_inverse_of_select(responses):
    parts = [responses.select(participant=name) for name in responses.participants]
    whole = concatenate(parts)
    order = np.argsort(responses.participant, kind="stable")
    assert same_rows(whole, responses.take(order))


@given(some_responses(grids()))
def test_an_unknown_participant(responses):
    with pytest.raises(NotFound, match="No responses with participant 'nobody at all'; there are: "):
        responses.select(participant="nobody at all")


def test_select_by_participant_and_image():
    responses = Responses(
        Grid(3), [0, 1, 2], [1, 2, 3], [1, 1, 1], participant=["a", "a", "b"], image=["x", "y", "x"]
    )
    assert responses.select(participant="a", image="y").i.tolist() == [1]
    assert (responses.participants, responses.images) == (["a", "b"], ["x", "y"])


def test_empty_responses():
    none = Responses(Grid(3), [], [], [])
    assert len(none.tally()) == 0
    assert len(Responses(Grid(3), [0], [1], [1]).take([])) == 0
    assert len(Responses(Grid(3), [0], [1], [1]).tally().take([])) == 0


def test_responses_on_several_layouts_are_not_concatenated():
    corners = Scatter([[0, 0], [1, 0], [0, 1], [1, 1]])
    with pytest.raises(InvalidInput, match="Expected responses on one layout to concatenate"):
        concatenate([Responses(Grid(3), [0], [1], [1]), Responses(corners, [0], [1], [1])])
    with pytest.raises(InvalidInput, match="Expected at least one Responses to concatenate, got none"):
        concatenate([])


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        ([2], [1], "Expected n ≥ 1 trials and 0 ≤ k ≤ n 'same' answers for each pair."),
        ([0], [0], "Expected n ≥ 1 trials and 0 ≤ k ≤ n 'same' answers for each pair."),
        ([1, 1], [1], "Expected 1 counts k and n, got (2,) and (1,)."),
        ([0.7], [1], "Counts k are whole numbers, got 0.7."),
        ([1], [1.5], "Counts n are whole numbers, got 1.5."),
        (["a"], [1], "Counts k are whole numbers, got 'a'."),
        ([np.nan], [1], "Counts k are whole numbers, got nan."),
        ([0], [np.inf], "Counts n are whole numbers, got inf."),
    ],
)
def test_invalid_counts(k, n, message):
    with pytest.raises(InvalidInput) as error:
        Tally(Pairs(Grid(3), [0], [1]), k, n)
    assert str(error.value) == message


def test_with_layout_accepts_only_a_refined_layout():
    answers = Responses(Grid(4), [0, 3], [5, 9], [1, 0], participant=["a", "b"])
    finer = refine(Grid(4), np.ones(16), points=3)
    moved = answers.with_layout(finer)
    assert moved.layout == finer
    assert (moved.i.tolist(), moved.participant.tolist()) == ([0, 3], ["a", "b"])
    with pytest.raises(InvalidInput, match="are not those of a 4x4 grid"):
        answers.with_layout(Grid(5))


@given(
    some_maps(layout=grids(5)), st.one_of(grids(20).filter(lambda grid: grid.size >= 10), scatters()), seeds
)
def test_coarser_answers_keep_the_probabilities_of_maps_that_are_constant_in_each_cell(coarse, fine, seed):
    """A truth that is constant in each cell has the same P(same) on both layouts, so the answers suit both."""
    assume(len(fine) >= len(coarse.layout))
    cell = find_nearest(coarse.layout, fine.positions)
    truth = Maps(fine, coarse.probabilities[cell])
    rng = np.random.default_rng(seed)
    i, j = rng.choice(len(fine), (2, 80))
    i, j = i[(apart := i != j)], j[apart]
    answers = Responses(fine, i, j, rng.random(len(i)) < 0.5, rt_ms=rng.random(len(i)))
    within = cell[i] == cell[j]
    with _warning_of(within.sum(), len(i)):
        moved = answers.coarsen(coarse.layout)
    assert moved.layout == coarse.layout
    assert np.array_equal(moved.rt_ms, answers.rt_ms[~within])  # the other columns stay with their rows
    for one, other, k in zip(i[~within], j[~within], range(len(moved)), strict=True):
        fine_pair, coarse_pair = Pairs(fine, [one], [other]), Pairs(coarse.layout, [moved.i[k]], [moved.j[k]])
        assert truth.same_probability(fine_pair) == pytest.approx(coarse.same_probability(coarse_pair))


def _warning_of(dropped, total):
    if not dropped:
        return contextlib.nullcontext()
    return pytest.warns(VsegWarning, match=rf"^{dropped} of {total} answers (is|are) left out: both dots")


def test_certain_answers_stay_right_on_a_coarser_grid():
    coarse = Maps.one_hot(Grid(4), [0, 0, 1, 1] * 4)
    truth = Maps(Grid(16), coarse.probabilities[find_nearest(coarse.layout, Grid(16).positions)])
    i, j = np.triu_indices(256, 1)
    answers = simulate(truth, Pairs(Grid(16), i, j), seed=0)
    with pytest.warns(VsegWarning, match="1920 of 32640 answers are left out"):  # 16 cells of 16·15/2 pairs
        tally = answers.coarsen(coarse.layout).tally()
    assert len(tally) == 120  # all pairs of 16 cells
    assert np.array_equal(tally.share, coarse.same_probability(tally.pairs))
    assert set(tally.n) == {256}


def test_coarser_layouts_may_be_scatters():
    fine = Responses(Grid(10), [0, 9], [99, 90], [1, 0])
    corners = Scatter([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    moved = fine.coarsen(corners)
    assert list(zip(moved.i.tolist(), moved.j.tolist(), moved.same.tolist(), strict=True)) == [
        (0, 3, True),
        (1, 2, False),
    ]


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            Grid(11),
            "Expected a layout of at most 100 locations, as many as a 10x10 grid has, got an 11x11 grid",
        ),
        (16, "Expected a layout such as vseg.Grid(16), got 16."),
    ],
)
def test_answers_are_not_taken_to_more_locations(layout, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Responses(Grid(10), [0], [1], [1]).coarsen(layout)
