"""`vseg groups`: the mean entropies of two groups, with everyone's own uncertainty carried through."""

import csv
import json
import math
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg._support.text import format_count
from vseg.cli.output import new_folder
from vseg.errors import InvalidInput, NotFound, VsegWarning

if TYPE_CHECKING:
    from vseg.evaluation.random_effects import Measurement

OURS = {"comparison.json", "entropies.csv", "entropies.png"}
COLUMNS = ("mean_entropy", "entropy_spread", "entropy_low", "entropy_high")
SETTINGS = ("segments", "prior", "lapses", "version")
MOST_LISTED = 5
Groups = dict[str, "dict[str, Known]"]
Fits = dict[str, dict[str, Any]]


def groups(
    first: Annotated[
        Path,
        typer.Argument(metavar="FIRST", help="A folder of vseg fit --method posterior --by participant."),
    ],
    second: Annotated[
        Path | None,
        typer.Argument(metavar="SECOND", help="That of the second group.", show_default=False),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With one folder: a CSV with the columns participant and group, which has two groups.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.")] = Path("groups"),
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Compare the mean entropies of two groups of people, or of the same people about two images.

    Who is known less well counts less; those who are in both groups are compared with themselves. Prints the
    difference, the second minus the first, with its 95 % interval; writes comparison.json, with how both were
    fitted, entropies.csv and entropies.png, which shows everyone with their own interval.

    \b
    Examples:
      vseg groups fit-low fit-high --out low-high
      vseg groups fit --table groups.csv --out patients
    """
    found, fits = _from_folders(first, second) if table is None else _from_table(first, second, table)
    with new_folder(out, force=force, inputs=[first, *([second] if second else [])], ours=OURS) as folder:
        from vseg import figures
        from vseg.evaluation.random_effects import compare_entropies

        compared = compare_entropies(*found.values())
        figures.entropies(found).savefig(folder / "entropies.png")
        _write_people(folder / "entropies.csv", found)
        difference = compared.difference._asdict()
        about = {
            "names": list(found), "message": str(compared), **asdict(compared), "difference": difference, "fits": fits,
        }  # fmt: skip
        text = json.dumps(about, indent=2, ensure_ascii=False)
        (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")
    typer.echo(f"{' vs '.join(found)}: {compared}.")
    typer.echo(f"{out}: {', '.join(sorted(OURS))}.")


def _from_folders(first: Path, second: Path | None) -> tuple[Groups, Fits]:
    if second is None:
        raise InvalidInput(
            "Name the folders of two fits, or one and the groups of its people with --table FILE."
        )
    names = [path.resolve().name for path in (first, second)]
    if names[0] == names[1]:
        names = [str(first), str(second)]
    if names[0] == names[1]:
        raise InvalidInput(f"Both groups are {first}; name another folder, or --table FILE.")
    found = dict(zip(names, (_people(first), _people(second)), strict=True))
    fits = dict(zip(names, (_settings(first), _settings(second)), strict=True))
    _check_alike(fits)
    _check_sizes(found)
    return found, fits


def _from_table(folder: Path, second: Path | None, table: Path) -> tuple[Groups, Fits]:
    if second is not None:
        raise InvalidInput("--table divides the people of one fit; leave the second folder out.")
    people, group_of = _people(folder), _groups_of(table)
    found = Groups()
    for name, group in group_of.items():
        if name in people:
            found.setdefault(group, {})[name] = people[name]
    also = _strangers([name for name in group_of if name not in people], folder, table)
    if len(found) != 2:
        listed = ", ".join(found) or "none"
        raise InvalidInput(
            f"{table} puts the participants of {folder} into {format_count(len(found), 'group')} ({listed}); expected two. "
            f"{also}".rstrip()
        )
    _check_sizes(found, also)
    left = [name for name in people if name not in group_of]
    out = f"{_listed(left)} of {folder} {_is(left)} not in {table} and {_is(left)} left out." if left else ""
    for said in filter(None, (out, also)):
        warnings.warn(said, VsegWarning, stacklevel=2)
    return found, {str(folder): _settings(folder)}


def _groups_of(table: Path) -> dict[str, str]:
    """Everyone's group."""
    found: dict[str, str] = {}
    for row in _rows(table, ("participant", "group"), "a row a participant"):
        name, group = row["participant"], row["group"]
        if found.setdefault(name, group) != group:
            raise InvalidInput(
                f"{table} puts {name} into {found[name]} and {group}; expected one group each."
            )
    return found


def _strangers(names: list[str], folder: Path, table: Path) -> str:
    """Whom a table names in vain."""
    listed = {row["participant"] for row in _rows(folder / "participants.csv", ("participant",), "a fit")}
    unknown = [name for name in names if name not in listed]
    unfitted = [name for name in names if name in listed]
    said = [f"{_listed(unknown)}, who {_is(unknown)} not in {folder}"] if unknown else []
    said += [f"{_listed(unfitted)}, who could not be fitted"] if unfitted else []
    return f"{table} also names {'; and '.join(said)}." if said else ""


def _check_sizes(found: Groups, also: str = "") -> None:
    for group, people in found.items():
        if len(people) < 2:
            said = f"Group {group} has one participant ({', '.join(people)}); 2 are needed. {also}"
            raise InvalidInput(said.rstrip())


def _check_alike(fits: Fits) -> None:
    """Entropies of other K have another scale; other settings move them."""
    (first, one), (second, other) = fits.items()
    unknown = [name for name, fit in fits.items() if fit["prior"] is None]
    if None not in (one["segments"], other["segments"]) and one["segments"] != other["segments"]:
        raise InvalidInput(
            f"{first} has {one['segments']} segments and {second} {other['segments']}, whose entropies cannot be "
            "compared; fit both with the same --segments."
        )
    if unknown:
        warnings.warn(
            f"How {_listed(unknown)} {'was' if len(unknown) == 1 else 'were'} fitted is not noted in summary.json, so "
            "that it cannot be told whether both were fitted alike: fit again.",
            VsegWarning,
            stacklevel=3,
        )
        return
    differ = []
    if one["lapses"] != other["lapses"]:
        differ.append(f"{first} {_slips(one['lapses'])}, {second} {_slips(other['lapses'])}")
    if one["prior"] != other["prior"]:
        differ.append(f"{first} has the {one['prior']} prior, {second} the {other['prior']} prior")
    if one["version"] != other["version"]:
        differ.append(f"{first} is of vseg {one['version']}, {second} of {other['version']}")
    if differ:
        warnings.warn(f"{'; '.join(differ)}: fit both alike.", VsegWarning, stacklevel=3)


def _slips(lapses: Any) -> str:
    if lapses == "none":
        return "took every answer as meant"
    return (
        "estimated lapses" if lapses == "estimate" else f"took lapses to be {lapses[0]:g} and {lapses[1]:g}"
    )


def _settings(folder: Path) -> dict[str, Any]:
    """How a fit was made, by its summary.json; None of what is not noted there."""
    path = folder / "summary.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError:
        raise InvalidInput(f"{path} is not JSON; fit again.") from None
    asked = about.get("settings") or {"prior": None, "lapses": None}
    return {name: (about | asked).get(name) for name in SETTINGS}


def _people(folder: Path) -> "dict[str, Known]":
    """Everyone's entropy as a fit found it; who could not be fitted is left out."""
    from vseg.evaluation.random_effects import Measurement

    path = folder / "participants.csv"
    rows = _rows(path, ("participant", *COLUMNS), "what vseg fit --method posterior --by participant writes")
    fitted = [row for row in rows if row["mean_entropy"]]
    try:
        found = {row["participant"]: Measurement(*(float(row[name]) for name in COLUMNS)) for row in fitted}
    except ValueError:
        found = {}
    if not found or not all(math.isfinite(value) for one in found.values() for value in one):
        raise InvalidInput(f"{path} has no numbers in the columns {', '.join(COLUMNS)}; fit again.")
    return found


def _rows(path: Path, columns: tuple[str, ...], expected: str) -> list[dict[str, str]]:
    if not path.is_file():
        raise NotFound(f"No file {path}; expected {expected}.")
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise InvalidInput(f"{path} has no column {missing[0]}; expected {expected}.")
        return list(reader)


def _write_people(path: Path, found: Groups) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["group", "participant", *COLUMNS])
        table.writerows(
            [group, name, *one] for group, people in found.items() for name, one in people.items()
        )


def _listed(names: list[str]) -> str:
    if len(names) > MOST_LISTED:
        return f"{', '.join(names[:MOST_LISTED])} and {len(names) - MOST_LISTED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
