"""Priors: what maps are like before any answer, as covariances of their log-odds over the locations.

A prior is a short list of covariances C to choose from, each of unit diagonal, and of scales s; the evidence chooses
one of each. `spatial` knows distances alone. `image` also knows the picture: it puts image features into a perceptual
measurement, so it is an option, never the default, and the spatial map is kept beside it. `group` knows other
people's maps. `given` takes a covariance of your own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.bayes.covariance_roots import KERNELS, root_of, spatial_root, squared_distances
from vseg.bayes.model import Root
from vseg.data.layout import Layout, as_floats
from vseg.data.maps import Maps
from vseg.errors import InvalidInput

LENGTHS = (1 / 9.5, 1 / 6.8, 1 / 4.8, 1 / 3.4, 1 / 2.4)  # of the image's side
SCALES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5, 11.0)
GUIDED_SCALES = (1.0, 1.5, 2.2, 3.3, 5.0, 7.5)
USUAL_LENGTH, LENGTH_SPREAD = 1 / 4.8, 0.6  # a priori, of the image's side, and the spread of its logarithm
USUAL_SCALE, SCALE_SPREAD = 3.0, 1.2
GROUP_SHARE = 0.6
FLOOR = 1e-3  # of a probability whose logarithm is taken


class Covariance(NamedTuple):
    """One candidate: what kind it is, its length in cells where it has one (else NaN), and its root."""

    kind: str
    length: float
    root: Root


class Place(NamedTuple):
    """Where in a prior's grid: which kind of covariance, which length, which scale."""

    kind: int
    length: int
    scale: int


