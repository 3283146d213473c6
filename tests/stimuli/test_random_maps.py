"""Random maps have the entropy, areas and covariance that were asked for (S2)."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from vseg.data.layout import Grid, Scatter
from vseg.errors import InvalidInput
from vseg.stimuli import gaussian_fields, random_maps

SOME_POINTS = Scatter(np.random.default_rng(0).random((150, 2)))
layouts = st.one_of(st.integers(4, 13).map(Grid), st.just(SOME_POINTS))
few = settings(max_examples=40, deadline=None)


@few
@given(layout=layouts, segments=st.integers(2, 4), sigma=st.floats(0.05, 30), seed=st.integers(0, 2**32))
def test_rows_are_probabilities(layout, segments, sigma, seed):
    p = random_maps(layout, segments=segments, sigma=sigma, seed=seed).probabilities
    assert p.shape == (len(layout), segments)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@few
@given(layout=layouts, segments=st.integers(2, 5), share=st.floats(0, 0.999), seed=st.integers(0, 2**32))
def test_entropy_is_reached_from_one_hot_to_near_uniform(layout, segments, share, seed):
    wanted = share * np.log(segments)
    maps = random_maps(layout, segments=segments, entropy=wanted, seed=seed)
    assert maps.mean_entropy == pytest.approx(wanted, abs=1e-3)


@few
@given(layout=layouts, segments=st.integers(2, 3), share=st.floats(0, 0.15), seed=st.integers(0, 2**32))
def test_each_segment_has_the_smallest_area(layout, segments, share, seed):
    labels = random_maps(layout, segments=segments, min_area=share, seed=seed).labels
    assert np.bincount(labels, minlength=segments).min() >= share * len(layout)


def test_default_area_leaves_no_segment_empty_even_with_nine():
    """The paper's largest case: K = 9, N = 25."""
    labels = random_maps(Grid(25), segments=9, seed=0).labels
    assert np.bincount(labels, minlength=9).min() >= 0.3 / 9 * 625


