"""compare_groups(): the mean entropies of two groups.

Those of posteriors are compared with every participant's own uncertainty carried through; those of the penalised
estimator, which has none, by Welch's test and Cohen's d, as in the paper.
"""

import csv
import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypedDict

from vseg._support.text import format_count
from vseg.errors import InvalidInput, NotFound, VsegWarning
from vseg.evaluation.group_tests import GroupComparison, compare_values
from vseg.evaluation.random_effects import (
    Measurement,
    UncertainComparison,
    compare_entropies,
    compare_measurements,
)
from vseg.workflows.fit_dataset import DatasetFit, Method

FILES = ("comparison.json", "entropies.csv", "entropies.png")
COLUMNS = (
    "mean_entropy", "entropy_spread", "entropy_low", "entropy_high", "entropy_flat", "entropy_flat_spread",
)  # fmt: skip
PENALISED_SETTINGS: tuple[Literal["loss", "kernel", "weights"], ...] = ("loss", "kernel", "weights")
MAX_LISTED = 5
MAX_RATIO = 1.5  # of the groups' median numbers of answers

Measurements = dict[str, Measurement]
Counts = dict[str, int]


class FitDescription(TypedDict):
    """How a fit was made; None where its summary.json does not say, or where the method has no such setting."""

    method: Method
    segments: int | None
    segments_by: str
    prior: str | None
    lapses: str | list[float] | None
    smoothness: list[float] | None  # the smallest and the largest λ of the participants
    loss: str | None
    kernel: str | None
    weights: str | None
    version: str | None


@dataclass(frozen=True)
class _ParticipantFits:
    """The fitted participants of one fit, all participants it lists, and how it was made."""

    name: str
    measurements: Measurements
    segments: Counts
    trials: Counts
    listed: frozenset[str]
    description: FitDescription


