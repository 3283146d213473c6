"""Which answers are held out together, and which answers one fit uses."""

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import Responses
from vseg.errors import InvalidInput

HeldOutUnit: TypeAlias = Literal["pairs", "blocks", "participants", "images"]
FitUnit: TypeAlias = Literal["participant", "image", "all"]


def assign_folds(responses: Responses, by: HeldOutUnit, count: int, *, seed: int) -> NDArray[np.int64]:
    """Return (m,) the fold of each answer; answers of one unit (such as a pair of an image) share a fold.

    Examples
    --------
    >>> from vseg import Grid
    >>> answers = Responses(Grid(3), [0, 8, 0, 1], [8, 0, 4, 2], [1, 0, 1, 1])
    >>> fold = assign_folds(answers, "pairs", 3, seed=0)
    >>> bool(fold[0] == fold[1]), len(set(fold))
    (True, 3)
    """
    unit = np.unique(_held_out_units(responses, by), return_inverse=True)[1]
    units = int(unit.max()) + 1
    if count < 2:
        raise InvalidInput(f"Cross-validation has 2 or more folds, got {count}.")
    if units < 2:
        raise InvalidInput(f"There is only one of the {by} to hold out; hold out something else.")
    count = min(count, units)
    order = np.random.default_rng(seed).permutation(units)
    fold = np.empty(units, np.int64)
    fold[order] = np.arange(units) % count
    return fold[unit]


def group_rows(responses: Responses, per: FitUnit, by: HeldOutUnit) -> dict[str, NDArray[np.int64]]:
    """Return the rows that each fit uses: those of each participant, of each image, or all."""
    if per not in get_args(FitUnit):
        raise InvalidInput(f"Models are fitted per {', '.join(get_args(FitUnit))}, got {per!r}.")
    if per == by.removesuffix("s"):
        raise InvalidInput(
            f"A model fitted per {per} cannot be held out by {by}; fit one model to all answers instead."
        )
    if per == "all":
        return {"all": np.arange(len(responses))}
    names = getattr(responses, per)
    return {str(name): np.flatnonzero(names == name) for name in np.unique(names)}


def pair_keys(responses: Responses) -> NDArray[np.int64]:
    """Return (m,) a number for each distinct pair of each image."""
    n = len(responses.layout)
    image = np.unique(responses.image, return_inverse=True)[1]
    low, high = np.minimum(responses.i, responses.j), np.maximum(responses.i, responses.j)
    return (image * n + low) * n + high


def _held_out_units(responses: Responses, by: HeldOutUnit) -> NDArray[np.generic]:
    if by == "pairs":
        return pair_keys(responses)
    if by == "blocks":
        return responses.block
    if by == "participants":
        return responses.participant
    if by == "images":
        return responses.image
    raise InvalidInput(f"Answers are held out by {', '.join(get_args(HeldOutUnit))}, got {by!r}.")
