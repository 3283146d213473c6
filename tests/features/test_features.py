"""Test features: oriented energies of gratings, cell means, colours, contrast, and invalid input."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from strategies import layouts, seeds
from vseg import features
from vseg.data.layout import Grid, Scatter
from vseg.errors import InvalidInput
from vseg.features.energy import OCTAVES, orientations_deg
from vseg.features.pixels import cell_means, luminance

GRID = Grid(4)


def grating(stripes_deg, cycles_per_px, side=128, amplitude=60.0):
    """Return stripes at an angle, counter-clockwise from horizontal."""
    row, column = np.mgrid[:side, :side]
    across = np.deg2rad(stripes_deg + 90)
    phase = 2 * np.pi * cycles_per_px * (column * np.cos(across) - row * np.sin(across))
    return np.rint(128 + amplitude * np.cos(phase)).astype(np.uint8)


@pytest.mark.parametrize("bands", [4, 9, 36])
@pytest.mark.parametrize("cycles_per_px", [0.2, 0.11])
def test_a_grating_has_its_energy_in_its_band(bands, cycles_per_px):
    for band, angle in enumerate(orientations_deg(bands)):
        found = features.orientation(
            _image(grating(angle, cycles_per_px, side=round(14 / cycles_per_px))), GRID, bands=bands
        ).mean(axis=0)
        assert found.argmax() == band
        around = found[[band - 1, band, (band + 1) % bands]].sum()
        assert around > 0.6 * found.sum()  # the edges of the image add energy at other orientations


def test_gabor_finds_scale_and_orientation():
    for scale, centre in enumerate(OCTAVES[:3]):
        found = features.gabor(_image(grating(60, centre)), GRID).mean(axis=0)
        assert found.argmax() == scale * 6 + 2


@pytest.mark.parametrize("cycles_per_px", [12 / 128, 24 / 128, 6 / 128])
@pytest.mark.parametrize("bands", [5, 36])
def test_the_bands_tile_the_plane(bands, cycles_per_px):
    """The energies sum to the variance of the luminance at any frequency between the octaves."""
    picture = _image(grating(90, cycles_per_px))
    found = features.orientation(picture, GRID, bands=bands).sum(axis=1).mean()
    assert found == pytest.approx(luminance(picture).var(), rel=0.01)


@settings(max_examples=8)
@given(st.integers(0, 35), st.integers(6, 30))
def test_energies_of_two_orientations_add_up(band, apart):
    """The energies of two gratings with distant orientations add up."""
    angles = orientations_deg()[[band, (band + apart) % 36]]
    one, two = (grating(angle, 1 / 8, amplitude=50).astype(np.int64) - 128 for angle in angles)
    both = _image((128 + one + two).astype(np.uint8))
    parts = [features.orientation(_image((128 + each).astype(np.uint8)), GRID) for each in (one, two)]
    whole = features.orientation(both, GRID)
    chosen = [band, (band + apart) % 36]
    assert whole.mean(axis=0)[chosen] == pytest.approx((parts[0] + parts[1]).mean(axis=0)[chosen], rel=0.1)


@given(layouts(), seeds)
def test_cell_means_keep_the_mean_of_all_pixels(layout, seed):
    values = np.random.default_rng(seed).random((40, 30, 2))
    means = cell_means(values, layout)
    count = np.bincount(layout.cells(30, 40).ravel(), minlength=len(layout))
    assert means.shape == (len(layout), 2)
    assert count @ means / count.sum() == pytest.approx(values.mean(axis=(0, 1)))


@given(layouts())
def test_every_location_has_features(layout):
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype(np.uint8)
    found = features.extract("lab+contrast+rgb", picture, layout)
    assert found.shape == (len(layout), 7)
    assert np.isfinite(found).all()


def test_a_cell_without_a_pixel_takes_the_pixel_it_lies_in():
    picture = np.arange(4, dtype=np.uint8).reshape(2, 2)
    assert features.rgb(features.as_image(picture), Grid(4)).shape == (16, 3)
    assert (
        cell_means(picture, Grid(4))[:, 0].reshape(4, 4).tolist()
        == np.kron(picture, np.ones((2, 2))).tolist()
    )


def test_a_scatter_averages_over_its_nearest_pixels():
    corners = Scatter([[0.2, 0.2], [0.8, 0.2], [0.2, 0.8], [0.8, 0.8]])
    picture = np.zeros((10, 10, 3), np.uint8)
    picture[:5, 5:] = 255
    assert features.rgb(picture, corners)[:, 0].tolist() == [0, 1, 0, 0]


def test_colours():
    red = np.full((9, 9, 3), (255, 0, 0), np.uint8)
    assert features.extract("rgb", red, Grid(3))[0].tolist() == [1, 0, 0]
    assert features.extract("lab", red, Grid(3))[0] == pytest.approx([53.24, 80.09, 67.20], abs=0.05)


def test_contrast_is_high_where_luminance_varies():
    picture = np.full((96, 96), 128, np.uint8)
    picture[:, :48] += np.random.default_rng(0).integers(-60, 60, (96, 48)).astype(np.int8).view(np.uint8)
    found = features.extract("contrast", picture, Grid(3)).reshape(3, 3)
    assert found[:, 0].min() > found[:, 1].max() > found[:, 2].max()


def test_names_numbers_functions_and_arrays():
    picture = grating(0, 1 / 8, side=64)
    assert features.extract("orientation:18", picture, GRID).shape == (16, 18)
    assert features.extract("gabor:4", picture, GRID).shape == (16, 16)
    assert features.extract("rgb + contrast", picture, GRID).shape == (16, 4)
    assert features.extract(lambda image, layout: np.arange(len(layout)), picture, GRID).shape == (16, 1)
    assert features.extract(np.ones((16, 5)), picture, GRID).shape == (16, 5)
    assert features.extract(np.ones((64, 64, 5)), picture, GRID).shape == (16, 5)
    with_alpha = np.dstack([np.repeat(picture[:, :, None], 3, 2), picture])
    assert (
        features.extract("rgb", with_alpha, GRID).tolist() == features.extract("rgb", picture, GRID).tolist()
    )


def test_standardised_columns():
    x, mean, scale = features.standardise([[1.0, 5.0], [3.0, 5.0]])
    assert x.tolist() == [[-1, 0], [1, 0]]
    assert (mean.tolist(), scale.tolist()) == ([2, 5], [1, 1])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("colour", "There are no features 'colour'; there are rgb, lab, orientation, gabor, contrast"),
        ("lab:3", "Only orientation and gabor take a number of bands, from 2 to 360, got 'lab:3'"),
        ("orientation:1", "a number of bands, from 2 to 360, got 'orientation:1'"),
        ("orientation:many", "a number of bands, from 2 to 360"),
        (np.ones((7, 2)), r"a row for each of the 16 locations; the array gave \(7, 2\)"),
        (np.ones((9, 9, 2)), r"Features of shape \(9, 9, 2\) do not fit an image of 64 x 64 pixels"),
        (np.full((16, 2), np.nan), "Features are finite numbers; the array gave 32 that are not"),
        (lambda image, layout: np.ones((len(layout), 2, 2)), r"<lambda> gave \(16, 2, 2\)"),
        (lambda image, layout: np.ones((len(layout), 0)), r"<lambda> gave \(16, 0\)"),
    ],
)
def test_invalid_features_are_refused(source, message):
    with pytest.raises(InvalidInput, match=message):
        features.extract(source, grating(0, 1 / 8, side=64), GRID)


@pytest.mark.parametrize("image", [np.zeros(5, np.uint8), np.zeros((5, 5)), np.zeros((5, 5, 2), np.uint8)])
def test_invalid_images_are_refused(image):
    with pytest.raises(InvalidInput, match="An image is uint8 of shape"):
        features.extract("rgb", image, GRID)


def _image(grey):
    return features.as_image(grey)
