"""How `vseg fit` fits: by the paper's estimator, or by the posterior.

A method has the columns of a table, counts the steps of its progress, fits all answers or everyone's, and draws what
it found.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vseg.cli import options
from vseg.cli.output import Advance, share
from vseg.errors import InvalidInput, NotConverged, VsegWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vseg.bayesian import Posterior, SegmentsTable
    from vseg.maps import Maps
    from vseg.reconstruction import Reconstruction
    from vseg.responses import Responses
    from vseg.selection import SegmentsChoice

    Picture = NDArray[np.uint8] | None

PRIORS = ("spatial", "image", "group")


@dataclass(frozen=True)
class Found:
    """A result, how K was chosen where it was, whose it is, and what was amiss with it."""

    result: "Reconstruction | Posterior"
    choice: "SegmentsChoice | None" = None
    table: "SegmentsTable | None" = None
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def maps(self) -> "Maps":
        """What is reported."""
        return self.result.maps

    @property
    def message(self) -> str:
        """What was chosen, if anything was, what was found, and how the catch trials went."""
        caught = ""
        if "catch_asked" in self.about:
            caught = f"{self.about['catch_right']} of {self.about['catch_asked']} catch trials were right."
        said = self.choice.message if self.choice is not None else ""
        if self.table is not None:
            plausible = ", ".join(map(str, self.table.plausible))
            said = f"K = {self.table.chosen} by evidence (plausible: {plausible})."
        return " ".join(part for part in (said, self.result.message, caught) if part)

    def save(self, folder: Path) -> None:
        """Write maps.npz and summary.json."""
        about: dict[str, Any] = dict(self.about)
        if self.table is not None:
            about |= {"segments_table": self.table.rows(), "segments_plausible": self.table.plausible}
        if self.choice is not None:
            about |= {
                "segments_table": self.choice.table(),
                "segments_by_likelihood": self.choice.by_likelihood,
                "segments_by_empty_maps": self.choice.by_empty_maps,
            }
        self.result.save(folder, about)


@dataclass(frozen=True)
class Refused:
    """Why someone's answers could not be fitted."""

    why: str


Each = Iterator[tuple[str, Found | Refused]]


class Penalised:
    """The paper's estimator: a loss and a penalty on roughness.

    K is chosen from a range by held-out likelihood, with the paper's rule beside it, or by the posterior's evidence.
    """

    columns = ("trials", "pairs", "smoothness", "mean_entropy", "segments", "segments_won")

    def __init__(self, *, by_evidence: bool = False, **settings: Any):
        self.by_evidence, self.settings = by_evidence, settings

    def steps(self, counts: list[int]) -> int:
        """How many steps the progress of one fit, or of one choice of K, counts up to."""
        from vseg.validation import FOLDS, STRENGTHS

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


class Believed:
    """The posterior: maps with intervals, smoothness and K by evidence."""

    columns = (
        "trials", "pairs", "mean_entropy", "entropy_low", "entropy_high", "entropy_spread", "expected_error",
        "lapse", "catch_right", "catch_asked", "segments", "segments_won",
    )  # fmt: skip

    def __init__(
        self, prior: str, lapses: str, seed: int, catch: "Mapping[str, tuple[int, int]] | None" = None
    ):
        """`catch` holds (right, asked) of each participant who had catch trials."""
        self.prior = options.choice(prior, "--prior", PRIORS)
        self.lapses, self.seed = _lapses(lapses, bool(catch)), seed
        self.catch = dict(catch or {}) if self.lapses == "estimate" else {}

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
        about = self._caught(answers.participants)
        with share(advance, self.steps(counts)) as own:
            found = posterior(
                answers,
                prior="image" if self.prior == "image" else "spatial",
                segments=counts if len(counts) > 1 else counts[0],
                lapses=self.lapses,
                catch=(about["catch_right"], about["catch_asked"]) if about else None,
                image=shown if self.prior == "image" else None,
                seed=self.seed,
                progress=own,
            )
        for said in _gaps(found):
            warnings.warn(said, VsegWarning, stacklevel=2)
        if found.spatial is not None and found.spatial.segments == found.segments:
            found = found.aligned_to(found.spatial.maps)  # as they are drawn, one above the other
        return Found(found, about=about)

    def participants(
        self, answers: "Responses", segments: int, advance: Advance, shown: "Picture" = None
    ) -> Each:
        """Everyone, with what the others see as the prior if that was asked for."""
        from vseg.bayesian import posteriors

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
            )
        for name, one in people.items():
            poor = [] if one.converged else [one.diagnostics.message]
            alone = self.prior != one.prior
            notes = [*poor, *_gaps(one), *["Nobody else makes a group prior: it is spatial."] * alone]
            yield name, Found(one, about=self._caught([name]), notes=tuple(notes))

    def numbers(self, found: Found) -> dict[str, Any]:
        """A row of the table of participants or images."""
        from vseg.bayesian.groups import known_entropy

        result: Any = found.result
        more = {"entropy_spread": known_entropy(result).spread, "lapse": sum(result.lapses), **found.about}
        return {column: (result.summary() | more).get(column) for column in self.columns}

    def draw(self, folder: Path, found: Found, shown: "Picture", *, top: bool) -> None:
        """maps.png, where an image prior stands below the maps without it; intervals.png; segments.png."""
        from vseg import figures

        result: Any = found.result
        if result.spatial is None:
            drawn = figures.maps(found.maps, image=shown)
        else:
            drawn = figures.maps(
                result.spatial.maps, found.maps, image=shown, names=["answers alone", "image prior"]
            )
        drawn.savefig(folder / "maps.png")
        figures.intervals(result).savefig(folder / "intervals.png")
        if top and result.table is not None:
            figures.evidence(result.table).savefig(folder / "segments.png")

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


def _evidence(answers: "Responses", counts: list[int], seed: int, advance: Advance) -> "SegmentsTable | None":
    """How probable the answers are under each K."""
    from vseg import posterior
    from vseg.bayesian.draws import CHAINS

    with collected():  # so few draws are of no use, but the evidence needs none
        return posterior(answers, segments=counts, draws=2 * CHAINS, seed=seed, progress=advance).table


def tried(
    method: Penalised | Believed,
    answers: "Responses",
    counts: list[int],
    advance: Advance,
    shown: "Picture",
) -> Found | Refused:
    """A fit with the warnings that came with it as its note, or why there is none."""
    try:
        with collected() as said:
            found = method.fitted(answers, counts, advance, shown)
    except (InvalidInput, NotConverged) as error:
        return Refused(str(error))
    return replace(found, notes=tuple(said))


@contextmanager
def collected() -> Iterator[list[str]]:
    """The sentences of our own warnings, which are not shown; others are."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VsegWarning)
        yield said
    for one in caught:
        if issubclass(one.category, VsegWarning):
            said.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


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
