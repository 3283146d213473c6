"""How many segments? Fit a range of K; report what each predicts and how many of its maps are used."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vseg.errors import InvalidInput, VsegWarning
from vseg.reconstruction import Reconstruction, reconstruct, warn_of_few_pairs
from vseg.responses import Responses, Tally
from vseg.validation import cross_validate


@dataclass(frozen=True)
class Candidate:
    """One K: its held-out log-likelihood a trial (nats), with standard error, and its reconstruction."""

    segments: int
    held_out: float
    standard_error: float
    winning: int
    result: Reconstruction


@dataclass(frozen=True)
class SegmentsChoice:
    """Both rules' choice of K, and the table behind them.

    Attributes
    ----------
    candidates : tuple of Candidate, K rising
    by_likelihood : int
        The smallest K that predicts held-out pairs as well as the best, to within one standard error.
    by_empty_maps : int
        The paper's rule: the largest K of which every map wins a location.
    """

    candidates: tuple[Candidate, ...]
    by_likelihood: int
    by_empty_maps: int

    @property
    def result(self) -> Reconstruction:
        """The reconstruction with the K of the likelihood."""
        return next(c.result for c in self.candidates if c.segments == self.by_likelihood)

    def table(self) -> list[dict[str, float]]:
        """A row for each K."""
        return [
            {
                "segments": c.segments,
                "held_out": c.held_out,
                "standard_error": c.standard_error,
                "segments_won": c.winning,
                "smoothness": c.result.smoothness,
                "mean_entropy": c.result.maps.mean_entropy,
            }
            for c in self.candidates
        ]


def choose_segments(
    responses: Responses | Tally,
    *,
    segments: Iterable[int] = range(2, 8),
    smoothness: float | str = "auto",
    seed: int,
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> SegmentsChoice:
    """Reconstruct with each K of a range; the settings are those of `reconstruct`.

    Examples
    --------
    >>> choice = choose_segments(responses, segments=range(2, 6), seed=0)  # doctest: +SKIP
    >>> choice.by_likelihood, choice.by_empty_maps  # doctest: +SKIP
    (3, 3)
    """
    counts = sorted(set(segments))
    if not counts:
        raise InvalidInput("Expected at least one number of segments to try, got none.")
    candidates, held_out = [], []
    for count in counts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)  # few pairs for a K only matter if it is chosen
            result = reconstruct(
                responses, segments=count, smoothness=smoothness, seed=seed, progress=progress, **settings
            )
        path = result.path or _validated(responses, result, settings, seed, progress)
        at = int(path.mean.argmax())
        held_out.append(path.held_out[:, at])
        candidates.append(
            Candidate(count, path.best, float(path.standard_error[at]), result.maps.winning, result)
        )
    chosen = _parsimonious(counts, np.array(held_out))
    warn_of_few_pairs(responses.tally() if isinstance(responses, Responses) else responses, chosen)
    return SegmentsChoice(tuple(candidates), chosen, _fullest(candidates))


def _validated(
    responses: Responses | Tally,
    result: Reconstruction,
    settings: dict[str, Any],
    seed: int,
    progress: Callable[[int], None] | None,
) -> Any:
    """Cross-validation at a fixed smoothness, on a short path down to it."""
    tally = responses.tally() if isinstance(responses, Responses) else responses
    kept = {
        name: settings[name]
        for name in ("loss", "kernel", "weights", "solver", "starts", "threads")
        if name in settings
    }
    return cross_validate(
        tally, result.maps.segments, strengths=[result.smoothness], seed=seed, progress=progress, **kept
    )


def _parsimonious(counts: list[int], held_out: np.ndarray) -> int:
    """The folds are the same for every K, so differences to the best are judged fold by fold."""
    best = held_out[held_out.mean(axis=1).argmax()]
    gap = best - held_out
    error = gap.std(axis=1, ddof=1) / np.sqrt(gap.shape[1])
    return counts[int(np.argmax(gap.mean(axis=1) <= error))]


def _fullest(candidates: list[Candidate]) -> int:
    full = [c.segments for c in candidates if c.winning == c.segments]
    return max(full) if full else candidates[0].segments
