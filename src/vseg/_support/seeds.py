"""The kinds of random seed that vseg accepts: an integer from 0, or NumPy's SeedSequence or Generator."""

from typing import TypeVar

import numpy as np

from vseg.errors import InvalidInput

Seed = int | np.random.SeedSequence | np.random.Generator
SeedT = TypeVar("SeedT", int, np.random.SeedSequence, np.random.Generator, Seed)


def check_seed(seed: SeedT) -> SeedT:
    """Return a valid seed, NumPy integers as Python's; raise `InvalidInput` for anything else.

    Examples
    --------
    >>> check_seed(np.int64(7))
    7
    """
    if isinstance(seed, (np.random.SeedSequence, np.random.Generator)):
        return seed
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise InvalidInput(f"A seed is a whole number from 0 up, got {seed!r}.")
