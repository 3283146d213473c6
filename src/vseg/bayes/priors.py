"""Priors: what maps are expected to look like before any answer, as covariances of their log-odds over the locations.

spatial           from distances alone
image             also from the image; this puts image features into a perceptual measurement, so it is an option,
                  never the default, and the spatial map is reported beside it
group             also from other participants' maps
from_covariance   from a covariance of your own
make_prior        any of these, from what `posterior` takes

A prior is a short list of covariances C, each of unit diagonal, and of scales s; the evidence chooses one of each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.bayes.coarse_grid import choose_layout
from vseg.bayes.covariance_roots import KERNELS, covariance_root, spatial_root, squared_distances
from vseg.bayes.model import CovarianceRoot
from vseg.bayes.spectra import (
    MAX_DETAIL,
    MAX_GROUP_SHARE,
    SpectralBasis,
    add_group,
    fixed_basis,
    spatial_basis,
)
from vseg.data.layout import Layout, as_floats
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

LENGTHS = (1 / 9.5, 1 / 6.8, 1 / 4.8, 1 / 3.4, 1 / 2.4)  # of the image's side
SCALES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5, 11.0)  # adaptive studies depend on these; replays need them unchanged
WIDE_SCALES = (*SCALES, 16.0, 24.0, 36.0)  # for near-certain participants
IMAGE_SCALES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5)
USUAL_LENGTH, LENGTH_SPREAD = (
    1 / 4.8,
    0.6,
)  # median of the image's side a priori, and the spread of its logarithm
USUAL_SCALE, SCALE_SPREAD = 3.0, 1.2
USUAL_DETAIL, SHARE_SPREAD = -1.0, 1.5  # logit of a share, as a part of the largest share
USUAL_GROUP_SHARE = 0.5
GROUP_SHARE, SMALL_GROUP_SHARE = 0.6, 0.02
DETAIL_SHARES = {"rbf": 0.01, "rough": 0.15}
FLOOR = 1e-3  # smallest probability whose logarithm is taken


class Covariance(NamedTuple):
    """One covariance: its kind, its length in cells (NaN if it has none), and its root."""

    kind: str
    length: float
    root: CovarianceRoot


class PriorIndex(NamedTuple):
    """A point of a prior's grid: the numbers of the kind of covariance, of the length and of the scale."""

    kind: int
    length: int
    scale: int


