"""Solution: the result of a solver."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vseg.errors import InvalidInput

CONVERGED = "Converged: the objective no longer falls by more than the tolerance."
ITERATIONS = "Stopped at the largest number of iterations allowed, before the tolerance was reached."
DIVERGED = "Diverged: the objective rises; take a smaller learning rate."
STALLED = "Stopped: no step, however small, lowers the objective, but the tolerance was not reached."


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The maps a solver found, and why it stopped.

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

    def __repr__(self) -> str:
        last = f", objective {self.trace[-1]:.6g}" if len(self.trace) else ""
        return f"<Solution after {self.iterations} iterations{last}: {self.status}>"

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == CONVERGED


def check_limits(starts: int | None, tolerance: float, max_iterations: int) -> int:
    """Check the limits of a solver; return the number of starts."""
    if starts is not None and (not isinstance(starts, (int, np.integer)) or starts < 1):
        raise InvalidInput(f"The number of starts is a whole number from 1 up, got {starts!r}.")
    if not isinstance(max_iterations, (int, np.integer)) or max_iterations < 1:
        raise InvalidInput(f"The number of iterations is a whole number from 1 up, got {max_iterations!r}.")
    if not isinstance(tolerance, (int, float, np.number)) or not tolerance >= 0:
        raise InvalidInput(f"The tolerance is a number from 0 up, got {tolerance!r}.")
    return starts or 1
