"""Models by name: built-in ones, or a user's own as FILE.py or FILE.py:NAME.

A user's model is one of four kinds. The kind is its attribute `kind`, or is detected from its arguments or from its
output for a small image:

family   `(task, *, seed) -> FittedModel`: does its own fitting
maps     `(image, **settings) -> labels (H, W), probabilities (H, W, K) or Maps`; ranges of settings in `search`
logits   a torch module, or a function that returns one, from features (n, D) to logits (n, K)
pairs    `(features (n, D), pairs, **settings) -> P(same) (m,)`; ranges of settings in `search`
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from vseg._support import user_code
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.features import FeatureSource
from vseg.models.baselines import base_rate, chance, free_maps, posterior_maps
from vseg.models.black_box import argument_names, black_box, pair_model
from vseg.models.classical import CLASSICAL
from vseg.models.discrimination import discrimination, distance_only
from vseg.models.linear import logistic, variance
from vseg.models.mixture import mixture
from vseg.models.model_interface import Family, PicklableFamily, picklable
from vseg.models.search import settings_at

Kind: TypeAlias = Literal["family", "maps", "logits", "pairs"]
TEST_IMAGE_PX = 24

MODEL_DESCRIPTIONS: Mapping[str, str] = {
    "chance": "P(same) is one half for every pair.",
    "base_rate": "The share of 'same' among the answers about each image.",
    "distance": "P(same) falls with the distance of the two locations; uses no image.",
    "free_maps": "Maps reconstructed from the answers alone (vseg.reconstruct): an upper reference.",
    "posterior": "The posterior of the maps given the answers alone (vseg.posterior): the other upper reference.",
    "logistic": "Multinomial logistic regression on features (Eq. 10).",
    "variance": "The paper's texture model for 2 segments: weights of oriented energies.",
    "mixture": "A Gaussian mixture on features, smoothed over space.",
    "student_mixture": "A mixture with heavier tails (Student's t) on features, smoothed over space.",
    "discrimination": "P(same) from the distance of features, without maps.",
    "kmeans": "k-means on colour and position.",
    "slic": "SLIC superpixels.",
    "felzenszwalb": "Felzenszwalb and Huttenlocher's graph-based merging.",
    "watershed": "Watersheds of the gradient.",
    "random_walker": "Random walks to the purest pixels of K colours.",
    "multilayer": "A network with one hidden layer on features (needs PyTorch).",
    "convolutional": "A small convolutional network on the image, shared by all images (needs PyTorch).",
}
MODELS_WITH_FEATURES = ("logistic", "variance", "mixture", "student_mixture", "discrimination", "multilayer")


@picklable
def get_model(source: str, *, features: FeatureSource | None = None, **settings: Any) -> Family:
    """Return the family with this name, or of a user's file, with these features if it uses any.

    Parameters
    ----------
    source : str
        A name from MODEL_DESCRIPTIONS, or FILE.py or FILE.py:NAME (without NAME, the function called `model`).
    features : str, callable or mapping, optional
        By default the model's own: lab, or orientation for `variance`; for a user's function, its attribute
        `features`.
    **settings
        Arguments of the model.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.

    Examples
    --------
    >>> get_model("logistic", features="lab+contrast").__name__
    'logistic[lab+contrast]'
    """
    if ".py" in source:
        return as_family(user_code.load_function(source), features=features, **settings)
    if source not in MODEL_DESCRIPTIONS:
        raise InvalidInput(
            f"There is no model {source!r}; there are {', '.join(MODEL_DESCRIPTIONS)}, "
            "and your own as FILE.py or FILE.py:NAME."
        )
    if features is not None and source in MODELS_WITH_FEATURES:
        settings["features"] = features
    if source in CLASSICAL:
        return black_box(*CLASSICAL[source], **settings)
    try:
        return _get_factory(source)(**settings)
    except TypeError as error:
        raise InvalidInput(f"Model {source}: {error}.") from error


def get_model_lazily(source: str, *, features: FeatureSource | None = None) -> PicklableFamily:
    """Return the family without creating it yet; a user's file is run only in the process that first fits it."""
    return PicklableFamily(get_model, (source,), {"features": features})


def as_family(model: Any, *, features: FeatureSource | None = None, **settings: Any) -> Family:
    """Return a family from a user's model of any kind.

    Parameters
    ----------
    model : callable
        A family, a function or a torch module; see the kinds above.
    features : str, callable or mapping, optional
        Features of a model that takes them; by default its attribute `features`, or lab.
    **settings
        Arguments of `black_box`, `pair_model` or `network`.

    Returns
    -------
    callable
        The family, `fit(task, *, seed) -> FittedModel`.
    """
    kind = detect_kind(model)
    chosen = getattr(model, "features", "lab") if features is None else features
    if kind == "family":
        return cast(Family, model)
    if kind == "maps":
        return black_box(model, **settings)
    if kind == "pairs":
        return pair_model(model, chosen, **settings)
    from vseg.models.networks import network

    return network(model, chosen, **settings)