@dataclass(frozen=True, eq=False)
class Prior:
    """Covariances and scales s to choose from; made by `spatial`, `image`, `group` or `from_covariance`.

    Attributes
    ----------
    name : str
        "spatial", "image", "group" or "given".
    layout : Layout
    families : tuple of tuples of Covariance
        Kinds of covariance, all with the same lengths, in increasing order.
    scales : tuple of float
        In increasing order.
    usual_scale : float
        The scale to expect before any answer.
    usual_share : float
        The logit of the share of the second component to expect, as a part of the largest share.
    shares : dict
        The share of the second component for which each kind of covariance stands.
    max_share : float
        The largest share of the second component; 0 if there is none.
    make_basis : function
        Returns the basis in which chains sample scale, length and share, around a length in image sides.
    """

    name: str
    layout: Layout
    families: tuple[tuple[Covariance, ...], ...]
    scales: tuple[float, ...]
    usual_scale: float = USUAL_SCALE
    usual_share: float = USUAL_DETAIL
    shares: Mapping[str, float] = field(default_factory=dict)
    max_share: float = 0.0
    make_basis: Callable[[float], SpectralBasis] = field(kw_only=True)

    @property
    def has_length(self) -> bool:
        """Whether the covariances depend on a length."""
        return not np.isnan(self.families[0][0].length)

    @property
    def start(self) -> PriorIndex:
        """Where a search begins: the first kind, the middle length, and the scale closest to the usual one."""
        closest = int(np.argmin(np.abs(np.log(np.array(self.scales) / self.usual_scale))))
        return PriorIndex(0, len(self.families[0]) // 2, closest)

    def log_prior(self, index: PriorIndex) -> float:
        """Return the log prior of a point: few answers do not determine scale and length, and extremes are rare."""
        side = np.sqrt(len(self.layout))
        length = self.families[index.kind][index.length].length / side
        scale = self.scales[index.scale]
        away = 0.0 if np.isnan(length) else np.log(length / USUAL_LENGTH) / LENGTH_SPREAD
        return float(-(away**2) / 2 - (np.log(scale / self.usual_scale) / SCALE_SPREAD) ** 2 / 2)

    def neighbours(self, index: PriorIndex, stride: int = 1) -> list[PriorIndex]:
        """Return the points next to one: with another kind, another length, or a scale `stride` away."""
        kind, length, scale = index
        near = [PriorIndex(other, length, scale) for other in range(len(self.families)) if other != kind]
        near += [PriorIndex(kind, length + step, scale) for step in (-1, 1)]
        near += [PriorIndex(kind, length, scale + step) for step in (-stride, stride)]
        lengths, scales = len(self.families[0]), len(self.scales)
        return [point for point in near if 0 <= point.length < lengths and 0 <= point.scale < scales]


def spatial(
    layout: Layout,
    *,
    kernel: str | Sequence[str] = ("rbf", "rough"),
    lengths: Sequence[float] = LENGTHS,
    scales: Sequence[float] = SCALES,
) -> Prior:
    """Make a prior by which near locations are alike.

    Parameters
    ----------
    layout : Layout
    kernel : str or list of str
        "rbf": exp(-d²/2ξ²), smooth fields; "rough": the same with 15 % of the variance at ξ/2.5, for sharp borders;
        "matern32", "matern52": Matérn's. Of several, the evidence chooses one.
    lengths : list of float
        The lengths ξ to choose from, as fractions of the image's side.
    scales : list of float
        The scales s to choose from: standard deviations of the log-odds.

    Returns
    -------
    Prior

    Examples
    --------
    >>> from vseg import Grid
    >>> [round(covariance.length, 1) for covariance in spatial(Grid(11), lengths=[0.1, 0.2]).families[0]]
    [1.1, 2.2]
    """
    kinds = (kernel,) if isinstance(kernel, str) else tuple(kernel)
    for kind in kinds:
        if kind not in KERNELS:
            raise InvalidInput(f"Unknown kernel {kind!r}; choose from {', '.join(KERNELS)}.")
    fractions = _check_positive(lengths, "lengths")
    side = float(np.sqrt(len(layout)))
    families = tuple(
        tuple(Covariance(kind, length * side, spatial_root(layout, kind, length)) for length in fractions)
        for kind in kinds
    )
    base = next((kind for kind in kinds if kind not in DETAIL_SHARES), "rbf")
    return Prior(
        "spatial",
        layout,
        families,
        _check_positive(scales, "scales"),
        shares=DETAIL_SHARES if len(kinds) > 1 else {kind: DETAIL_SHARES.get(kind, 0.0) for kind in kinds},
        max_share=MAX_DETAIL,
        make_basis=partial(spatial_basis, layout, base),
    )


def image(layout: Layout, picture: ArrayLike, *, scales: Sequence[float] = IMAGE_SCALES) -> Prior:
    """Make a prior by which locations are alike that are near each other and look alike, with no contour between them.

    Half of the covariance is exp(-d²/2·6²)·exp(-|ΔF|²/2·15²), with d in sixteenths of the image's side and F the
    mean L*, a*, b* and 8·log(1 + contrast) of a cell; the other half is a random walk among neighbours that seldom
    crosses where F changes.

    Parameters
    ----------
    layout : Layout
    picture : (H, W) or (H, W, 3) uint8
        The image.
    scales : list of float
        The scales s to choose from: standard deviations of the log-odds.

    Returns
    -------
    Prior
    """
    features = _appearance(picture, layout)
    distances = squared_distances(16 * layout.positions)
    alike = np.exp(-distances / (2 * 6**2) - squared_distances(features) / (2 * 15**2))
    mixed = 0.5 * alike + 0.5 * _random_walk_covariance(layout, features)
    return Prior(
        "image",
        layout,
        ((Covariance("image", np.nan, covariance_root(mixed)),),),
        _check_positive(scales, "scales"),
        shares={"image": 0.0},
        make_basis=lambda _: fixed_basis(mixed),
    )


def group(
    layout: Layout,
    others: Maps | Sequence[Maps],
    *,
    share: float = GROUP_SHARE,
    base: Prior | None = None,
) -> Prior:
    """Make a prior by which locations are alike whose log-odds are alike in other participants' maps.

    The covariance is share·FFᵀ + (1 - share)·C, with F the log-odds (n, K), centred, and C the base. Unlike the
    probability that two locations lie in one segment, FFᵀ depends on how far from a border a location lies, and does
    not imply that all of a segment is equally certain. The evidence chooses between this and the base alone.

    Parameters
    ----------
    layout : Layout
    others : Maps or list of Maps
        Maps of other participants.
    share : float
        The share of the others in the covariance, between 0 and 1.
    base : Prior, optional
        The prior to mix with; spatial by default.

    Returns
    -------
    Prior

    Examples
    --------
    >>> from vseg import Grid
    >>> halves = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> [family[0].kind for family in group(Grid(4), halves).families]
    ['group', 'rbf', 'rough']
    """
    if not 0 < share < 1:
        raise InvalidInput(f"The group's share of the prior lies between 0 and 1, got {share!r}.")
    fields = _centred_log_odds(layout, others)
    shared = _mean_unit_covariance(fields)
    base = spatial(layout) if base is None else base
    family = tuple(
        Covariance("group", length, covariance_root(share * shared + (1 - share) * (root.tall @ root.wide)))
        for _, length, root in base.families[0]
    )
    return Prior(
        "group",
        layout,
        (family, *base.families),
        base.scales,
        base.usual_scale,
        USUAL_GROUP_SHARE,
        {"group": share, **dict.fromkeys(base.shares, SMALL_GROUP_SHARE)},
        MAX_GROUP_SHARE,
        make_basis=lambda length: add_group(base.make_basis(length), fields),
    )


def from_covariance(layout: Layout, covariance: ArrayLike, *, scales: Sequence[float] | None = None) -> Prior:
    """Make a prior from a covariance of your own.

    Parameters
    ----------
    layout : Layout
    covariance : (n, n)
        A symmetric matrix without negative eigenvalues.
    scales : list of float, optional
        The scales s to choose from; the covariance is multiplied by s². By default some around 1.

    Returns
    -------
    Prior
    """
    matrix = as_floats(covariance, "the prior's covariance")
    n = len(layout)
    if matrix.shape != (n, n):
        raise InvalidInput(f"A covariance over {layout} has shape ({n}, {n}), got {matrix.shape}.")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, atol=1e-8 * np.abs(matrix).max()):
        raise InvalidInput("A covariance is a symmetric matrix of finite numbers; this one is not.")
    least, largest = np.linalg.eigvalsh(matrix)[[0, -1]]
    if largest <= 0 or least < -1e-6 * largest:
        raise InvalidInput(
            "A covariance has no negative eigenvalues and one above 0; "
            f"this one's run from {least:.3g} to {largest:.3g}."
        )
    sizes = _check_positive((0.4, 0.6, 1.0, 1.6, 2.5) if scales is None else scales, "scales")
    family = (Covariance("given", np.nan, covariance_root(matrix)),)
    return Prior(
        "given",
        layout,
        (family,),
        sizes,
        1.0,
        shares={"given": 0.0},
        make_basis=lambda _: fixed_basis(matrix),
    )