@dataclass(frozen=True, eq=False)
class EntropyComparison:
    """Two groups' mean entropies compared, as `compare_groups` returns it; `str` says it in a sentence.

    Attributes
    ----------
    groups : dict of dict of Measurement
        The name of each group, and the mean entropy of each of its participants: by the posterior, with its interval,
        and under a flat prior, by which the groups are compared; or by the penalised estimator, without an interval.
    segments : dict of dict of int
        The number of segments K of each participant, in the same order.
    comparison : UncertainComparison
        The difference in nats, the second group minus the first, its interval, p and more. Of different participants'
        penalised fits this is Welch's test.
    welch : GroupComparison or None
        Of penalised fits: both means, Welch's t and Cohen's d with its interval; None of posteriors.
    relative : UncertainComparison or None
        Where participants have different K: the same for the entropy as a share of log K, its largest value.
    fits : dict
        How each fit was made: method, segments, prior and lapses, or smoothness, loss, kernel and weights; version.
    """

    groups: dict[str, Measurements]
    segments: dict[str, Counts]
    comparison: UncertainComparison
    relative: UncertainComparison | None
    fits: dict[str, FitDescription]
    welch: GroupComparison | None = None

    def __str__(self) -> str:
        text = f"{' vs '.join(self.groups)}: {self._describe()}"
        if self.relative is None:
            return text
        counts = sorted({count for group in self.segments.values() for count in group.values()})
        return (
            f"{text} Participants have {counts[0]} to {counts[-1]} segments, and the entropy of K segments is at most "
            f"log K. As shares of log K: {self.relative}."
        )

    def _describe(self) -> str:
        """Return a sentence about the difference, and which estimator it is about."""
        if self.welch is None:
            return f"{self.comparison}."
        text = f"{self.welch} (penalised estimator, {_describe_smoothness(self.fits.values())})."
        if not self.comparison.paired:
            return text
        within, d = self.comparison, self.comparison.difference
        p_value = f"p = {within.p:.2g}" if within.p >= 0.001 else "p < 0.001"
        return (
            f"{text} Welch's test takes the participants of both groups for different ones; compared with themselves, "
            f"they differ by {d.value:.3f} [{d.low:.3f}, {d.high:.3f}] nats "
            f"({within.confidence:.0%}), paired t test, {p_value}."
        )

    def summary(self) -> dict[str, Any]:
        """Return the numbers that `save` writes to comparison.json."""
        return {
            "names": list(self.groups),
            "message": self._describe(),
            **asdict(self.comparison),
            "difference": self.comparison.difference._asdict(),
            "welch": None if self.welch is None else _describe_welch(self.welch),
            "relative": None if self.relative is None else _describe_relative(self.relative),
            "fits": self.fits,
        }

    def save(self, folder: str | Path) -> None:
        """Write comparison.json, entropies.csv and entropies.png into a folder, which is created if necessary."""
        from vseg import figures

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        figures.entropies(self.groups).savefig(folder / "entropies.png")
        with open(folder / "entropies.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            columns = COLUMNS if self.welch is None else COLUMNS[:1]  # a penalised fit has no interval
            table.writerow(["group", "participant", *columns, "segments"])
            table.writerows(
                [group, name, *measured[: len(columns)], self.segments[group].get(name)]
                for group, members in self.groups.items()
                for name, measured in members.items()
            )
        text = json.dumps(self.summary(), indent=2, ensure_ascii=False)
        (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")


def compare_groups(
    first: str | Path | DatasetFit,
    second: str | Path | DatasetFit | None = None,
    *,
    groups: str | Path | Mapping[str, str] | None = None,
    names: tuple[str, str] | None = None,
) -> EntropyComparison:
    """Compare the mean entropies of two groups of participants, or of the same participants about two images.

    This is what `vseg groups` runs. Participants whose entropy is known less precisely count less; participants in both
    groups are compared with themselves. Each participant's estimate is taken under a flat prior, since what the prior
    adds to every estimate does not average out. Entropies are compared in nats. Where K was chosen for each participant
    and differs, they are also compared as shares of log K, the largest entropy of K segments; fits with another K for
    all participants are refused.

    Fits by the penalised estimator (the paper's) have no uncertainty: all participants count alike, and the result is
    Welch's test with Cohen's d (`welch`). Both fits must be of one method.

    Parameters
    ----------
    first : str, Path or DatasetFit
        A fit by participant, of either method: what `fit_dataset` returned, or the folder it was saved to.
    second : str, Path or DatasetFit, optional
        The fit of the second group.
    groups : str, Path or mapping, optional
        With one fit: a CSV file with the columns participant and group, or a dict of each participant's group. There
        must be two groups.
    names : (str, str), optional
        Names of the two fits; by default those of the folders, or "first" and "second".

    Returns
    -------
    EntropyComparison
        With `comparison`, which has the difference (second minus first) and its interval, and `save(folder)`, which
        writes what `vseg groups` writes.

    Examples
    --------
    >>> import vseg
    >>> from vseg.data.responses import concatenate
    >>> def fit_group(entropy, names):
    ...     truth = vseg.stimuli.random_maps(vseg.Grid(4), segments=2, entropy=entropy, seed=0)
    ...     pairs = vseg.designs.all_pairs(truth.layout)
    ...     each = [vseg.simulate(truth, pairs, seed=n, participant=name) for n, name in enumerate(names)]
    ...     settings = {"segments": 2, "by": "participant", "method": "posterior", "draws": 256, "seed": 0}
    ...     return vseg.fit_dataset(concatenate(each), **settings)
    >>> compared = vseg.compare_groups(fit_group(0.1, "abc"), fit_group(0.5, "def"))
    >>> bool(compared.comparison.difference.value > 0)
    True
    """
    if groups is not None:
        if second is not None:
            raise InvalidInput(
                "A table of groups divides the participants of one fit; leave the second fit out."
            )
        name = names[0] if names else "the fit" if isinstance(first, DatasetFit) else str(first)
        return _compare_within(_read_fit(first, name), groups)
    if second is None:
        raise InvalidInput(
            "Expected two fits, or one fit and a table of its participants' groups; got one fit."
        )
    fits = [
        _read_fit(fit, name)
        for fit, name in zip((first, second), names or _name_fits(first, second), strict=True)
    ]
    measurements = {fit.name: fit.measurements for fit in fits}
    descriptions = {fit.name: fit.description for fit in fits}
    _check_alike(descriptions)
    _check_sizes(measurements)
    _check_answers({fit.name: fit.trials for fit in fits})
    return _compare(measurements, {fit.name: fit.segments for fit in fits}, descriptions)


def _compare(
    groups: dict[str, Measurements], segments: dict[str, Counts], fits: dict[str, FitDescription]
) -> EntropyComparison:
    """Compare two groups in nats and, if their participants have different K, as shares of log K."""
    comparison, relative, welch = compare_entropies(*groups.values()), None, None
    if {fit["method"] for fit in fits.values()} == {"penalised"}:
        entropies = ([one.value for one in members.values()] for members in groups.values())
        welch = compare_values(*entropies, quantity="mean entropy", unit="nats")
    counts = [segments[group].get(name) for group, members in groups.items() for name in members]
    if None not in counts and len(set(counts)) > 1:
        shares = (
            {
                name: Measurement(*(value / math.log(segments[group][name]) for value in one))
                for name, one in members.items()
            }
            for group, members in groups.items()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)  # the comparison in nats has warned
            relative = compare_measurements(*shares, quantity="mean entropy / log K")
    return EntropyComparison(groups, segments, comparison, relative, fits, welch)


def _describe_welch(welch: GroupComparison) -> dict[str, Any]:
    return {**asdict(welch), "welch": welch.welch._asdict(), "cohens_d": welch.cohens_d._asdict()}


def _describe_smoothness(fits: Iterable[FitDescription]) -> str:
    """Return the λ of penalised fits, or its range where it was chosen for each participant."""
    values = [value for fit in fits for value in fit["smoothness"] or ()]
    if not values:
        return "λ unknown"
    low, high = min(values), max(values)
    return f"λ = {low:g}" if low == high else f"λ from {low:g} to {high:g}, chosen for each participant"


def _describe_relative(relative: UncertainComparison) -> dict[str, Any]:
    return {"message": str(relative), **asdict(relative), "difference": relative.difference._asdict()}


def _compare_within(fit: _ParticipantFits, groups: str | Path | Mapping[str, str]) -> EntropyComparison:
    """Compare two groups of the participants of one fit."""
    source = str(groups) if isinstance(groups, (str, Path)) else "The table of groups"
    group_by_name = _read_groups(Path(groups)) if isinstance(groups, (str, Path)) else dict(groups)
    found: dict[str, Measurements] = {}
    for name, group in group_by_name.items():
        if name in fit.measurements:
            found.setdefault(group, {})[name] = fit.measurements[name]
    unmatched = _describe_unmatched(group_by_name, fit, source)
    if len(found) != 2:
        raise InvalidInput(
            f"{source} puts the participants of {fit.name} into {format_count(len(found), 'group')} "
            f"({', '.join(found) or 'none'}); expected two. {unmatched}".rstrip()
        )
    _check_sizes(found, unmatched)
    left = [name for name in fit.measurements if name not in group_by_name]
    verb = "is" if len(left) == 1 else "are"
    without = f"{_list_names(left)} of {fit.name} {verb} not in {source} and {verb} left out." if left else ""
    for message in filter(None, (without, unmatched)):
        warnings.warn(message, VsegWarning, stacklevel=3)
    segments, trials = (
        {
            group: {name: counts[name] for name in members if name in counts}
            for group, members in found.items()
        }
        for counts in (fit.segments, fit.trials)
    )
    _check_answers(trials)
    return _compare(found, segments, {fit.name: fit.description})


def _name_fits(first: str | Path | DatasetFit, second: str | Path | DatasetFit) -> tuple[str, str]:
    names = _default_name(first, "first"), _default_name(second, "second")
    if names[0] == names[1]:
        names = str(first), str(second)
    if names[0] == names[1]:
        raise InvalidInput(f"Both groups are {first}; give another folder, or a table of groups.")
    return names


def _default_name(fit: str | Path | DatasetFit, otherwise: str) -> str:
    return otherwise if isinstance(fit, DatasetFit) else Path(fit).resolve().name


def _read_fit(fit: str | Path | DatasetFit, name: str) -> _ParticipantFits:
    """Read the participants' entropies; those who could not be fitted are only listed."""
    if isinstance(fit, DatasetFit):
        return _read_result(fit, name)
    folder = Path(fit)
    path = folder / "participants.csv"
    rows = _read_rows(
        path, ("participant", "mean_entropy"), "a fit by participant and with this version of vseg"
    )
    is_penalised = bool(rows) and "smoothness" in rows[0]
    columns = ("mean_entropy", "smoothness") if is_penalised else COLUMNS
    if missing := [column for column in columns if rows and column not in rows[0]]:
        raise InvalidInput(
            f"{path} has no column {missing[0]}; expected a fit by participant and with this version of vseg."
        )
    fitted = [row for row in rows if row["mean_entropy"]]
    try:
        numbers = {row["participant"]: [float(row[column]) for column in columns] for row in fitted}
    except ValueError:
        numbers = {}
    if not numbers or not all(math.isfinite(value) for one in numbers.values() for value in one):
        raise InvalidInput(f"{path} has no numbers in the columns {', '.join(columns)}; fit again.")
    measured = {name: _measure(one, is_penalised) for name, one in numbers.items()}
    listed = frozenset(row["participant"] for row in rows)
    smoothness = [one[1] for one in numbers.values()] if is_penalised else []
    description = _read_description(folder / "summary.json", smoothness)
    segments, trials = (
        {row["participant"]: int(row[column]) for row in fitted if row.get(column, "").isdecimal()}
        for column in ("segments", "trials")
    )
    return _ParticipantFits(name, measured, segments, trials, listed, description)


def _read_result(fit: DatasetFit, name: str) -> _ParticipantFits:
    if fit.by != "participant" or fit.together is None:
        raise InvalidInput("Expected fits by participant; fit_dataset(…, by='participant') makes them.")
    is_penalised = "smoothness" in fit.method.columns
    fitted = [row for row in fit.rows if row["participant"] in fit.each]
    columns = ("mean_entropy",) if is_penalised else COLUMNS
    measured = {
        row["participant"]: _measure([row[column] for column in columns], is_penalised) for row in fitted
    }
    smoothness = [row["smoothness"] for row in fitted] if is_penalised else []
    listed = frozenset([*fit.each, *fit.skipped])
    summary = {**fit.together.details, **fit.together.result.summary()}
    segments = {participant: own.maps.segments for participant, own in fit.each.items()}
    trials = {row["participant"]: row["trials"] for row in fitted}
    return _ParticipantFits(name, measured, segments, trials, listed, _describe_fit(summary, smoothness))


def _measure(numbers: Sequence[float], is_penalised: bool) -> Measurement:
    """Return a participant's entropy; that of a penalised fit is taken as exact, since its error is not known."""
    return Measurement(numbers[0], 0.0) if is_penalised else Measurement(*numbers)


def _read_description(path: Path, smoothness: Sequence[float]) -> FitDescription:
    """Read from summary.json how a fit was made."""
    try:
        summary = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return _describe_fit(summary, smoothness)
    except ValueError:
        raise InvalidInput(f"{path} is not JSON; fit again.") from None


def _describe_fit(summary: Mapping[str, Any], smoothness: Sequence[float]) -> FitDescription:
    """Describe a fit; `smoothness` has the λ of each participant of a penalised one, and is empty for a posterior."""
    settings = summary.get("settings") or {"prior": None, "lapses": None}
    lapses = settings.get("lapses")
    return {
        "method": "penalised" if smoothness else "posterior",
        "segments": summary.get("segments"),
        "segments_by": summary.get("segments_by", "all"),
        "prior": settings.get("prior"),
        "lapses": list(lapses) if isinstance(lapses, tuple) else lapses,
        "smoothness": [min(smoothness), max(smoothness)] if smoothness else None,
        "loss": summary.get("loss") if smoothness else None,
        "kernel": summary.get("kernel") if smoothness else None,
        "weights": summary.get("weights") if smoothness else None,
        "version": summary.get("version"),
    }


def _check_alike(fits: Mapping[str, FitDescription]) -> None:
    """Refuse fits by two methods, or with another K for all: their entropies cannot be compared; warn of the rest."""
    (first, one), (second, other) = fits.items()
    if one["method"] != other["method"]:
        raise InvalidInput(
            f"{first} was fitted with the method {one['method']} and {second} with the method {other['method']}, whose "
            "entropies cannot be compared; fit both with the same method."
        )
    has_one_count = one["segments_by"] == other["segments_by"] == "all"
    if (
        has_one_count
        and None not in (one["segments"], other["segments"])
        and one["segments"] != other["segments"]
    ):
        raise InvalidInput(
            f"{first} has {one['segments']} segments and {second} {other['segments']}, whose entropies cannot be "
            "compared; fit both with the same number of segments, or choose it for each participant."
        )
    known_by: Literal["loss", "prior"] = "loss" if one["method"] == "penalised" else "prior"
    unknown = [name for name, fit in fits.items() if fit[known_by] is None]
    if unknown:
        warnings.warn(
            f"summary.json does not say how {_list_names(unknown)} {'was' if len(unknown) == 1 else 'were'} fitted, so "
            "it is unknown whether both fits used the same settings; fit again.",
            VsegWarning,
            stacklevel=3,
        )
        return
    differences = []
    if one["segments_by"] != other["segments_by"]:
        own, common = (first, second) if one["segments_by"] == "participant" else (second, first)
        differences.append(f"{own} has a number of segments for each participant, {common} one for all")
    if one["lapses"] != other["lapses"]:
        differences.append(
            f"{first} {_describe_lapses(one['lapses'])}, {second} {_describe_lapses(other['lapses'])}"
        )
    if one["prior"] != other["prior"]:
        differences.append(f"{first} has the {one['prior']} prior, {second} the {other['prior']} prior")
    for setting in PENALISED_SETTINGS:
        if one[setting] != other[setting]:
            differences.append(f"{first} has the {setting} {one[setting]}, {second} {other[setting]}")
    if (
        _is_given(one["smoothness"])
        and _is_given(other["smoothness"])
        and one["smoothness"] != other["smoothness"]
    ):
        lambdas = [_describe_smoothness([fit]) for fit in (one, other)]
        differences.append(f"{first} has {lambdas[0]}, {second} {lambdas[1]}")
    if one["version"] != other["version"]:
        differences.append(f"{first} is of vseg {one['version']}, {second} of {other['version']}")
    if differences:
        warnings.warn(
            f"{'; '.join(differences)}: fit both with the same settings.", VsegWarning, stacklevel=3
        )


def _is_given(smoothness: list[float] | None) -> bool:
    """Return whether all participants have one λ, so that it was not chosen for each."""
    return smoothness is not None and smoothness[0] == smoothness[1]


def _describe_lapses(lapses: str | list[float] | None) -> str:
    if isinstance(lapses, list):
        return f"took lapses to be {lapses[0]:g} and {lapses[1]:g}"
    return "estimated lapses" if lapses == "estimate" else "assumed no lapses"


def _check_sizes(groups: Mapping[str, Measurements], unmatched: str = "") -> None:
    for group, members in groups.items():
        if len(members) < 2:
            raise InvalidInput(
                f"Group {group} has one participant ({', '.join(members)}); 2 are needed. {unmatched}".rstrip()
            )


def _check_answers(trials: Mapping[str, Counts]) -> None:
    """Warn if one group has far fewer answers: entropies from few answers depend on the prior."""
    if not all(trials.values()):
        return
    (few, fewer), (many, more) = sorted(
        ((group, median(counts.values())) for group, counts in trials.items()), key=lambda item: item[1]
    )
    if more > MAX_RATIO * fewer:
        warnings.warn(
            f"Participants of {few} gave {fewer:g} answers each (median), those of {many} {more:g}: what the model "
            "assumes changes the entropies of one group more than those of the other, so a small difference may come "
            "from that; compare groups with the same number of answers.",
            VsegWarning,
            stacklevel=3,
        )


def _read_groups(table: Path) -> dict[str, str]:
    """Return each participant's group."""
    groups: dict[str, str] = {}
    for row in _read_rows(table, ("participant", "group"), "a row a participant"):
        name, group = row["participant"], row["group"]
        if groups.setdefault(name, group) != group:
            raise InvalidInput(
                f"{table} puts {name} into {groups[name]} and {group}; expected one group each."
            )
    return groups


def _describe_unmatched(groups: Mapping[str, str], fit: _ParticipantFits, source: str) -> str:
    """Return a sentence about participants in the table who are not in the fit or could not be fitted."""
    others = [name for name in groups if name not in fit.measurements]
    unknown = [name for name in others if name not in fit.listed]
    unfitted = [name for name in others if name in fit.listed]
    parts = []
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        parts.append(f"{_list_names(unknown)}, who {verb} not in {fit.name}")
    if unfitted:
        parts.append(f"{_list_names(unfitted)}, who could not be fitted")
    return f"{source} also names {'; and '.join(parts)}." if parts else ""


def _read_rows(path: Path, columns: tuple[str, ...], expected: str) -> list[dict[str, str]]:
    if not path.is_file():
        raise NotFound(f"No file {path}; expected {expected}.")
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise InvalidInput(f"{path} has no column {missing[0]}; expected {expected}.")
        return list(reader)


def _list_names(names: list[str]) -> str:
    if len(names) > MAX_LISTED:
        return f"{', '.join(names[:MAX_LISTED])} and {len(names) - MAX_LISTED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
