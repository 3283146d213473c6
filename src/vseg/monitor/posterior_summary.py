"""The posterior of an image: the inputs, from which another process can compute it, and the summary of the posterior.

It is the posterior that `vseg fit` and `vseg.posterior` compute from the same answers. For an adaptive study there is
also the posterior of its chooser: the same answers in the same order, with the same seed, give the same draws that its
pairs were chosen from.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from vseg import store
from vseg.adaptive.chooser import LAPSES, derive_seed
from vseg.adaptive.history import order_answers
from vseg.data.catch_trials import CatchTrials, choose_lapses, is_scored, sum_catch_trials
from vseg.data.maps import Maps, average_entropy
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, VsegWarning
from vseg.monitor.answers import Answers
from vseg.monitor.maps import SEED, find_label_reference
from vseg.store.studies import StudyRow
from vseg.study.schema import Study

if TYPE_CHECKING:
    from vseg.bayes.segment_evidence import SegmentsRow

MIN_ANSWERS = 8  # with fewer, intervals would only repeat the prior


@dataclass(frozen=True, eq=False)
class PosteriorInputs:
    """All that a posterior depends on, so that another process can compute it.

    Attributes
    ----------
    answers : Tally or Responses
        The answers; for a chooser, in the order in which it takes them.
    segments : int or "auto"
        K.
    lapses : "estimate" or None
        Whether lapses are estimated.
    catch : tuple of int, optional
        Catch trials answered right, and all, which help to estimate lapses.
    earlier : tuple of Tally
        Earlier answers about the image, from which the order of the segments follows; see `Answers.earlier_tallies`.
    chooser : int, optional
        The seed of an adaptive study's chooser, if it is its posterior.
    shared : bool
        Whether the chooser takes the answers of several participants.
    """

    answers: Tally | Responses
    segments: int | str
    lapses: Literal["estimate"] | None = None
    catch: tuple[int, int] | None = None
    earlier: tuple[Tally, ...] = ()
    chooser: int | None = None
    shared: bool = False


@dataclass(frozen=True, eq=False)
class PosteriorSummary:
    """A posterior: median maps, the 90 % interval of every probability, and what else pages show.

    Attributes
    ----------
    maps : Maps
        Posterior median of every probability, renormalised.
    lower, upper : NDArray
        Ends of the 90 % intervals (n, K).
    location_entropy : NDArray
        The entropy at each location (n,) in nats, averaged over the draws.
    entropy, entropy_low, entropy_high : float
        Mean entropy over locations in nats, and its 90 % interval.
    expected_error : float
        Expected distance of the maps from the truth.
    table : list of dict
        The evidence of each K that was tried; empty if K was given.
    chosen, plausible : int and list of int
        The K with the highest evidence, and those that the evidence does not rule out.
    lapses, lapses_estimated : tuple of float and bool
        Lapse rates (γ₀, γ₁), and whether they were estimated or assumed.
    converged, convergence : bool and str
        Whether the chains agree, and a sentence about it; "" for a chooser, whose draws are not diagnosed.
    rhat, effective_draws : float or None
        Diagnostics of the chains; None for a chooser.
    draws, trials, pairs : int
        Number of draws, of answers and of distinct pairs.
    seconds : float
        How long the computation took.
    by_chooser : bool
        Whether these are the draws that an adaptive study's pairs were chosen from.
    """

    maps: Maps
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    location_entropy: NDArray[np.float64]
    entropy: float
    entropy_low: float
    entropy_high: float
    expected_error: float
    table: "list[SegmentsRow]"
    chosen: int
    plausible: list[int]
    lapses: tuple[float, float]
    lapses_estimated: bool
    converged: bool
    convergence: str
    rhat: float | None
    effective_draws: float | None
    draws: int
    trials: int
    pairs: int
    seconds: float = 0.0
    by_chooser: bool = False

    @property
    def segments(self) -> int:
        """Number of segments."""
        return self.maps.segments

    @property
    def width(self) -> NDArray[np.float64]:
        """Width of each interval (n, K), 0 to 1."""
        return self.upper - self.lower

    @property
    def warning(self) -> str:
        """A sentence if the draws cannot be trusted, otherwise ""."""
        return "" if self.converged else self.convergence

    @property
    def confidence(self) -> float:
        """Confidence level of the intervals."""
        from vseg.bayes.draw_summaries import CONFIDENCE

        return CONFIDENCE


def collect_inputs(
    answers: Answers, image: str, *, participant: str | None = None, segments: int | str = "auto"
) -> PosteriorInputs:
    """Return the inputs of the posterior from all answers that count on an image, or from one participant's.

    `InvalidInput` is raised if there are too few answers.
    """
    tally = answers.tally(image, participant)
    _check_answers(tally.trials)
    catch = count_catch_trials(answers)
    lapses = choose_lapses(catch)
    who = answers.list_participants(image) if participant is None else [participant]
    return PosteriorInputs(
        tally,
        segments,
        lapses,
        sum_catch_trials(catch, who) if lapses else None,
        tuple(answers.earlier_tallies(image)),
    )


def collect_chooser_inputs(
    study: Study, image: str, answers: Responses, earlier: tuple[Tally, ...] = ()
) -> PosteriorInputs:
    """Return the inputs of an adaptive study's chooser, with the answers in the order in which it takes them."""
    _check_answers(len(answers))
    return PosteriorInputs(
        answers, study.planned_segments, earlier=earlier, chooser=derive_seed(study, image),
        shared=bool(study.design.shared),
    )  # fmt: skip


