from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linear_sum_assignment

from vseg import Grid, Maps, Scatter
from vseg.data.contours import Contours
from vseg.errors import InvalidInput
from vseg.evaluation import metrics

KEYS = [
    "mae", "mae_per_entry", "label_accuracy", "adjusted_rand_index", "variation_of_information", "covering",
    "boundary_precision", "boundary_recall", "boundary_f", "mean_entropy", "true_mean_entropy",
    "entropy_error", "segments_won", "true_segments_won",
]  # fmt: skip
SCORES = [
    metrics.mae, metrics.mae_per_entry, metrics.label_accuracy, metrics.adjusted_rand_index,
    metrics.variation_of_information, metrics.covering, metrics.boundaries, metrics.entropy_error,
]  # fmt: skip


def random_maps(layout, segments, seed):
    return Maps(layout, np.random.default_rng(seed).dirichlet(np.ones(segments), len(layout)))


@st.composite
def two_maps(draw):
    layout = Grid(draw(st.integers(3, 5)))
    return tuple(random_maps(layout, draw(st.integers(1, 4)), draw(st.integers(0, 10**6))) for _ in range(2))


@given(two_maps(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_no_score_depends_on_the_order_of_the_labels(both, random):
    """Labels are arbitrary (Eq. 4)."""
    maps, truth = both
    shuffled = [one.permute(random.sample(range(one.segments), one.segments)) for one in both]
    assert metrics.evaluate(*shuffled) == pytest.approx(metrics.evaluate(maps, truth))


@given(two_maps())
@settings(max_examples=15, deadline=None)
def test_maps_against_themselves_are_perfect(both):
    scores = metrics.evaluate(both[0], both[0])
    assert list(scores) == KEYS
    for name in ("mae", "mae_per_entry", "variation_of_information", "entropy_error"):
        assert scores[name] == pytest.approx(0, abs=1e-12)
    for name in ("label_accuracy", "adjusted_rand_index", "covering", "boundary_precision", "boundary_f"):
        assert scores[name] == pytest.approx(1)


@given(two_maps())
@settings(max_examples=25, deadline=None)
def test_scores_are_symmetric_or_swap_roles(both):
    a, b = both
    for score in (metrics.mae, metrics.variation_of_information, metrics.adjusted_rand_index):
        assert score(a, b) == pytest.approx(score(b, a), abs=1e-12)
    one, other = metrics.boundaries(a, b), metrics.boundaries(b, a)
    assert (one.precision, one.recall, one.f) == (other.recall, other.precision, other.f)


@given(two_maps())
@settings(max_examples=25, deadline=None)
def test_ranges(both):
    scores = metrics.evaluate(*both)
    assert 0 <= scores["mae"] <= 2
    assert all(0 <= scores[name] <= 1 for name in KEYS if "boundary" in name or name == "covering")
    assert scores["mae_per_entry"] == scores["mae"] / max(one.segments for one in both)


@given(two_maps())
@settings(max_examples=25, deadline=None)
def test_variation_of_information_is_scikit_images_in_nats(both):
    from skimage.metrics import variation_of_information

    a, b = both
    bits = variation_of_information(a.labels.reshape(-1, 1), b.labels.reshape(-1, 1)).sum()
    assert metrics.variation_of_information(a, b) == pytest.approx(bits * np.log(2), abs=1e-9)


def test_mae_by_hand():
    """Half of the locations are off by (0.5, 0.5), the others are right: 1/2 · 1."""
    truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    maps = Maps(Grid(4), np.concatenate([np.eye(2)[[0] * 8], np.full((8, 2), 0.5)]))
    assert metrics.mae(maps, truth) == pytest.approx(0.5)
    assert metrics.mae_per_entry(maps, truth) == pytest.approx(0.25)
    assert metrics.entropy_error(maps, truth) == pytest.approx(np.log(2) / 2)


def test_the_largest_error_is_two():
    """The maps are certain of one segment and the truth of another; a third segment absorbs the alignment."""
    truth = Maps.one_hot(Grid(3), [0] * 9, segments=3)
    maps = Maps(Grid(3), np.full((9, 3), 1 / 3))
    assert metrics.mae(maps, truth) == pytest.approx(4 / 3)


def test_label_accuracy_matches_labels_not_probabilities():
    """Five locations barely agree and four clearly disagree: swapped labels are closer in L1."""
    truth = Maps(Grid(3), [[0.51, 0.49]] * 5 + [[0, 1]] * 4)
    maps = Maps(Grid(3), [[0.51, 0.49]] * 5 + [[1, 0]] * 4)
    assert np.mean(maps.align_to(truth).labels == truth.labels) == 4 / 9
    assert metrics.label_accuracy(maps, truth) == metrics.evaluate(maps, truth)["label_accuracy"] == 5 / 9


@given(two_maps())
@settings(max_examples=50, deadline=None)
def test_label_accuracy_is_the_best_of_all_matchings(both):
    maps, truth = (one.pad(max(each.segments for each in both)) for one in both)
    orders = permutations(range(maps.segments))
    best = max(np.mean(maps.permute(order).labels == truth.labels) for order in orders)
    assert metrics.label_accuracy(*both) == pytest.approx(best)
    assert best >= np.mean(maps.align_to(truth).labels == truth.labels)


def test_covering_by_hand():
    """Two segments of 8 locations; the maps move 4 of the second to the first: (8 · 8/12 + 8 · 4/8) / 16."""
    truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    maps = Maps.one_hot(Grid(4), [0] * 12 + [1] * 4)
    assert metrics.covering(maps, truth) == pytest.approx((8 * 8 / 12 + 8 * 4 / 8) / 16)


def test_adjusted_rand_index_golden():
    """scikit-learn's documentation: [0, 0, 1, 2] against [0, 0, 1, 1] scores 0.57."""
    layout = Scatter([[0, 0], [1, 0], [0, 1], [1, 1]])
    a, b = Maps.one_hot(layout, [0, 0, 1, 2]), Maps.one_hot(layout, [0, 0, 1, 1])
    assert metrics.adjusted_rand_index(a, b) == pytest.approx(0.571428, abs=1e-6)


def edge(at, height=300, width=400):
    """Two segments; the diagonal is 500 pixels and the BSDS tolerance 3.75."""
    return np.broadcast_to(np.arange(width) >= at, (height, width)).astype(int)


@pytest.mark.parametrize(("apart", "f"), [(0, 1), (3, 1), (4, 0)])
def test_boundaries_match_within_the_tolerance(apart, f):
    assert metrics.boundary_scores(edge(200), edge(200 + apart)).f == f


def test_boundaries_match_one_to_one():
    """Of two lines near one true line, only one can be matched."""
    two = edge(199) + edge(201)
    assert metrics.boundary_scores(two, edge(200)) == pytest.approx((0.5, 1, 2 / 3))


def test_boundaries_are_thin():
    assert metrics._extract_contours(edge(200)).sum() == 300


def test_a_thick_mask_of_contours_is_thinned():
    mask = np.zeros((100, 100), bool)
    mask[:, 40:47] = True
    assert 90 <= metrics._extract_contours(mask).sum() <= 110
    assert metrics.boundary_scores(mask, mask).f == 1


def test_images_without_boundaries():
    none, some = edge(400), edge(200)
    assert metrics.boundary_scores(none, none) == (1, 1, 1)
    assert metrics.boundary_scores(none, some) == (0, 0, 0)
    assert metrics.boundary_scores(some, none) == (0, 0, 0)


@pytest.mark.parametrize(
    ("image", "truth", "tolerance", "message"),
    [
        (edge(5), edge(5, width=300), 0.0075, r"\(300, 400\), the truth \(300, 300\)"),
        (edge(5), edge(5) / 2, 0.0075, "labels .* got float64"),
        (edge(5), edge(5), 2, "fraction of the image's diagonal .* got 2"),
    ],
)
def test_invalid_images_are_refused(image, truth, tolerance, message):
    with pytest.raises(InvalidInput, match=message):
        metrics.boundary_scores(image, truth, tolerance=tolerance)


def test_mean_entropy_of_participants():
    sure = Maps.one_hot(Grid(3), [0] * 9, segments=2)
    unsure = Maps(Grid(3), np.full((9, 2), 0.5))
    mean, error = metrics.mean_entropy([sure, unsure, unsure, sure])
    assert mean == pytest.approx(np.log(2) / 2)
    assert error == pytest.approx(np.log(2) / np.sqrt(12))
    assert np.isnan(metrics.mean_entropy([sure]).standard_error)
    with pytest.raises(InvalidInput, match="at least one"):
        metrics.mean_entropy([])


@pytest.mark.parametrize("score", SCORES)
def test_maps_on_another_layout_are_refused(score):
    with pytest.raises(InvalidInput, match=r"a 4x4 grid, the truth on a 3x3 grid.*resample"):
        score(random_maps(Grid(4), 2, 0), random_maps(Grid(3), 2, 0))


def test_scattered_layouts_are_scored_too():
    layout = Scatter(np.random.default_rng(0).random((30, 2)))
    scores = metrics.evaluate(random_maps(layout, 3, 0), random_maps(layout, 2, 1))
    assert np.isfinite(list(scores.values())).all()


@given(st.integers(0, 2**32 - 1), st.floats(0, 6))
def test_as_many_pixels_are_matched_as_possible(seed, distance_px):
    """The reference is the assignment with the fewest pairs beyond the distance."""
    rng = np.random.default_rng(seed)
    one, other = (rng.random((12, 12)) < rng.uniform(0.05, 0.5) for _ in range(2))
    one[0, 0] = other[0, 0] = True
    apart = np.linalg.norm(np.argwhere(one)[:, None] - np.argwhere(other), axis=2)
    too_far = apart > distance_px
    assert metrics._count_matches(one, other, distance_px) == (~too_far[linear_sum_assignment(too_far)]).sum()


def test_long_lines_side_by_side_are_matched_at_once():
    """SciPy's maximum_bipartite_matching takes 37 s for these two lines, and more than 8 minutes for others."""
    drawn = [
        (93, 255), (100, 198), (113, 171), (116, 131), (120, 124), (135, 114), (145, 97), (157, 86), (170, 52),
        (176, 48), (200, 42), (222, 27), (241, 39), (256, 41),
    ]  # fmt: skip
    border = [
        (92, 256),
        (99, 210),
        (114, 154),
        (141, 94),
        (161, 62),
        (173, 48),
        (194, 37),
        (215, 34),
        (256, 40),
    ]
    masks = [Contours([line], width_px=256, height_px=256).rasterise(256, 256) for line in (drawn, border)]
    assert metrics.boundary_scores(*masks, tolerance=0.032).f > 0.9
