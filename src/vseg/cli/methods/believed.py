"""`vseg fit --method posterior`: maps with intervals."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vseg.cli import options
from vseg.cli.methods.found import Each, Found, collected
from vseg.cli.output import Advance, share
from vseg.errors import InvalidInput, VsegWarning

if TYPE_CHECKING:
    from vseg.bayes import Posterior
    from vseg.cli.methods.found import Picture
    from vseg.data.responses import Responses

PRIORS = ("spatial", "image", "group")


class Believed:
    """The posterior: maps with intervals, smoothness and K by evidence."""

    columns = (
        "trials", "pairs", "mean_entropy", "entropy_low", "entropy_high", "entropy_spread", "expected_error",
        "lapse", "catch_right", "catch_asked", "segments", "segments_won", "kernel",
    )  # fmt: skip

    def __init__(
        self,
        prior: str,
        lapses: str,
        seed: int,
        catch: "Mapping[str, tuple[int, int]] | None" = None,
        draws: int | None = None,
    ):
        """`catch` holds (right, asked) of each participant who had catch trials; `draws` as many as usual, if None."""
        self.prior = options.choice(prior, "--prior", PRIORS)
        self.lapses, self.seed = _lapses(lapses, bool(catch)), seed
        self.catch = dict(catch or {}) if self.lapses == "estimate" else {}
        self.draws = {} if draws is None else {"draws": draws}

    def steps(self, counts: list[int]) -> int:
        """One for each K, and one for the draws."""
        return len(counts) + 1

    def steps_each(self) -> int:
        """One a participant."""
        return 1

    def fitted(
        self, answers: "Responses", counts: list[int], advance: Advance, shown: "Picture" = None
    ) -> Found:
        """All answers as one observer's, with one K or the one of most evidence."""
        from vseg import posterior

        self._check(shown)
        caught = self._caught(answers.participants)
        with share(advance, self.steps(counts)) as own:
            found = posterior(
                answers,
                prior="image" if self.prior == "image" else "spatial",
                segments=counts if len(counts) > 1 else counts[0],
                lapses=self.lapses,
                catch=(caught["catch_right"], caught["catch_asked"]) if caught else None,
                image=shown if self.prior == "image" else None,
                seed=self.seed,
                progress=own,
                **self.draws,
            )
        for said in _gaps(found):
            warnings.warn(said, VsegWarning, stacklevel=2)
        if found.spatial is not None and found.spatial.segments == found.segments:
            found = found.aligned_to(found.spatial.maps)  # as they are drawn, one above the other
        return Found(found, about={"settings": self.settings, **caught})

    def participants(
        self, answers: "Responses", segments: int, advance: Advance, shown: "Picture" = None
    ) -> Each:
        """Everyone, with what the others see as the prior if that was asked for."""
        from vseg.bayes import posteriors

        self._check(shown)
        with collected():  # noted with each
            people = posteriors(
                answers,
                segments=segments,
                prior=self.prior,
                lapses=self.lapses,
                catch=self.catch,
                image=shown if self.prior == "image" else None,
                seed=self.seed,
                progress=advance,
                **self.draws,
            )
        for name, one in people.items():
            poor = [] if one.converged else [one.diagnostics.message]
            alone = self.prior != one.prior
            notes = [*poor, *_gaps(one), *["Nobody else makes a group prior: it is spatial."] * alone]
            about = {"settings": self.settings, **self._caught([name])}
            yield name, Found(one, about=about, notes=tuple(notes))

    def numbers(self, found: Found) -> dict[str, Any]:
        """A row of the table of participants or images."""
        from vseg.evaluation.random_effects import known_entropy

        result: Any = found.result
        more = {"entropy_spread": known_entropy(result).spread, "lapse": sum(result.lapses), **found.about}
        return {column: (result.summary() | more).get(column) for column in self.columns}

    def draw(self, folder: Path, found: Found, shown: "Picture", *, top: bool) -> None:
        """maps.png, where an image prior stands below the maps without it; intervals.png; segments.png."""
        from vseg import figures
        from vseg.figures.posteriors import medians

        result: Any = found.result
        if result.spatial is None:
            drawn = medians(result, image=shown)
        else:
            drawn = medians(result.spatial, result, image=shown, names=["answers alone", "image prior"])
        drawn.savefig(folder / "maps.png")
        figures.intervals(result).savefig(folder / "intervals.png")
        if top and result.table is not None:
            figures.evidence(result.table).savefig(folder / "segments.png")

    def draw_people(self, folder: Path, each: "Mapping[str, Posterior]", shown: "Picture") -> None:
        """participants.png and entropies.png."""
        from vseg import figures
        from vseg.figures.posteriors import people

        people(each, shown).savefig(folder / "participants.png")
        figures.entropies({"": each}).savefig(folder / "entropies.png")

    def about_people(self, each: "Mapping[str, Posterior]") -> str:
        """Of how many the evidence chose the prior that the others make."""
        if self.prior != "group":
            return ""
        return f"{sum(one.kernel == 'group' for one in each.values())} of {len(each)} with the group's prior."

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for, by which `vseg groups` tells fits that cannot be compared."""
        return {"prior": self.prior, "lapses": "none" if self.lapses is None else self.lapses}

    def _check(self, shown: "Picture") -> None:
        if self.prior == "image" and shown is None:
            raise InvalidInput(
                "--prior image looks at the picture, and there is none; name it with --picture."
            )

    def _caught(self, names: list[str]) -> dict[str, Any]:
        """The catch trials of these people, for summary.json; nothing where there were none."""
        found = [self.catch[name] for name in names if name in self.catch]
        if not found:
            return {}
        return {
            "catch_right": sum(right for right, _ in found),
            "catch_asked": sum(asked for _, asked in found),
        }


def _gaps(found: "Posterior") -> Iterator[str]:
    """Where there are hardly any answers, the maps are what the prior expects."""
    locations = len(found.maps.layout)
    if found.trials < locations / 2:
        trials = "trial is" if found.trials == 1 else "trials are"
        yield (
            f"{found.trials} {trials} few for {locations} locations: maps and intervals are mostly what the prior "
            "expects of any map."
        )
    elif found.locations_tested < locations:
        yield (
            f"{locations - found.locations_tested} of {locations} locations were never tested: their maps take after "
            "the others."
        )


def _lapses(text: str, caught: bool) -> Any:
    """None, estimate, or two shares; auto estimates them where there are catch trials."""
    if text == "auto":
        return "estimate" if caught else None
    if text == "none":
        return None
    if text == "estimate":
        return text
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidInput(
            "--lapses is auto, none, estimate, or two shares such as 0.02,0.05 (of wrong 'same', of wrong "
            f"'different'), got {text!r}."
        )
    return tuple(options.number(part, "--lapses", 0.0, 0.5) for part in parts)
