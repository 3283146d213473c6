"""The posterior of an image: the inputs, from which another process can compute it, and the summary of the posterior.

For an adaptive study it may be the posterior of its chooser: the same answers in the same order, with the same seed,
give the same draws that its pairs were chosen from.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vseg import store
from vseg.adaptive.chooser import LAPSES, derive_seed
from vseg.adaptive.history import order_answers
from vseg.data.maps import Maps
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, VsegWarning
from vseg.monitor.answers import Answers
from vseg.monitor.maps import SEED, count_pairs_needed, fit_tally
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
    catch : tuple of int
        Catch trials answered right, and all, from which lapses are estimated.
    chooser : int, optional
        The seed of an adaptive study's chooser, if it is its posterior.
    """

    answers: Tally | Responses
    segments: int | str
    catch: tuple[int, int] = (0, 0)
    chooser: int | None = None


@dataclass(frozen=True, eq=False)
class PosteriorSummary:
    """A posterior: median maps, the 90 % interval of every probability, and what else pages show.

    Attributes
    ----------
    maps : Maps
        Posterior median of every probability, renormalised.
    lower, upper : NDArray
        Ends of the 90 % intervals (n, K).
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
    warning : str
        A sentence if the draws cannot be trusted, otherwise "".
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
    entropy: float
    entropy_low: float
    entropy_high: float
    expected_error: float
    table: "list[SegmentsRow]"
    chosen: int
    plausible: list[int]
    lapses: tuple[float, float]
    lapses_estimated: bool
    warning: str
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
    return PosteriorInputs(tally, segments, count_correct_catch_trials(answers, image, participant))


def collect_chooser_inputs(study: Study, image: str, answers: Responses) -> PosteriorInputs:
    """Return the inputs of an adaptive study's chooser, with the answers in the order in which it takes them."""
    _check_answers(len(answers))
    return PosteriorInputs(answers, study.planned_segments, chooser=derive_seed(study, image))


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


def count_correct_catch_trials(
    answers: Answers, image: str, participant: str | None = None
) -> tuple[int, int]:
    """Return the catch trials, answered right and all, of the participants who answered about an image."""
    return answers.get_or_compute(
        ("catch", image, participant), lambda: _count_catch(answers, image, participant)
    )


def _count_catch(answers: Answers, image: str, participant: str | None) -> tuple[int, int]:
    about_image = answers.used & (answers.image == answers.images.index(image))
    sessions = np.unique(answers.session[about_image])
    if participant is not None:
        sessions = np.intersect1d(sessions, answers.session_indices(participant))
    rows = answers.catch & ~answers.flagged & (answers.correct >= 0) & np.isin(answers.session, sessions)
    return int(answers.correct[rows].sum()), int(rows.sum())


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
    settings: dict[str, Any] = {"lapses": "estimate", "catch": inputs.catch, "seed": SEED, "threads": 1}
    posterior = bayes.posterior(tally, segments=inputs.segments, **settings)
    reference = _fit_reference(tally, posterior.segments)
    posterior = posterior if reference is None else posterior.align_to(reference)
    table = posterior.table
    return PosteriorSummary(
        posterior.maps, posterior.lower, posterior.upper, posterior.entropy, *posterior.entropy_interval,
        posterior.expected_error,
        table=[] if table is None else table.rows(),
        chosen=posterior.segments if table is None else table.chosen,
        plausible=[posterior.segments] if table is None else table.plausible,
        lapses=posterior.lapses, lapses_estimated=True,
        warning="" if posterior.converged else posterior.diagnostics.message,
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
    state = adaptive.State(tally.layout, segments=inputs.segments, lapses=LAPSES, seed=seed)
    state.add(answers.i, answers.j, answers.same)
    maps, draws, bounds = state.maps, state.draws, state.bounds
    reference = _fit_reference(tally, maps.segments)
    if reference is not None:
        order = maps.matching_order(reference)
        maps, draws, bounds = maps.permute(order), draws[:, :, order], bounds[:, :, order]
    table = bayes.compare_segments(tally, lapses=LAPSES, seed=SEED, threads=1)
    entropies = mean_entropies(draws)
    low, high = equal_tailed(entropies)
    return PosteriorSummary(
        maps, bounds[0], bounds[1], float(np.median(entropies)), float(low), float(high),
        expected_error=state.expected_error,
        table=table.rows(), chosen=table.chosen, plausible=table.plausible,
        lapses=LAPSES, lapses_estimated=False, warning="", rhat=None, effective_draws=None,
        draws=len(draws), trials=state.trials, pairs=len(tally), by_chooser=True,
    )  # fmt: skip


def _fit_reference(tally: Tally, segments: int) -> Maps | None:
    """Fit the maps whose order of segments the posterior takes, so that both have the same names and colours.

    None if there are too few answers.
    """
    if len(tally) < count_pairs_needed(tally.layout, segments)[0]:
        return None
    return fit_tally(tally, segments, "auto").maps


def _tally(inputs: PosteriorInputs) -> Tally:
    return inputs.answers if isinstance(inputs.answers, Tally) else inputs.answers.tally()


def _check_answers(answers: int) -> None:
    if answers < MIN_ANSWERS:
        raise InvalidInput(f"A posterior needs at least {MIN_ANSWERS} answers that count, got {answers}.")


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
