"""How many segments, by the paper's estimator? Fit a range of K; what each predicts, how many of its maps are used."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.reconstruction.cross_validation import SmoothnessPath, cross_validate
from vseg.reconstruction.reconstruct import Reconstruction, about_one_image, reconstruct, warn_of_gaps


@dataclass(frozen=True, eq=False)
class Candidate:
    """One K: its reconstruction, and the held-out log-likelihood a trial (nats) of each fold."""

    segments: int
    result: Reconstruction
    scores: NDArray[np.float64]

    @property
    def held_out(self) -> float:
        """Mean over folds."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error over folds."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))

    @property
    def winning(self) -> int:
        """How many of its maps win a location."""
        return self.result.maps.winning


@dataclass(frozen=True, eq=False, repr=False)
class SegmentsChoice:
    """Both rules' choice of K, and the table behind them.

    Attributes
    ----------
    candidates : tuple of Candidate, K rising
    by_likelihood : int
        The smallest K that predicts held-out pairs as well as the best, to within one standard error.
    by_empty_maps : int or None
        The paper's rule: the largest K of which every map wins a location; None if there is no such K.
    """

    candidates: tuple[Candidate, ...]
    by_likelihood: int
    by_empty_maps: int | None

    @property
    def message(self) -> str:
        """One sentence for a person."""
        tried = f"{self.candidates[0].segments}..{self.candidates[-1].segments}"
        return f"K = {self.by_likelihood} of {tried} by held-out likelihood, {self._empty_maps}."

    @property
    def result(self) -> Reconstruction:
        """The reconstruction with the K of the likelihood."""
        return next(c.result for c in self.candidates if c.segments == self.by_likelihood)

    def __repr__(self) -> str:
        return f"<SegmentsChoice: {self.message}>"

    @property
    def _empty_maps(self) -> str:
        return f"{self.by_empty_maps or 'none'} by the paper's rule of no empty maps"

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
                "converged": c.result.converged,
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

    This is for the paper's estimator and its rule. If you only want to know K, `vseg.posterior(responses,
    segments="auto", seed=0)` finds it more often and in less time, and names the plausible ones (`vseg fit --segments
    auto` takes K from there for either method). On 16 maps of five segments as in the paper's S3, the evidence found K
    in 16 from ten blocks and in 12 from two, held-out likelihood in 12 and 11, no empty maps in 15 and 9.

    Examples
    --------
    >>> choice = choose_segments(responses, segments=range(2, 6), seed=0)  # doctest: +SKIP
    >>> choice.by_likelihood, choice.by_empty_maps  # doctest: +SKIP
    (3, 3)
    """
    if not isinstance(segments, Iterable) or not (counts := sorted(set(segments))):
        raise InvalidInput(
            f"Expected several numbers of segments to try, such as range(2, 8), got {segments!r}."
        )
    tally = about_one_image(responses)
    candidates = []
    for count in counts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)  # few pairs for a K only matter if it is chosen
            result = _reconstructed(
                tally, segments=count, smoothness=smoothness, seed=seed, progress=progress, **settings
            )
        path = result.path or _validated(tally, result, settings, seed, progress)
        candidates.append(Candidate(count, result, path.held_out[:, path.mean.argmax()]))
    choice = SegmentsChoice(tuple(candidates), _parsimonious(candidates), _fullest(candidates))
    warn_of_gaps(tally, choice.by_likelihood)
    return choice


def _reconstructed(tally: Tally, **settings: Any) -> Reconstruction:
    """A K that does not converge is kept as it is: `result.converged` tells."""
    try:
        return reconstruct(tally, **settings)
    except NotConverged as error:
        return error.result


def _validated(
    tally: Tally,
    result: Reconstruction,
    settings: dict[str, Any],
    seed: int,
    progress: Callable[[int], None] | None,
) -> SmoothnessPath:
    """Cross-validation at the smoothness that was given."""
    kept = {name: value for name, value in settings.items() if name != "start"}
    return cross_validate(
        tally, result.maps.segments, strengths=[result.smoothness], seed=seed,
        progress=progress, **kept,
    )  # fmt: skip


def _parsimonious(candidates: list[Candidate]) -> int:
    """The folds are the same for every K, so differences to the best are judged fold by fold."""
    scores = np.array([candidate.scores for candidate in candidates])
    gap = scores[scores.mean(axis=1).argmax()] - scores
    error = gap.std(axis=1, ddof=1) / np.sqrt(gap.shape[1])
    return candidates[int(np.argmax(gap.mean(axis=1) <= error))].segments


def _fullest(candidates: list[Candidate]) -> int | None:
    return max((c.segments for c in candidates if c.winning == c.segments), default=None)
