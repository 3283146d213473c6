"""Fits by the posterior, the default method of `fit_dataset`."""

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vseg._support.progress import Progress, part_progress
from vseg.bayes.groups import posteriors
from vseg.bayes.posterior import BUDGET, DRAWS, Posterior, posterior
from vseg.data.catch_trials import CatchTrials, choose_lapses, sum_catch_trials
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
        "none", "estimate", the two lapse rates, or "auto": see `vseg.data.catch_trials.choose_lapses`.
    catch : dict of (right, asked), optional
        Catch trials of each participant who had some.
    draws, budget : int
        Maps to draw, and draws of each chain at most, as for `vseg.posterior`.
    seed : int
    """

    columns = (
        "trials", "pairs", "mean_entropy", "entropy_low", "entropy_high", "entropy_spread", "entropy_flat",
        "entropy_flat_spread", "expected_error", "lapse", "catch_right", "catch_asked", "segments", "segments_won",
        "kernel", "group_share",
    )  # fmt: skip

    def __init__(
        self,
        *,
        prior: str = "spatial",
        lapses: Lapses = "auto",
        catch: CatchTrials | None = None,
        draws: int = DRAWS,
        budget: int = BUDGET,
        seed: int,
    ):
        if prior not in PRIORS:
            raise InvalidInput(f"Unknown prior {prior!r}; choose one of {', '.join(PRIORS)}.")
        if isinstance(lapses, str) and lapses not in ("auto", "none", "estimate"):
            raise InvalidInput(
                f"Lapses are 'auto', 'none', 'estimate' or two rates such as (0.02, 0.05), got {lapses!r}."
            )
        self.prior, self.draws, self.budget, self.seed = prior, draws, budget, seed
        self.lapses = choose_lapses(catch or {}) if lapses == "auto" else None if lapses == "none" else lapses
        self.catch = dict(catch or {}) if self.lapses == "estimate" else {}

    def count_steps(self, counts: list[int]) -> int:
        """Count one step for each K, and one for the draws."""
        return len(counts) + 1

    def count_participant_steps(self, counts: list[int]) -> int:
        """Count one step a participant."""
        return 1

    def fit(self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None) -> Fit:
        """Fit all answers as one observer's, with one K or the most probable of several."""
        self._check_image(pixels)
        with part_progress(progress, self.count_steps(counts)) as own:
            result = self._compute(
                answers,
                counts,
                pixels,
                prior="spatial" if self.prior == "group" else self.prior,
                progress=own,
            )
        for message in _describe_gaps(result):
            warnings.warn(message, VsegWarning, stacklevel=2)
        if result.spatial is not None and result.spatial.segments == result.segments:
            result = result.align_to(result.spatial.maps)  # figures show one above the other
        return Fit(result, details=self._details(answers.participants))

    def fit_participants(
        self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None
    ) -> NamedFits:
        """Fit each participant, with the others' answers as the prior where that was asked for.

        Otherwise a participant's posterior is that of their answers alone, with the same seed.
        """
        self._check_image(pixels)
        with collect_warnings():  # noted with each participant below
            results = (
                self._fit_with_group_prior(answers, counts, progress)
                if self.prior == "group"
                else self._fit_separately(answers, counts, progress, pixels)
            )
        for name, result in results.items():
            notes = [*([] if result.converged else [result.diagnostics.message]), *_describe_gaps(result)]
            if self.prior != result.prior:
                notes.append(
                    "There is no other participant to make a group prior from: the prior is spatial."
                )
            yield name, Fit(result, details=self._details([name]), notes=tuple(notes))

    def _fit_with_group_prior(
        self, answers: Responses, counts: list[int], progress: Progress
    ) -> dict[str, Posterior]:
        return posteriors(
            answers, segments=counts, segments_by="participant", prior="group", lapses=self.lapses, catch=self.catch,
            draws=self.draws, budget=self.budget, seed=self.seed, progress=progress,
        )  # fmt: skip

    def _fit_separately(
        self, answers: Responses, counts: list[int], progress: Progress, pixels: Pixels | None
    ) -> dict[str, Posterior]:
        """Return each participant's posterior, several at a time with one thread each."""

        def fit(name: str) -> Posterior:
            own = answers.select(participant=name)
            result = self._compute(own, counts, pixels, prior=self.prior, threads=1)
            progress(1)
            return result

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return dict(zip(answers.participants, pool.map(fit, answers.participants), strict=True))

    def _compute(
        self,
        answers: Responses,
        counts: list[int],
        pixels: Pixels | None,
        *,
        prior: str,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Posterior:
        return posterior(
            answers, segments=counts if len(counts) > 1 else counts[0], prior=prior, lapses=self.lapses,
            catch=sum_catch_trials(self.catch, answers.participants), draws=self.draws, budget=self.budget,
            image=pixels if prior == "image" else None, seed=self.seed, threads=threads, progress=progress,
        )  # fmt: skip

    def table_row(self, fit: Fit) -> dict[str, Any]:
        """Return the row of a fit in the table of participants or images."""
        result = _get_posterior(fit)
        measured = measure_entropy(result)
        more = {
            "entropy_spread": measured.spread, "entropy_flat": measured.flat,
            "entropy_flat_spread": measured.flat_spread, "lapse": sum(result.lapses), **fit.details,
        }  # fmt: skip
        return {column: (result.summary() | more).get(column) for column in self.columns}

    def draw(self, folder: Path, fit: Fit, pixels: Pixels | None, *, top: bool) -> None:
        """Write maps.png, intervals.png and, where K was chosen, segments.png; maps without the image come first."""
        from vseg import figures

        result = _get_posterior(fit)
        if result.spatial is None:
            figure = figures.maps(result, image=pixels)
        else:
            figure = figures.maps(
                result.spatial, result, image=pixels, names=["answers alone", "image prior"]
            )
        figure.savefig(folder / "maps.png")
        figures.intervals(result).savefig(folder / "intervals.png")
        if result.table is not None:
            figures.evidence(result.table).savefig(folder / "segments.png")

    def draw_participants(self, folder: Path, fits: dict[str, Fit], pixels: Pixels | None) -> None:
        """Write participants.png and entropies.png."""
        from vseg import figures

        results = {name: _get_posterior(fit) for name, fit in fits.items()}
        figures.participants(results, pixels).savefig(folder / "participants.png")
        figures.entropies({"": results}).savefig(folder / "entropies.png")

    def describe_participants(self, fits: dict[str, Fit]) -> str:
        """Return how much of the prior the others' answers make up, if a group prior was asked for."""
        shares = [share for fit in fits.values() if (share := _get_posterior(fit).group_share) is not None]
        if not shares:
            return ""
        return f"The others' maps make up {np.median(shares):.0%} of the prior (median over participants)."

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for; `compare_groups` warns where two fits differ in it."""
        return {"prior": self.prior, "lapses": "none" if self.lapses is None else self.lapses}

    def _check_image(self, pixels: Pixels | None) -> None:
        if self.prior == "image" and pixels is None:
            raise InvalidInput(
                "The image prior needs the image, and the data set has none; give its file as picture."
            )

    def _details(self, participants: list[str]) -> dict[str, Any]:
        """Return what summary.json says before the result: the settings, and these participants' catch trials."""
        catch = sum_catch_trials(self.catch, participants)
        counts = {} if catch is None else dict(zip(("catch_right", "catch_asked"), catch, strict=True))
        return {"settings": self.settings, **counts}


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
