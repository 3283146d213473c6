"""Textures have the contrast, orientation, frequency and spread of Table 1."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import ndimage

from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.stimuli import HIGH, LOW, PRESETS, Texture, composite, random_maps, texture
from vseg.stimuli.textures import round_to_grey_levels

SIZE = 256


@cache
def uniform(segment, parameters=LOW, seed=0):
    """Return an image filled with one texture, as floats around 0."""
    p = np.zeros((SIZE, SIZE, 2))
    p[:, :, segment] = 1
    return texture(p, parameters, seed=seed).image - 128.0


def power(image):
    """Return the windowed power spectrum with its frequency (cycles/px) and angle (counter-clockwise)."""
    window = np.hanning(SIZE)[:, None] * np.hanning(SIZE)
    f = np.fft.fftfreq(SIZE)
    return np.abs(np.fft.fft2(image * window)) ** 2, np.hypot(f, f[:, None]), np.arctan2(-f[:, None], f)


def gradient_angle(image):
    """Return the angle across the contours from the structure tensor, without a Fourier transform."""
    right, down = (ndimage.gaussian_filter(image, 3, order=order) for order in ((0, 1), (1, 0)))
    up = -down
    return np.rad2deg(np.arctan2(2 * np.mean(right * up), np.mean(right**2 - up**2)) / 2)


def spread(image):
    """Return the standard deviation of the energy over orientations, from the length of the mean vector at 2θ."""
    energy, _, angle = power(image)
    length = np.abs(np.sum(energy * np.exp(2j * angle))) / energy.sum()
    return np.rad2deg(np.sqrt(-np.log(length) / 2))


def test_presets_are_those_of_table_1():
    assert Texture((-5, 5), 5, 2.45, 2, 35) == LOW
    assert Texture((-5, 5), 7.5, 2.45, 2, 35) == HIGH
    assert PRESETS == {"low": LOW, "high": HIGH}


def test_frequency_follows_the_geometry():
    """S2: r0 = m_r / (px/cm) (1 + σ_r²), and (1 + σ_r²) = exp(ln(2)/8 · 2²) = √2, at 1 cm per degree."""
    assert LOW.distance_cm == pytest.approx(57.3, abs=0.01)
    assert LOW.peak_cycles_per_px == pytest.approx(2.45 / 40 * np.sqrt(2), rel=1e-12)
    assert Texture(distance_cm=2 * LOW.distance_cm).px_per_degree == pytest.approx(80)


@pytest.mark.parametrize("distance_cm", [LOW.distance_cm, 40])
def test_a_width_in_degrees_sets_the_geometry(distance_cm):
    """The image is 2 d tan(width / 2) wide on the screen, one degree in its middle 2 d tan(1/2)."""
    parameters = Texture(distance_cm=distance_cm)
    stimulus = composite(size_px=128, width_deg=8, preset=parameters, seed=0)
    assert stimulus.width_deg == pytest.approx(8)
    px_per_degree = 128 * np.tan(np.deg2rad(0.5)) / np.tan(np.deg2rad(4))
    assert stimulus.parameters.px_per_degree == pytest.approx(px_per_degree)
    assert stimulus.parameters.mode_cpd == 2.45
    default = texture(np.full((512, 512, 2), 0.5), seed=0)
    assert default.parameters == LOW
    assert default.width_deg == pytest.approx(12.75, abs=0.005)


@pytest.mark.parametrize("preset", [LOW, HIGH])
def test_contrast_and_mean(preset):
    stimulus = composite(size_px=SIZE, preset=preset, seed=3)
    assert stimulus.image.dtype == np.uint8
    assert stimulus.image.std() == pytest.approx(35, abs=0.5)
    assert stimulus.image.mean() == pytest.approx(128, abs=0.1)


@pytest.mark.parametrize(("segment", "angle"), [(0, -5), (1, 5)])
def test_contours_lie_five_degrees_from_the_vertical(segment, angle):
    """Single images differ by 0.3° (measured); margin 0.6° for the mean of six."""
    found = np.mean([gradient_angle(uniform(segment, seed=seed)) for seed in range(6)])
    assert found == pytest.approx(angle, abs=0.6)


def test_frequency_has_the_mode_of_table_1():
    """log power is a parabola in log r with its peak at r0; divided by r (the log-normal density) the peak is
    at m_r. Standard errors over sets of 24 images (measured): 2, 4 and 7 %; margins three times that."""
    energy = np.mean([power(uniform(0, seed=seed))[0] for seed in range(24)], axis=0)
    _, r, _ = power(np.zeros((SIZE, SIZE)))
    edges = LOW.peak_cycles_per_px * 2 ** np.linspace(-1.5, 1.5, 16)
    middle = np.log(np.sqrt(edges[1:] * edges[:-1]))
    rings = [energy[(r >= low) & (r < high)].mean() for low, high in pairwise(edges)]
    curve, slope, _ = np.polyfit(
        middle, np.log(rings), 2, w=np.exp(middle)
    )  # weighted by the number of samples, r²
    assert np.exp(-slope / (2 * curve)) == pytest.approx(LOW.peak_cycles_per_px, rel=0.06)
    assert np.exp(-(slope - 1) / (2 * curve)) == pytest.approx(2.45 / 40, rel=0.12)
    assert -1 / (2 * curve) == pytest.approx(LOW.log_variance, rel=0.21)


def test_higher_spread_is_broader():
    """Margin 0.7°, of which the window's leakage is about 0.2°."""
    low, high = (np.mean([spread(uniform(0, t, seed)) for seed in range(3)]) for t in (LOW, HIGH))
    assert low == pytest.approx(5, abs=0.7)
    assert high == pytest.approx(7.5, abs=0.7)


