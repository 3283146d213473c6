"""An import as a folder: the same form in which `vseg export` writes, as far as it is known."""

import io
import platform
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vseg import __version__
from vseg.data import dataset
from vseg.data.columns import RESPONSES, SESSIONS, Column
from vseg.data.importers.files import SourceFile
from vseg.data.importers.mapping import ColumnMapping
from vseg.data.importers.names import make_file_words
from vseg.data.importers.trials import SkippedRows
from vseg.data.layout import Grid, Layout
from vseg.data.psych_ds import SCHEMA_VERSION, describe_dataset, write_ignore_file, write_json
from vseg.data.table_writing import ParquetFile, TableColumns, write_csv
from vseg.errors import VsegWarning
from vseg.study import schema

ALWAYS = {"participant", "session", "seq", "item", "image", "block", "trial", "i", "j", "practice", "catch", "same",
          "used"}  # fmt: skip
SOURCE = Column("source", "text", "The file and the place in it that the row was imported from")
IN_OTHER_WORDS = {
    "participant": "Name of the participant",
    "session": "Name of the session",
    "seq": "Number of the answer in its session, from 0",
    "item": "The same as seq",
    "image": "Name of the image",
    "trial": "Number of the trial, as it was imported or from 0 within the session",
    "used": "Whether the answer counts: neither practice nor a catch trial",
    "rt_ms": "Reaction time, as it was imported",
    "key": "The answer, as it was imported",
}
SUMMED = ("participant", "session", "images", "responses", "answers_used", "practice_correct", "catch_correct",
          "median_rt_ms")  # fmt: skip
IDENTITY = (Column("participant", "text", ""), Column("identity", "text", ""))

