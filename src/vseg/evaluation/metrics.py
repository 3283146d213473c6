"""How close maps come to the truth, or two sets of maps to each other.

Labels are arbitrary, so maps are aligned to the truth first (`Maps.aligned_to`; for `label_accuracy`, by their
labels) and no score depends on their order. Entropies and the variation of information are in nats.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

BSDS_TOLERANCE = 0.0075
RENDERED_PX = 256


class BoundaryScores(NamedTuple):
    """Shares of boundary pixels that found a partner, and their harmonic mean."""

    precision: float
    recall: float
    f: float


class MeanEntropy(NamedTuple):
    """The mean over maps of their mean entropy in nats, and its standard error."""

    mean: float
    standard_error: float


def mae(maps: Maps, truth: Maps) -> float:
    """The L1 distance of the two rows of a location, averaged over locations: 0 to 2.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> mae(truth.permuted([1, 0]), truth)
    0.0
    """
    _same_layout(maps, truth)
    return maps.distance_to(truth)


def mae_per_entry(maps: Maps, truth: Maps) -> float:
    """`mae` divided by K, the error of one probability, as in the percentages of the paper's S4.

    Examples
    --------
    >>> from vseg import Grid
    >>> mae_per_entry(Maps(Grid(3), np.full((9, 2), 0.5)), Maps.one_hot(Grid(3), [0] * 9, segments=2))
    0.5
    """
    return mae(maps, truth) / max(maps.segments, truth.segments)


def label_accuracy(maps: Maps, truth: Maps) -> float:
    """The share of locations whose most probable segment is the truth's, under the best matching of labels.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> label_accuracy(Maps.one_hot(Grid(3), [1, 1, 1, 0, 0, 0, 1, 1, 1]), truth)
    0.6666666666666666
    """
    from scipy.optimize import linear_sum_assignment

    both = _overlaps(maps, truth)
    return float(both[linear_sum_assignment(both, maximize=True)].sum() / both.sum())


def adjusted_rand_index(maps: Maps, truth: Maps) -> float:
    """Agreement of the two segmentations about pairs: 1 if equal, 0 on average by chance.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> adjusted_rand_index(truth, truth)
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    _same_layout(maps, truth)
    return float(adjusted_rand_score(truth.labels, maps.labels))


def variation_of_information(maps: Maps, truth: Maps) -> float:
    """H(A|B) + H(B|A) of the two segmentations, in nats (Meilă 2007); 0 if equal, at most log n.

    BSDS tables and scikit-image give bits: divide by log 2 to compare.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> round(variation_of_information(Maps.one_hot(Grid(4), [0, 1] * 8), truth), 4)  # 2 log 2
    1.3863
    """
    both = _overlaps(maps, truth) / len(truth.layout)
    return max(2 * _entropy(both) - _entropy(both.sum(axis=0)) - _entropy(both.sum(axis=1)), 0.0)


def covering(maps: Maps, truth: Maps) -> float:
    """The overlap (intersection over union) of each true segment with its best match, weighted by size.

    Arbeláez et al. (2011); a segment here is a label, in one piece or several.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> covering(Maps.one_hot(Grid(4), [0] * 16), truth)
    0.5
    """
    both = _overlaps(maps, truth)
    union = both.sum(axis=0) + both.sum(axis=1, keepdims=True) - both
    best = (both / union).max(axis=0)
    return float(best @ both.sum(axis=0) / both.sum())


def boundary_scores(
    image: ArrayLike, truth: ArrayLike, *, tolerance: float = BSDS_TOLERANCE
) -> BoundaryScores:
    """Precision, recall and F of one image's boundaries against another's, as in the BSDS benchmark.

    Boundary pixels are matched one to one within the tolerance, as many as possible. Two images without
    boundaries agree (1); if only one has none, all scores are 0.

    Parameters
    ----------
    image, truth : array_like, shape (height, width)
        Whole numbers are labels, whose thin boundaries are taken; a boolean array is a mask of contours,
        which is thinned.
    tolerance : float
        As a fraction of the image's diagonal.

    Examples
    --------
    >>> column = np.arange(100) + np.zeros((100, 1))
    >>> boundary_scores((column < 50).astype(int), (column < 51).astype(int))  # 1 pixel apart, 1.06 allowed
    BoundaryScores(precision=1.0, recall=1.0, f=1.0)
    """
    found, wanted = _contours(image), _contours(truth)
    if found.shape != wanted.shape:
        raise InvalidInput(
            f"Both images must have one size; the first has shape {found.shape}, the truth {wanted.shape}: "
            "render them alike."
        )
    if not 0 <= tolerance <= 1:
        raise InvalidInput(
            f"The tolerance is a fraction of the image's diagonal from 0 to 1, got {tolerance}; "
            f"the BSDS benchmark takes {BSDS_TOLERANCE}."
        )
    if not found.any() or not wanted.any():
        perfect = float(not found.any() and not wanted.any())
        return BoundaryScores(perfect, perfect, perfect)
    matched = _matched(found, wanted, tolerance * float(np.hypot(*found.shape)))
    precision, recall = matched / found.sum(), matched / wanted.sum()
    return BoundaryScores(float(precision), float(recall), float(2 * matched / (found.sum() + wanted.sum())))


