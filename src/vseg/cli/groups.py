"""`vseg groups`: the mean entropies of two groups, with everyone's own uncertainty carried through."""

import csv
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg.cli.output import new_folder
from vseg.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from vseg.statistics import Known

OURS = {"comparison.json", "entropies.csv", "entropies.png"}
COLUMNS = ("mean_entropy", "entropy_spread", "entropy_low", "entropy_high")
Groups = dict[str, "dict[str, Known]"]


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
    difference, the second minus the first, with its 95 % interval; writes comparison.json, entropies.csv and
    entropies.png, which shows everyone with their own interval.

    \b
    Examples:
      vseg groups fit-low fit-high --out low-high
      vseg groups fit --table groups.csv --out patients
    """
    found = _from_folders(first, second) if table is None else _from_table(first, second, table)
    with new_folder(out, force=force, inputs=[first, *([second] if second else [])], ours=OURS) as folder:
        from vseg import figures
        from vseg.bayesian import compare_entropies

        compared = compare_entropies(*found.values())
        figures.entropies(found).savefig(folder / "entropies.png")
        _write_people(folder / "entropies.csv", found)
        difference = compared.difference._asdict()
        about = {"names": list(found), "message": str(compared), **asdict(compared), "difference": difference}
        text = json.dumps(about, indent=2, ensure_ascii=False)
        (folder / "comparison.json").write_text(text + "\n", encoding="utf-8")
    typer.echo(f"{' vs '.join(found)}: {compared}.")
    typer.echo(f"{out}: {', '.join(sorted(OURS))}.")


def _from_folders(first: Path, second: Path | None) -> Groups:
    if second is None:
        raise InvalidInput(
            "Name the folders of two fits, or one and the groups of its people with --table FILE."
        )
    names = [path.resolve().name for path in (first, second)]
    if names[0] == names[1]:
        names = [str(first), str(second)]
    if names[0] == names[1]:
        raise InvalidInput(f"Both groups are {first}; name another folder, or --table FILE.")
    return dict(zip(names, (_people(first), _people(second)), strict=True))


def _from_table(folder: Path, second: Path | None, table: Path) -> Groups:
    if second is not None:
        raise InvalidInput("--table divides the people of one fit; leave the second folder out.")
    people, found = _people(folder), Groups()
    for row in _rows(table, ("participant", "group"), "a row a participant"):
        if row["participant"] in people:
            found.setdefault(row["group"], {})[row["participant"]] = people[row["participant"]]
    if len(found) != 2:
        raise InvalidInput(
            f"{table} puts the participants of {folder} into {len(found)} groups ({', '.join(found) or 'none'}); "
            "expected two."
        )
    return found


def _people(folder: Path) -> "dict[str, Known]":
    """Everyone's entropy as a fit found it; who could not be fitted is left out."""
    from vseg.statistics import Known

    path = folder / "participants.csv"
    rows = _rows(path, ("participant", *COLUMNS), "what vseg fit --method posterior --by participant writes")
    fitted = [row for row in rows if row["mean_entropy"]]
    try:
        found = {row["participant"]: Known(*(float(row[name]) for name in COLUMNS)) for row in fitted}
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