def has_chooser(study: StudyRow, participant: str | None) -> bool:
    """Return whether pairs are chosen from these answers: a participant's own, or everybody's (None) if shared."""
    design = study.study.design
    return design.is_adaptive and (participant is None) == bool(design.shared)


def read_answers_in_chooser_order(
    db: store.Database, study: StudyRow, answers: Answers, image: str, participant: str | None
) -> Responses:
    """Read the answers that the chooser of an image has taken, and those since, in the order in which it takes them.

    A participant with several sessions has a chooser for each; it is that of the last one with answers about the image.
    """
    with db.reading() as connection:
        if participant is None:
            session_ids = list(store.choices.list_contributing_sessions(connection, study.id, image))
        else:
            about_image = answers.used & (answers.image == answers.images.index(image))
            indices = np.intersect1d(answers.session[about_image], answers.session_indices(participant))
            session_ids = [answers.sessions[index].id for index in indices[-1:]]
        read = {session: store.choices.read_answers(connection, session) for session in session_ids}
        bases = store.choices.list_bases(connection, image, session_ids)
    everything = {session: own.records for session, own in read.items()}
    order = order_answers(
        image, [*bases.values(), everything], {session: own.answers for session, own in read.items()}
    )
    i, j, same = ([getattr(answer, name) for answer in order] for name in ("i", "j", "same"))
    return Responses(answers.layout, i, j, same, image=image)


def count_catch_trials(answers: Answers) -> CatchTrials:
    """Count the catch trials of each participant of a study, as `vseg.data.catch_trials` does in its export."""
    return answers.get_or_compute("catch trials", lambda: _count_catch_trials(answers))


def _count_catch_trials(answers: Answers) -> CatchTrials:
    rows = answers.catch & is_scored(answers.flagged) & (answers.correct >= 0)
    asked = np.bincount(answers.session[rows], minlength=len(answers.sessions)).tolist()
    right = np.bincount(answers.session[rows & (answers.correct == 1)], minlength=len(asked)).tolist()
    counts: dict[str, tuple[int, int]] = {}
    for session, own_right, own_asked in zip(answers.sessions, right, asked, strict=True):
        if own_asked:
            before = counts.get(session.participant, (0, 0))
            counts[session.participant] = before[0] + own_right, before[1] + own_asked
    return counts


