"""Fits by the posterior, for `fit_dataset(method="posterior")`."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from vseg._support.progress import Progress, part_progress
from vseg.bayes.groups import posteriors
from vseg.bayes.posterior import DRAWS, Posterior, posterior
from vseg.data.responses import Responses
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation.random_effects import measure_entropy
from vseg.workflows.fits import Fit, NamedFits, Pixels, collect_warnings

PRIORS = ("spatial", "image", "group")
Lapses = Literal["auto", "none", "estimate"] | tuple[float, float]


class PosteriorMethod:
    """The posterior: maps with intervals; smoothness and K by evidence.

    Parameters
    ----------
    prior : str
        One of PRIORS. With "group", the prior of each participant is made from the others' answers.
    lapses : str or (float, float)
        "none", "estimate", the two lapse rates, or "auto": estimate them where there are catch trials, else none.
    catch : dict of (right, asked) or None
        Catch trials of each participant who had some.
    draws : int or None
        Maps to draw; None for the default of `vseg.posterior`.
    seed : int
    """

    columns = (
        "trials", "pairs", "mean_entropy", "entropy_low", "entropy_high", "entropy_spread", "expected_error",
        "lapse", "catch_right", "catch_asked", "segments", "segments_won", "kernel",
    )  # fmt: skip

    def __init__(
        self,
        *,
        prior: str = "spatial",
        lapses: Lapses = "auto",
        catch: Mapping[str, tuple[int, int]] | None = None,
        draws: int | None = None,
        seed: int,
    ):
        if prior not in PRIORS:
            raise InvalidInput(f"Unknown prior {prior!r}; choose one of {', '.join(PRIORS)}.")
        if isinstance(lapses, str) and lapses not in ("auto", "none", "estimate"):
            raise InvalidInput(
                f"Lapses are 'auto', 'none', 'estimate' or two rates such as (0.02, 0.05), got {lapses!r}."
            )
        if lapses == "auto":
            lapses = "estimate" if catch else "none"
        self.prior, self.seed = prior, seed
        self.lapses = None if lapses == "none" else lapses
        self.catch = dict(catch or {}) if lapses == "estimate" else {}
        self.draws = DRAWS if draws is None else draws

    def count_steps(self, counts: list[int]) -> int:
        """Count one step for each K, and one for the draws."""
        return len(counts) + 1

    def count_participant_steps(self) -> int:
        """Count one step a participant."""
        return 1

    def fit(self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None) -> Fit:
        """Fit all answers as one observer's, with one K or the most probable of several."""
        self._check_image(pixels)
        catch = self._sum_catch_trials(answers.participants)
        with part_progress(progress, self.count_steps(counts)) as own:
            result = posterior(
                answers,
                prior="image" if self.prior == "image" else "spatial",
                segments=counts if len(counts) > 1 else counts[0],
                lapses=self.lapses,
                catch=(catch["catch_right"], catch["catch_asked"]) if catch else None,
                image=pixels if self.prior == "image" else None,
                seed=self.seed,
                progress=own,
                draws=self.draws,
            )
        for message in _describe_gaps(result):
            warnings.warn(message, VsegWarning, stacklevel=2)
        if result.spatial is not None and result.spatial.segments == result.segments:
            result = result.align_to(result.spatial.maps)  # figures show one above the other
        return Fit(result, details={"settings": self.settings, **catch})

    def fit_participants(
        self, answers: Responses, segments: int, progress: Progress, pixels: Pixels | None
    ) -> NamedFits:
        """Fit each participant, with the others' answers as the prior where that was asked for."""
        self._check_image(pixels)
        with collect_warnings():  # noted with each participant below
            results = posteriors(
                answers,
                segments=segments,
                prior=self.prior,
                lapses=self.lapses,
                catch=self.catch,
                image=pixels if self.prior == "image" else None,
                seed=self.seed,
                progress=progress,
                draws=self.draws,
            )
        for name, result in results.items():
            notes = [*([] if result.converged else [result.diagnostics.message]), *_describe_gaps(result)]
            if self.prior != result.prior:
                notes.append(
                    "There is no other participant to make a group prior from: the prior is spatial."
                )
            details = {"settings": self.settings, **self._sum_catch_trials([name])}
            yield name, Fit(result, details=details, notes=tuple(notes))

    def table_row(self, fit: Fit) -> dict[str, Any]:
        """Return the row of a fit in the table of participants or images."""
        result = _get_posterior(fit)
        more = {
            "entropy_spread": measure_entropy(result).spread, "lapse": sum(result.lapses), **fit.details,
        }  # fmt: skip
        return {column: (result.summary() | more).get(column) for column in self.columns}

    def draw(self, folder: Path, fit: Fit, pixels: Pixels | None, *, top: bool) -> None:
        """Write maps.png, intervals.png and, at the top, segments.png; maps without an image prior come first."""
        from vseg import figures
        from vseg.figures.posteriors import median_maps

        result = _get_posterior(fit)
        if result.spatial is None:
            figure = median_maps(result, image=pixels)
        else:
            figure = median_maps(result.spatial, result, image=pixels, names=["answers alone", "image prior"])
        figure.savefig(folder / "maps.png")
        figures.intervals(result).savefig(folder / "intervals.png")
        if top and result.table is not None:
            figures.evidence(result.table).savefig(folder / "segments.png")

    def draw_participants(self, folder: Path, fits: dict[str, Fit], pixels: Pixels | None) -> None:
        """Write participants.png and entropies.png."""
        from vseg import figures
        from vseg.figures.posteriors import participant_entropy_maps

        results = {name: _get_posterior(fit) for name, fit in fits.items()}
        participant_entropy_maps(results, pixels).savefig(folder / "participants.png")
        figures.entropies({"": results}).savefig(folder / "entropies.png")

    def describe_participants(self, fits: dict[str, Fit]) -> str:
        """Return for how many participants the evidence chose the group prior, where it was asked for."""
        if self.prior != "group":
            return ""
        chosen = sum(_get_posterior(fit).kernel == "group" for fit in fits.values())
        return f"{chosen} of {len(fits)} with the group's prior."

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for; `compare_groups` warns where two fits differ in it."""
        return {"prior": self.prior, "lapses": "none" if self.lapses is None else self.lapses}

    def _check_image(self, pixels: Pixels | None) -> None:
        if self.prior == "image" and pixels is None:
            raise InvalidInput(
                "The image prior needs the image, and the data set has none; give its file as picture."
            )

    def _sum_catch_trials(self, participants: list[str]) -> dict[str, int]:
        """Return the catch trials of these participants for summary.json; empty where there were none."""
        counts = [self.catch[name] for name in participants if name in self.catch]
        if not counts:
            return {}
        return {
            "catch_right": sum(right for right, _ in counts),
            "catch_asked": sum(asked for _, asked in counts),
        }


def _get_posterior(fit: Fit) -> Posterior:
    assert isinstance(fit.result, Posterior)
    return fit.result


def _describe_gaps(result: Posterior) -> Iterator[str]:
    """Yield a sentence where there are so few answers that the maps mostly follow the prior."""
    locations = len(result.maps.layout)
    if result.trials < locations / 2:
        trials = "trial is" if result.trials == 1 else "trials are"
        yield (
            f"{result.trials} {trials} few for {locations} locations: maps and intervals mostly follow the prior."
        )
    elif result.locations_tested < locations:
        yield (
            f"{locations - result.locations_tested} of {locations} locations were never tested: their maps follow "
            "from the others' by the prior."
        )
