"""Scores of maps against the truth, or of two sets of maps against each other.

Labels are arbitrary, so maps are aligned to the truth first (`Maps.align_to`; for `label_accuracy`, by their
labels), and no score depends on the order of labels. Entropies and the variation of information are in nats.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

__all__ = [
    "BSDS_TOLERANCE",
    "BoundaryScores",
    "MeanEntropy",
    "adjusted_rand_index",
    "boundaries",
    "boundary_scores",
    "covering",
    "entropy_error",
    "evaluate",
    "find_boundaries",
    "label_accuracy",
    "mae",
    "mae_per_entry",
    "mean_entropy",
    "variation_of_information",
]

BSDS_TOLERANCE = 0.0075
RENDERED_PX = 256


class BoundaryScores(NamedTuple):
    """The shares of boundary pixels that were matched, and their harmonic mean."""

    precision: float
    recall: float
    f: float


class MeanEntropy(NamedTuple):
    """The mean over maps of their mean entropy in nats, and its standard error."""

    mean: float
    standard_error: float


def mae(maps: Maps, truth: Maps) -> float:
    """Return the L1 distance between the probabilities at a location, averaged over locations: 0 to 2.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        From 0 to 2.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> mae(truth.permute([1, 0]), truth)
    0.0
    """
    _check_same_layout(maps, truth)
    return maps.distance_to(truth)


def mae_per_entry(maps: Maps, truth: Maps) -> float:
    """Return `mae` divided by K, the mean error of one probability, as in the percentages of the paper's S4.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        From 0 to 1 for two segments, less for more.

    Examples
    --------
    >>> from vseg import Grid
    >>> mae_per_entry(Maps(Grid(3), np.full((9, 2), 0.5)), Maps.one_hot(Grid(3), [0] * 9, segments=2))
    0.5
    """
    return mae(maps, truth) / max(maps.segments, truth.segments)


def label_accuracy(maps: Maps, truth: Maps) -> float:
    """Return the share of locations with the true most probable segment, under the best matching of labels.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> label_accuracy(Maps.one_hot(Grid(3), [1, 1, 1, 0, 0, 0, 1, 1, 1]), truth)
    0.6666666666666666
    """
    from scipy.optimize import linear_sum_assignment

    table = _overlaps(maps, truth)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


def adjusted_rand_index(maps: Maps, truth: Maps) -> float:
    """Return the adjusted Rand index of two segmentations: 1 if equal, 0 on average by chance.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> adjusted_rand_index(truth, truth)
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    _check_same_layout(maps, truth)
    return float(adjusted_rand_score(truth.labels, maps.labels))


def variation_of_information(maps: Maps, truth: Maps) -> float:
    """Return H(A|B) + H(B|A) of two segmentations in nats (Meilă 2007): 0 if equal, at most log n.

    BSDS tables and scikit-image use bits: divide by log 2 to compare.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> round(variation_of_information(Maps.one_hot(Grid(4), [0, 1] * 8), truth), 4)  # 2 log 2
    1.3863
    """
    joint = _overlaps(maps, truth) / len(truth.layout)
    return max(2 * _entropy(joint) - _entropy(joint.sum(axis=0)) - _entropy(joint.sum(axis=1)), 0.0)


def covering(maps: Maps, truth: Maps) -> float:
    """Return the overlap (intersection over union) of each true segment with its best match, weighted by size.

    As in Arbeláez et al. (2011); all locations with one label are one segment, connected or not.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> covering(Maps.one_hot(Grid(4), [0] * 16), truth)
    0.5
    """
    table = _overlaps(maps, truth)
    union = table.sum(axis=0) + table.sum(axis=1, keepdims=True) - table
    best = (table / union).max(axis=0)
    return float(best @ table.sum(axis=0) / table.sum())


