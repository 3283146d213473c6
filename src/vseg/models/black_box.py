"""Any function from an image to a segmentation, or from features to P(same), with a few settings to be found.

What it says becomes q = γ₀ + (1 - γ₀ - γ₁)·<p_i, p_j>, where p are the shares of each label in a location's cell and
the two rates of slips are fitted for each setting, so that hard labels do not cost infinitely much.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.features import as_image, cell_means
from vseg.models.families import judged, sendable
from vseg.models.linear import name_of
from vseg.models.search import TRIALS, Ranges, lowest, spread
from vseg.models.task import Task
from vseg.reconstruction.losses import EPS

SUM_TOLERANCE = 1e-3
MOST_LABELS = 10_000


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A black box with the settings that fit best. `slips` are γ₀ and γ₁, `cost` is in nats."""

    drawn: Callable[[str], Maps]
    settings: dict[str, Any]
    slips: tuple[float, float]
    cost: float

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings and the rates of slips."""
        return {**self.settings, "slips": list(self.slips)}

    def maps(self, image: str) -> Maps:
        """What it says of an image, without slips."""
        return self.drawn(image)

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image, with slips."""
        low, high = self.slips
        return low + (1 - low - high) * self.drawn(image).same_probability(pairs)


@dataclass(frozen=True, eq=False)
class Judge:
    """A function of features and pairs with the settings that fit best."""

    said: Callable[[str, Pairs], NDArray[np.float64]]
    parameters: dict[str, Any]
    cost: float

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image."""
        return self.said(image, pairs)


@sendable
def black_box(
    function: Callable[..., Any], search: Ranges | None = None, *, trials: int = TRIALS
) -> Callable[..., BlackBox]:
    """Fit a function from an image to labels (H, W), probabilities (H, W, K) or Maps.

    Parameters
    ----------
    function : callable
        `function(image, **settings)`; it is also given `segments` if it has an argument of that name.
    search : mapping, optional
        The ranges of its settings: `{"scale": (10.0, 1000.0), "sigma": [0, 1, 2]}`; by default those in the
        function's attribute `search`.
    trials : int
        How many settings are tried.

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
    asks_for_segments = "segments" in arguments(function)

    def fit(task: Task, *, seed: int) -> BlackBox:
        fixed = {"segments": task.segments} if asks_for_segments else {}

        shared = [*spread(ranges, trials)]
        own: dict[Any, NDArray[np.float64]] = {}

        def drawn(image: str, settings: dict[str, Any]) -> Maps:
            """What it says; of settings that every fit tries, it is asked once for all folds."""
            key = (function, "maps", tuple({**settings, **fixed}.items()), image)

            def said() -> NDArray[np.float64]:
                picture = task.picture(image)
                return as_shares(function(picture, **fixed, **settings), picture, task.layout)

            if settings in shared:
                return Maps(task.layout, task.once(key, said))
            if key not in own:
                own[key] = said()
            return Maps(task.layout, own[key])

        tallies = task.tallies()
        same, count = (
            np.concatenate([getattr(tally, each) for tally in tallies.values()]).astype(np.float64)
            for each in ("k", "n")
        )

        def fitted(settings: dict[str, Any]) -> tuple[tuple[float, float], float]:
            q = [drawn(name, settings).same_probability(tally.pairs) for name, tally in tallies.items()]
            return slips(np.concatenate(q), same, count)

        settings, cost = lowest(lambda at: fitted(at)[1], ranges, trials=trials, seed=seed)
        own.clear()  # of the settings that were not chosen
        return BlackBox(partial(drawn, settings=settings), settings, fitted(settings)[0], cost)

    fit.__name__ = getattr(function, "__name__", "black_box")
    return fit


@sendable
def judge(
    function: Callable[..., Any], features: Any = "lab", search: Ranges | None = None, *, trials: int = TRIALS
) -> Callable[..., Judge]:
    """Fit a function `(features (n, D), pairs, **settings) -> P(same) (m,)`: Eq. 8 without maps."""
    ranges = dict(getattr(function, "search", {}) if search is None else search)

    def fit(task: Task, *, seed: int) -> Judge:
        def said(image: str, pairs: Pairs, settings: dict[str, Any]) -> NDArray[np.float64]:
            return judged(function(task.features(features, image), pairs, **settings), len(pairs))

        tallies = task.tallies()

        def cost(settings: dict[str, Any]) -> float:
            return sum(
                nats(said(name, tally.pairs, settings), tally.k, tally.n) for name, tally in tallies.items()
            )

        settings, value = lowest(cost, ranges, trials=trials, seed=seed)
        return Judge(partial(said, settings=settings), settings, value)

    fit.__name__ = f"{getattr(function, '__name__', 'judge')}[{name_of(features)}]"
    return fit


