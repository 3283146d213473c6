"""How `vseg fit` fits: by the paper's estimator, or by the posterior.

A method has the columns of a table, counts the steps of its progress, fits, and draws what it found.
"""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vseg.cli import options
from vseg.cli.output import Advance, share
from vseg.errors import InvalidInput, NotConverged, VsegWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vseg.bayesian import Posterior
    from vseg.maps import Maps
    from vseg.reconstruction import Reconstruction
    from vseg.responses import Responses
    from vseg.selection import SegmentsChoice

    Picture = NDArray[np.uint8] | None

PRIORS = ("spatial", "image", "group")


@dataclass(frozen=True)
class Found:
    """A result, the choice of K behind it where there was one, and whose it is."""

    result: "Reconstruction | Posterior"
    choice: "SegmentsChoice | None" = None
    about: dict[str, str] = field(default_factory=dict)

    @property
    def maps(self) -> "Maps":
        """What is reported."""
        return self.result.maps

    @property
    def message(self) -> str:
        """What was chosen, if anything was, and what was found."""
        return f"{self.choice.message if self.choice else ''} {self.result.message}".strip()

    def save(self, folder: Path) -> None:
        """Write maps.npz and summary.json."""
        about: dict[str, Any] = dict(self.about)
        if self.choice is not None:
            about |= {
                "segments_table": self.choice.table(),
                "segments_by_likelihood": self.choice.by_likelihood,
                "segments_by_empty_maps": self.choice.by_empty_maps,
            }
        self.result.save(folder, about)


class Penalised:
    """The paper's estimator: a loss and a penalty on roughness."""

    columns = ("trials", "pairs", "smoothness", "mean_entropy", "segments", "segments_won")

    def __init__(self, **settings: Any):
        self.settings = settings

    def steps(self, counts: list[int]) -> int:
        """How many steps the progress of one fit, or of one choice of K, counts up to."""
        from vseg.validation import FOLDS, STRENGTHS

        if self.settings["smoothness"] == "auto":
            return len(counts) * FOLDS * len(STRENGTHS)
        return len(counts) * (1 + FOLDS) if len(counts) > 1 else 1

    def fitted(
        self,
        answers: "Responses",
        counts: list[int],
        advance: Advance,
        shown: "Picture" = None,
        others: "Responses | None" = None,
    ) -> Found:
        """One K, or the best of several; a fit that stopped early is kept, with a warning."""
        from vseg import choose_segments, reconstruct

        choice = None
        with share(advance, self.steps(counts)) as own:
            if len(counts) > 1:
                choice = choose_segments(answers, segments=counts, progress=own, **self.settings)
                result = choice.result
            else:
                try:
                    result = reconstruct(answers, segments=counts[0], progress=own, **self.settings)
                except NotConverged as error:
                    if error.result is None:
                        raise
                    result = error.result
        if not result.converged:
            kept = f"The fit of {result.maps.segments} segments is kept as it was: {result.solution.status}"
            warnings.warn(f"{kept} Raise --max-iterations.", VsegWarning, stacklevel=2)
        return Found(result, choice)

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


class Believed:
    """The posterior: maps with intervals, smoothness and K by evidence."""

    columns = (
        "trials", "pairs", "mean_entropy", "entropy_low", "entropy_high", "expected_error", "segments", "segments_won",
    )  # fmt: skip

    def __init__(self, prior: str, lapses: str, seed: int):
        self.prior = options.choice(prior, "--prior", PRIORS)
        self.lapses, self.seed = _lapses(lapses), seed

    def steps(self, counts: list[int]) -> int:
        """One for each K, and one for the draws; twice where others are fitted before."""
        return (len(counts) + 1) * (2 if self.prior == "group" else 1)

    def fitted(
        self,
        answers: "Responses",
        counts: list[int],
        advance: Advance,
        shown: "Picture" = None,
        others: "Responses | None" = None,
    ) -> Found:
        """One K, or the one with the most evidence. The group prior is for one of several: the others make it."""
        from vseg import posterior

        if self.prior == "image" and shown is None:
            raise InvalidInput(
                "--prior image looks at the picture, and there is none; name it with --picture."
            )
        settings: dict[str, Any] = {
            "segments": counts if len(counts) > 1 else counts[0], "lapses": self.lapses, "seed": self.seed,
        }  # fmt: skip
        with share(advance, self.steps(counts)) as own:
            if self.prior == "group" and others is not None:
                settings["group"] = posterior(others, **settings, progress=own).maps
            prior = "spatial" if self.prior == "group" and others is None else self.prior
            return Found(posterior(answers, prior=prior, image=shown, **settings, progress=own))

    def draw(self, folder: Path, found: Found, shown: "Picture", *, top: bool) -> None:
        """maps.png, where an image prior stands below the maps without it; intervals.png."""
        from vseg import figures

        plain = getattr(found.result, "spatial", None)
        if plain is None:
            drawn = figures.maps(found.maps, image=shown)
        else:
            drawn = figures.maps(plain.maps, found.maps, image=shown, names=["answers alone", "image prior"])
        drawn.savefig(folder / "maps.png")
        figures.intervals(found.result).savefig(folder / "intervals.png")  # type: ignore[arg-type]


def _lapses(text: str) -> Any:
    """None, estimate, or two shares."""
    if text == "none":
        return None
    if text == "estimate":
        return text
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidInput(
            "--lapses is none, estimate, or two shares such as 0.02,0.05 (of wrong 'same', of wrong 'different'), "
            f"got {text!r}."
        )
    return tuple(options.number(part, "--lapses", 0.0, 0.5) for part in parts)