def boundaries(maps: Maps, truth: Maps, *, tolerance: float = BSDS_TOLERANCE) -> BoundaryScores:
    """`boundary_scores` of two segmentations, rendered to 256×256 pixels without interpolation.

    A grid of 16 locations a side has cells of 16 pixels there, and the BSDS tolerance is 2.7 pixels: a
    boundary that is off by one location does not match. A tolerance of 1 / N forgives a cell.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> late = Maps.one_hot(Grid(4), [0] * 12 + [1] * 4)
    >>> boundaries(late, truth).f, boundaries(late, truth, tolerance=1 / 4).f
    (0.0, 1.0)
    """
    _same_layout(maps, truth)
    cells = _pixels(truth.layout)
    return boundary_scores(maps.labels[cells], truth.labels[cells], tolerance=tolerance)


def mean_entropy(maps: Sequence[Maps]) -> MeanEntropy:
    """The mean entropy of several maps, such as one a participant, with its standard error over them.

    Examples
    --------
    >>> from vseg import Grid
    >>> sure = Maps.one_hot(Grid(3), [0] * 9, segments=2)
    >>> unsure = Maps(Grid(3), np.full((9, 2), 0.5))
    >>> round(mean_entropy([sure, unsure]).mean, 4)
    0.3466
    """
    if not len(maps):
        raise InvalidInput("A mean entropy needs at least one set of maps, got none.")
    each = np.array([one.mean_entropy for one in maps])
    error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    return MeanEntropy(float(each.mean()), float(error))


def entropy_error(maps: Maps, truth: Maps) -> float:
    """The mean over locations of the absolute difference of the two entropies, in nats.

    Examples
    --------
    >>> from vseg import Grid
    >>> sure, unsure = Maps.one_hot(Grid(3), [0] * 9, segments=2), Maps(Grid(3), np.full((9, 2), 0.5))
    >>> round(entropy_error(unsure, sure), 4)
    0.6931
    """
    _same_layout(maps, truth)
    return float(np.abs(maps.entropy - truth.entropy).mean())


def evaluate(maps: Maps, truth: Maps) -> dict[str, float]:
    """Every score of these maps against the truth, in a fixed order.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> evaluate(truth, truth)["label_accuracy"]
    1.0
    """
    boundary = boundaries(maps, truth)
    return {
        "mae": mae(maps, truth),
        "mae_per_entry": mae_per_entry(maps, truth),
        "label_accuracy": label_accuracy(maps, truth),
        "adjusted_rand_index": adjusted_rand_index(maps, truth),
        "variation_of_information": variation_of_information(maps, truth),
        "covering": covering(maps, truth),
        "boundary_precision": boundary.precision,
        "boundary_recall": boundary.recall,
        "boundary_f": boundary.f,
        "mean_entropy": maps.mean_entropy,
        "true_mean_entropy": truth.mean_entropy,
        "entropy_error": entropy_error(maps, truth),
        "segments_won": float(maps.winning),
        "true_segments_won": float(truth.winning),
    }


def _same_layout(maps: Maps, truth: Maps) -> None:
    if maps.layout != truth.layout:
        raise InvalidInput(
            f"The maps lie on {maps.layout}, the truth on {truth.layout}: bring one onto the other's layout "
            "with Maps.resampled first."
        )


def _overlaps(maps: Maps, truth: Maps) -> NDArray[np.float64]:
    """How many locations have each label in the maps (rows) and in the truth (columns), both in use."""
    _same_layout(maps, truth)
    table = np.zeros((maps.segments, truth.segments))
    np.add.at(table, (maps.labels, truth.labels), 1)
    return table[table.any(axis=1)][:, table.any(axis=0)]


def _entropy(p: NDArray[np.float64]) -> float:
    return -float(np.sum(p * np.log(np.where(p > 0, p, 1))))


def _pixels(layout: Layout) -> NDArray[np.int64]:
    """The location of every rendered pixel; a pixel a location at least on fine grids."""
    side = max(RENDERED_PX, int(np.ceil(np.sqrt(len(layout)))))
    return layout.cells(side, side)


def _contours(image: ArrayLike) -> NDArray[np.bool_]:
    """A thin mask: of labels, the pixels whose right, lower or lower right neighbour differs."""
    given = np.asarray(image)
    if given.ndim != 2 or given.dtype.kind not in "biu":
        raise InvalidInput(
            "Expected an image of labels (whole numbers) or a mask of contours (boolean) of shape "
            f"(height, width), got {given.dtype} of shape {given.shape}."
        )
    if given.dtype.kind == "b":
        from skimage.morphology import skeletonize

        return skeletonize(given)
    padded = np.pad(given, ((0, 1), (0, 1)), mode="edge")
    return (given != padded[:-1, 1:]) | (given != padded[1:, :-1]) | (given != padded[1:, 1:])


def _matched(found: NDArray[np.bool_], wanted: NDArray[np.bool_], reach_px: float) -> int:
    """The size of the largest one-to-one matching of pixels no farther apart than that."""
    from scipy.sparse.csgraph import maximum_bipartite_matching
    from scipy.spatial import cKDTree

    one, other = cKDTree(np.argwhere(found)), cKDTree(np.argwhere(wanted))
    near = one.sparse_distance_matrix(other, reach_px, output_type="coo_matrix")
    near.data[:] = 1  # pixels on the same spot are 0 apart, which a sparse matrix would take for none
    return int((maximum_bipartite_matching(near.tocsr()) >= 0).sum())
