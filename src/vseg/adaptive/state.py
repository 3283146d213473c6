"""State: a posterior that is updated as answers come in.

Scale and length are chosen again, and chains are warmed up again, whenever the number of answers has grown by half,
from the answers up to that point. In between, the mode and the chains start from there, and are ready after a few
trajectories. So the state after T answers depends on these answers in their order and on the seed, but not on the
batches in which they came nor on when draws were requested.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.blas import single_blas_thread
from vseg._support.seeds import check_seed
from vseg.bayes.draw_summaries import expected_error, interval, mean_entropies, median_maps
from vseg.bayes.evidence import LaplaceFit, allocate_chains, find_mode, initial_fields, search
from vseg.bayes.hmc import (
    FIRST_STEP,
    MIN_CHAINS,
    START_SPREAD,
    Schedule,
    Whitening,
    add_low_rank,
    align_labels,
    run_chain,
    whiten_low_rank,
)  # fmt: skip
from vseg.bayes.lapses import CatchCounts, LapseOption, check_lapses, estimate_lapses
from vseg.bayes.model import AnswerCounts, compute_maps, count_answers, helmert_contrasts
from vseg.bayes.priors import Prior, make_prior
from vseg.bayes.segment_evidence import check_segment_counts
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs, check_pairs
from vseg.data.responses import Responses, Tally, as_booleans
from vseg.errors import InvalidInput
from vseg.reconstruction.reconstruct import tally_one_image

REFIT_FACTOR = 1.5  # scale and length are chosen again whenever the answers have grown by this factor
FIRST_REFIT = 8  # answers at which they are chosen for the first time
TOLERANCE = 1e-5  # of a mode that starts from an earlier one
DRAWS = 64
WARM_UP = 16  # trajectories that tune the step size of a chain
SETTLE = 4  # trajectories after new answers, before the first draw
ACCEPTANCE = 0.65  # share of trajectories to accept
MAX_STEPS = 8
MANY_SEGMENTS = 5  # from here on a draw takes one trajectory instead of two
# Participants who share a map disagree in ways that no map of K segments expresses. This leaves an error that the draws
# do not show, the larger the more uncertain the map is: this share of the mean entropy, divided by K. Chosen on every
# second photograph of BSDS500's annotators; `python -m reproduction expected-error` measures it on the others.
DISAGREEMENT = 0.6


class State:
    """The posterior of one image given the answers so far.

    Parameters
    ----------
    layout : Layout
        The locations of the image.
    segments : int
        Number of segments K.
    prior : Prior, "spatial", "image", "group", or (n, n) matrix
        As for `vseg.posterior`.
    lapses : None, "estimate", or (γ₀, γ₁)
        As for `vseg.posterior`; they are estimated again whenever scale and length are.
    draws : int
        Maps to draw, 8 or more.
    image : (H, W) or (H, W, 3) uint8, optional
        The image, for the image prior.
    group : Maps or list of Maps, optional
        Maps of other participants, for the group prior.
    responses : Responses, optional
        Answers to begin with, in their order.
    shared : bool
        Whether the answers are those of several participants; changes `expected_error` only.
    threads : int
        Fits and chains at a time; the result does not depend on it.
    seed : int
        The same answers and seed give the same draws.

    Examples
    --------
    >>> from vseg import Grid
    >>> state = State(Grid(5), segments=2, seed=0)
    >>> state.add([0, 0], [1, 24], [True, False])
    >>> state.trials, state.draws.shape
    (2, (64, 25, 2))
    """

    def __init__(
        self,
        layout: Layout,
        *,
        segments: int,
        prior: Prior | str | ArrayLike = "spatial",
        lapses: LapseOption = None,
        draws: int = DRAWS,
        image: ArrayLike | None = None,
        group: Maps | Sequence[Maps] | None = None,
        responses: Responses | None = None,
        shared: bool = False,
        threads: int = 1,
        seed: int,
    ):
        with single_blas_thread:
            self._prior = make_prior(prior, layout, image, group)
        self.layout = layout
        self.segments = check_segment_counts([segments], layout)[0]
        self._estimates_lapses = isinstance(lapses, str) and lapses == "estimate"
        self.lapses = (0.01, 0.01) if self._estimates_lapses else check_lapses(lapses)
        if not isinstance(draws, (int, np.integer)) or draws < 2 * MIN_CHAINS:
            raise InvalidInput(
                f"The number of draws is a whole number from {2 * MIN_CHAINS} up, got {draws!r}."
            )
        self._count = int(draws)
        self.shared = shared
        self.seed = check_seed(seed)
        self._threads = threads
        self._i = self._j = np.zeros(0, np.int64)
        self._same = np.zeros(0, np.bool_)
        self._fits: list[LaplaceFit] = []
        self._chains: list[WarmChain] = []
        self._refitted_at = 0
        self._current: _Draws | None = None
        if responses is not None:
            if responses.layout != layout:
                raise InvalidInput(f"The responses lie on {responses.layout}, expected {layout}.")
            tally_one_image(responses)
            self.add(responses.i, responses.j, responses.same)

    def add(self, i: ArrayLike, j: ArrayLike, same: ArrayLike) -> None:
        """Add one answer or several, in the order in which they were given.

        Parameters
        ----------
        i, j : int or list of int
            The two locations of each pair.
        same : bool or list of bool
            The answers.
        """
        low, high = check_pairs(self.layout, np.atleast_1d(i), np.atleast_1d(j))
        answers = as_booleans(np.atleast_1d(same))
        if answers.shape != low.shape:
            raise InvalidInput(f"Expected an answer for each of {len(low)} pairs, got {len(answers)}.")
        self._i = np.concatenate([self._i, low])
        self._j = np.concatenate([self._j, high])
        self._same = np.concatenate([self._same, answers])

    @property
    def trials(self) -> int:
        """The number of answers so far."""
        return len(self._i)

    @property
    def pairs(self) -> Pairs:
        """The different pairs that were answered."""
        return self._tally(self.trials).pairs

    @property
    def draws(self) -> NDArray[np.float64]:
        """(S, n, K) maps drawn from the posterior, under the labels of the mode; uniform maps without answers."""
        return self._update().draws

    @property
    def maps(self) -> Maps:
        """The posterior median."""
        return Maps(self.layout, median_maps(self.draws))

    @property
    def mode(self) -> Maps:
        """The most probable maps."""
        return Maps(self.layout, self._update().mode)

    @property
    def bounds(self) -> NDArray[np.float64]:
        """(2, n, K) lower and upper ends of the 90 % intervals."""
        return interval(self.draws)

    @property
    def expected_error(self) -> float:
        """The expected error of one probability, which `stop_reason` compares with a target.

        It is the mean |p - median| over the draws; if participants share the map, with what their disagreement adds.
        """
        if not self.trials:
            return 1.0
        spread = expected_error(self.draws, median_maps(self.draws))
        if not self.shared:
            return spread
        return float(np.hypot(spread, DISAGREEMENT * np.median(mean_entropies(self.draws)) / self.segments))

    def _update(self) -> "_Draws":
        """Return draws and mode for the answers so far, computed on the first request."""
        if self._current is None or self._current.trials != self.trials:
            # With more BLAS threads results would be rounded differently, and other pairs be chosen.
            with single_blas_thread:
                self._current = self._draw()
        return self._current

    def _draw(self) -> "_Draws":
        if not self.trials:
            uniform = np.full((self._count, len(self.layout), self.segments), 1 / self.segments)
            return _Draws(0, uniform, uniform[0])
        self._refit(self._last_refit())
        answers, best = count_answers(self._tally(self.trials), *self.lapses), self._fits[0]
        seeds = np.random.SeedSequence([self.seed, self.trials])
        draws = draw_maps(answers, self._chains, self._count, seeds, self._threads)
        found = find_mode(answers, best.root, [best.mode.weights], tolerance=TOLERANCE)
        mode = compute_maps(found.weights, best.root, helmert_contrasts(self.segments))
        return _Draws(self.trials, align_labels(draws, mode), mode)

    def _last_refit(self) -> int:
        """Return the number of answers at which scale and length were last chosen; it depends on `trials` alone."""
        last, following = self.trials, FIRST_REFIT
        while following <= self.trials:
            last, following = following, int(np.ceil(REFIT_FACTOR * following))
        return last

    def _refit(self, trials: int) -> None:
        """Choose scale, length and lapses, and warm up chains, from the first `trials` answers."""
        if self._fits and self._refitted_at == trials:
            return
        tally = self._tally(trials)
        first = initial_fields(tally, self.segments, np.random.default_rng([self.seed, trials]))
        answers = count_answers(tally, *self.lapses)
        if self._estimates_lapses and trials >= FIRST_REFIT:
            answers, self._fits = estimate_lapses(
                answers, self._prior, first, catch=CatchCounts(0, 0), threads=self._threads
            )
            self.lapses = answers.gamma0, answers.gamma1
        else:
            self._fits = search(answers, self._prior, first, threads=self._threads)
        seeds = np.random.SeedSequence([self.seed, trials, 1])
        self._chains = warm_up_chains(answers, allocate_chains(self._fits, MIN_CHAINS), seeds, self._threads)
        self._fits = self._fits[:1]  # the others take megabytes
        self._refitted_at = trials

    def _tally(self, trials: int) -> Tally:
        upto = slice(trials)
        return Responses(self.layout, self._i[upto], self._j[upto], self._same[upto]).tally()


class _Draws(NamedTuple):
    """The draws (S, n, K) and the most probable maps (n, K) given so many trials."""

    trials: int
    draws: NDArray[np.float64]
    mode: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WarmChain:
    """A chain after warming up: the fit it belongs to, its coordinates, its step size, and its position."""

    fit: LaplaceFit
    whitening: Whitening
    step: float
    position: NDArray[np.float64]


def warm_up_chains(
    answers: AnswerCounts, fits: Sequence[LaplaceFit], seeds: np.random.SeedSequence, threads: int = 1
) -> list[WarmChain]:
    """Warm up a chain for each fit, which tunes its step size, under the lapses of that fit."""
    whitened = {fit: whiten_low_rank(_with_lapses(answers, fit), fit) for fit in dict.fromkeys(fits)}
    schedule = Schedule(WARM_UP, WARM_UP, 1, ACCEPTANCE, MAX_STEPS)

    def run(job: tuple[LaplaceFit, np.random.SeedSequence]) -> WarmChain:
        fit, rng = job[0], np.random.default_rng(job[1])
        whitening, size = whitened[fit], fit.mode.weights.size
        away = add_low_rank(START_SPREAD * rng.standard_normal(size), whitening.shrink, whitening.basis)
        noise, uniform = rng.standard_normal((WARM_UP, size)), rng.random((WARM_UP, 2))
        chain = run_chain(
            fit.mode.weights.ravel() + away, whitening, fit.root, helmert_contrasts(fit.segments),
            _with_lapses(answers, fit), FIRST_STEP, noise, uniform, schedule,
        )  # fmt: skip
        return WarmChain(fit, whitening, chain.step, chain.position)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, zip(fits, seeds.spawn(len(fits)), strict=True)))


def draw_maps(
    answers: AnswerCounts,
    chains: Sequence[WarmChain],
    count: int,
    seeds: np.random.SeedSequence,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Draw `count` maps, (count, n, K), from warm chains in turn; the chains themselves stay where they are."""
    segments = chains[0].fit.segments
    contrasts, thin = helmert_contrasts(segments), 1 if segments >= MANY_SEGMENTS else 2
    rounds = SETTLE - (-count // len(chains)) * thin
    schedule = Schedule(0, SETTLE, thin, ACCEPTANCE, MAX_STEPS)

    def run(job: tuple[WarmChain, np.random.SeedSequence]) -> list[NDArray[np.float64]]:
        warm, rng = job[0], np.random.default_rng(job[1])
        root, size = warm.fit.root, len(warm.position)
        noise, uniform = rng.standard_normal((rounds, size)), rng.random((rounds, 2))
        chain = run_chain(
            warm.position, warm.whitening, root, contrasts, _with_lapses(answers, warm.fit), warm.step, noise,
            uniform, schedule,
        )  # fmt: skip
        return [compute_maps(u, root, contrasts) for u in chain.weights]

    with ThreadPoolExecutor(threads) as pool:
        maps = np.array(list(pool.map(run, zip(chains, seeds.spawn(len(chains)), strict=True))))
    return maps.swapaxes(0, 1).reshape(-1, *maps.shape[2:])[:count]


def _with_lapses(answers: AnswerCounts, fit: LaplaceFit) -> AnswerCounts:
    return answers._replace(gamma0=fit.lapses[0], gamma1=fit.lapses[1])


def stop_reason(state: State, *, target: float, minimum: int = 0, maximum: int | None = None) -> str | None:
    """Return why a session may end, as a sentence, or None if it should go on.

    Parameters
    ----------
    state : State
        The posterior given the answers so far.
    target : float
        The expected error of one probability at which to stop.
    minimum : int
        Trials before which a session never ends.
    maximum : int, optional
        Trials after which it always ends.

    Returns
    -------
    str or None
        The reason to stop, or None.

    Examples
    --------
    >>> from vseg import Grid
    >>> stop_reason(State(Grid(5), segments=2, seed=0), target=0.05, maximum=0)
    'All 0 trials were asked.'
    """
    if not 0 < target < 1:
        raise InvalidInput(f"The target is an expected error between 0 and 1, got {target!r}.")
    if maximum is not None and state.trials >= maximum:
        return f"All {state.trials} trials were asked."
    if state.trials >= max(minimum, 1) and state.expected_error <= target:
        return f"The expected error is {state.expected_error:.3f} after {state.trials} trials, as small as wanted."
    return None