def as_shares(said: Any, image: ArrayLike, layout: Layout) -> NDArray[np.float64]:
    """(n, K) what a segmentation of an image says of each location: probabilities, or shares of labels in its cell."""
    if isinstance(said, Maps):
        if said.layout != layout:
            raise InvalidInput(f"Expected maps on {layout}, got maps on {said.layout}.")
        return said.probabilities
    found, size = np.asarray(said), as_image(image).shape[:2]
    if found.ndim == 2 and found.shape == size:
        return _label_shares(found, layout)
    if found.ndim == 3 and found.shape[:2] == size:
        return Maps(layout, cell_means(_on_simplex(found), layout)).probabilities
    if found.ndim == 2 and len(found) == len(layout):
        return Maps(layout, _on_simplex(found)).probabilities
    raise InvalidInput(
        f"Expected labels (H, W), probabilities (H, W, K) or Maps of an image of {size[0]} x {size[1]} pixels, got "
        f"{f'an array of shape {found.shape}' if found.dtype != object else type(said).__name__}."
    )


def slips(
    alike: NDArray[np.float64], same: NDArray[np.float64], count: NDArray[np.float64]
) -> tuple[tuple[float, float], float]:
    """The rates γ₀, γ₁ at which q = γ₀ + (1 - γ₀ - γ₁)·alike fits best, and its cost in nats.

    Half an answer either way is added at both ends, so that no rate is 0.
    """
    from scipy.optimize import minimize

    s, k, n = (np.append(each, more) for each, more in ((alike, (0, 1)), (same, (0.5, 0.5)), (count, (1, 1))))

    def cost(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        low, rest = 1 / (1 + np.exp(-x))
        q = (low + (1 - low) * rest * s).clip(EPS, 1 - EPS)
        bend = (n * q - k) / (q * (1 - q))
        slope = [
            low * (1 - low) * np.sum(bend * (1 - rest * s)),
            (1 - low) * rest * (1 - rest) * np.sum(bend * s),
        ]
        return nats(q, k, n), np.array(slope)

    best = minimize(cost, np.array([-2.0, 2.0]), jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * 2)
    low, rest = 1 / (1 + np.exp(-best.x))
    return (float(low), float((1 - low) * (1 - rest))), float(best.fun)


def nats(q: ArrayLike, same: ArrayLike, count: ArrayLike) -> float:
    """Minus the log-likelihood of the answers."""
    said = np.clip(np.asarray(q, np.float64), EPS, 1 - EPS)
    k, n = np.asarray(same), np.asarray(count)
    return -float(np.sum(k * np.log(said) + (n - k) * np.log(1 - said)))


def _label_shares(labels: NDArray[Any], layout: Layout) -> NDArray[np.float64]:
    if labels.dtype.kind not in "biu" and not (
        np.isfinite(labels).all() and (labels == np.rint(labels)).all()
    ):
        raise InvalidInput(
            f"Labels are whole numbers, got {labels.dtype} from {labels.min():.3g} to {labels.max():.3g}."
        )
    place = np.unique(labels, return_inverse=True)[1].reshape(labels.shape)
    count = int(place.max()) + 1
    if count > MOST_LABELS:
        raise InvalidInput(f"There are {count} labels, more than {MOST_LABELS}: is this a segmentation?")
    height, width = labels.shape
    cells = layout.cells(width, height)
    table = np.bincount((cells * count + place).ravel(), minlength=len(layout) * count)
    shares = table.reshape(len(layout), count).astype(np.float64)
    empty = shares.sum(axis=1) == 0
    if empty.any():  # more locations than pixels
        x, y = layout.pixels(width, height)[empty].astype(np.int64).T
        shares[empty, place[y.clip(0, height - 1), x.clip(0, width - 1)]] = 1
    return shares / shares.sum(axis=1, keepdims=True)


def _on_simplex(found: NDArray[Any]) -> NDArray[np.float64]:
    p = np.asarray(found, np.float64)
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


def arguments(function: Callable[..., Any]) -> set[str]:
    """The names of what a function takes."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some compiled functions have no signature
        return set()
