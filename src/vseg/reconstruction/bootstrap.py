"""The bootstrap: the variation of maps over resampled trials, blocks or participants.

Each resample is fitted starting from the original maps, and its segments are matched to theirs. The bootstrap does not
include the bias of the smoothness penalty, so its intervals are too narrow where λ is strong.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.confidence import interval_quantiles
from vseg._support.seeds import check_seed
from vseg.data.maps import Maps
from vseg.data.responses import Responses
from vseg.errors import InvalidInput
from vseg.reconstruction.kernels import Kernel, build_smoothness
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.reconstruct import Reconstruction
from vseg.reconstruction.solvers import solve_batch

UNITS = ("trials", "blocks", "participants")


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Maps of the resamples, with their segments in the order of the original.

    Attributes
    ----------
    maps : Maps
        The original maps.
    probabilities : (resamples, n, K)
    """

    maps: Maps
    probabilities: NDArray[np.float64]

    def __repr__(self) -> str:
        low, high = self.entropy_interval()
        return (
            f"<Bootstrap of {len(self.probabilities)} resamples: mean entropy {self.maps.mean_entropy:.3f} "
            f"[{low:.3f}, {high:.3f}] nats>"
        )

    @property
    def mean_entropies(self) -> NDArray[np.float64]:
        """(resamples,) mean entropy of each resample, in nats."""
        return np.array([Maps(self.maps.layout, p).mean_entropy for p in self.probabilities])

    def interval(self, confidence: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper (n, K) percentiles of each probability."""
        low, high = np.quantile(self.probabilities, interval_quantiles(confidence), axis=0)
        return low, high

    def entropy_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return lower and upper percentiles of the mean entropy, in nats."""
        low, high = np.quantile(self.mean_entropies, interval_quantiles(confidence))
        return float(low), float(high)


def bootstrap(
    responses: Responses,
    result: Reconstruction,
    *,
    over: str = "trials",
    resamples: int = 200,
    kernel: Kernel | None = None,
    seed: int,
    threads: int | None = None,
    **options: Any,
) -> Bootstrap:
    """Fit resampled answers with the settings of a reconstruction.

    Parameters
    ----------
    responses : Responses
        The original responses.
    result : Reconstruction
        The fit of the original responses.
    over : "trials", "blocks" or "participants"
        The unit that is drawn with replacement.
    resamples : int
        Number of resamples.
    kernel : str, tuple, array or matrix, optional
        By default that of the reconstruction; an array or a matrix has to be given again.
    seed : int
        Seed of the resamples and of random starts.
    threads : int, optional
        The result does not depend on it.
    **options
        Options of the solver.

    Returns
    -------
    Bootstrap
        The maps of all resamples.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> responses = vseg.simulate(truth, pairs, blocks=5, seed=2)
    >>> result = vseg.reconstruct(responses, segments=2, seed=3)
    >>> low, high = bootstrap(responses, result, over="blocks", resamples=50, seed=4).interval()
    >>> low.shape
    (36, 2)
    """
    if over not in UNITS:
        raise InvalidInput(f"Cannot resample over {over!r}; choose one of {', '.join(UNITS)}.")
    if not isinstance(resamples, (int, np.integer)) or resamples < 2:
        raise InvalidInput(f"The number of resamples is a whole number from 2 up, got {resamples!r}.")
    rng = np.random.default_rng(check_seed(seed))
    if kernel is None:
        if result.kernel in ("matrix", "array"):
            given = "a matrix" if result.kernel == "matrix" else "an array"
            raise InvalidInput(
                f"The kernel of this reconstruction was {given}; give it to bootstrap as kernel, too."
            )
        kernel = result.kernel
    penalty = build_smoothness(responses.layout, kernel)
    problems = [
        build_objective(
            responses.take(rows).tally(), result.maps.segments, strength=result.smoothness, loss=result.loss,
            kernel=penalty, weights=result.weights,
        )
        for rows in (_draw_rows(responses, over, rng) for _ in range(resamples))
    ]  # fmt: skip
    starts = [result.maps.probabilities] * resamples
    found = solve_batch(problems, starts, seed=seed, solver=result.solver, threads=threads, **options)
    aligned = [Maps(result.maps.layout, solution.probabilities).align_to(result.maps) for solution in found]
    return Bootstrap(result.maps, np.array([maps.probabilities for maps in aligned]))


def _draw_rows(responses: Responses, over: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the row numbers of one resample."""
    if over == "trials":
        return rng.integers(len(responses), size=len(responses))
    unit = {"blocks": responses.block, "participants": responses.participant}[over]
    names, member = np.unique(unit, return_inverse=True)
    if len(names) < 2:
        raise InvalidInput(
            f"Resampling over {over} needs at least 2 of them, got {len(names)}; choose trials."
        )
    rows = [np.flatnonzero(member == u) for u in range(len(names))]
    return np.concatenate([rows[u] for u in rng.integers(len(names), size=len(names))])
