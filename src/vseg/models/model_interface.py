"""The interface of a model, and how a model is sent to another process.

A family is a function `(task, *, seed) -> FittedModel`. Most families are closures, which cannot be pickled; so the
families of vseg are `PicklableFamily` objects: they store the factory function and its arguments, and the receiving
process calls the factory again.
"""

import pickle
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.data.pairs import Pairs
from vseg.data.responses import Responses
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.models.task import Task

ROUNDING_TOLERANCE = 1e-9  # how far P(same) may leave the range from 0 to 1


class FittedModel(Protocol):
    """A model fitted to answers; a model that predicts maps also has `maps(image) -> Maps`."""

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of pairs on an image."""
        ...


Family: TypeAlias = Callable[..., FittedModel]
Arguments = ParamSpec("Arguments")
Fit = TypeVar("Fit", bound=Callable[..., Any])


def check_predictions(predictions: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return a model's predictions for `count` pairs if they are valid values of P(same).

    Examples
    --------
    >>> check_predictions([0.25, 1.0], 2)
    array([0.25, 1.  ])
    """
    try:
        q = np.asarray(predictions, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"Expected P(same) as numbers, got {type(predictions).__name__}.") from None
    if q.shape != (count,):
        raise InvalidInput(f"Expected P(same) of {count} pairs, got an array of shape {q.shape}.")
    not_finite = int(np.sum(~np.isfinite(q)))
    if not_finite:
        raise InvalidInput(f"P(same) is a number from 0 to 1; {not_finite} of {count} are not finite.")
    if count and (q.min() < -ROUNDING_TOLERANCE or q.max() > 1 + ROUNDING_TOLERANCE):
        raise InvalidInput(
            f"P(same) is a number from 0 to 1, got values from {q.min():.3g} to {q.max():.3g}."
        )
    return q


def predict(fitted: FittedModel, responses: Responses) -> NDArray[np.float64]:
    """Return (m,) the checked P(same) of each response; the model is called once for each distinct pair."""
    if not hasattr(fitted, "same_probability"):
        raise InvalidInput(
            f"Expected a fitted model to have same_probability(image, pairs), got {type(fitted).__name__}."
        )
    q = np.empty(len(responses))
    n = len(responses.layout)
    low, high = np.minimum(responses.i, responses.j), np.maximum(responses.i, responses.j)
    for image in responses.images:
        rows = np.flatnonzero(responses.image == image)
        key, inverse = np.unique(low[rows] * n + high[rows], return_inverse=True)
        predictions = fitted.same_probability(image, Pairs(responses.layout, *np.divmod(key, n)))
        q[rows] = check_predictions(predictions, len(key))[inverse]
    return q


class PicklableFamily:
    """A family that is pickled as its factory and arguments, and created when it is first used in a process.

    Parameters
    ----------
    factory : callable
        Returns the family.
    arguments : tuple
        Positional arguments of the factory.
    settings : mapping, optional
        Keyword arguments of the factory.

    Examples
    --------
    >>> from vseg.models import chance
    >>> pickle.loads(pickle.dumps(chance())).__name__
    'chance'
    """

    def __init__(
        self,
        factory: Callable[..., Family],
        arguments: tuple[Any, ...] = (),
        settings: Mapping[str, Any] | None = None,
    ):
        self.factory, self.arguments, self.settings = factory, arguments, dict(settings or {})

    @cached_property
    def family(self) -> Family:
        """The family that the factory returns."""
        return self.factory(*self.arguments, **self.settings)

    @property
    def __name__(self) -> str:
        return self.family.__name__

    def __call__(self, task: "Task", *, seed: int) -> FittedModel:
        """Fit the model to a task."""
        return self.family(task, seed=seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.factory, self.arguments, self.settings)


def picklable(factory: Callable[Arguments, Fit]) -> Callable[Arguments, Fit]:
    """Decorate a function that returns families, so that these can be pickled."""

    @wraps(factory)
    def create(*arguments: Arguments.args, **settings: Arguments.kwargs) -> Fit:
        family = PicklableFamily(cast(Callable[..., Family], create), arguments, settings)
        # Create it now, so that wrong arguments are reported here and not when it is fitted.
        family.__dict__["family"] = factory(*arguments, **settings)
        return cast(Fit, family)

    return create


_UNPICKLED: dict[bytes, PicklableFamily] = {}


def _unpickle(
    factory: Callable[..., Family], arguments: tuple[Any, ...], settings: dict[str, Any]
) -> PicklableFamily:
    """Return one shared object for all jobs of a process, so that a user's file is run only once."""
    key = pickle.dumps((factory, arguments, settings))
    return _UNPICKLED.setdefault(key, PicklableFamily(factory, arguments, settings))
