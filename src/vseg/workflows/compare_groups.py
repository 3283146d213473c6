"""compare_groups(): the mean entropies of two groups, with every participant's own uncertainty carried through."""

import csv
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypedDict

from vseg._support.text import format_count
from vseg.errors import InvalidInput, NotFound, VsegWarning
from vseg.evaluation.random_effects import (
    Measurement,
    UncertainComparison,
    compare_entropies,
    compare_measurements,
)
from vseg.workflows.fit_dataset import DatasetFit

FILES = ("comparison.json", "entropies.csv", "entropies.png")
COLUMNS = (
    "mean_entropy", "entropy_spread", "entropy_low", "entropy_high", "entropy_flat", "entropy_flat_spread",
)  # fmt: skip
MAX_LISTED = 5
MAX_RATIO = 1.5  # of the groups' median numbers of answers

Measurements = dict[str, Measurement]
Counts = dict[str, int]


class FitDescription(TypedDict):
    """How a fit was made; None where its summary.json does not say."""

    segments: int | None
    segments_by: str
    prior: str | None
    lapses: str | list[float] | None
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
        and under a flat prior, by which the groups are compared.
    segments : dict of dict of int
        The number of segments K of each participant, in the same order.
    comparison : UncertainComparison
        The difference in nats, the second group minus the first, its interval, p and more.
    relative : UncertainComparison or None
        Where participants have different K: the same for the entropy as a share of log K, its largest value.
    fits : dict
        How each fit was made: segments, prior, lapses, version.
    """

    groups: dict[str, Measurements]
    segments: dict[str, Counts]
    comparison: UncertainComparison
    relative: UncertainComparison | None
    fits: dict[str, FitDescription]

    def __str__(self) -> str:
        text = f"{' vs '.join(self.groups)}: {self.comparison}."
        if self.relative is None:
            return text
        counts = sorted({count for group in self.segments.values() for count in group.values()})
        return (
            f"{text} Participants have {counts[0]} to {counts[-1]} segments, and the entropy of K segments is at most "
            f"log K. As shares of log K: {self.relative}."
        )

    def summary(self) -> dict[str, Any]:
        """Return the numbers that `save` writes to comparison.json."""
        return {
            "names": list(self.groups),
            "message": str(self.comparison),
            **asdict(self.comparison),
            "difference": self.comparison.difference._asdict(),
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
            table.writerow(["group", "participant", *COLUMNS, "segments"])
            table.writerows(
                [group, name, *measured, self.segments[group].get(name)]
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

    Parameters
    ----------
    first : str, Path or DatasetFit
        A fit by participant with the method "posterior": what `fit_dataset` returned, or the folder it was saved to.
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
    comparison, relative = compare_entropies(*groups.values()), None
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
    return EntropyComparison(groups, segments, comparison, relative, fits)


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
    expected = "a fit by participant with the method posterior and this version of vseg"
    rows = _read_rows(path, ("participant", *COLUMNS), expected)
    fitted = [row for row in rows if row["mean_entropy"]]
    try:
        measured = {
            row["participant"]: Measurement(*(float(row[column]) for column in COLUMNS)) for row in fitted
        }
    except ValueError:
        measured = {}
    if not measured or not all(math.isfinite(value) for one in measured.values() for value in one):
        raise InvalidInput(f"{path} has no numbers in the columns {', '.join(COLUMNS)}; fit again.")
    listed = frozenset(row["participant"] for row in rows)
    description = _read_description(folder / "summary.json")
    segments, trials = (
        {row["participant"]: int(row[column]) for row in fitted if row.get(column, "").isdecimal()}
        for column in ("segments", "trials")
    )
    return _ParticipantFits(name, measured, segments, trials, listed, description)


def _read_result(fit: DatasetFit, name: str) -> _ParticipantFits:
    if fit.by != "participant" or fit.together is None or "entropy_spread" not in fit.method.columns:
        raise InvalidInput(
            "Expected fits by participant with the method 'posterior'; fit_dataset(…, by='participant', "
            "method='posterior') makes them."
        )
    measured = {
        row["participant"]: Measurement(*(row[column] for column in COLUMNS))
        for row in fit.rows
        if row["participant"] in fit.each
    }
    listed = frozenset([*fit.each, *fit.skipped])
    summary = {**fit.together.details, **fit.together.result.summary()}
    segments = {participant: own.maps.segments for participant, own in fit.each.items()}
    trials = {row["participant"]: row["trials"] for row in fit.rows if row["participant"] in fit.each}
    return _ParticipantFits(name, measured, segments, trials, listed, _describe_fit(summary))


def _read_description(path: Path) -> FitDescription:
    """Read from summary.json how a fit was made."""
    try:
        return _describe_fit(json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {})
    except ValueError:
        raise InvalidInput(f"{path} is not JSON; fit again.") from None


def _describe_fit(summary: Mapping[str, Any]) -> FitDescription:
    settings = summary.get("settings") or {"prior": None, "lapses": None}
    lapses = settings.get("lapses")
    return {
        "segments": summary.get("segments"),
        "segments_by": summary.get("segments_by", "all"),
        "prior": settings.get("prior"),
        "lapses": list(lapses) if isinstance(lapses, tuple) else lapses,
        "version": summary.get("version"),
    }


def _check_alike(fits: Mapping[str, FitDescription]) -> None:
    """Refuse fits with another K for all, whose entropies have different scales; warn of other differences."""
    (first, one), (second, other) = fits.items()
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
    unknown = [name for name, fit in fits.items() if fit["prior"] is None]
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
    if one["version"] != other["version"]:
        differences.append(f"{first} is of vseg {one['version']}, {second} of {other['version']}")
    if differences:
        warnings.warn(
            f"{'; '.join(differences)}: fit both with the same settings.", VsegWarning, stacklevel=3
        )


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