def boundary_scores(
    image: ArrayLike, truth: ArrayLike, *, tolerance: float = BSDS_TOLERANCE
) -> BoundaryScores:
    """Return precision, recall and F of an image's boundaries against another's, as in the BSDS benchmark.

    As many boundary pixels as possible are matched one to one within the tolerance. Two images without boundaries
    score 1; if only one has none, all scores are 0.

    Parameters
    ----------
    image, truth : array_like, shape (height, width)
        Labels as whole numbers, whose boundaries are used, or a boolean mask of contours, which is thinned.
    tolerance : float
        Largest distance of a match, as a fraction of the image's diagonal.

    Returns
    -------
    BoundaryScores
        Precision, recall and their harmonic mean F.

    Examples
    --------
    >>> column = np.arange(100) + np.zeros((100, 1))
    >>> boundary_scores((column < 50).astype(int), (column < 51).astype(int))  # 1 pixel apart, 1.06 allowed
    BoundaryScores(precision=1.0, recall=1.0, f=1.0)
    """
    predicted, true = _extract_contours(image), _extract_contours(truth)
    if predicted.shape != true.shape:
        raise InvalidInput(
            f"Both images must have the same size; the first has shape {predicted.shape}, the truth {true.shape}: "
            "render them at one size."
        )
    if not 0 <= tolerance <= 1:
        raise InvalidInput(
            f"The tolerance is a fraction of the image's diagonal from 0 to 1, got {tolerance}; "
            f"the BSDS benchmark uses {BSDS_TOLERANCE}."
        )
    if not predicted.any() or not true.any():
        perfect = float(not predicted.any() and not true.any())
        return BoundaryScores(perfect, perfect, perfect)
    matched = _count_matches(predicted, true, tolerance * float(np.hypot(*predicted.shape)))
    precision, recall = matched / predicted.sum(), matched / true.sum()
    f = 2 * matched / (predicted.sum() + true.sum())
    return BoundaryScores(float(precision), float(recall), float(f))


def boundaries(maps: Maps, truth: Maps, *, tolerance: float = BSDS_TOLERANCE) -> BoundaryScores:
    """Return the `boundary_scores` of two segmentations, rendered at 256×256 pixels without interpolation.

    With 16 locations a side, a cell has 16 pixels and the BSDS tolerance is 2.7 pixels: a boundary that is off by one
    location does not match. A tolerance of 1 / N allows an error of one cell.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.
    tolerance : float
        Largest distance of a match, as a fraction of the image's diagonal.

    Returns
    -------
    BoundaryScores
        Precision, recall and their harmonic mean F.

    Examples
    --------
    >>> from vseg import Grid
    >>> truth = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> late = Maps.one_hot(Grid(4), [0] * 12 + [1] * 4)
    >>> boundaries(late, truth).f, boundaries(late, truth, tolerance=1 / 4).f
    (0.0, 1.0)
    """
    _check_same_layout(maps, truth)
    cells = _render_locations(truth.layout)
    return boundary_scores(maps.labels[cells], truth.labels[cells], tolerance=tolerance)


def find_boundaries(labels: ArrayLike) -> NDArray[np.bool_]:
    """Return a mask of the boundaries between labels: the pixels whose right, lower or lower right neighbour differs.

    Parameters
    ----------
    labels : array_like, shape (height, width)
        Labels as whole numbers.

    Returns
    -------
    numpy.ndarray of bool, shape (height, width)
        Oblique boundaries are two pixels wide; `boundary_scores` thins a mask before it matches pixels.

    Examples
    --------
    >>> find_boundaries([[0, 0, 1, 1]]).astype(int)
    array([[0, 1, 0, 0]])
    """
    pixels = np.asarray(labels)
    if pixels.ndim != 2 or pixels.dtype.kind not in "iu":
        raise InvalidInput(
            f"Expected labels (whole numbers) of shape (height, width), got {pixels.dtype} of shape {pixels.shape}."
        )
    padded = np.pad(pixels, ((0, 1), (0, 1)), mode="edge")
    return (pixels != padded[:-1, 1:]) | (pixels != padded[1:, :-1]) | (pixels != padded[1:, 1:])


