"""Solution: what every solver returns."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

CONVERGED = "Converged: the decrease still to come is below the tolerance."
ITERATIONS = "Stopped at the largest number of iterations allowed, before the tolerance was reached."
STALLED = "Stopped: no step, however small, lowers the objective, but the tolerance was not reached."


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver stopped, and why.

    Attributes
    ----------
    probabilities : (n, K) maps
    iterations : sweeps or gradient steps taken
    status : a full sentence
    trace : objective after each iteration
    errors : MAE after each iteration, where a truth was given
    """

    probabilities: NDArray[np.float64]
    iterations: int
    status: str
    trace: NDArray[np.float64]
    errors: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == CONVERGED