def test_texture_does_not_wrap_around():
    """Opposite edges of 24 images: standard error 0.03 to 0.05 over correlated rows, margin 0.15."""
    images = np.stack([uniform(0, seed=seed) for seed in range(24)])
    for edges in (images[:, :, 0], images[:, :, -1]), (images[:, 0], images[:, -1]):
        assert np.corrcoef(edges[0].ravel(), edges[1].ravel())[0, 1] == pytest.approx(0, abs=0.15)
    assert np.corrcoef(images[:, 0].ravel(), images[:, 1].ravel())[0, 1] > 0.9


def test_interpolated_orientations_keep_the_contrast():
    """On a ramp of orientations the standard deviation is constant (margin 12 %, eighths of 8 images)."""
    ramp = np.broadcast_to(np.linspace(0, 1, SIZE)[None, :], (SIZE, SIZE))
    p = np.stack([1 - ramp, ramp], axis=2)
    images = np.stack([texture(p, LOW, seed=seed).image.astype(float) for seed in range(8)])
    strips = [part.std() for part in np.split(images, 8, axis=2)]
    np.testing.assert_allclose(strips, 35, rtol=0.12)
    stimulus = texture(p, LOW, seed=0)
    np.testing.assert_allclose(stimulus.orientation_deg, -5 + 10 * ramp)


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.floats(-400, 600), min_size=1, max_size=50))
def test_the_share_of_clipped_pixels(values):
    image, clipped = round_to_grey_levels(np.array(values))
    outside = [round(value) < 0 or round(value) > 255 for value in values]
    assert clipped == pytest.approx(np.mean(outside))
    assert np.abs(image - np.array(values))[~np.array(outside)].max(initial=0) <= 0.5


def test_clipping_of_a_strong_contrast_is_reported():
    """A Gaussian of s.d. 80 around 128: P(beyond 0..255) = 0.110 (normal distribution); margin 0.01."""
    stimulus = texture(Maps.one_hot(Grid(3), [0] * 9, 2), Texture(rms_contrast=80), size_px=SIZE, seed=0)
    assert stimulus.clipped == pytest.approx(0.110, abs=0.01)
    assert np.isin(stimulus.image, (0, 255)).mean() >= stimulus.clipped
    assert composite(size_px=64, seed=0).clipped < 0.002


@pytest.mark.parametrize("seed", range(5))
def test_composite_has_two_connected_areas(seed):
    stimulus = composite(size_px=96, seed=seed)
    for segment in (0, 1):
        area = stimulus.labels == segment
        assert area.mean() >= 0.35
        assert ndimage.label(area)[1] == 1
    inside = ndimage.binary_erosion(stimulus.labels == 1, iterations=12)
    np.testing.assert_allclose(stimulus.orientation_deg[inside], 5, atol=5e-3)


@pytest.mark.parametrize(
    "layout", [Grid(11), Grid(8), Scatter([[0, 0], [1, 0.1], [0.3, 0.8], [1, 1]])], ids=str
)
def test_truth_is_read_at_the_locations(layout):
    stimulus = composite(size_px=88, seed=1)
    maps = stimulus.truth_maps(layout)
    x, y = np.minimum(np.floor(layout.positions.T * 88), 87).astype(int)
    np.testing.assert_array_equal(maps.labels, stimulus.labels[y, x])
    assert maps.segments == 2


def test_the_seed_determines_the_image():
    first, again, other = (composite(size_px=64, seed=seed).image for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_three_segments_from_maps():
    maps = random_maps(Grid(9), segments=3, entropy=0, seed=0)
    stimulus = texture(maps, Texture(orientations_deg=(-30, 0, 30)), size_px=90, seed=0)
    assert stimulus.truth_maps(Grid(9)) == maps


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Texture(spread_deg=0), "a finite spread_deg above 0"),
        (lambda: Texture(spread_deg=0.01), "63165 px long, more than 4096; raise spread_deg .now 0.01."),
        (lambda: Texture(spread_deg=1e-320), "px long"),
        (lambda: Texture(mean_grey=np.nan), "a mean_grey from 0 to 255, got nan"),
        (lambda: Texture(mean_grey=256), "from 0 to 255, got 256"),
        (lambda: Texture(bandwidth_oct=1e200), "at most 10 octaves, got 1e[+]200"),
        (lambda: texture(random_maps(Grid(5), segments=2, seed=0), size_px=0, seed=0), "at least 1x1 pixels"),
        (lambda: texture(np.full((8, 8, 2), 0.5), seed=-1), "A seed is a whole number from 0 up, got -1"),
        (lambda: composite(size_px=64, seed=None), "A seed is a whole number from 0 up, got None"),
        (lambda: Texture(orientations_deg=(5,)), "two or more"),
        (lambda: Texture(px_per_cm=5), "shows fewer than 0.5"),
        (
            lambda: texture(random_maps(Grid(5), segments=3, seed=0), LOW, size_px=64, seed=0),
            "2 orientations",
        ),
        (lambda: texture(np.ones((8, 8)), seed=0), "shape"),
        (lambda: texture(np.ones((8, 8, 2)), seed=0), "sum to 1"),
        (lambda: texture(np.full((8, 8, 2), 0.5), size_px=9, seed=0), "size_px is 9"),
        (lambda: composite(size_px=8, seed=0), "at least 32"),
        (
            lambda: composite(size_px=64, width_deg=0, seed=0),
            "a width_deg above 0 and below 180 degrees, got 0",
        ),
        (lambda: composite(size_px=32, xi=2, seed=0), "larger xi"),
    ],
)
def test_invalid_input(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
