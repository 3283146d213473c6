"""Maps that are updated after every response, typically in well under a millisecond."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.seeds import check_seed
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs, check_pairs
from vseg.data.responses import Responses, Tally, as_booleans
from vseg.errors import InvalidInput
from vseg.reconstruction.kernels import Kernel
from vseg.reconstruction.objective import PairRows, build_objective
from vseg.reconstruction.reconstruct import tally_one_image
from vseg.reconstruction.solvers import coordinate_descent
from vseg.reconstruction.solvers.local_refit import record_answers, refit_rows

SLACK = 8  # spare entries per row, so that most responses need no new arrays
CHANGE = 2e-3  # a row that changes by less does not trigger updates of its neighbours
LIMIT = 4  # maximum row updates per response, in units of the number of locations
FRESH = 1.5  # start again from coarse to fine when the responses have grown by this factor


class OnlineReconstruction:
    """Maps that follow the responses: each new response updates only the locations it affects.

    Whenever the number of responses has grown by half, the fit starts again from coarse to fine, so that early
    responses cannot keep it in a bad minimum. `settle()` solves to the full tolerance.

    Parameters
    ----------
    layout, segments, smoothness, loss, kernel, weights
        As in `vseg.reconstruct`, with a number for the smoothness.
    responses : Responses, optional
        Responses to start with.

    Examples
    --------
    >>> from vseg import Grid
    >>> live = OnlineReconstruction(Grid(4), segments=2, smoothness=1.0, seed=0)
    >>> live.add([0, 0], [1, 15], [True, False])
    >>> live.trials
    2
    """

    def __init__(
        self,
        layout: Layout,
        *,
        segments: int,
        smoothness: float = 1.0,
        loss: str = "squared_error",
        kernel: Kernel = "four",
        weights: str = "trials",
        responses: Responses | None = None,
        seed: int,
    ):
        probe = Tally(Pairs(layout, [0], [1]), [0], [1])
        self._problem = build_objective(
            probe, segments, strength=smoothness, loss=loss, kernel=kernel, weights=weights
        )
        self._by_trial = weights == "trials"
        self._seed = check_seed(seed)
        self.trials = 0
        self._pairs = 0
        self._solved_at = 0
        self._rows = _Rows.with_room(len(layout))
        self._p = np.full((len(layout), segments), 1 / segments)
        if responses is not None:
            if responses.layout != layout:
                raise InvalidInput(f"The responses lie on {responses.layout}, expected {layout}.")
            tally_one_image(responses)
            self.add(responses.i, responses.j, responses.same)

    @property
    def layout(self) -> Layout:
        """The layout of the locations."""
        return self._problem.layout

    @property
    def maps(self) -> Maps:
        """The current maps."""
        return Maps(self.layout, self._p / self._p.sum(axis=1, keepdims=True))

    def add(self, i: ArrayLike, j: ArrayLike, same: ArrayLike) -> None:
        """Add one or several responses and update the maps."""
        low, high = check_pairs(self.layout, np.atleast_1d(i), np.atleast_1d(j))
        answers = as_booleans(np.atleast_1d(same)).astype(np.float64)
        if answers.shape != low.shape:
            raise InvalidInput(f"Expected an answer for each of {len(low)} pairs, got {len(answers)}.")
        if not len(low):
            return
        done = 0
        while done < len(low):
            rows = self._rows
            written, new = record_answers(
                rows.start,
                rows.used,
                rows.partner,
                rows.share,
                rows.count,
                low[done:],
                high[done:],
                answers[done:],
            )
            done += written
            self._pairs += new
            if done < len(low):
                self._rows = rows.widen()
        self.trials += len(low)
        if self.trials >= FRESH * self._solved_at:
            self.settle(start_over=True)
        else:
            self._refit(np.concatenate([low, high]))

    def settle(self, *, start_over: bool = False) -> None:
        """Solve to the solver's tolerance, from the current maps or, with `start_over`, from coarse to fine."""
        if not self.trials:
            return
        # Weights as in `reconstruct`: the solver approaches a weak λ step by step, so the scale of λ matters.
        tested = self._tested._replace(weight=self._tested.weight / self._mean_count)
        problem = replace(self._problem, tested=tested)
        self._p = coordinate_descent(problem, None if start_over else self._p, seed=self._seed).probabilities
        self._solved_at = self.trials

    def _refit(self, disturbed: NDArray[np.int64]) -> None:
        refit_rows(
            self._p, self._tested, self._problem.code, self._strength, self._problem.smoothness.matrix,
            disturbed, CHANGE, LIMIT * len(self._p),
        )  # fmt: skip

    @property
    def _tested(self) -> PairRows:
        rows = self._rows
        weight = rows.count if self._by_trial else np.minimum(rows.count, 1.0)
        return PairRows(rows.start, rows.partner, rows.share, weight)

    @property
    def _mean_count(self) -> float:
        """The mean number of responses per pair, by which weights exceed those of `reconstruct`."""
        return self.trials / self._pairs if self._by_trial else 1.0

    @property
    def _strength(self) -> float:
        """λ on the scale of the weights, which are counts here."""
        return self._problem.strength * self._mean_count


@dataclass(frozen=True, eq=False)
class _Rows:
    """Partners of each location, with spare entries after them; a spare entry has count 0 and no weight."""

    start: NDArray[np.int64]
    used: NDArray[np.int64]
    partner: NDArray[np.uint32]
    share: NDArray[np.float64]
    count: NDArray[np.float64]

    @classmethod
    def with_room(cls, n: int, used: NDArray[np.int64] | None = None) -> "_Rows":
        taken = np.zeros(n, np.int64) if used is None else used
        start = np.concatenate([[0], np.cumsum(taken * 3 // 2 + SLACK)])
        size = start[-1]
        return cls(start, taken.copy(), np.zeros(size, np.uint32), np.zeros(size), np.zeros(size))

    def widen(self) -> "_Rows":
        wide = _Rows.with_room(len(self.used), self.used)
        within = np.arange(self.used.sum()) - np.repeat(np.cumsum(self.used) - self.used, self.used)
        old, new = (
            np.repeat(self.start[:-1], self.used) + within,
            np.repeat(wide.start[:-1], self.used) + within,
        )
        for name in ("partner", "share", "count"):
            getattr(wide, name)[new] = getattr(self, name)[old]
        return wide
