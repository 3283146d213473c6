"""Find problems of a user's model before a long run."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg import designs, observers, stimuli
from vseg._support import user_code
from vseg.data.layout import Grid, Layout
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, VsegError
from vseg.features import Feature, FeatureSource, as_image, extract
from vseg.models.black_box import to_location_probabilities
from vseg.models.catalogue import detect_kind, get_model, mid_range_settings
from vseg.models.model_interface import check_predictions
from vseg.models.task import Task

Result = TypeVar("Result")


def check(
    model: Any,
    image: ArrayLike,
    *,
    layout: Layout | None = None,
    segments: int = 2,
    features: "str | Feature | ArrayLike | None" = None,
    seed: int = 0,
) -> list[str]:
    """Return the problems of a model, each as a sentence; an empty list if there are none.

    Parameters
    ----------
    model : str or callable
        A name, FILE.py:NAME, a family, a function or a torch module; see `vseg.models.catalogue`.
    image : array_like, shape (H, W) or (H, W, 3)
        An image to try the model on.
    layout : Layout, optional
        The locations; by default an 8x8 grid.
    segments : int
        K.
    features : str, callable or array_like, optional
        Features for a model that takes them; by default its own, or lab.
    seed : int
        Seed of the simulated answers that a family is fitted to.

    Returns
    -------
    list of str
        One sentence for each problem.

    Examples
    --------
    >>> check(lambda image: image[:, :, 0] > 100, np.zeros((32, 32), np.uint8))
    []
    >>> check(lambda image: image[:, :, 0] / 0.7, np.full((32, 32), 9, np.uint8))
    ['Labels are whole numbers, got float64 from 12.9 to 12.9.']
    """
    locations = Grid(8) if layout is None else layout
    try:
        pixels = as_image(image)
        candidate = _resolve_model(model, cast("FeatureSource | None", features))
        kind = detect_kind(candidate)
        chosen = getattr(candidate, "features", "lab") if features is None else features
        if kind == "maps":
            return _check_maps(candidate, pixels, locations, segments)
        if kind == "pairs":
            return _check_pairs(candidate, extract(chosen, pixels, locations), locations)
        if kind == "logits":
            return _check_logits(candidate, extract(chosen, pixels, locations), segments)
        return _check_family(candidate, pixels, locations, segments, seed)
    except VsegError as error:
        return [str(error)]


def _resolve_model(model: Any, features: FeatureSource | None) -> Any:
    """Return the model for a name; for a user's file, the function in it."""
    if not isinstance(model, str):
        return model
    return user_code.load_function(model) if ".py" in model else get_model(model, features=features)


def _check_maps(model: Any, image: NDArray[np.uint8], layout: Layout, segments: int) -> list[str]:
    settings, copy = mid_range_settings(model, segments), image.copy()
    shares, problems = _call_twice(lambda: to_location_probabilities(model(copy, **settings), image, layout))
    if (copy != image).any():
        problems.append("It changes its input image; work on a copy.")
    if shares is not None and shares.shape[1] > len(layout) // 2:
        problems.append(
            f"It finds {shares.shape[1]} segments at {len(layout)} locations, so that hardly any two share one."
        )
    return problems


def _check_pairs(model: Any, x: NDArray[np.float64], layout: Layout) -> list[str]:
    pairs = _neighbouring_pairs(layout)
    q, problems = _call_twice(lambda: model(x, pairs, **mid_range_settings(model)))
    return problems + ([] if q is None else _check_range(q, len(pairs)))


def _check_family(
    family: Any, image: NDArray[np.uint8], layout: Layout, segments: int, seed: int
) -> list[str]:
    truth = stimuli.random_maps(layout, segments=segments, seed=seed)
    pairs = designs.scattered(layout, segments=segments, seed=seed)
    task = Task(observers.simulate(truth, pairs, seed=seed), {"image": image}, segments)
    test_pairs = _neighbouring_pairs(layout)
    q, problems = _call_twice(lambda: family(task, seed=seed).same_probability("image", test_pairs))
    return problems + ([] if q is None else _check_range(q, len(test_pairs)))


def _check_logits(module: Any, x: NDArray[np.float64], segments: int) -> list[str]:
    from vseg.models.networks import logits_and_gradients

    output, problems = _call_twice(lambda: logits_and_gradients(module, x, segments))
    if output is None:
        return problems
    logits, gradients = output
    if logits.shape != (len(x), segments):
        problems.append(
            f"Expected logits of shape {(len(x), segments)}, a row for each location, got {logits.shape}."
        )
    elif not np.isfinite(logits).all():
        problems.append(f"{np.sum(~np.isfinite(logits))} of its logits are not finite numbers.")
    if gradients is None:
        problems.append("Its logits do not depend on any weights: there is no gradient.")
    elif not gradients:
        problems.append("It has no weights to fit; give it as a function from an image to maps instead.")
    elif not np.isfinite(list(gradients.values())).all():
        problems.append(
            f"The gradient is not finite at {', '.join(n for n, v in gradients.items() if not np.isfinite(v))}."
        )
    elif not any(gradients.values()):
        problems.append("The gradient is 0 at all weights; fitting would not move them.")
    return problems


def _call_twice(call: Callable[[], Result]) -> tuple[Result | None, list[str]]:
    """Return the result of a call, and its problems: it raises, or a second call differs."""
    try:
        first, second = call(), call()
    except InvalidInput as error:
        return None, [str(error)]
    except Exception as error:  # a user's model may raise anything
        return None, [f"It fails: {user_code.describe_error(error)}."]
    if not _are_equal(first, second):
        return first, ["It is not deterministic: two calls with the same input differ. Fix its seed."]
    return first, []


def _are_equal(first: Any, second: Any) -> bool:
    if isinstance(first, tuple):
        return all(map(_are_equal, first, second))
    if isinstance(first, dict) or first is None:
        return True
    try:
        one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    except (TypeError, ValueError):
        return True  # not numbers, which is reported elsewhere
    return one.shape == two.shape and np.array_equal(one, two, equal_nan=True)


def _check_range(predictions: Any, count: int) -> list[str]:
    try:
        check_predictions(predictions, count)
    except InvalidInput as error:
        return [str(error)]
    return []


def _neighbouring_pairs(layout: Layout) -> Pairs:
    n = len(layout)
    return Pairs(layout, np.arange(n - 1), np.arange(1, n))