README = """# {name}

Same/different judgments about pairs of locations in images, imported with vseg {version} on {date}.
{counted} They were collected with other software; what vseg knows of that is below.

```
dataset_description.json   this dataset, and every column of the tables in data/ ({schema})
data/
  study-…_subject-…_session-…_data.csv      a row an answer
  study-…_description-sessions_data.csv     a row a session
{parquet}study/
  study.toml         where the locations are, and the images; nothing else in it was said
  images/            what was shown, if it was given
software.json        the files that were imported with their SHA-256, how their columns were read, versions
```

A row of responses is identified by `participant`, `session` and `seq`; `source` says where it came from. The answers
that count have `used` = 1: all but those to practice and catch trials. Text that a spreadsheet would take for a
formula stands behind an apostrophe in the CSV files.

With vseg:

```sh
vseg fit this-folder{segments} --out fit
```
"""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True)
class ImportedData:
    """What an import has found, before anything is written."""

    layout: Layout
    columns: TableColumns
    fields: Mapping[str, ColumnMapping]
    left_out: SkippedRows
    sources: Sequence[SourceFile]
    images: Mapping[str, str]  # the name of each, by what it was called
    pictures: Mapping[str, Path]  # its file, by its name
    identities: Mapping[str, str]  # who a participant is elsewhere
    remarks: Sequence[str]

    def __str__(self) -> str:
        people, sessions = len(set(self.columns["participant"])), len(set(_keys(self.columns)))
        answers, used = len(self.columns["i"]), sum(self.columns["used"])
        return (
            f"{_counted(people, 'participant')} gave {_counted(answers, 'answer')} in "
            f"{_counted(sessions, 'session')} about {_counted(len(self.images), 'image')}, of which {used} count."
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _keys(columns: TableColumns) -> list[tuple[str, str]]:
    return list(zip(columns["participant"], columns["session"], strict=True))


def write(
    found: ImportedData,
    folder: Path,
    *,
    name: str,
    segments: int | None,
    identities: bool,
    progress: Progress,
) -> None:
    """Write what was found into an empty folder."""
    text = study_text(found, name, segments)
    schema.parse_study(text, "The study of these data")
    for place in (dataset.IMAGES, dataset.DATA):
        folder.joinpath(place).mkdir(parents=True)
    folder.joinpath(dataset.STUDY).write_text(text, encoding="utf-8")
    for image, path in found.pictures.items():
        folder.joinpath(dataset.IMAGES, f"{image}.png").write_bytes(_png(path))
    variables = _known(found.columns)
    summaries = _write_sessions(found.columns, variables, name, folder, progress)
    summed = [variable for variable in SESSIONS if variable.name in SUMMED]
    summed = [variable for variable in summed if any(row[variable.name] is not None for row in summaries)]
    table = {variable.name: [row[variable.name] for row in summaries] for variable in summed}
    title = "".join(filter(str.isalnum, name))
    write_csv(folder / dataset.DATA / f"study-{title}_description-sessions_data.csv", summed, table)
    if identities:
        who = {"participant": list(found.identities), "identity": list(found.identities.values())}
        write_csv(folder / dataset.IDENTITIES, IDENTITY, who)
    _write_words(found, folder, name, segments, (*variables, *map(_reworded, summed)))


def study_text(found: ImportedData, name: str, segments: int | None) -> str:
    """A study file with what is known of an experiment that ran elsewhere."""
    if isinstance(found.layout, Grid):
        layout = f"grid = {found.layout.size}"
    else:
        layout = f"points = {found.layout.positions.tolist()}"
    images = "".join(
        f'\n[[images]]\nname = "{image}"\nfile = "images/{image}.png"\nsquare = false\n'
        for image in found.images.values()
    )
    return (
        "# What is known of an experiment that ran elsewhere: its layout, its images, how many took part.\n"
        "# Everything else stands at values that say nothing about it.\n\n"
        f'name = "{name}"\nsegments = {segments or chr(34) + "free" + chr(34)}\n'
        f"participants = {len(set(found.columns['participant']))}\n"
        f"layout = {{{layout}}}\ndesign = {{blocks = 1}}\npractice = {{trials = 0}}\ncatch = {{per_block = 0}}\n"
        f"calibration = {{distance = false, gamma = false}}\n{images}"
    )


def _png(path: Path) -> bytes:
    from PIL import Image

    from vseg.stimuli import read_image

    file = io.BytesIO()
    Image.fromarray(read_image(path)).save(file, "PNG")
    return file.getvalue()


def _known(columns: TableColumns) -> list[Column]:
    """The variables of an export that hold anything here, and where each row came from."""
    known = [
        _reworded(variable)
        for variable in RESPONSES
        if variable.name in ALWAYS or any(value is not None for value in columns.get(variable.name, ()))
    ]
    return [*known, SOURCE]


def _reworded(variable: Column) -> Column:
    return replace(variable, description=IN_OTHER_WORDS.get(variable.name, variable.description))


def _write_sessions(
    columns: TableColumns, variables: Sequence[Column], name: str, folder: Path, progress: Progress
) -> list[dict[str, Any]]:
    """A table for each session, all of them once more as Parquet, and a summary of each."""
    rows: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(_keys(columns)):
        rows.setdefault(key, []).append(number)
    who = make_file_words(participant for participant, _ in rows)
    which = make_file_words(session for _, session in rows)
    title, summaries = "".join(filter(str.isalnum, name)), []
    with (
        ParquetFile(folder / dataset.PARQUET, variables) as parquet,
        progress("Writing", len(rows)) as advance,
    ):
        for (participant, session), chosen in rows.items():
            part = {variable.name: [columns[variable.name][row] for row in chosen] for variable in variables}
            file = f"study-{title}_subject-{who[participant]}_session-{which[session]}_data.csv"
            write_csv(folder / dataset.DATA / file, variables, part)
            parquet.add(part)
            summaries.append(_summary(participant, session, part))
            advance(1)
    if parquet.unavailable_reason:
        warnings.warn(
            f"{dataset.PARQUET} was not written. {parquet.unavailable_reason}", VsegWarning, stacklevel=3
        )
    return summaries


def _summary(participant: str, session: str, part: TableColumns) -> dict[str, Any]:
    correct = part.get("correct", [None] * len(part["i"]))
    times = part.get("rt_ms", [None] * len(part["i"]))
    used = [time for time, counts in zip(times, part["used"], strict=True) if counts and time is not None]
    return {
        "participant": participant,
        "session": session,
        "images": " ".join(dict.fromkeys(part["image"])),
        "responses": len(part["i"]),
        "answers_used": sum(part["used"]),
        "practice_correct": _share(correct, part["practice"]),
        "catch_correct": _share(correct, part["catch"]),
        "median_rt_ms": statistics.median(used) if used else None,
    }


def _share(correct: Sequence[Any], chosen: Sequence[bool]) -> float | None:
    right = [answer for answer, wanted in zip(correct, chosen, strict=True) if wanted and answer is not None]
    return round(sum(right) / len(right), 4) if right else None


def _write_words(
    found: ImportedData, folder: Path, name: str, segments: int | None, variables: Sequence[Column]
) -> None:
    now = datetime.now(UTC)
    about = f"Same/different judgments about pairs of locations on {found.layout}, imported. {found}"
    write_json(folder / dataset.DESCRIPTION, describe_dataset(name, about, variables, now))
    software = {
        "vseg": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "imported_at": now.isoformat(timespec="seconds"),
        "imported_from": [vars(source) for source in found.sources],
        "columns": {field.target.name: _typed(field) for field in found.fields.values()},
        "images": {new: old for old, new in found.images.items()},
        "left_out": dict(found.left_out.reasons),
        "remarks": list(found.remarks),
    }
    write_json(folder / dataset.SOFTWARE, software)
    write_ignore_file(folder)
    parquet = "responses.parquet    all responses once more\n" * folder.joinpath(dataset.PARQUET).exists()
    words_of = README.format(
        name=name,
        version=__version__,
        date=f"{now:%Y-%m-%d}",
        counted=found,
        schema=SCHEMA_VERSION,
        parquet=parquet,
        segments="" if segments else " --segments 2..6",
    )
    folder.joinpath(dataset.README).write_text(words_of, encoding="utf-8")


def _typed(field: ColumnMapping) -> str:
    """As it would stand behind --map TARGET=."""
    return field.column + (f":{','.join(field.values)}" if field.values else "")
