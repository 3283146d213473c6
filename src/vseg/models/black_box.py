"""Any function from an image to a segmentation, or from features to P(same), with a few settings to search.

A segmentation predicts P(same) as q = γ₀ + (1 - γ₀ - γ₁)·<p_i, p_j>, where p are the shares of each label in a
location's cell. The two lapse rates γ₀ and γ₁ are fitted for each setting, so that hard labels do not cost infinitely
much: γ₀ is how often 'same' is answered although the model says different, γ₁ the reverse.
"""

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Tally
from vseg.errors import InvalidInput
from vseg.features import FeatureSource, as_image, cell_means
from vseg.features.extraction import describe_features
from vseg.models.model_interface import check_predictions, picklable
from vseg.models.search import TRIALS, Ranges, initial_settings, minimise
from vseg.models.task import Task
from vseg.reconstruction.losses import EPS

SUM_TOLERANCE = 1e-3
MAX_LABELS = 10_000


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A segmentation function with its best settings.

    Attributes
    ----------
    get_maps : callable
        From an image's name to its Maps.
    settings : dict
        The settings with the lowest cost.
    lapses : (float, float)
        γ₀ and γ₁.
    cost : float
        The negative log-likelihood in nats.
    """

    get_maps: Callable[[str], Maps]
    settings: dict[str, Any]
    lapses: tuple[float, float]
    cost: float

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings and the lapse rates."""
        return {**self.settings, "slips": list(self.lapses)}

    def maps(self, image: str) -> Maps:
        """Return the maps of an image, without lapses."""
        return self.get_maps(image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image, with lapses."""
        low, high = self.lapses
        return low + (1 - low - high) * self.get_maps(image).same_probability(pairs)


@dataclass(frozen=True, eq=False)
class PairModel:
    """A function of features and pairs with its best settings; `cost` is in nats."""

    function: Callable[[str, Pairs], NDArray[np.float64]]
    parameters: dict[str, Any]
    cost: float

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image."""
        return self.function(image, pairs)


@picklable
def black_box(
    function: Callable[..., Any], search: Ranges | None = None, *, trials: int = TRIALS
) -> Callable[..., BlackBox]:
    """Return a family from a function that segments an image into labels (H, W), probabilities (H, W, K) or Maps.

    Parameters
    ----------
    function : callable
        `function(image, **settings)`; it also gets `segments` if it has an argument with that name.
    search : mapping, optional
        The ranges of its settings, such as `{"scale": (10.0, 1000.0), "sigma": [0, 1, 2]}`; by default the
        function's attribute `search`.
    trials : int
        Number of settings to try.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> BlackBox`.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.Maps.one_hot(vseg.Grid(4), [0, 0, 1, 1] * 4)
    >>> responses = vseg.simulate(truth, vseg.designs.all_pairs(truth.layout), seed=0)
    >>> ramp = np.tile(np.arange(0, 160, 10, dtype=np.uint8), (16, 1))
    >>> at = black_box(lambda image, level: image[:, :, 0] > level, {"level": (0, 150)})
    >>> fitted = at(Task(responses, {"image": ramp}), seed=0)
    >>> fitted.maps("image").distance_to(truth) < 0.2
    True
    """
    ranges = dict(getattr(function, "search", {}) if search is None else search)
    takes_segments = "segments" in argument_names(function)

    def fit(task: Task, *, seed: int) -> BlackBox:
        fixed = {"segments": task.segments} if takes_segments else {}

        shared_settings = initial_settings(ranges, trials)
        own_maps: dict[Hashable, NDArray[np.float64]] = {}

        def get_maps(image: str, settings: dict[str, Any]) -> Maps:
            """Return the maps; for settings that every fit tries, they are computed once for all folds."""
            key = (function, "maps", tuple({**settings, **fixed}.items()), image)

            def segment() -> NDArray[np.float64]:
                pixels = task.get_image(image)
                return to_location_probabilities(function(pixels, **fixed, **settings), pixels, task.layout)

            if settings in shared_settings:
                return Maps(task.layout, task.compute_once(key, segment))
            if key not in own_maps:
                own_maps[key] = segment()
            return Maps(task.layout, own_maps[key])

        tallies = task.tallies()
        same, count = _concatenate_counts(tallies)

        def fit_lapses(settings: dict[str, Any]) -> tuple[tuple[float, float], float]:
            q = [get_maps(name, settings).same_probability(tally.pairs) for name, tally in tallies.items()]
            return fit_lapse_rates(np.concatenate(q), same, count)

        settings, cost = minimise(lambda settings: fit_lapses(settings)[1], ranges, trials=trials, seed=seed)
        own_maps.clear()  # free the maps of the settings that were not chosen
        return BlackBox(partial(get_maps, settings=settings), settings, fit_lapses(settings)[0], cost)

    fit.__name__ = getattr(function, "__name__", "black_box")
    return fit


@picklable
def fixed_maps(maps: Mapping[str, Maps]) -> Callable[..., BlackBox]:
    """Return a family that predicts these maps, given by image name; only the lapse rates are fitted.

    Parameters
    ----------
    maps : mapping from image names to Maps
        The maps to predict.

    Returns
    -------
    callable
        A family, a function `(task, *, seed) -> fitted`.
    """

    def fit(task: Task, *, seed: int) -> BlackBox:
        tallies = task.tallies()
        if missing := sorted(set(tallies) - set(maps)):
            raise InvalidInput(
                f"There are no maps of image {missing[0]}; expected maps of every image with answers."
            )
        q = np.concatenate([maps[name].same_probability(tally.pairs) for name, tally in tallies.items()])
        return BlackBox(maps.__getitem__, {}, *fit_lapse_rates(q, *_concatenate_counts(tallies)))

    fit.__name__ = "fixed_maps"
    return fit


@picklable
def pair_model(
    function: Callable[..., ArrayLike],
    features: FeatureSource = "lab",
    search: Ranges | None = None,
    *,
    trials: int = TRIALS,
) -> Callable[..., PairModel]:
    """Return a family from a function `(features (n, D), pairs, **settings) -> P(same) (m,)`: Eq. 8 without maps.

    Parameters
    ----------
    function : callable
        The function.
    features : str, callable or mapping
        The features that it gets.
    search : mapping, optional
        The ranges of its settings; by default the function's attribute `search`.
    trials : int
        Number of settings to try.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """
    ranges = dict(getattr(function, "search", {}) if search is None else search)

    def fit(task: Task, *, seed: int) -> PairModel:
        def predict(image: str, pairs: Pairs, settings: dict[str, Any]) -> NDArray[np.float64]:
            return check_predictions(function(task.features(features, image), pairs, **settings), len(pairs))

        tallies = task.tallies()

        def cost(settings: dict[str, Any]) -> float:
            return sum(
                negative_log_likelihood(predict(name, tally.pairs, settings), tally.k, tally.n)
                for name, tally in tallies.items()
            )

        settings, value = minimise(cost, ranges, trials=trials, seed=seed)
        return PairModel(partial(predict, settings=settings), settings, value)

    fit.__name__ = f"{getattr(function, '__name__', 'pair_model')}[{describe_features(features)}]"
    return fit


def to_location_probabilities(segmentation: Any, image: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """Return (n, K) probabilities at each location: a segmentation's own, or the shares of labels in its cell."""
    if isinstance(segmentation, Maps):
        if segmentation.layout != layout:
            raise InvalidInput(f"Expected maps on {layout}, got maps on {segmentation.layout}.")
        return segmentation.probabilities
    values, size = np.asarray(segmentation), as_image(image).shape[:2]
    if values.ndim == 2 and values.shape == size:
        return _label_shares(values, layout)
    if values.ndim == 3 and values.shape[:2] == size:
        return Maps(layout, cell_means(_check_probabilities(values), layout)).probabilities
    if values.ndim == 2 and len(values) == len(layout):
        return Maps(layout, _check_probabilities(values)).probabilities
    raise InvalidInput(
        f"Expected labels (H, W), probabilities (H, W, K) or Maps of an image of {size[0]} x {size[1]} pixels, got "
        f"{f'an array of shape {values.shape}' if values.dtype != object else type(segmentation).__name__}."
    )


def fit_lapse_rates(
    alike: NDArray[np.float64], same: NDArray[np.float64], count: NDArray[np.float64]
) -> tuple[tuple[float, float], float]:
    """Fit the rates γ₀, γ₁ of q = γ₀ + (1 - γ₀ - γ₁)·alike to the answers; return them and the cost in nats.

    Half an answer of each kind is added at both ends, so that no rate is 0.
    """
    from scipy.optimize import minimize

    s, k, n = (np.append(each, more) for each, more in ((alike, (0, 1)), (same, (0.5, 0.5)), (count, (1, 1))))

    def cost(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        low, rest = 1 / (1 + np.exp(-x))
        q = (low + (1 - low) * rest * s).clip(EPS, 1 - EPS)
        residual = (n * q - k) / (q * (1 - q))
        gradient = [
            low * (1 - low) * np.sum(residual * (1 - rest * s)),
            (1 - low) * rest * (1 - rest) * np.sum(residual * s),
        ]
        return negative_log_likelihood(q, k, n), np.array(gradient)

    best = minimize(cost, np.array([-2.0, 2.0]), jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * 2)
    low, rest = 1 / (1 + np.exp(-best.x))
    return (float(low), float((1 - low) * (1 - rest))), float(best.fun)


def _concatenate_counts(tallies: Mapping[str, Tally]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers of 'same' and of all answers to each pair, over all images."""
    same = np.concatenate([tally.k for tally in tallies.values()])
    count = np.concatenate([tally.n for tally in tallies.values()])
    return same.astype(np.float64), count.astype(np.float64)


def negative_log_likelihood(q: ArrayLike, same: ArrayLike, count: ArrayLike) -> float:
    """Return minus the log-likelihood of the answers in nats."""
    p = np.clip(np.asarray(q, np.float64), EPS, 1 - EPS)
    k, n = np.asarray(same), np.asarray(count)
    return -float(np.sum(k * np.log(p) + (n - k) * np.log(1 - p)))


def _label_shares(labels: NDArray[Any], layout: Layout) -> NDArray[np.float64]:
    if labels.dtype.kind not in "biu" and not (
        np.isfinite(labels).all() and (labels == np.rint(labels)).all()
    ):
        raise InvalidInput(
            f"Labels are whole numbers, got {labels.dtype} from {labels.min():.3g} to {labels.max():.3g}."
        )
    label_index = np.unique(labels, return_inverse=True)[1].reshape(labels.shape)
    count = int(label_index.max()) + 1
    if count > MAX_LABELS:
        raise InvalidInput(f"There are {count} labels, more than {MAX_LABELS}: expected a segmentation.")
    height, width = labels.shape
    cells = layout.cells(width, height)
    table = np.bincount((cells * count + label_index).ravel(), minlength=len(layout) * count)
    shares = table.reshape(len(layout), count).astype(np.float64)
    empty = shares.sum(axis=1) == 0
    if empty.any():  # more locations than pixels
        x, y = layout.pixels(width, height)[empty].astype(np.int64).T
        shares[empty, label_index[y.clip(0, height - 1), x.clip(0, width - 1)]] = 1
    return shares / shares.sum(axis=1, keepdims=True)


def _check_probabilities(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities, clipped at 0 and normalised, if they sum to about 1."""
    p = np.asarray(values, np.float64)
    if not np.isfinite(p).all():
        raise InvalidInput(f"Probabilities are finite numbers; {np.sum(~np.isfinite(p))} are not.")
    total = p.sum(axis=-1, keepdims=True)
    if p.min() < -SUM_TOLERANCE or np.abs(total - 1).max() > SUM_TOLERANCE:
        raise InvalidInput(
            f"Probabilities lie from 0 to 1 and sum to 1; these run from {p.min():.3g} to {p.max():.3g} and sum to "
            f"{total.min():.3g} to {total.max():.3g}."
        )
    p = np.maximum(p, 0)
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def argument_names(function: Callable[..., Any]) -> set[str]:
    """Return the names of a function's arguments."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some compiled functions have no signature
        return set()
