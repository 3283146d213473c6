import numpy as np
import pytest
from hypothesis import given, settings

from strategies import layouts, some_maps
from vseg import Grid, Maps, Scatter, stimuli
from vseg.bayes import priors
from vseg.errors import InvalidInput


@settings(max_examples=25, deadline=None)
@given(layout=layouts())
def test_roots_reproduce_the_kernel(layout):
    """On a grid the root is built from the two axes, elsewhere from the whole matrix; the covariance is the same."""
    prior = priors.spatial(layout, kernel="rbf", lengths=[0.2])
    root = prior.families[0][0].root
    distance = np.linalg.norm(layout.positions[:, None] - layout.positions, axis=2)
    np.testing.assert_allclose(root.tall @ root.wide, np.exp(-((distance / 0.2) ** 2) / 2), atol=0.05)
    across = root.wide @ root.tall
    np.testing.assert_allclose(across, np.diag(np.diag(across)), atol=1e-8)


@pytest.mark.parametrize("kernel", priors.KERNELS)
def test_kernels_fall_with_distance(kernel):
    root = priors.spatial(Grid(9), kernel=kernel, lengths=[0.3]).families[0][0].root
    row = (root.tall @ root.wide)[36:45]  # one row of the grid against all
    assert row[0, 36] == pytest.approx(1, abs=0.1)
    assert (np.diff(row[0, 36:45]) < 0).all()


@settings(max_examples=15, deadline=None)
@given(maps=some_maps(segments=3))
def test_group_covariances_are_finite_and_scaled(maps):
    prior = priors.group(maps.layout, [maps, maps])
    for covariance in prior.families[0]:
        C = covariance.root.tall @ covariance.root.wide
        assert np.isfinite(C).all()
        assert np.mean(np.diag(C)) < 1.01
    np.testing.assert_allclose(
        priors._mean_unit_covariance(priors._centred_log_odds(maps.layout, [maps, maps])),
        priors._mean_unit_covariance(priors._centred_log_odds(maps.layout, maps)),
        atol=1e-9,
    )


def test_an_image_prior_follows_the_image():
    """Left half black, right half white: neighbours across the edge have less in common than along it."""
    picture = np.zeros((64, 64), np.uint8)
    picture[:, 32:] = 255
    root = priors.image(Grid(8), picture).families[0][0].root
    C = root.tall @ root.wide
    along, across = C[3, 11], C[3, 4]
    assert along > 0.8
    assert across < 0.4


def test_an_image_prior_works_on_a_scatter():
    scatter = Scatter(np.random.default_rng(0).random((40, 2)))
    prior = priors.image(scatter, stimuli.load_sample("chelsea", 128))
    assert np.isfinite(prior.families[0][0].root.wide).all()


def test_a_prior_from_a_covariance():
    prior = priors.from_covariance(Grid(3), 4 * np.eye(9))
    root = prior.families[0][0].root
    np.testing.assert_allclose(root.tall @ root.wide, 4 * np.eye(9), atol=1e-12)
    assert 1.0 in prior.scales


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.spatial(Grid(3), kernel="cubic"), "Unknown kernel 'cubic'; choose from rbf"),
        (lambda: priors.spatial(Grid(3), lengths=[0]), "lengths are one or more numbers above 0"),
        (lambda: priors.from_covariance(Grid(3), np.eye(4)), r"has shape \(9, 9\), got \(4, 4\)"),
        (lambda: priors.from_covariance(Grid(3), -np.eye(9)), "no negative eigenvalues"),
        (lambda: priors.from_covariance(Grid(3), np.triu(np.ones((9, 9)))), "symmetric"),
        (lambda: priors.group(Grid(3), np.eye(4)), "A group is Maps"),
        (lambda: priors.group(Grid(3), Maps.one_hot(Grid(4), [0] * 16)), "must lie on a 3x3 grid"),
        (lambda: priors.group(Grid(3), [], share=1.0), "between 0 and 1"),
        (lambda: priors.make_prior("image", Grid(3)), "needs the picture"),
        (lambda: priors.make_prior("group", Grid(3)), "needs other participants' maps"),
        (
            lambda: priors.make_prior("group", Grid(3), np.zeros((9, 9), np.uint8), []),
            "is for the prior 'image'",
        ),
        (lambda: priors.make_prior("flat", Grid(3)), "Unknown prior 'flat'"),
        (lambda: priors.make_prior(priors.spatial(Grid(4)), Grid(3)), "is for a 4x4 grid"),
    ],
)
def test_invalid_priors_are_rejected(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
