"""What will not work with a model, said before a long run."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg import designs, features as looks, observers, stimuli
from vseg._support import user_code
from vseg.data.layout import Grid, Layout
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, VsegError
from vseg.features import as_image
from vseg.models.black_box import to_location_probabilities
from vseg.models.catalogue import detect_kind, get_model, middle_settings
from vseg.models.families import check_predictions
from vseg.models.task import Task


def check(
    model: Any,
    image: ArrayLike,
    *,
    layout: Layout | None = None,
    segments: int = 2,
    features: Any = None,
    seed: int = 0,
) -> list[str]:
    """Sentences on what will not work with a model; an empty list if all is well.

    Parameters
    ----------
    model : of any kind that `catalogue` knows: a name, FILE.py:NAME, a family, a function, a torch module
    image : array_like, shape (H, W) or (H, W, 3)
    layout : Layout, optional
        An 8x8 grid by default.
    segments : int
        K.
    features : optional
        What a model of features is given; lab by default.

    Examples
    --------
    >>> check(lambda image: image[:, :, 0] > 100, np.zeros((32, 32), np.uint8))
    []
    >>> check(lambda image: image[:, :, 0] / 0.7, np.full((32, 32), 9, np.uint8))
    ['Labels are whole numbers, got float64 from 12.9 to 12.9.']
    """
    where = Grid(8) if layout is None else layout
    try:
        picture = as_image(image)
        found = _meant(model, features)
        kind = detect_kind(found)
        chosen = getattr(found, "features", "lab") if features is None else features
        if kind == "maps":
            return _maps(found, picture, where, segments)
        if kind == "pairs":
            return _pairs(found, looks.extract(chosen, picture, where), where)
        if kind == "logits":
            return _logits(found, looks.extract(chosen, picture, where), segments)
        return _family(found, picture, where, segments, seed)
    except VsegError as error:
        return [str(error)]


def _meant(model: Any, features: Any) -> Any:
    """What a name stands for; of a user's file, the function itself."""
    if not isinstance(model, str):
        return model
    return user_code.load_function(model) if ".py" in model else get_model(model, features=features)


def _maps(model: Any, picture: NDArray[np.uint8], layout: Layout, segments: int) -> list[str]:
    settings, given = middle_settings(model, segments), picture.copy()
    shares, problems = _twice(lambda: to_location_probabilities(model(given, **settings), picture, layout))
    if (given != picture).any():
        problems.append("It changes the image it is given; work on a copy.")
    if shares is not None and shares.shape[1] > len(layout) // 2:
        problems.append(
            f"It finds {shares.shape[1]} segments at {len(layout)} locations, so that hardly any two are the same."
        )
    return problems


def _pairs(model: Any, x: NDArray[np.float64], layout: Layout) -> list[str]:
    pairs = _some_pairs(layout)
    q, problems = _twice(lambda: model(x, pairs, **middle_settings(model)))
    return problems + ([] if q is None else _judged(q, len(pairs)))


def _family(family: Any, picture: NDArray[np.uint8], layout: Layout, segments: int, seed: int) -> list[str]:
    truth = stimuli.random_maps(layout, segments=segments, seed=seed)
    pairs = designs.scattered(layout, segments=segments, seed=seed)
    task = Task(observers.simulate(truth, pairs, seed=seed), {"image": picture}, segments)
    asked = _some_pairs(layout)
    q, problems = _twice(lambda: family(task, seed=seed).same_probability("image", asked))
    return problems + ([] if q is None else _judged(q, len(asked)))


def _logits(module: Any, x: NDArray[np.float64], segments: int) -> list[str]:
    from vseg.models.networks import logits_and_gradients

    said, problems = _twice(lambda: logits_and_gradients(module, x, segments))
    if said is None:
        return problems
    logits, slopes = said
    if logits.shape != (len(x), segments):
        problems.append(
            f"Expected logits of shape {(len(x), segments)}, a row a location, got {logits.shape}."
        )
    elif not np.isfinite(logits).all():
        problems.append(f"{np.sum(~np.isfinite(logits))} of its logits are not finite numbers.")
    if slopes is None:
        problems.append("Its logits do not depend on any weights: torch finds no gradient.")
    elif not slopes:
        problems.append("It has no weights to fit; give it as a function from an image to maps instead.")
    elif not np.isfinite(list(slopes.values())).all():
        problems.append(
            f"The gradient is not finite at {', '.join(n for n, v in slopes.items() if not np.isfinite(v))}."
        )
    elif not any(slopes.values()):
        problems.append("The gradient is 0 at all weights; fitting would not move them.")
    return problems


def _twice(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What it gives, and whether it raises or gives something else the second time."""
    try:
        first, second = call(), call()
    except InvalidInput as error:
        return None, [str(error)]
    except Exception as error:  # a user's model may raise anything
        return None, [f"It fails: {user_code.describe_error(error)}."]
    if not _alike(first, second):
        return first, ["It is not deterministic: two calls with the same input differ. Fix its seed."]
    return first, []


def _alike(first: Any, second: Any) -> bool:
    if isinstance(first, tuple):
        return all(map(_alike, first, second))
    if isinstance(first, dict) or first is None:
        return True
    try:
        one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    except (TypeError, ValueError):
        return True  # no numbers, which is said elsewhere
    return one.shape == two.shape and np.array_equal(one, two, equal_nan=True)


def _judged(said: Any, count: int) -> list[str]:
    try:
        check_predictions(said, count)
    except InvalidInput as error:
        return [str(error)]
    return []


def _some_pairs(layout: Layout) -> Pairs:
    n = len(layout)
    return Pairs(layout, np.arange(n - 1), np.arange(1, n))