@dataclass(frozen=True, eq=False)
class Prior:
    """Covariances and scales s to choose from; `spatial`, `image`, `group` and `given` make one.

    Attributes
    ----------
    families : tuple of tuples of Covariance
        Kinds of covariance, all with the same lengths, rising.
    scales : tuple of float, rising
    usual : float
        The scale to expect before any answer.
    """

    name: str
    layout: Layout
    families: tuple[tuple[Covariance, ...], ...]
    scales: tuple[float, ...]
    usual: float = USUAL_SCALE

    @property
    def start(self) -> Place:
        """Where a search begins: the first kind, the length in the middle, and the scale closest to the usual."""
        closest = int(np.argmin(np.abs(np.log(np.array(self.scales) / self.usual))))
        return Place(0, len(self.families[0]) // 2, closest)

    def belief(self, place: Place) -> float:
        """Log prior of a place: few answers leave scale and length open, and flat or endless maps are seldom right."""
        side = np.sqrt(len(self.layout))
        length = self.families[place.kind][place.length].length / side
        scale = self.scales[place.scale]
        away = 0.0 if np.isnan(length) else np.log(length / USUAL_LENGTH) / LENGTH_SPREAD
        return float(-(away**2) / 2 - (np.log(scale / self.usual) / SCALE_SPREAD) ** 2 / 2)

    def around(self, place: Place, stride: int = 1) -> list[Place]:
        """The places next to one: other kinds, other lengths, and scales a stride away."""
        kind, length, scale = place
        near = [Place(other, length, scale) for other in range(len(self.families)) if other != kind]
        near += [Place(kind, length + step, scale) for step in (-1, 1)]
        near += [Place(kind, length, scale + step) for step in (-stride, stride)]
        lengths, scales = len(self.families[0]), len(self.scales)
        return [one for one in near if 0 <= one.length < lengths and 0 <= one.scale < scales]


def spatial(
    layout: Layout,
    *,
    kernel: str | Sequence[str] = ("rbf", "rough"),
    lengths: Sequence[float] = LENGTHS,
    scales: Sequence[float] = SCALES,
) -> Prior:
    """Near locations are alike: smooth fields, or smooth ones with rough details, whichever the answers support.

    Parameters
    ----------
    kernel : one or several of "rbf", "rough", "matern32", "matern52"
        exp(-d²/2ξ²); the same with 15 % of the variance at ξ/2.5, for sharp borders; Matérn's.
    lengths : the ξ to choose from, as fractions of the image's side
    scales : the s to choose from: standard deviations of the log-odds

    Examples
    --------
    >>> from vseg import Grid
    >>> [round(each.length, 1) for each in spatial(Grid(11), lengths=[0.1, 0.2]).families[0]]
    [1.1, 2.2]
    """
    kinds = (kernel,) if isinstance(kernel, str) else tuple(kernel)
    for kind in kinds:
        if kind not in KERNELS:
            raise InvalidInput(f"Unknown kernel {kind!r}; choose from {', '.join(KERNELS)}.")
    sizes = _positive(lengths, "lengths")
    side = float(np.sqrt(len(layout)))
    found = tuple(
        tuple(Covariance(kind, size * side, spatial_root(layout, kind, size)) for size in sizes)
        for kind in kinds
    )
    return Prior("spatial", layout, found, _positive(scales, "scales"))


def image(layout: Layout, picture: ArrayLike, *, scales: Sequence[float] = GUIDED_SCALES) -> Prior:
    """Locations are alike that are near each other and look alike, with no contour between them.

    Half of the covariance is exp(-d²/2·6²)·exp(-|ΔF|²/2·15²), with d in sixteenths of the image's side and F the
    mean L*, a*, b* and 8·log(1 + contrast) of a cell; the other half is a random walk among neighbours that seldom
    crosses where F changes.

    Parameters
    ----------
    picture : (H, W) or (H, W, 3) uint8
    """
    features = _appearance(picture, layout)
    away = squared_distances(16 * layout.positions)
    alike = np.exp(-away / (2 * 6**2) - squared_distances(features) / (2 * 15**2))
    mixed = 0.5 * alike + 0.5 * _walk(layout, features)
    return Prior(
        "image", layout, ((Covariance("image", np.nan, root_of(mixed)),),), _positive(scales, "scales")
    )


def group(
    layout: Layout,
    others: Any,
    *,
    share: float = GROUP_SHARE,
    base: Prior | None = None,
) -> Prior:
    """What others see, or else the `base` alone (spatial by default): the evidence chooses.

    Locations are alike whose log-odds are alike in the others' maps: share·FFᵀ + (1 - share)·C, with F the log-odds
    (n, K), centred, and C the base. Unlike the probability that two locations lie in one segment, FFᵀ keeps how far
    from a border a location lies, and does not hold that all of a segment is equally certain.

    Parameters
    ----------
    others : Maps or a list of Maps
    share : float, between 0 and 1

    Examples
    --------
    >>> from vseg import Grid
    >>> halves = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)
    >>> [family[0].kind for family in group(Grid(4), halves).families]
    ['group', 'rbf', 'rough']
    """
    if not 0 < share < 1:
        raise InvalidInput(f"The group's share of the prior lies between 0 and 1, got {share!r}.")
    shared = _alike(layout, others)
    base = spatial(layout) if base is None else base
    family = tuple(
        Covariance("group", length, root_of(share * shared + (1 - share) * (root.tall @ root.wide)))
        for _, length, root in base.families[0]
    )
    return Prior("group", layout, (family, *base.families), base.scales, base.usual)


def given(layout: Layout, covariance: ArrayLike, *, scales: Sequence[float] | None = None) -> Prior:
    """A covariance (n, n) of your own: symmetric, without negative eigenvalues.

    By default its size is taken as it is (times s² for s around 1); give `scales` to choose from others.
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
    sizes = _positive((0.4, 0.6, 1.0, 1.6, 2.5) if scales is None else scales, "scales")
    return Prior("given", layout, ((Covariance("given", np.nan, root_of(matrix)),),), sizes, 1.0)


def prior_of(prior: Any, layout: Layout, picture: Any = None, others: Any = None) -> Prior:
    """A prior by its name, from a matrix, or as it is; the picture and the others' maps where it needs them."""
    if isinstance(prior, Prior):
        if prior.layout != layout:
            raise InvalidInput(f"The prior is for {prior.layout}, but the answers are about {layout}.")
        return prior
    if not isinstance(prior, str):
        return given(layout, prior)
    if prior != "image" and picture is not None:
        raise InvalidInput(f"The picture is for the prior 'image', got it with {prior!r}; leave it out.")
    if prior == "image" and picture is None:
        raise InvalidInput(
            "The prior 'image' needs the picture: image=array of shape (H, W) or (H, W, 3), uint8."
        )
    if prior == "group" and others is None:
        raise InvalidInput("The prior 'group' needs other people's maps: group=Maps, or a list of them.")
    if prior == "group":
        return group(layout, others)
    if prior == "image":
        return image(layout, picture)
    if prior == "spatial":
        return spatial(layout)
    raise InvalidInput(
        f"Unknown prior {prior!r}; choose spatial, image or group, or give a covariance matrix."
    )


def _alike(layout: Layout, others: Any) -> NDArray[np.float64]:
    """FFᵀ of the log-odds in other people's maps, centred, 1 on the diagonal on average."""
    listed = [others] if isinstance(others, Maps) else others
    if not (isinstance(listed, (list, tuple)) and listed and all(isinstance(each, Maps) for each in listed)):
        raise InvalidInput(f"A group is Maps, or a list of one or more Maps, got {others!r:.60}.")
    if any(each.layout != layout for each in listed):
        raise InvalidInput(f"The group's maps must lie on {layout}, as the answers do; resample them first.")
    odds = [np.log(np.maximum(each.probabilities, FLOOR)) for each in listed]
    centred = np.hstack([each - each.mean(axis=1, keepdims=True) for each in odds])
    shared = centred @ centred.T
    size = np.trace(shared)
    return np.asarray(shared * (len(layout) / size) if size > 0 else shared)


def _appearance(picture: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """(n, 4) L*, a*, b* and 8·log(1 + standard deviation of L*) of each cell."""
    from skimage.color import rgb2lab

    from vseg.features.pixels import as_image, cell_means

    colour = rgb2lab(as_image(picture))
    light = colour[:, :, 0]
    spread = np.maximum(cell_means(light**2, layout) - cell_means(light, layout) ** 2, 0)
    return np.hstack([cell_means(colour, layout), 8 * np.log1p(np.sqrt(spread))])


def _walk(layout: Layout, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L_w + 0.01 I)⁻¹ of the neighbours' graph, scaled to unit diagonal."""
    i, j = layout.neighbours.T
    weight = np.exp(-np.sum((features[i] - features[j]) ** 2, axis=1) / (2 * 10**2)) + 0.02
    joined = np.zeros((len(layout), len(layout)))
    joined[i, j] = joined[j, i] = weight
    spread = np.linalg.inv(np.diag(joined.sum(axis=1) + 0.01) - joined)
    side = np.sqrt(np.diag(spread))
    return spread / side[:, None] / side


def _positive(values: Sequence[float], what: str) -> tuple[float, ...]:
    found = np.sort(as_floats(values, what).ravel())
    if not found.size or not np.isfinite(found).all() or found[0] <= 0:
        raise InvalidInput(f"The prior's {what} are one or more numbers above 0, got {values!r:.80}.")
    return tuple(found.tolist())
