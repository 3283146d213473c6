"""State: a posterior that follows the answers as they come.

Scale and length are chosen anew and chains warmed up whenever the answers have grown by half, from the answers up to
that point; in between, the mode and the chains move on from there. So the state after T answers depends on those
answers in their order and on the seed, not on the batches in which they came nor on what was asked of it before.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.blas import single_blas_thread
from vseg._support.seeds import check_seed
from vseg.bayes import lapses as slips
from vseg.bayes.draw_summaries import expected_error, interval, median_maps
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
from vseg.bayes.model import AnswerCounts, compute_maps, count_answers, helmert_contrasts
from vseg.bayes.priors import make_prior
from vseg.bayes.segment_evidence import check_segment_counts
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs, check_pairs
from vseg.data.responses import Responses, Tally, as_booleans
from vseg.errors import InvalidInput
from vseg.reconstruction.reconstruct import about_one_image

FRESH = 1.5  # hyper-parameters are chosen anew whenever the answers have grown by this factor
FIRST = 8  # answers before they are chosen for the first time
FOLLOWING = 1e-5  # tolerance of a mode that follows
DRAWS = 64
WARM_UP = 16  # trajectories that tune the step size of a chain
SETTLE = 4  # trajectories after new answers, before the first draw
ACCEPTANCE = 0.65  # share of trajectories to accept
MAX_STEPS = 8
MANY_SEGMENTS = 5  # from here on a draw takes one trajectory, else two: with many fields each knows less


class State:
    """Maps and draws that stay warm while answers come in.

    Parameters
    ----------
    layout, segments, prior, image, group
        As in `vseg.posterior`, with a number of segments.
    lapses : None, "estimate", or (γ₀, γ₁)
        Estimated lapses follow at every fresh choice of scale and length.
    draws : int
    responses : Responses, optional
        Answers to begin with, in their order.
    threads : int
        Chains and fits at once; changes nothing but the time.
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
        prior: Any = "spatial",
        lapses: Any = None,
        draws: int = DRAWS,
        image: Any = None,
        group: Any = None,
        responses: Responses | None = None,
        threads: int = 1,
        seed: int,
    ):
        with single_blas_thread:
            self._prior = make_prior(prior, layout, image, group)
        self.layout = layout
        self.segments = check_segment_counts([segments], layout)[0]
        self._estimate = isinstance(lapses, str) and lapses == "estimate"
        self.lapses = (0.01, 0.01) if self._estimate else slips.check_lapses(lapses)
        if not isinstance(draws, (int, np.integer)) or draws < 2 * MIN_CHAINS:
            raise InvalidInput(
                f"The number of draws is a whole number from {2 * MIN_CHAINS} up, got {draws!r}."
            )
        self._count = int(draws)
        self.seed = check_seed(seed)
        self._threads = threads
        self._i = self._j = np.zeros(0, np.int64)
        self._same = np.zeros(0, np.bool_)
        self._fits: list[LaplaceFit] = []
        self._chains: list[WarmChain] = []
        self._chosen_at = 0
        self._drawn: tuple[int, NDArray[np.float64], NDArray[np.float64]] | None = None
        if responses is not None:
            if responses.layout != layout:
                raise InvalidInput(f"The responses lie on {responses.layout}, expected {layout}.")
            about_one_image(responses)
            self.add(responses.i, responses.j, responses.same)

    def add(self, i: ArrayLike, j: ArrayLike, same: ArrayLike) -> None:
        """Take one answer or several, in the order in which they were given."""
        low, high = check_pairs(self.layout, np.atleast_1d(i), np.atleast_1d(j))
        answers = as_booleans(np.atleast_1d(same))
        if answers.shape != low.shape:
            raise InvalidInput(f"Expected an answer for each of {len(low)} pairs, got {len(answers)}.")
        self._i = np.concatenate([self._i, low])
        self._j = np.concatenate([self._j, high])
        self._same = np.concatenate([self._same, answers])

    @property
    def trials(self) -> int:
        """How many answers it has taken."""
        return len(self._i)

    @property
    def pairs(self) -> Pairs:
        """The distinct pairs that were answered."""
        return self._tally(self.trials).pairs

    @property
    def draws(self) -> NDArray[np.float64]:
        """(S, n, K) maps drawn from the posterior, under the labels of its mode; uniform maps without answers."""
        return self._posterior()[1]

    @property
    def maps(self) -> Maps:
        """The posterior median."""
        return Maps(self.layout, median_maps(self.draws))

    @property
    def mode(self) -> Maps:
        """The most probable maps."""
        return Maps(self.layout, self._posterior()[2])

    @property
    def bounds(self) -> NDArray[np.float64]:
        """(2, n, K) lower and upper ends of the 90 % intervals."""
        return interval(self.draws)

    @property
    def expected_error(self) -> float:
        """The expected error of one probability, mean |p - median|: compared with a study's target by `stop`."""
        if not self.trials:
            return 1.0
        return expected_error(self.draws, median_maps(self.draws))

    def _posterior(self) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
        if self._drawn is None or self._drawn[0] != self.trials:
            with single_blas_thread:  # a BLAS with more would round otherwise, and other pairs be chosen
                self._drawn = (self.trials, *self._draw())
        return self._drawn

    def _draw(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if not self.trials:
            level = np.full((self._count, len(self.layout), self.segments), 1 / self.segments)
            return level, level[0]
        self._choose(self._milestone())
        answers, best = self._answers(self.trials), self._fits[0]
        chance = np.random.SeedSequence([self.seed, self.trials])
        draws = draw_maps(answers, self._chains, self._count, chance, self._threads)
        followed = find_mode(answers, best.root, [best.mode.weights], tolerance=FOLLOWING)
        likely = compute_maps(followed.weights, best.root, helmert_contrasts(self.segments))
        return align_labels(draws, likely), likely

    def _milestone(self) -> int:
        """The number of answers at which scale and length were last to be chosen: the same whoever asks when."""
        last, after = self.trials, FIRST
        while after <= self.trials:
            last, after = after, int(np.ceil(FRESH * after))
        return last

    def _choose(self, trials: int) -> None:
        """Scale, length, lapses and warm chains from the first so many answers."""
        if self._fits and self._chosen_at == trials:
            return
        tally = self._tally(trials)
        first = initial_fields(tally, self.segments, np.random.default_rng([self.seed, trials]))
        answers = count_answers(tally, *self.lapses)
        if self._estimate and trials >= FIRST:
            answers, self._fits = slips.estimate_lapses(
                answers, self._prior, first, catch=slips.CatchCounts(0, 0), threads=self._threads
            )
            self.lapses = answers.gamma0, answers.gamma1
        else:
            self._fits = search(answers, self._prior, first, threads=self._threads)
        chance = np.random.SeedSequence([self.seed, trials, 1])
        self._chains = warm_up_chains(answers, allocate_chains(self._fits, MIN_CHAINS), chance, self._threads)
        self._fits = self._fits[:1]  # the others hold megabytes
        self._chosen_at = trials

    def _answers(self, trials: int) -> AnswerCounts:
        return count_answers(self._tally(trials), *self.lapses)

    def _tally(self, trials: int) -> Tally:
        upto = slice(trials)
        return Responses(self.layout, self._i[upto], self._j[upto], self._same[upto]).tally()


@dataclass(frozen=True, eq=False)
class WarmChain:
    """A chain in one fit after warming up: its coordinates, its step size, and its position."""

    fit: LaplaceFit
    whitening: Whitening
    step: float
    position: NDArray[np.float64]


def warm_up_chains(
    answers: AnswerCounts, fits: Sequence[LaplaceFit], seeds: np.random.SeedSequence, threads: int = 1
) -> list[WarmChain]:
    """Return a chain for each fit, with a tuned step size, under the lapses of that fit."""
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


def stop(state: State, *, target: float, minimum: int = 0, maximum: int | None = None) -> str | None:
    """Why a session is over, as a sentence, or None while it is not.

    Parameters
    ----------
    target : float
        The expected error of one probability at which enough is known; it may be a tenth too small.
    minimum, maximum : int
        Trials before which it never stops, and after which it always does.

    Examples
    --------
    >>> from vseg import Grid
    >>> stop(State(Grid(5), segments=2, seed=0), target=0.05, maximum=0)
    'All 0 trials were asked.'
    """
    if not 0 < target < 1:
        raise InvalidInput(f"The target is an expected error between 0 and 1, got {target!r}.")
    if maximum is not None and state.trials >= maximum:
        return f"All {state.trials} trials were asked."
    if state.trials >= max(minimum, 1) and state.expected_error <= target:
        return f"The expected error is {state.expected_error:.3f} after {state.trials} trials, as small as wanted."
    return None