def make_prior(
    prior: Prior | str | ArrayLike,
    layout: Layout,
    picture: ArrayLike | None = None,
    others: Maps | Sequence[Maps] | None = None,
    *,
    scales: Sequence[float] = SCALES,
    coarse: bool = False,
) -> Prior:
    """Make a prior from its name or from a covariance matrix, or return it if it is one already.

    Parameters
    ----------
    prior : Prior, "spatial", "image", "group", or (n, n) matrix
    layout : Layout
        The layout of the answers.
    picture : (H, W) or (H, W, 3) uint8, optional
        The image, for the prior "image" only.
    others : Maps or list of Maps, optional
        Maps of other participants, for the prior "group".
    scales : list of float
        The scales of a spatial or group prior.
    coarse : bool
        Whether a spatial or group prior may be on a coarse grid if there are many locations, see `coarse_grid`.

    Returns
    -------
    Prior
    """
    own_layout = choose_layout(layout) if coarse else layout
    if isinstance(prior, Prior):
        if prior.layout not in (layout, own_layout):
            raise InvalidInput(f"The prior is for {prior.layout}, but the answers are about {layout}.")
        return prior
    if not isinstance(prior, str):
        return from_covariance(layout, prior)
    if prior != "image" and picture is not None:
        raise InvalidInput(f"The picture is for the prior 'image', got it with {prior!r}; leave it out.")
    if prior == "spatial":
        return spatial(own_layout, scales=scales)
    if prior == "image":
        if picture is None:
            raise InvalidInput(
                "The prior 'image' needs the picture: image=array of shape (H, W) or (H, W, 3), uint8."
            )
        return image(layout, picture)
    if prior == "group":
        if others is None:
            raise InvalidInput(
                "The prior 'group' needs other participants' maps: group=Maps, or a list of them."
            )
        maps = _check_group(layout, others)
        if own_layout != layout:
            maps = [each.resample(own_layout) for each in maps]
        return group(own_layout, maps, base=spatial(own_layout, scales=scales))
    raise InvalidInput(
        f"Unknown prior {prior!r}; choose spatial, image or group, or give a covariance matrix."
    )


