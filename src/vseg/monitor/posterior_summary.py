"""What the posterior says of an image: the question, its answer, and how one follows from the other.

A question holds all that an answer follows from, so that it can be sent to another process. For an adaptive study it
may be the chooser's own: the same answers in the same order, with the same seed, give the very draws that its pairs
were chosen from.
"""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vseg.adaptive.chooser import LAPSES, seed_of
from vseg.data.maps import Maps
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, VsegWarning
from vseg.monitor.answers import Answers
from vseg.monitor.maps import SEED, fit_of, pairs_wanted
from vseg.study.schema import Study

if TYPE_CHECKING:
    from vseg.bayes.segment_evidence import SegmentsRow

FEWEST = 8  # answers; below, intervals would only repeat the prior
DRAWS, MORE_DRAWS = 128, 512  # the latter where chains do not agree after the former


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked: these answers, K or "auto", and the catch trials (right, asked) that tell of lapses.

    `chooser` is the seed of an adaptive study's state, whose `answers` then are in the order in which it took them.
    """

    answers: Tally | Responses
    segments: int | str
    catch: tuple[int, int] = (0, 0)
    chooser: int | None = None


@dataclass(frozen=True, eq=False)
class Believed:
    """What came out: the median maps, the 90 % interval of every probability, and everything said beside them.

    Attributes
    ----------
    maps : the posterior median of every probability, renormalised
    lower, upper : (n, K) ends of the 90 % intervals
    entropy, entropy_low, entropy_high : mean over locations, in nats, and its 90 % interval
    table : the evidence of each K that was tried, a dict each; empty where K was given
    chosen, plausible : the K that the evidence chooses, and those that it does not rule out
    lapses : (γ₀, γ₁), `lapses_estimated` or assumed
    warning : a sentence where the draws cannot be trusted, else ""
    by_chooser : whether these are the draws that an adaptive study's pairs were chosen from
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
        """K."""
        return self.maps.segments

    @property
    def width(self) -> NDArray[np.float64]:
        """(n, K) how wide each interval is, 0 to 1."""
        return self.upper - self.lower

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        from vseg.bayes.draw_summaries import CONFIDENCE

        return CONFIDENCE


def question(
    answers: Answers, image: str, *, participant: str | None = None, segments: int | str = "auto"
) -> Question:
    """About all answers that count on an image, or one participant's; `InvalidInput` if there are too few."""
    tally = answers.tally(image, participant)
    _check(tally.trials)
    return Question(tally, segments, catch_of(answers, image, participant))


def chooser_question(study: Study, image: str, answers: Responses) -> Question:
    """What an adaptive study's chooser knows of an image from these answers, in the order in which it took them."""
    _check(len(answers))
    return Question(answers, study.planned_segments, chooser=seed_of(study, image))


def catch_of(answers: Answers, image: str, participant: str | None = None) -> tuple[int, int]:
    """Catch trials (right, asked) of those who answered about an image: how attentive they were."""
    return answers.kept(("catch", image, participant), lambda: _catch_of(answers, image, participant))


def _catch_of(answers: Answers, image: str, participant: str | None) -> tuple[int, int]:
    about = answers.used & (answers.image == answers.images.index(image))
    people = np.unique(answers.session[about])
    if participant is not None:
        people = np.intersect1d(people, answers.places(participant))
    asked = answers.catch & ~answers.flagged & (answers.correct >= 0) & np.isin(answers.session, people)
    return int(answers.correct[asked].sum()), int(asked.sum())


def believed(asked: Question) -> Believed:
    """Work it out, with one thread; the same question has the same answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # chains that do not agree are said in `warning`
        return _of_answers(asked) if asked.chooser is None else _of_chooser(asked, asked.chooser)


def _of_answers(asked: Question) -> Believed:
    from vseg import bayes

    tally = _tally(asked)
    about: dict[str, Any] = {"lapses": "estimate", "catch": asked.catch, "seed": SEED, "threads": 1}
    found = bayes.posterior(tally, segments=asked.segments, draws=DRAWS, **about)
    if not found.converged:
        more = bayes.posterior(tally, segments=found.segments, draws=MORE_DRAWS, **about)
        found = replace(more, table=found.table)
    like = _classic(tally, found.segments)
    found = found if like is None else found.align_to(like)
    table = found.table
    return Believed(
        found.maps, found.lower, found.upper, found.entropy, *found.entropy_interval, found.expected_error,
        table=[] if table is None else table.rows(),
        chosen=found.segments if table is None else table.chosen,
        plausible=[found.segments] if table is None else table.plausible,
        lapses=found.lapses, lapses_estimated=True,
        warning="" if found.converged else f"{found.diagnostics.message.partition(';')[0]}.",
        rhat=_finite(found.diagnostics.rhat), effective_draws=found.diagnostics.ess,
        draws=len(found.draws), trials=found.trials, pairs=found.pairs,
    )  # fmt: skip


def _of_chooser(asked: Question, seed: int) -> Believed:
    """From the chooser's draws; which K the evidence would choose is looked at beside, with the chooser's lapses."""
    from vseg import adaptive, bayes
    from vseg.bayes.draw_summaries import equal_tailed, mean_entropies

    answers, tally = asked.answers, _tally(asked)
    if not isinstance(answers, Responses) or isinstance(asked.segments, str):
        raise InvalidInput("A chooser takes answers in their order and a number of segments.")
    state = adaptive.State(tally.layout, segments=asked.segments, lapses=LAPSES, seed=seed)
    state.add(answers.i, answers.j, answers.same)
    maps, draws, bounds = state.maps, state.draws, state.bounds
    like = _classic(tally, maps.segments)
    if like is not None:
        order = maps.matching_order(like)
        maps, draws, bounds = maps.permute(order), draws[:, :, order], bounds[:, :, order]
    beside = bayes.posterior(tally, segments="auto", lapses=LAPSES, seed=SEED, threads=1)
    assert beside.table is not None
    entropies = mean_entropies(draws)
    low, high = equal_tailed(entropies)
    return Believed(
        maps, bounds[0], bounds[1], float(np.median(entropies)), float(low), float(high),
        expected_error=state.expected_error,
        table=beside.table.rows(), chosen=beside.table.chosen, plausible=beside.table.plausible,
        lapses=LAPSES, lapses_estimated=False, warning="", rhat=None, effective_draws=None,
        draws=len(draws), trials=state.trials, pairs=len(tally), by_chooser=True,
    )  # fmt: skip


def _classic(tally: Tally, segments: int) -> Maps | None:
    """The classic map, after which segments are called and coloured, so that both can be compared at a glance."""
    if len(tally) < pairs_wanted(tally.layout, segments)[0]:
        return None
    return fit_of(tally, segments, "auto").maps


def _tally(asked: Question) -> Tally:
    return asked.answers if isinstance(asked.answers, Tally) else asked.answers.tally()


def _check(answers: int) -> None:
    if answers < FEWEST:
        raise InvalidInput(f"A posterior needs at least {FEWEST} answers that count, got {answers}.")


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
