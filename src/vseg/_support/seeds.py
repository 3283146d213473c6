"""What may start chance: a whole number from 0 up, or NumPy's own SeedSequence or Generator."""

from typing import TypeVar

import numpy as np

from vseg.errors import InvalidInput

Seed = int | np.random.SeedSequence | np.random.Generator
SeedT = TypeVar("SeedT", int, np.random.SeedSequence, np.random.Generator, Seed)


def checked_seed(seed: SeedT) -> SeedT:
    """The same seed, NumPy's whole numbers as Python's; a sentence for anything else.

    Examples
    --------
    >>> checked_seed(np.int64(7))
    7
    """
    if isinstance(seed, (np.random.SeedSequence, np.random.Generator)):
        return seed
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise InvalidInput(f"A seed is a whole number from 0 up, got {seed!r}.")
