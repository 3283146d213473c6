"""Parametric maps of colours: the ideal observer, the planes, and a small version of the figure."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from reproduction.paper import colours
from vseg.evaluation import metrics
from vseg.sweeps import Table, sweep

CERTAIN, NEARLY, UNCERTAIN = colours.AMPLITUDES


@pytest.fixture(scope="module")
def table():
    return sweep(colours.trial, colours.SETTINGS, repeats=2, seed=0)


def test_the_ideal_observer_is_good_where_maps_are_certain():
    """0.013 for certain maps, 0.228 for uncertain ones, whose colours say no more than the label drawn."""
    assert metrics.mae(colours.ideal_observer(CERTAIN), colours.truth(CERTAIN)) < 0.02
    assert metrics.mae(colours.ideal_observer(UNCERTAIN), colours.truth(UNCERTAIN)) > 0.15


@given(st.floats(0.01, 100), st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_the_angle_depends_on_directions_alone(scale, shift):
    assert colours.mean_plane_angle(scale * colours.MEANS + np.array(shift)) == pytest.approx(0, abs=1e-3)


def test_planes_at_right_angles():
    turned = colours.MEANS.copy()
    turned[:] = np.linalg.svd(colours.MEANS - colours.MEANS.mean(axis=0))[2][2] * np.arange(3)[:, None]
    assert colours.mean_plane_angle(turned) == pytest.approx(90)


def test_certain_maps_are_recovered_uncertain_ones_are_not(table):
    """MAE of the paper's fit over 8 resamples: 0.005, 0.063 and 0.338."""
    error = {a: table.column("mae", fit="paper", amplitude=a).mean() for a in colours.AMPLITUDES}
    assert error[CERTAIN] < 0.02
    assert error[NEARLY] < 0.1
    assert error[UNCERTAIN] > 0.2
    assert [claim.verdict for claim in colours.claims(table)] == ["reproduced only if", "reproduced"]


def test_with_the_papers_loss_our_fit_has_the_papers_error(table):
    """0.065 and 0.063 where maps are nearly certain; the likelihood, our default, makes 0.13 there."""
    paper, squared, ours = (
        table.column("mae", fit=fit, amplitude=NEARLY).mean() for fit in ("paper", "squared", "ours")
    )
    assert squared == pytest.approx(paper, abs=0.02)
    assert ours > 1.5 * paper


def test_claims_follow_the_table(table):
    worse = Table([{**row, "mae": 1.0, "agreement": 0.5} for row in table.rows])
    assert [claim.verdict for claim in colours.claims(worse)] == ["not reproduced"] * 2
    better = Table([{**row, "mae": row["ideal"]} for row in table.rows])
    assert colours.claims(better)[0].verdict == "reproduced"


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.floats(-0.4, 0.4))
def test_a_plane_is_clipped_to_the_cube(normal, offset):
    """Three to six corners, in the plane and within the cube; none if all vertices are on one side."""
    normal, centre = np.array(normal), np.full(3, 0.5)
    corners = colours.clip_plane_to_cube(normal, offset, centre)
    heights = (np.array(list(np.ndindex(2, 2, 2))) - centre) @ normal + offset
    if heights.min() >= 0 or heights.max() <= 0:
        assert len(corners) == 0
        return
    assume(np.abs(heights).min() > 1e-6)  # a plane through a vertex may touch the cube there only
    np.testing.assert_allclose((corners - centre) @ normal + offset, 0, atol=1e-9)
    assert corners.min() >= -1e-9
    assert corners.max() <= 1 + 1e-9
    assert 3 <= len(corners) <= 6


def test_the_figure_lies_within_the_sheet(table):
    drawn = colours.draw(table, colours.example(seed=0))
    assert sum(axes.name == "3d" for axes in drawn.axes) == 4
    assert [axes.get_ylabel() for axes in drawn.axes[-2:]] == [
        "MAE (L1 per location)",
        "degrees to the optimal planes",
    ]
    for axes in drawn.axes:
        left, below, wide, high = axes.get_position().bounds
        assert min(left, below) >= 0
        assert max(left + wide, below + high) <= 1
