"""Cross-validation: choose the smoothness λ, and the kernel, by the likelihood of answers to held-out pairs.

Whole pairs are held out, never single answers: two answers to one pair are not independent, and a map fitted to one of
them would predict the other too well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import check_seed
from vseg.data.layout import Grid, Layout, as_floats
from vseg.data.responses import Tally
from vseg.errors import InvalidInput
from vseg.reconstruction.kernels import Kernel, Smoothness, build_smoothness
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.solvers import Solver, solve_batch

STRENGTHS = (100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.0)
FOLDS = 5
MARGIN = 3.0  # standard errors; a chance of about 5 % for three kernels that are no better (t, 4 degrees of freedom)
KERNELS = ("four", "eight", "gaussian:1", "gaussian:2")  # the simplest first
CERTAIN = (
    1e-3  # predictions are clipped to [CERTAIN, 1 - CERTAIN], so that one surprising answer does not decide
)


@dataclass(frozen=True, eq=False)
class SmoothnessPath:
    """Held-out log-likelihood per trial (nats) along a path of smoothness strengths.

    Attributes
    ----------
    strengths : (L,) λ, falling
    held_out : (folds, L)
    converged : whether every fit behind it reached its tolerance
    """

    strengths: NDArray[np.float64]
    held_out: NDArray[np.float64]
    converged: bool

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
        """The strength with the highest held-out likelihood."""
        return float(self.strengths[self.mean.argmax()])

    @property
    def is_at_end(self) -> bool:
        """Whether the strongest λ was chosen, so that a stronger one might be better."""
        return len(self.strengths) > 1 and self.chosen == self.strengths[0]

    @property
    def best(self) -> float:
        """Held-out log-likelihood per trial at the chosen strength."""
        return float(self.mean.max())

    @property
    def best_folds(self) -> NDArray[np.float64]:
        """(folds,) held-out log-likelihood per trial at the chosen strength."""
        return self.held_out[:, self.mean.argmax()]


@dataclass(frozen=True, eq=False)
class KernelComparison:
    """Held-out log-likelihood of several kernels, each along a path of smoothness strengths, on the same folds.

    Attributes
    ----------
    paths : dict of SmoothnessPath
        By the name of the kernel, the simplest first.
    """

    paths: dict[str, SmoothnessPath]

    @property
    def chosen(self) -> str:
        """The kernel that predicts held-out pairs best, or the simplest where it is not clearly worse.

        Of many candidates one is best by chance, most often where there are few answers. Another kernel therefore
        replaces the simplest only if its gain, each with its own λ, exceeds three standard errors over the folds.
        """
        simplest = next(iter(self.paths))
        best = max(self.paths, key=lambda name: self.paths[name].best)
        gain = self.paths[best].best_folds - self.paths[simplest].best_folds
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        return best if gain.mean() > MARGIN * error else simplest

    @property
    def path(self) -> SmoothnessPath:
        """The path of the chosen kernel."""
        return self.paths[self.chosen]

    def table(self) -> list[dict[str, Any]]:
        """Return one row per kernel: its own λ and the held-out likelihood there."""
        return [
            {
                "kernel": name,
                "smoothness": path.chosen,
                "log_likelihood_per_trial": path.best,
                "standard_error": float(path.standard_error[path.mean.argmax()]),
            }
            for name, path in self.paths.items()
        ]


def compare_kernels(
    tally: Tally, segments: int, *, kernels: Sequence[str] | None = None, **settings: Any
) -> KernelComparison:
    """Cross-validate several kernels along a path of λ, on the same folds.

    Parameters
    ----------
    tally : Tally
    segments : int
        K ≥ 2.
    kernels : sequence of str, optional
        Names of kernels, the simplest first; by default those of `list_kernels`.
    **settings
        As in `cross_validate`.

    Returns
    -------
    KernelComparison
    """
    names = list_kernels(tally.layout) if kernels is None else tuple(kernels)
    return KernelComparison(
        {
            name: cross_validate(tally, segments, kernel=build_smoothness(tally.layout, name), **settings)
            for name in names
        }
    )


def list_kernels(layout: Layout) -> tuple[str, ...]:
    """Return the kernels that "auto" tries, the simplest first; on a scatter, "four" and "eight" are the same."""
    return KERNELS if isinstance(layout, Grid) else tuple(name for name in KERNELS if name != "eight")


def cross_validate(
    tally: Tally,
    segments: int,
    *,
    strengths: Sequence[float] = STRENGTHS,
    folds: int = FOLDS,
    loss: str = "squared_error",
    kernel: Kernel | Smoothness = "four",
    weights: str = "trials",
    solver: str | Solver = "coordinate_descent",
    seed: int,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> SmoothnessPath:
    """Fit all folds but one along a path of λ and score the fold left out, for each fold in turn.

    Parameters
    ----------
    tally : Tally
    segments : int
        K ≥ 2.
    strengths : sequence of float
        The λ to try; each fit starts from the previous one, beginning with the strongest.
    folds : int
    loss, kernel, weights
        As in `build_objective`.
    solver : str or function
    seed : int
    threads : int, optional
    progress : function, optional
        Called with the number of fits finished since the last call.
    **options
        Options of the solver.

    Returns
    -------
    SmoothnessPath
    """
    path = _check_path(tally, strengths, folds)
    fold = np.random.default_rng(check_seed(seed)).permutation(len(tally)) % folds
    trains = [
        build_objective(tally.take(fold != f), segments, loss=loss, kernel=kernel, weights=weights)
        for f in range(folds)
    ]
    tests = [tally.take(fold == f) for f in range(folds)]
    p: list[NDArray[np.float64] | None] = [None] * folds
    scores, converged = np.empty((folds, len(path))), True
    for step, strength in enumerate(path.tolist()):
        problems = [train.with_strength(strength) for train in trains]
        found = solve_batch(problems, p, seed=seed, solver=solver, threads=threads, **options)
        p = [solution.probabilities for solution in found]
        converged &= all(solution.converged for solution in found)
        scores[:, step] = [
            log_likelihood(solution.probabilities, test) / test.trials
            for solution, test in zip(found, tests, strict=True)
        ]
        if progress:
            progress(folds)
    return SmoothnessPath(path, scores, converged)


def _check_path(tally: Tally, strengths: Sequence[float], folds: int) -> NDArray[np.float64]:
    if not isinstance(folds, (int, np.integer)) or folds < 2:
        raise InvalidInput(f"Cross-validation needs a whole number of folds from 2 up, got {folds!r}.")
    if len(tally) < 2 * folds:
        raise InvalidInput(
            f"Choosing the smoothness needs at least {2 * folds} distinct pairs, got {len(tally)}; "
            "give a number for smoothness instead."
        )
    path = np.sort(as_floats(strengths, "the smoothness path"))[::-1]
    if not path.size or not np.isfinite(path).all() or path[-1] < 0:
        raise InvalidInput(f"A smoothness path is a list of numbers from 0 up, got {list(strengths)!r:.80}.")
    return path


def log_likelihood(p: NDArray[np.float64], tally: Tally) -> float:
    """Return the log-likelihood of the answers (nats) under maps p, shape (n, K): minus Eq. 1."""
    q = np.einsum("mk,mk->m", p[tally.pairs.i], p[tally.pairs.j])
    q = np.clip(q, CERTAIN, 1 - CERTAIN)
    return float(np.sum(tally.k * np.log(q) + (tally.n - tally.k) * np.log(1 - q)))