def compute_posterior(inputs: PosteriorInputs) -> PosteriorSummary:
    """Compute the posterior with one thread; the same inputs always give the same posterior."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # the summary's `warning` says if chains do not agree
        if inputs.chooser is None:
            return _compute_from_answers(inputs)
        return _compute_from_chooser(inputs, inputs.chooser)


def _compute_from_answers(inputs: PosteriorInputs) -> PosteriorSummary:
    from vseg import bayes

    tally = _tally(inputs)
    posterior = bayes.posterior(
        tally, segments=inputs.segments, lapses=inputs.lapses, catch=inputs.catch, seed=SEED, threads=1
    )
    reference = find_label_reference([*inputs.earlier, tally], posterior.segments)
    posterior = posterior if reference is None else posterior.align_to(reference)
    table, low_high = posterior.table, posterior.entropy_interval
    return PosteriorSummary(
        maps=posterior.maps, lower=posterior.lower, upper=posterior.upper,
        location_entropy=average_entropy(posterior.draws),
        entropy=posterior.entropy, entropy_low=low_high[0], entropy_high=low_high[1],
        expected_error=posterior.expected_error,
        table=[] if table is None else table.rows(),
        chosen=posterior.segments if table is None else table.chosen,
        plausible=[posterior.segments] if table is None else table.plausible,
        lapses=posterior.lapses, lapses_estimated=inputs.lapses is not None,
        converged=posterior.converged, convergence=posterior.diagnostics.message,
        rhat=_finite(posterior.diagnostics.rhat), effective_draws=posterior.diagnostics.ess,
        draws=posterior.diagnostics.draws, trials=posterior.trials, pairs=posterior.pairs,
    )  # fmt: skip


def _compute_from_chooser(inputs: PosteriorInputs, seed: int) -> PosteriorSummary:
    """Summarise the chooser's draws; the evidence of each K is computed separately, with the chooser's lapse rates."""
    from vseg import adaptive, bayes
    from vseg.bayes.draw_summaries import equal_tailed, mean_entropies

    answers, tally = inputs.answers, _tally(inputs)
    if not isinstance(answers, Responses) or isinstance(inputs.segments, str):
        raise InvalidInput("A chooser needs answers in their order, and a number of segments.")
    state = adaptive.State(
        tally.layout, segments=inputs.segments, lapses=LAPSES, shared=inputs.shared, seed=seed
    )
    state.add(answers.i, answers.j, answers.same)
    maps, draws, bounds = state.maps, state.draws, state.bounds
    reference = find_label_reference([*inputs.earlier, tally], maps.segments)
    if reference is not None:
        order = maps.matching_order(reference)
        maps, draws, bounds = maps.permute(order), draws[:, :, order], bounds[:, :, order]
    table = bayes.compare_segments(tally, lapses=LAPSES, seed=SEED, threads=1)
    entropies = mean_entropies(draws)
    low, high = equal_tailed(entropies)
    return PosteriorSummary(
        maps=maps, lower=bounds[0], upper=bounds[1], location_entropy=average_entropy(draws),
        entropy=float(np.median(entropies)), entropy_low=float(low), entropy_high=float(high),
        expected_error=state.expected_error,
        table=table.rows(), chosen=table.chosen, plausible=table.plausible,
        lapses=LAPSES, lapses_estimated=False, converged=True, convergence="", rhat=None, effective_draws=None,
        draws=len(draws), trials=state.trials, pairs=len(tally), by_chooser=True,
    )  # fmt: skip


def _tally(inputs: PosteriorInputs) -> Tally:
    return inputs.answers if isinstance(inputs.answers, Tally) else inputs.answers.tally()


def _check_answers(answers: int) -> None:
    if answers < MIN_ANSWERS:
        raise InvalidInput(f"A posterior needs at least {MIN_ANSWERS} answers that count, got {answers}.")


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
