"""Cross-validation: how well maps predict answers to pairs they have not seen.

Whole pairs are held out, never single answers: two answers to one pair share its probability, and a map that
has seen one would be rewarded for repeating it.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.errors import InvalidInput
from vseg.objective import Objective, objective
from vseg.responses import Tally
from vseg.solvers import Solver, solver_of

STRENGTHS = (100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.0)
FOLDS = 5
CERTAIN = 1e-3  # no prediction is taken to be surer than this: one surprise must not decide


@dataclass(frozen=True, eq=False)
class Path:
    """Held-out log-likelihood a trial (nats) along a path of smoothness strengths.

    Attributes
    ----------
    strengths : (L,) λ, falling
    held_out : (folds, L)
    """

    strengths: NDArray[np.float64]
    held_out: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """(L,) mean over folds."""
        return self.held_out.mean(axis=0)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """(L,) standard error over folds."""
        return self.held_out.std(axis=0, ddof=1) / np.sqrt(len(self.held_out))

    @property
    def chosen(self) -> float:
        """The strength that predicts best."""
        return float(self.strengths[self.mean.argmax()])

    @property
    def best(self) -> float:
        """Held-out log-likelihood a trial at the chosen strength."""
        return float(self.mean.max())


def cross_validate(
    tally: Tally,
    segments: int,
    *,
    strengths: Sequence[float] = STRENGTHS,
    folds: int = FOLDS,
    solver: str | Solver = "coordinate_descent",
    starts: int | None = None,
    seed: int,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    **terms: Any,
) -> Path:
    """Hold out each fold of pairs in turn, fit the rest along the path, predict the fold.

    Parameters
    ----------
    strengths : the λ to try; each fit starts from the one before, the strongest first
    progress : called with the number of fits done since the last call
    terms : `loss`, `kernel` and `weights` of the objective
    """
    if len(tally) < 2 * folds:
        raise InvalidInput(
            f"Choosing the smoothness needs at least {2 * folds} distinct pairs, got {len(tally)}; "
            "give a number for smoothness instead."
        )
    path = np.sort(np.asarray(strengths, float))[::-1]
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(tally)) % folds
    seeds = rng.integers(2**32, size=folds).tolist()
    solve = solver_of(solver)

    def held_out(f: int) -> NDArray[np.float64]:
        train = objective(tally.take(fold != f), segments, **terms)
        scores = _along(solve, train, tally.take(fold == f), path, starts, seeds[f])
        if progress:
            progress(len(path))
        return scores

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return Path(path, np.array(list(pool.map(held_out, range(folds)))))


def _along(
    solve: Solver, train: Objective, test: Tally, path: NDArray[np.float64], starts: int | None, seed: int
) -> NDArray[np.float64]:
    scores = np.empty(len(path))
    p = None
    for step, strength in enumerate(path.tolist()):
        options = {} if p is not None or starts is None else {"starts": starts}
        p = solve(replace(train, strength=strength), p, seed=seed, **options).probabilities
        scores[step] = log_likelihood(p, test) / test.trials
    return scores


def log_likelihood(p: NDArray[np.float64], tally: Tally) -> float:
    """Log-likelihood of the answers (nats) under maps p, shape (n, K); Eq. 1 with the sign turned."""
    q = np.einsum("mk,mk->m", p[tally.pairs.i], p[tally.pairs.j])
    q = np.clip(q, CERTAIN, 1 - CERTAIN)
    return float(np.sum(tally.k * np.log(q) + (tally.n - tally.k) * np.log(1 - q)))