def detect_kind(model: Any) -> Kind:
    """Return the kind of a user's model: family, maps, logits or pairs."""
    declared = getattr(model, "kind", None)
    if declared is not None:
        if declared not in get_args(Kind):
            raise InvalidInput(f"A model's kind is one of {', '.join(get_args(Kind))}, got {declared!r}.")
        return cast(Kind, declared)
    if not callable(model):
        raise InvalidInput(f"A model is a callable, got {type(model).__name__}.")
    if is_torch_module(model):
        return "logits"
    required = _required_arguments(model)
    if "task" in required or ("seed" in required and len(required) == 2):
        return "family"
    if required[:2] == ["inputs", "segments"]:
        return "logits"
    if len(required) == 2:
        return "pairs"
    return _detect_kind_from_output(model)


def mid_range_settings(model: Any, segments: int = 2) -> dict[str, Any]:
    """Return the middle of the ranges in a model's attribute `search`, and the number of segments if it takes one."""
    ranges = getattr(model, "search", {})
    fixed = {"segments": segments} if "segments" in argument_names(model) else {}
    return {**settings_at(np.full(len(ranges), 0.5), ranges), **fixed}


def is_torch_module(model: Any) -> bool:
    """Return whether a model is a torch module, without importing torch."""
    return any(f"{each.__module__}.{each.__name__}".startswith("torch.nn.") for each in type(model).__mro__)


def make_test_image() -> NDArray[np.uint8]:
    """Return a small image of four coloured squares with a little noise."""
    side = TEST_IMAGE_PX // 2
    colours = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200], [180, 180, 60]], np.float64)
    flat = np.kron(colours.reshape(2, 2, 3), np.ones((side, side, 1)))
    noise = np.random.default_rng(0).normal(0, 10, flat.shape)
    return np.rint(np.clip(flat + noise, 0, 255)).astype(np.uint8)


def _detect_kind_from_output(model: Any) -> Kind:
    """Detect the kind from the model's output for a small image."""
    try:
        output = model(make_test_image(), **mid_range_settings(model))
    except MemoryError:  # the caller knows the memory limit and reports it
        raise
    except Exception as error:
        raise InvalidInput(
            f"The model failed on a small image ({TEST_IMAGE_PX} x {TEST_IMAGE_PX}, uint8): "
            f"{user_code.describe_error(error)}. If it takes something else, set its attribute kind to one of "
            f"{', '.join(get_args(Kind))}."
        ) from error
    if isinstance(output, Maps) or np.shape(output)[:2] == (TEST_IMAGE_PX, TEST_IMAGE_PX):
        return "maps"
    raise InvalidInput(
        f"For an image of {TEST_IMAGE_PX} x {TEST_IMAGE_PX} pixels the model gave {_describe_output(output)}; "
        "expected labels (H, W), probabilities (H, W, K) or Maps. If it takes features, set its attribute kind to "
        "logits or pairs."
    )


def _describe_output(output: object) -> str:
    if isinstance(output, np.ndarray):
        return f"an array of shape {output.shape}"
    return f"a {type(output).__name__}"


def _required_arguments(model: Any) -> list[str]:
    """Return the names of the required arguments, except searched settings and the number of segments."""
    try:
        parameters = inspect.signature(model).parameters
    except (TypeError, ValueError):  # some compiled functions have no signature
        return ["image"]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    always_given = {*getattr(model, "search", {}), *(() if "inputs" in parameters else ("segments",))}
    return [
        name
        for name, each in parameters.items()
        if each.kind not in variadic and each.default is each.empty and name not in always_given
    ]


def _get_factory(name: str) -> Callable[..., Family]:
    if name in ("multilayer", "convolutional"):
        from vseg.models import networks

        return _multilayer if name == "multilayer" else networks.image_network
    factories: dict[str, Callable[..., Family]] = {
        "chance": chance, "base_rate": base_rate, "distance": distance_only, "free_maps": free_maps,
        "posterior": posterior_maps,
        "logistic": logistic, "variance": variance, "mixture": mixture, "student_mixture": _student_mixture,
        "discrimination": discrimination,
    }  # fmt: skip
    return factories[name]


def _student_mixture(features: FeatureSource = "lab", **settings: Any) -> Family:
    return mixture(features, tails="student", **settings)


def _multilayer(features: FeatureSource = "lab", **settings: Any) -> Family:
    from vseg.models.networks import multilayer, network

    return network(multilayer, features, **settings)
