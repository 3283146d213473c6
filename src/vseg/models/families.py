"""What a model is to those who fit it, and how it reaches another process.

A family is a function `(task, *, seed) -> Fitted`. Most are closures, which cannot be sent anywhere; so a family that
comes with vseg is a `Recipe`: it remembers the function that made it and what that was given, and is made again there.
"""

import pickle
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vseg.data.pairs import Pairs
from vseg.data.responses import Responses
from vseg.errors import InvalidInput

ROUNDING = 1e-9  # by which P(same) may leave the range


class Fitted(Protocol):
    """A model that has been fitted; one that predicts maps also has `maps(image) -> Maps`."""

    def same_probability(self, image: str, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of pairs on an image."""
        ...


Family = Callable[..., Fitted]
Given = ParamSpec("Given")
Made = TypeVar("Made", bound=Callable[..., Any])


def judged(said: Any, count: int) -> NDArray[np.float64]:
    """(count,) what a model says of that many pairs, if it can be P(same).

    Examples
    --------
    >>> judged([0.25, 1.0], 2)
    array([0.25, 1.  ])
    """
    try:
        q = np.asarray(said, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"Expected P(same) as numbers, got {type(said).__name__}.") from None
    if q.shape != (count,):
        raise InvalidInput(f"Expected P(same) of {count} pairs, got an array of shape {q.shape}.")
    wrong = int(np.sum(~np.isfinite(q)))
    if wrong:
        raise InvalidInput(f"P(same) is a number from 0 to 1; {wrong} of {count} are no finite numbers.")
    if count and (q.min() < -ROUNDING or q.max() > 1 + ROUNDING):
        raise InvalidInput(
            f"P(same) is a number from 0 to 1, got values from {q.min():.3g} to {q.max():.3g}."
        )
    return q


def predicted(fitted: Fitted, responses: Responses) -> NDArray[np.float64]:
    """(m,) what a fitted model says of each answer, checked; it is asked about each pair once."""
    if not hasattr(fitted, "same_probability"):
        raise InvalidInput(
            f"Expected a fitted model to have same_probability(image, pairs), got {type(fitted).__name__}."
        )
    q = np.empty(len(responses))
    n = len(responses.layout)
    low, high = np.minimum(responses.i, responses.j), np.maximum(responses.i, responses.j)
    for image in responses.images:
        rows = np.flatnonzero(responses.image == image)
        key, again = np.unique(low[rows] * n + high[rows], return_inverse=True)
        said = fitted.same_probability(image, Pairs(responses.layout, *np.divmod(key, n)))
        q[rows] = judged(said, len(key))[again]
    return q


class Recipe:
    """A family known by how it is made, which is done when it is first needed in a process.

    Examples
    --------
    >>> from vseg.models import chance
    >>> pickle.loads(pickle.dumps(chance())).__name__
    'chance'
    """

    def __init__(
        self,
        make: Callable[..., Family],
        given: tuple[Any, ...] = (),
        settings: Mapping[str, Any] | None = None,
    ):
        self.make, self.given, self.settings = make, given, dict(settings or {})

    @cached_property
    def family(self) -> Family:
        """What the recipe makes."""
        return self.make(*self.given, **self.settings)

    @property
    def __name__(self) -> str:
        return self.family.__name__

    def __call__(self, task: Any, *, seed: int) -> Fitted:
        """Fit it to a task."""
        return self.family(task, seed=seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.make, self.given, self.settings)


def sendable(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Have a function that makes families make ones that can be sent to another process."""

    @wraps(make)
    def made(*given: Given.args, **settings: Given.kwargs) -> Made:
        recipe = Recipe(cast(Callable[..., Family], made), given, settings)
        recipe.__dict__["family"] = make(*given, **settings)  # at once: what is wrong with them is said here
        return cast(Made, recipe)

    return made


_RECEIVED: dict[bytes, Recipe] = {}


def _received(make: Callable[..., Family], given: tuple[Any, ...], settings: dict[str, Any]) -> Recipe:
    """One and the same for all jobs of a process, so that a user's file is run once and its work is shared."""
    key = pickle.dumps((make, given, settings))
    return _RECEIVED.setdefault(key, Recipe(make, given, settings))
