"""Models by name: those that come with vseg, or a user's own as FILE.py or FILE.py:NAME.

A user's model is one of four kinds, told by its attribute `kind`, by what it takes, or by what it gives on a trial:

family   `(task, *, seed) -> Fitted`: does its own fitting
maps     `(image, **settings) -> labels (H, W), probabilities (H, W, K) or Maps`; ranges of settings in `search`
logits   a torch module, or a function that gives one, from features (n, D) to logits (n, K)
pairs    `(features (n, D), pairs, **settings) -> P(same) (m,)`; ranges of settings in `search`
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vseg._support import user_code
from vseg.data.maps import Maps
from vseg.errors import InvalidInput
from vseg.models.baselines import base_rate, chance, free_maps, posterior_maps
from vseg.models.black_box import argument_names, black_box, pair_model
from vseg.models.classical import CLASSICAL
from vseg.models.discrimination import discrimination, distance_only
from vseg.models.families import Family, PicklableFamily, picklable
from vseg.models.linear import logistic, variance
from vseg.models.mixture import mixture
from vseg.models.search import settings_at

KINDS = ("family", "maps", "logits", "pairs")
TRIAL_SIDE_PX = 24

MODEL_DESCRIPTIONS: Mapping[str, str] = {
    "chance": "A coin: P(same) is one half.",
    "base_rate": "The share of 'same' among the answers about each image.",
    "distance": "The farther apart two locations lie, the less probably they are the same; looks at no image.",
    "free_maps": "Maps from the answers alone (vseg.reconstruct): an upper reference.",
    "posterior": "All maps that the answers leave possible (vseg.posterior): the other upper reference.",
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
WITH_FEATURES = ("logistic", "variance", "mixture", "student_mixture", "discrimination", "multilayer")


@picklable
def get_model(source: str, *, features: Any = None, **settings: Any) -> Family:
    """The model of that name, or of a user's file; with these features if it takes any.

    Parameters
    ----------
    source : str
        One of NAMES, or FILE.py or FILE.py:NAME (without NAME, the function called `model`).
    features : str, callable or mapping, optional
        By default the model's own: lab, or orientation for `variance`; of a user's function, its attribute `features`.
    settings : passed on to the model

    Examples
    --------
    >>> named("logistic", features="lab+contrast").__name__
    'logistic[lab+contrast]'
    """
    if ".py" in source:
        return as_family(user_code.load_function(source), features=features, name=source, **settings)
    if source not in MODEL_DESCRIPTIONS:
        raise InvalidInput(
            f"There is no model {source!r}; there are {', '.join(MODEL_DESCRIPTIONS)}, and your own as FILE.py or FILE.py:NAME."
        )
    if features is not None and source in WITH_FEATURES:
        settings["features"] = features
    if source in CLASSICAL:
        return black_box(*CLASSICAL[source], **settings)
    try:
        return _built_in(source)(**settings)
    except TypeError as error:
        raise InvalidInput(f"Model {source}: {error}.") from error


def get_model_lazily(source: str, *, features: Any = None) -> PicklableFamily:
    """The same, but made only where and when it is first fitted: until then a user's file is not run."""
    return PicklableFamily(get_model, (source,), {"features": features})


def as_family(model: Any, *, features: Any = None, name: str = "", **settings: Any) -> Family:
    """A family from a user's model of any kind."""
    kind = detect_kind(model)
    chosen = getattr(model, "features", "lab") if features is None else features
    if kind == "family":
        return model
    if kind == "maps":
        return black_box(model, **settings)
    if kind == "pairs":
        return pair_model(model, chosen, **settings)
    from vseg.models.networks import network

    return network(model, chosen, **settings)


