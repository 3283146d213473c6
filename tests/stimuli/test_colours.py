"""Images of coloured locations."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.stimuli import colour_image, random_maps
from vseg.stimuli.colours import PALETTE


def test_labels_follow_the_probabilities():
    """2304 draws of p = (0.2, 0.5, 0.3): standard error 0.01, margin 0.03."""
    maps = Maps(Grid(48), np.tile([0.2, 0.5, 0.3], (48**2, 1)))
    labels = colour_image(maps, seed=0).labels
    np.testing.assert_allclose(np.bincount(labels) / 48**2, [0.2, 0.5, 0.3], atol=0.03)


def test_colours_are_gaussian_around_each_segments_mean():
    """About 768 colours per segment: standard errors 0.004 of the mean, 0.003 of the s.d.; margin 0.015."""
    picture = colour_image(random_maps(Grid(48), segments=3, entropy=0.2, min_area=0.2, seed=0), seed=1)
    assert picture.image.shape == (48, 48, 3)
    assert picture.features.min() >= 0
    assert picture.features.max() <= 1
    for segment in range(3):
        cloud = picture.features[picture.labels == segment]
        np.testing.assert_allclose(cloud.mean(axis=0), PALETTE[segment], atol=0.015)
        np.testing.assert_allclose(cloud.std(axis=0), 0.1, atol=0.015)
    assert picture.clipped < 0.01


def test_one_hot_maps_can_be_recovered_from_the_colours():
    """Default means are 0.4√2 apart at a spread of 0.1: Φ(-2.8) = 0.2 % errors per other segment; margin 2 %."""
    maps = random_maps(Grid(48), segments=3, entropy=0, seed=0)
    picture = colour_image(maps, seed=1)
    nearest = np.linalg.norm(picture.features[:, None] - PALETTE[:3], axis=2).argmin(axis=1)
    assert np.mean(nearest != maps.labels) < 0.02
    np.testing.assert_array_equal(picture.labels, maps.labels)


@settings(max_examples=20, deadline=None)
@given(spread=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_the_share_of_clipped_values(spread, seed):
    """A value is 0 or 1 only if it was clipped, since the means are inside."""
    picture = colour_image(random_maps(Grid(6), segments=3, seed=0), spread=spread, seed=seed)
    assert picture.clipped == pytest.approx(np.isin(picture.features, (0, 1)).mean())


def test_a_scatter_is_rendered_by_cells():
    layout = Scatter([[0.1, 0.1], [0.9, 0.2], [0.5, 0.5], [0.2, 0.9]])
    picture = colour_image(Maps.one_hot(layout, [0, 1, 0, 1]), spread=0, seed=0)
    assert picture.render(10)[0, 0].tolist() == np.rint(255 * PALETTE[0]).tolist()
    assert picture.render(10)[1, 9].tolist() == np.rint(255 * PALETTE[1]).tolist()
    with pytest.raises(InvalidInput, match="use render"):
        _ = picture.image


def test_the_seed_determines_the_colours():
    maps = random_maps(Grid(8), segments=2, seed=0)
    first, again, other = (colour_image(maps, seed=seed).features for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"means": [[0, 0, 0]]}, "Expected 2 mean colours"),
        ({"means": [[0, 0, 0], [0, 0, 2]]}, "from 0 to 1"),
        ({"spread": -1}, "spread from 0 up"),
        ({"seed": -1}, "A seed is a whole number from 0 up, got -1"),
        ({"spread": [0.1, 0.2]}, r"\(2, 3\)"),
    ],
)
def test_invalid_input(options, message):
    with pytest.raises(InvalidInput, match=message):
        colour_image(random_maps(Grid(6), segments=2, seed=0), **{"seed": 0, **options})


def test_more_segments_than_default_colours():
    with pytest.raises(InvalidInput, match="give `means`"):
        colour_image(random_maps(Grid(25), segments=9, seed=0), seed=0)
