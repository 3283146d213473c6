"""`vseg fit --method penalised`: the paper's estimator."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vseg.cli.methods.found import Each, Found, collected, tried
from vseg.cli.output import Advance, share
from vseg.errors import NotConverged, VsegWarning

if TYPE_CHECKING:
    from vseg.bayes import SegmentsTable
    from vseg.cli.methods.found import Picture
    from vseg.data.responses import Responses
    from vseg.reconstruction.reconstruct import Reconstruction


class Penalised:
    """The paper's estimator: a loss and a penalty on roughness.

    K is chosen from a range by held-out likelihood, with the paper's rule beside it, or by the posterior's evidence.
    """

    columns = ("trials", "pairs", "smoothness", "mean_entropy", "segments", "segments_won")

    def __init__(self, *, by_evidence: bool = False, **settings: Any):
        self.by_evidence, self.settings = by_evidence, settings

    def steps(self, counts: list[int]) -> int:
        """How many steps the progress of one fit, or of one choice of K, counts up to."""
        from vseg.reconstruction.cross_validation import FOLDS, STRENGTHS

        one = FOLDS * len(STRENGTHS) if self.settings["smoothness"] == "auto" else 1
        if len(counts) == 1:
            return one
        if self.by_evidence:
            return len(counts) + 1 + one
        return len(counts) * (one if one > 1 else 1 + FOLDS)

    def steps_each(self) -> int:
        """The same of one participant, whose K is known."""
        return self.steps([2])

    def fitted(
        self, answers: "Responses", counts: list[int], advance: Advance, shown: "Picture" = None
    ) -> Found:
        """One K, or the best of several; a fit that stopped early is kept, with a warning."""
        from vseg import choose_segments

        choice, table = None, None
        with share(advance, self.steps(counts)) as own:
            if len(counts) > 1 and not self.by_evidence:
                choice = choose_segments(answers, segments=counts, progress=own, **self.settings)
                result = choice.result
            else:
                if len(counts) > 1:
                    table = _evidence(answers, counts, self.settings["seed"], own)
                result = self._reconstructed(answers, table.chosen if table else counts[0], own)
        if not result.converged:
            kept = f"The fit of {result.maps.segments} segments is kept as it was: {result.solution.status}"
            warnings.warn(f"{kept} Raise --max-iterations.", VsegWarning, stacklevel=2)
        return Found(result, choice, table)

    def _reconstructed(self, answers: "Responses", segments: int, advance: Advance) -> "Reconstruction":
        from vseg import reconstruct

        try:
            return reconstruct(answers, segments=segments, progress=advance, **self.settings)
        except NotConverged as error:
            if error.result is None:
                raise
            stopped: Reconstruction = error.result
            return stopped

    def participants(
        self, answers: "Responses", segments: int, advance: Advance, shown: "Picture" = None
    ) -> Each:
        """Everyone by themselves."""
        for name in answers.participants:
            yield name, tried(self, answers.of(participant=name), [segments], advance, shown)

    def numbers(self, found: Found) -> dict[str, Any]:
        """A row of the table of participants or images."""
        summary = found.result.summary()
        return {column: summary[column] for column in self.columns}

    def draw(self, folder: Path, found: Found, shown: "Picture", *, top: bool) -> None:
        """maps.png; at the top also what λ and K were chosen by."""
        from vseg import figures

        figures.maps(found.maps, image=shown).savefig(folder / "maps.png")
        path = getattr(found.result, "path", None)
        if top and path is not None:
            figures.path(path.strengths, path.held_out, path.chosen).savefig(folder / "smoothness.png")
        if top and found.choice is not None:
            each = found.choice.candidates
            figures.segments(
                [candidate.segments for candidate in each],
                list(zip(*(candidate.scores for candidate in each), strict=True)),
                [candidate.winning for candidate in each],
                found.choice.by_likelihood,
            ).savefig(folder / "segments.png")
        if top and found.table is not None:
            figures.evidence(found.table).savefig(folder / "segments.png")

    def draw_people(self, folder: Path, each: "Mapping[str, Reconstruction]", shown: "Picture") -> None:
        """participants.png."""
        from vseg import figures

        maps = {name: one.maps for name, one in each.items()}
        figures.participants(maps, shown).savefig(folder / "participants.png")

    def about_people(self, each: "Mapping[str, Reconstruction]") -> str:
        """Nothing more than the table has."""
        return ""


def _evidence(answers: "Responses", counts: list[int], seed: int, advance: Advance) -> "SegmentsTable | None":
    """How probable the answers are under each K."""
    from vseg import posterior
    from vseg.bayes.hmc import MIN_CHAINS

    with collected():  # so few draws are of no use, but the evidence needs none
        return posterior(answers, segments=counts, draws=2 * MIN_CHAINS, seed=seed, progress=advance).table
