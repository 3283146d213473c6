"""Fits by the paper's estimator, for `fit_dataset(method="penalised")`."""

import warnings
from pathlib import Path
from typing import Any

from vseg._support.progress import Progress, part_progress
from vseg.bayes.posterior import compare_segments
from vseg.bayes.segment_evidence import SegmentsTable
from vseg.data.catch_trials import CatchTrials, choose_lapses, sum_catch_trials
from vseg.data.responses import Responses
from vseg.errors import NotConverged, VsegWarning
from vseg.reconstruction.reconstruct import Reconstruction, reconstruct
from vseg.reconstruction.segment_selection import choose_segments
from vseg.reconstruction.smoothness_selection import FOLDS, KERNELS, STRENGTHS
from vseg.workflows.fits import Fit, NamedFits, Pixels, try_fit


class PenalisedMethod:
    """The paper's estimator: a loss and a penalty on roughness.

    Of several K it takes the one with the best held-out likelihood and reports the paper's rule beside it; or, with
    `by_evidence`, the one under which the answers are most probable, with catch trials used as by the posterior.
    """

    columns = ("trials", "pairs", "smoothness", "kernel", "mean_entropy", "segments", "segments_won")

    def __init__(
        self, *, seed: int, by_evidence: bool = False, catch: CatchTrials | None = None, **settings: Any
    ):
        self.seed, self.by_evidence, self.catch, self.settings = seed, by_evidence, catch or {}, settings

    def count_steps(self, counts: list[int]) -> int:
        """Count the progress steps of one fit, or of one choice of K."""
        one = FOLDS * len(STRENGTHS) if self.settings.get("smoothness", "auto") == "auto" else 1
        if isinstance(kernel := self.settings.get("kernel"), str) and kernel == "auto":
            one *= len(KERNELS)
        if len(counts) == 1:
            return one
        if self.by_evidence:
            return len(counts) + 1 + one
        return len(counts) * (one if one > 1 else 1 + FOLDS)

    def count_participant_steps(self, counts: list[int]) -> int:
        """Count the progress steps of one participant."""
        return self.count_steps(counts)

    def fit(
        self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None = None
    ) -> Fit:
        """Fit one K, or the best of several; a fit that did not converge is kept, with a warning."""
        choice, table = None, None
        with part_progress(progress, self.count_steps(counts)) as own:
            if len(counts) > 1 and not self.by_evidence:
                choice = choose_segments(
                    answers, segments=counts, progress=own, seed=self.seed, **self.settings
                )
                result = choice.result
            else:
                if len(counts) > 1:
                    table = self._compare_evidence(answers, counts, own)
                result = self._reconstruct(answers, table.chosen if table else counts[0], own)
        if not result.converged:
            warnings.warn(
                f"The fit of {result.maps.segments} segments did not converge and is kept as it is: "
                f"{result.solution.status} Raise max_iterations.",
                VsegWarning,
                stacklevel=2,
            )
        return Fit(result, choice, table)

    def fit_participants(
        self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None = None
    ) -> NamedFits:
        """Fit each participant's answers alone."""
        for name in answers.participants:
            own = answers.select(participant=name)
            yield name, try_fit(lambda own=own: self.fit(own, counts, progress))  # type: ignore[misc]

    def table_row(self, fit: Fit) -> dict[str, Any]:
        """Return the row of a fit in the table of participants or images."""
        summary = fit.result.summary()
        return {column: summary[column] for column in self.columns}

    def draw(self, folder: Path, fit: Fit, pixels: Pixels | None, *, top: bool) -> None:
        """Write maps.png, segments.png where K was chosen, and, at the top, smoothness.png where λ was."""
        from vseg import figures

        figures.maps(fit.maps, image=pixels).savefig(folder / "maps.png")
        result = fit.result
        if top and isinstance(result, Reconstruction) and (path := result.path) is not None:
            kernels = {} if result.kernels is None else result.kernels.paths
            others = {name: other.held_out for name, other in kernels.items() if name != result.kernel}
            figures.smoothness_curve(
                path.strengths,
                path.held_out,
                path.chosen,
                kernel=result.kernel if others else "",
                others=others,
            ).savefig(folder / "smoothness.png")
        if fit.choice is not None:
            candidates = fit.choice.candidates
            figures.segments(
                [candidate.segments for candidate in candidates],
                list(zip(*(candidate.scores for candidate in candidates), strict=True)),
                [candidate.segments_won for candidate in candidates],
                fit.choice.by_likelihood,
            ).savefig(folder / "segments.png")
        if fit.table is not None:
            figures.evidence(fit.table).savefig(folder / "segments.png")

    def draw_participants(self, folder: Path, fits: dict[str, Fit], pixels: Pixels | None) -> None:
        """Write participants.png."""
        from vseg import figures

        maps = {name: fit.maps for name, fit in fits.items()}
        figures.participants(maps, pixels).savefig(folder / "participants.png")

    def describe_participants(self, fits: dict[str, Fit]) -> str:
        """Return nothing: the table says all there is."""
        return ""

    def _reconstruct(self, answers: Responses, segments: int, progress: Progress) -> Reconstruction:
        try:
            return reconstruct(answers, segments=segments, progress=progress, seed=self.seed, **self.settings)
        except NotConverged as error:
            if not isinstance(error.result, Reconstruction):
                raise
            return error.result

    def _compare_evidence(
        self, answers: Responses, counts: list[int], progress: Progress
    ) -> SegmentsTable | None:
        """Return how probable the answers are under each K."""
        if len(counts) < 2:
            return None
        lapses = choose_lapses(self.catch)
        catch = sum_catch_trials(self.catch, answers.participants) if lapses else None
        return compare_segments(
            answers, segments=counts, lapses=lapses, catch=catch, seed=self.seed, progress=progress
        )