def detect_kind(model: Any) -> str:
    """Which kind of model something is: family, maps, logits or pairs."""
    told = getattr(model, "kind", None)
    if told is not None:
        if told not in KINDS:
            raise InvalidInput(f"A model's kind is one of {', '.join(KINDS)}, got {told!r}.")
        return str(told)
    if not callable(model):
        raise InvalidInput(f"A model is something to call, got {type(model).__name__}.")
    if is_torch_module(model):
        return "logits"
    taken = _taken(model)
    if "task" in taken or ("seed" in taken and len(taken) == 2):
        return "family"
    if taken[:2] == ["inputs", "segments"]:
        return "logits"
    if len(taken) == 2:
        return "pairs"
    return _tried(model)


def middle_settings(model: Any, segments: int = 2) -> dict[str, Any]:
    """The middle of the ranges in its attribute `search`, and the number of segments if it asks for it."""
    ranges = getattr(model, "search", {})
    asked = {"segments": segments} if "segments" in argument_names(model) else {}
    return {**settings_at(np.full(len(ranges), 0.5), ranges), **asked}


def is_torch_module(model: Any) -> bool:
    """Whether it is a torch module, without loading torch for anything else."""
    return any(f"{each.__module__}.{each.__name__}".startswith("torch.nn.") for each in type(model).__mro__)


def trial_image() -> Any:
    """A small picture of four coloured squares with a little noise."""
    side = TRIAL_SIDE_PX // 2
    colours = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200], [180, 180, 60]], np.float64)
    flat = np.kron(colours.reshape(2, 2, 3), np.ones((side, side, 1)))
    noise = np.random.default_rng(0).normal(0, 10, flat.shape)
    return np.rint(np.clip(flat + noise, 0, 255)).astype(np.uint8)


def _tried(model: Any) -> str:
    """By what it makes of a small picture."""
    try:
        said = model(trial_image(), **middle_settings(model))
    except MemoryError:  # how much it may use is known to whoever runs this
        raise
    except Exception as error:
        raise InvalidInput(
            f"The model failed on a small picture ({TRIAL_SIDE_PX} x {TRIAL_SIDE_PX}, uint8): "
            f"{user_code.describe_error(error)}. If it takes something else, set its attribute kind to one of "
            f"{', '.join(KINDS)}."
        ) from error
    if isinstance(said, Maps) or np.shape(said)[:2] == (TRIAL_SIDE_PX, TRIAL_SIDE_PX):
        return "maps"
    raise InvalidInput(
        f"Of a picture of {TRIAL_SIDE_PX} x {TRIAL_SIDE_PX} pixels the model gave {_described(said)}; expected labels "
        "(H, W), probabilities (H, W, K) or Maps. If it takes features, set its attribute kind to logits or pairs."
    )


def _described(said: Any) -> str:
    return f"an array of shape {said.shape}" if isinstance(said, np.ndarray) else f"a {type(said).__name__}"


def _taken(model: Any) -> list[str]:
    """The names of the arguments it must be given, but for settings that are searched and the number of segments."""
    try:
        listed = inspect.signature(model).parameters
    except (TypeError, ValueError):  # some compiled functions have no signature
        return ["image"]
    spread = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    given_anyway = {*getattr(model, "search", {}), *(() if "inputs" in listed else ("segments",))}
    return [
        name
        for name, each in listed.items()
        if each.kind not in spread and each.default is each.empty and name not in given_anyway
    ]


def _built_in(name: str) -> Callable[..., Family]:
    if name in ("multilayer", "convolutional"):
        from vseg.models import networks

        return _multilayer if name == "multilayer" else networks.image_network
    made: dict[str, Callable[..., Family]] = {
        "chance": chance, "base_rate": base_rate, "distance": distance_only, "free_maps": free_maps,
        "posterior": posterior_maps,
        "logistic": logistic, "variance": variance, "mixture": mixture, "student_mixture": _student,
        "discrimination": discrimination,
    }  # fmt: skip
    return made[name]


def _student(features: Any = "lab", **settings: Any) -> Family:
    return mixture(features, tails="student", **settings)


def _multilayer(features: Any = "lab", **settings: Any) -> Family:
    from vseg.models.networks import multilayer, network

    return network(multilayer, features, **settings)