@pytest.mark.parametrize("layout", [Grid(11), Grid(12), SOME_POINTS], ids=str)
def test_the_seed_determines_the_maps(layout):
    first, again, other = (random_maps(layout, segments=3, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_entropy_zero_is_the_one_hot_limit_of_the_same_areas():
    certain = random_maps(Grid(12), segments=3, entropy=0, seed=1)
    assert set(np.unique(certain.probabilities)) == {0, 1}
    for options in ({"sigma": 40}, {"sigma": 0.3}, {"entropy": 1.0}):
        np.testing.assert_array_equal(
            random_maps(Grid(12), segments=3, seed=1, **options).labels, certain.labels
        )
    assert random_maps(Grid(12), segments=3, sigma=40, seed=1).mean_entropy < 0.01


def discrete_sum(xi, distance=0):
    """Σ_m exp(-(m² + (m-d)²)/2ξ²): along one axis, the covariance of white noise convolved with G on the grid (S2)."""
    m = np.arange(-200, 201)
    return np.exp(-(m**2 + (m - distance) ** 2) / (2 * xi**2)).sum()


@pytest.mark.parametrize("xi", [0.5, 2.0, 6.3])
@pytest.mark.parametrize("layout", [Grid(5), Grid(6), Scatter(SOME_POINTS.positions[:30])], ids=str)
def test_field_has_the_standard_deviation_of_s2(layout, xi):
    """The s.d. is that of the discrete convolution (σ²ξ√π from ξ = 1 on) at every location, edges included.

    Over 2000 fields its standard error is 1.6 %; margin 6 % for the worst of about 30 locations.
    """
    draws = [
        gaussian_fields(layout, segments=len(layout), sigma=1.3, xi=xi, seed=seed)
        for seed in range(2000 // len(layout))
    ]
    sd = np.concatenate(draws, axis=1).std(axis=1)
    np.testing.assert_allclose(sd, 1.3**2 * discrete_sum(xi), rtol=0.06)
    if xi >= 1:
        assert discrete_sum(xi) == pytest.approx(xi * np.sqrt(np.pi), rel=1e-4)


@pytest.mark.parametrize("xi", [0.3, 0.5, 1.0, 3.0])
def test_the_covariance_is_that_of_the_discrete_convolution(xi):
    """Σ_j G_j G_(j-d), at ξ < 1 far from the continuum's exp(-d²/4ξ²): 0.26 against 0.37 between neighbours at 0.5.

    2880 fields of 24×24: about 2880·576/(2πξ²) independent values, 2.6e5 at ξ = 1 and 2.9e4 at 3; margins of three
    standard errors or more.
    """
    size = 24
    fields = [gaussian_fields(Grid(size), segments=576, sigma=1, xi=xi, seed=seed) for seed in range(5)]
    f = np.concatenate(fields, axis=1).reshape(size, size, -1)
    variance = discrete_sum(xi) ** 2
    assert np.mean(f**2) == pytest.approx(variance, rel=0.025 if xi > 1 else 0.01)
    for axis in (f, f.transpose(1, 0, 2)):
        for distance in (1, 2, 5):
            covariance = np.mean(axis[distance:] * axis[:-distance])
            expected = discrete_sum(xi, distance) / discrete_sum(xi)
            assert covariance / variance == pytest.approx(expected, abs=0.025 if xi > 1 else 0.006)


def test_fields_become_white_noise():
    """At ξ → 0 each location has its own noise value of variance σ⁴: 82,944 values, standard error 0.5 % of the
    variance and 0.0035 of the correlation; margins of four standard errors."""
    f = gaussian_fields(Grid(24), segments=144, sigma=1, xi=0.001, seed=3).reshape(24, 24, -1)
    assert f.var() == pytest.approx(1, abs=0.02)
    assert f.mean() == pytest.approx(0, abs=0.014)
    for neighbours in (f[1:] * f[:-1], f[:, 1:] * f[:, :-1], f[1:, 1:] * f[:-1, :-1]):
        assert neighbours.mean() == pytest.approx(0, abs=0.014)
    assert random_maps(Grid(8), segments=2, sigma=3, xi=0.01, min_area=0, seed=0).mean_entropy < 0.2


@pytest.mark.parametrize("size", [15, 16])
def test_fields_do_not_wrap_around(size):
    """exp(-d²/4ξ²) at ξ = 2: 0.94 between neighbours, 0 between opposite edges (a circular convolution gives
    0.94 there too). 256 fields of about 4 independent rows: standard error 0.03, margin 0.1."""
    fields = gaussian_fields(Grid(size), segments=size**2, sigma=1, xi=2, seed=0)
    f = fields.reshape(size, size, -1)
    for field in (f, f.transpose(1, 0, 2)):
        assert np.corrcoef(field[0].ravel(), field[-1].ravel())[0, 1] == pytest.approx(0, abs=0.1)
        assert np.corrcoef(field[0].ravel(), field[1].ravel())[0, 1] == pytest.approx(
            np.exp(-1 / 16), abs=0.02
        )
        assert np.corrcoef(field[0].ravel(), field[4].ravel())[0, 1] == pytest.approx(np.exp(-1), abs=0.1)


def test_scatter_on_cell_centres_gives_the_grid_maps():
    """A grid and a scatter with the same positions get the same fields."""
    grid = Grid(10)
    same = Scatter(grid.positions)
    np.testing.assert_allclose(
        random_maps(grid, segments=3, seed=4).probabilities,
        random_maps(same, segments=3, seed=4).probabilities,
        atol=1e-12,
    )


def test_a_seed_gives_the_same_maps_at_another_resolution():
    coarse = random_maps(Grid(9), segments=3, sigma=1, xi=2, min_area=0, seed=2)
    fine = random_maps(Grid(27), segments=3, sigma=np.sqrt(1 / 3), xi=6, min_area=0, seed=2)
    np.testing.assert_allclose(fine.image[1::3, 1::3], coarse.image, atol=1e-12)


def test_moderate_default():
    """Golden: E[H(softmax(3 z))] = 0.442 nats for three standard normals z (Monte Carlo, 4 million draws).
    40 maps of about 3 independent patches: standard error 0.02, margin 0.06."""
    drawn = [random_maps(Grid(12), segments=3, min_area=0, seed=seed).mean_entropy for seed in range(40)]
    assert np.mean(drawn) == pytest.approx(0.442, abs=0.06)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 1, "entropy": 0.5}, "not both"),
        ({"entropy": np.log(3)}, "below log 3"),
        ({"entropy": -0.1}, "from 0"),
        ({"entropy": np.nan}, "nats, got nan"),
        ({"sigma": 0}, "above 0"),
        ({"sigma": np.inf}, "entropy=0"),
        ({"sigma": 1e200}, "at most 1e[+]06, got 1e[+]200"),
        ({"sigma": np.nan}, "at most 1e[+]06, got nan"),
        ({"xi": 0}, "cells"),
        ({"xi": 1e200}, "to 1e[+]06 cells on an 8x8 grid, got 1e[+]200"),
        ({"xi": np.nan}, "got nan"),
        ({"seed": -1}, "A seed is a whole number from 0 up, got -1"),
        ({"seed": None}, "A seed is a whole number from 0 up, got None"),
        ({"min_area": 0.5}, "1/K = 0.333"),
        ({"segments": 1}, "from 2 to 64"),
        ({"segments": 65}, "from 2 to 64"),
        ({"segments": 2.5}, "whole number"),
        ({"min_area": 1 / 3, "xi": 40}, "2000 draws"),
    ],
)
def test_invalid_input(options, message):
    with pytest.raises(InvalidInput, match=message):
        random_maps(Grid(8), **{"segments": 3, "seed": 0, **options})


@pytest.mark.parametrize("sigma", [1e-200, 1e6])
def test_extreme_values_of_sigma(sigma):
    assert np.isfinite(random_maps(Grid(8), segments=2, sigma=sigma, xi=1e6, min_area=0, seed=0).mean_entropy)


def test_invalid_input_for_fields():
    for options, message in (
        ({"sigma": 1e200}, "Expected sigma"),
        ({"xi": np.inf}, "Expected xi"),
        ({"seed": -1}, "A seed is"),
    ):
        with pytest.raises(InvalidInput, match=message):
            gaussian_fields(Grid(8), **{"segments": 2, "sigma": 1, "xi": 2, "seed": 0, **options})


def test_a_scatter_needs_a_longer_scale():
    with pytest.raises(InvalidInput, match=r"Expected xi from 0.25 to 1e[+]06 cells on a scatter.*, got 0.1"):
        gaussian_fields(SOME_POINTS, segments=2, sigma=1, xi=0.1, seed=0)


def test_seed_is_required():
    with pytest.raises(TypeError, match="seed"):
        random_maps(Grid(8), segments=3)