def _check_group(layout: Layout, others: Maps | Sequence[Maps]) -> Sequence[Maps]:
    listed = [others] if isinstance(others, Maps) else others
    if not (isinstance(listed, (list, tuple)) and listed and all(isinstance(maps, Maps) for maps in listed)):
        raise InvalidInput(f"A group is Maps, or a list of one or more Maps, got {others!r:.60}.")
    if any(maps.layout != layout for maps in listed):
        raise InvalidInput(
            f"The group's maps must lie on {layout}, as the answers do; use Maps.resample first."
        )
    return listed


def _centred_log_odds(layout: Layout, others: Maps | Sequence[Maps]) -> NDArray[np.float64]:
    """Return the centred log-odds (n, r) of other participants' maps, side by side."""
    log_odds = [np.log(np.maximum(maps.probabilities, FLOOR)) for maps in _check_group(layout, others)]
    return np.hstack([field - field.mean(axis=1, keepdims=True) for field in log_odds])


def _mean_unit_covariance(fields: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return FFᵀ for fields F (n, r), 1 on the diagonal on average."""
    shared = fields @ fields.T
    size = np.trace(shared)
    return np.asarray(shared * (len(fields) / size) if size > 0 else shared)


def _appearance(picture: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """Return L*, a*, b* and 8·log(1 + standard deviation of L*) of each cell, (n, 4)."""
    from skimage.color import rgb2lab

    from vseg.features.pixels import as_image, cell_means

    colour = rgb2lab(as_image(picture))
    light = colour[:, :, 0]
    spread = np.maximum(cell_means(light**2, layout) - cell_means(light, layout) ** 2, 0)
    return np.hstack([cell_means(colour, layout), 8 * np.log1p(np.sqrt(spread))])


def _random_walk_covariance(layout: Layout, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (L_w + 0.01 I)⁻¹ for the weighted Laplacian L_w of the neighbours' graph, scaled to unit diagonal."""
    i, j = layout.neighbours.T
    weight = np.exp(-np.sum((features[i] - features[j]) ** 2, axis=1) / (2 * 10**2)) + 0.02
    weights = np.zeros((len(layout), len(layout)))
    weights[i, j] = weights[j, i] = weight
    covariance = np.linalg.inv(np.diag(weights.sum(axis=1) + 0.01) - weights)
    deviation = np.sqrt(np.diag(covariance))
    return covariance / deviation[:, None] / deviation


def _check_positive(values: Sequence[float], name: str) -> tuple[float, ...]:
    numbers = np.sort(as_floats(values, name).ravel())
    if not numbers.size or not np.isfinite(numbers).all() or numbers[0] <= 0:
        raise InvalidInput(f"The prior's {name} are one or more numbers above 0, got {values!r:.80}.")
    return tuple(numbers.tolist())