def mean_entropy(maps: Sequence[Maps]) -> MeanEntropy:
    """Return the mean entropy of several maps, such as one for each participant, with its standard error.

    Parameters
    ----------
    maps : sequence of Maps
        At least one.

    Returns
    -------
    MeanEntropy
        The mean, and its standard error, which is NaN for one set of maps.

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
    entropies = np.array([each.mean_entropy for each in maps])
    error = entropies.std(ddof=1) / np.sqrt(len(entropies)) if len(entropies) > 1 else np.nan
    return MeanEntropy(float(entropies.mean()), float(error))


def entropy_error(maps: Maps, truth: Maps) -> float:
    """Return the mean over locations of the absolute difference of the two entropies, in nats.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> from vseg import Grid
    >>> sure, unsure = Maps.one_hot(Grid(3), [0] * 9, segments=2), Maps(Grid(3), np.full((9, 2), 0.5))
    >>> round(entropy_error(unsure, sure), 4)
    0.6931
    """
    _check_same_layout(maps, truth)
    return float(np.abs(maps.entropy - truth.entropy).mean())


def evaluate(maps: Maps, truth: Maps) -> dict[str, float]:
    """Return every score of these maps against the truth, in a fixed order.

    Parameters
    ----------
    maps, truth : Maps
        On the same layout.

    Returns
    -------
    dict
        The scores by name.

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
        "segments_won": float(maps.segments_won),
        "true_segments_won": float(truth.segments_won),
    }


def _check_same_layout(maps: Maps, truth: Maps) -> None:
    if maps.layout != truth.layout:
        raise InvalidInput(
            f"The maps are on {maps.layout}, the truth on {truth.layout}: bring one onto the other's layout "
            "with Maps.resample first."
        )


def _overlaps(maps: Maps, truth: Maps) -> NDArray[np.float64]:
    """Return the number of locations with each label of the maps (rows) and of the truth (columns)."""
    _check_same_layout(maps, truth)
    table = np.zeros((maps.segments, truth.segments))
    np.add.at(table, (maps.labels, truth.labels), 1)
    return table[table.any(axis=1)][:, table.any(axis=0)]


def _entropy(p: NDArray[np.float64]) -> float:
    return -float(np.sum(p * np.log(np.where(p > 0, p, 1))))


def _render_locations(layout: Layout) -> NDArray[np.int64]:
    """Return the location of every rendered pixel, with at least one pixel per location."""
    side = max(RENDERED_PX, int(np.ceil(np.sqrt(len(layout)))))
    return layout.cells(side, side)


def _extract_contours(image: ArrayLike) -> NDArray[np.bool_]:
    """Return the mask of contours, thinned, or the boundaries of labels."""
    pixels = np.asarray(image)
    if pixels.ndim != 2 or pixels.dtype.kind not in "biu":
        raise InvalidInput(
            "Expected an image of labels (whole numbers) or a mask of contours (boolean) of shape "
            f"(height, width), got {pixels.dtype} of shape {pixels.shape}."
        )
    if pixels.dtype.kind == "b":
        from skimage.morphology import skeletonize

        return skeletonize(pixels)
    return find_boundaries(pixels)


def _count_matches(predicted: NDArray[np.bool_], true: NDArray[np.bool_], distance_px: float) -> int:
    """Return the size of the largest one-to-one matching of pixels within this distance."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow
    from scipy.spatial import cKDTree

    one, other = np.argwhere(predicted), np.argwhere(true)
    near = cKDTree(one).sparse_distance_matrix(cKDTree(other), distance_px, output_type="ndarray")
    # A flow from a source through the pixels of one and the other to a sink, one unit through each pixel: SciPy's
    # maximum_bipartite_matching takes minutes for some long lines that run side by side.
    first, second = np.arange(len(one)), len(one) + np.arange(len(other))
    source, sink = len(one) + len(other), len(one) + len(other) + 1
    start = np.concatenate([near["i"], np.full(len(one), source), second])
    end = np.concatenate([len(one) + near["j"], first, np.full(len(other), sink)])
    capacity = csr_array((np.ones(len(start), np.int32), (start, end)), shape=(sink + 1, sink + 1))
    return int(maximum_flow(capacity, source, sink, method="dinic").flow_value)
