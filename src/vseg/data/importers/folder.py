"""Write imported data as a dataset folder, in the form that `vseg export` writes."""

import io
import platform
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vseg import __version__
from vseg._support.text import format_count
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
from vseg.study.schema import parse_study

REQUIRED_COLUMNS = {"participant", "session", "seq", "item", "image", "block", "trial", "i", "j", "practice",
                    "catch", "same", "used"}  # fmt: skip
SOURCE = Column("source", "text", "The file and the line or trial in it from which the row was imported")
DESCRIPTIONS = {  # of columns that mean something else than in an export
    "participant": "Name of the participant",
    "session": "Name of the session",
    "seq": "Number of the answer in its session, from 0",
    "item": "The same as seq",
    "image": "Name of the image",
    "trial": "Number of the trial, as imported, or from 0 within the session",
    "used": "Whether the answer counts: neither practice nor a catch trial",
    "rt_ms": "Reaction time, as imported",
    "key": "The answer, as imported",
}
SUMMARY_COLUMNS = ("participant", "session", "images", "responses", "answers_used", "practice_correct", "catch_correct",
                   "median_rt_ms")  # fmt: skip
IDENTITY_COLUMNS = (Column("participant", "text", ""), Column("identity", "text", ""))

README = """# {name}

Same/different judgments about pairs of locations in images, imported with vseg {version} on {date}.
{summary} The data were collected with other software.

```
dataset_description.json   a description of this dataset and of every column of the tables in data/ ({schema})
data/
  study-…_subject-…_session-…_data.csv      one row per response
  study-…_description-sessions_data.csv     one row per session
{parquet}study/
  study.toml         the locations and the images; all other settings are defaults
  images/            the images that were shown, if they were given
software.json        the imported files with their SHA-256, how their columns were read, versions
```

A row of responses is identified by `participant`, `session` and `seq`; `source` says where it was imported
from. Responses with `used` = 1 count: all except practice and catch trials. In the CSV files, text that a spreadsheet
would take for a formula starts with an apostrophe.

With vseg:

```sh
vseg fit this-folder --out fit
```
"""

ProgressBar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Takes a title and a total; returns a context manager whose value is called with the steps done."""


@contextmanager
def no_progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show nothing."""
    yield lambda steps: None


@dataclass(frozen=True)
class ImportedData:
    """What was read from files, before it is written as a dataset.

    Attributes
    ----------
    layout : Layout
    columns : mapping of str to sequence
        The table of responses of all sessions: the cells of each column.
    mappings : mapping of str to ColumnMapping
        The column from which each target was read.
    skipped : SkippedRows
        The number of rows that are not trials, by reason.
    sources : sequence of SourceFile
        The files that were read.
    images : mapping of str to str
        The new name of each image, by its original name.
    pictures : mapping of str to Path
        The file of each image, by its new name.
    identities : mapping of str to str
        The original identity of each renamed participant.
    remarks : sequence of str
        What was guessed or changed, as sentences for the user.
    """

    layout: Layout
    columns: TableColumns
    mappings: Mapping[str, ColumnMapping]
    skipped: SkippedRows
    sources: Sequence[SourceFile]
    images: Mapping[str, str]
    pictures: Mapping[str, Path]
    identities: Mapping[str, str]
    remarks: Sequence[str]

    def __str__(self) -> str:
        participants, sessions = len(set(self.columns["participant"])), len(set(_session_keys(self.columns)))
        answers, used = len(self.columns["i"]), sum(self.columns["used"])
        return (
            f"{format_count(participants, 'participant')} gave {format_count(answers, 'answer')} in "
            f"{format_count(sessions, 'session')} about {format_count(len(self.images), 'image')}, "
            f"of which {used} count."
        )


def _session_keys(columns: TableColumns) -> list[tuple[str, str]]:
    return list(zip(columns["participant"], columns["session"], strict=True))


def write_dataset(
    imported: ImportedData,
    folder: str | Path,
    *,
    name: str = "imported",
    segments: int | None = None,
    identities: bool = False,
    progress: ProgressBar = no_progress_bar,
) -> None:
    """Write imported data into an empty folder, as a dataset.

    Parameters
    ----------
    imported : ImportedData
    folder : str or Path
        An empty folder.
    name : str
        Name of the study: lower-case letters, digits and hyphens.
    segments : int, optional
        The number of segments participants were asked to see; without it, their number was free.
    identities : bool
        Whether to write identities.csv, with the original identities of renamed participants.
    progress : callable
        Takes a title and a total; returns a context manager whose value is called with the steps done.
    """
    folder = Path(folder)
    text = _make_study_text(imported, name, segments)
    parse_study(text, "The study of these data")
    for subfolder in (dataset.IMAGES, dataset.DATA):
        folder.joinpath(subfolder).mkdir(parents=True)
    folder.joinpath(dataset.STUDY).write_text(text, encoding="utf-8")
    for image, path in imported.pictures.items():
        folder.joinpath(dataset.IMAGES, f"{image}.png").write_bytes(_convert_to_png(path))
    columns = _find_columns(imported.columns)
    summaries = _write_sessions(imported.columns, columns, name, folder, progress)
    summary_columns = [
        column
        for column in SESSIONS
        if column.name in SUMMARY_COLUMNS and any(row[column.name] is not None for row in summaries)
    ]
    table = {column.name: [row[column.name] for row in summaries] for column in summary_columns}
    title = "".join(filter(str.isalnum, name))
    write_csv(folder / dataset.DATA / f"study-{title}_description-sessions_data.csv", summary_columns, table)
    if identities:
        table = {"participant": list(imported.identities), "identity": list(imported.identities.values())}
        write_csv(folder / dataset.IDENTITIES, IDENTITY_COLUMNS, table)
    _write_documents(imported, folder, name, (*columns, *map(_adapt_description, summary_columns)))


def _make_study_text(imported: ImportedData, name: str, segments: int | None) -> str:
    """Return the text of a study file with what is known about the experiment."""
    if isinstance(imported.layout, Grid):
        layout = f"grid = {imported.layout.size}"
    else:
        layout = f"points = {imported.layout.positions.tolist()}"
    images = "".join(
        f'\n[[images]]\nname = "{image}"\nfile = "images/{image}.png"\nsquare = false\n'
        for image in imported.images.values()
    )
    return (
        "# What is known about an experiment that ran elsewhere: layout, images, number of participants.\n"
        "# All other settings are defaults and say nothing about that experiment.\n\n"
        f'name = "{name}"\nsegments = {segments or chr(34) + "free" + chr(34)}\n'
        f"participants = {len(set(imported.columns['participant']))}\n"
        f"layout = {{{layout}}}\ndesign = {{blocks = 1}}\npractice = {{trials = 0}}\ncatch = {{per_block = 0}}\n"
        f"calibration = {{distance = false, gamma = false}}\n{images}"
    )


def _convert_to_png(path: Path) -> bytes:
    from PIL import Image

    from vseg.stimuli import read_image

    file = io.BytesIO()
    Image.fromarray(read_image(path)).save(file, "PNG")
    return file.getvalue()


def _find_columns(cells: TableColumns) -> list[Column]:
    """Return the columns of a table of responses that hold any values, and the source of each row."""
    present = [
        _adapt_description(column)
        for column in RESPONSES
        if column.name in REQUIRED_COLUMNS or any(value is not None for value in cells.get(column.name, ()))
    ]
    return [*present, SOURCE]


def _adapt_description(column: Column) -> Column:
    return replace(column, description=DESCRIPTIONS.get(column.name, column.description))


def _write_sessions(
    cells: TableColumns, columns: Sequence[Column], name: str, folder: Path, progress: ProgressBar
) -> list[dict[str, Any]]:
    """Write a CSV file for each session and a Parquet file of all; return a summary of each session."""
    rows: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(_session_keys(cells)):
        rows.setdefault(key, []).append(number)
    participant_words = make_file_words(participant for participant, _ in rows)
    session_words = make_file_words(session for _, session in rows)
    title, summaries = "".join(filter(str.isalnum, name)), []
    with (
        ParquetFile(folder / dataset.PARQUET, columns) as parquet,
        progress("Writing", len(rows)) as advance,
    ):
        for (participant, session), numbers in rows.items():
            table = {column.name: [cells[column.name][row] for row in numbers] for column in columns}
            subject, run = participant_words[participant], session_words[session]
            file = f"study-{title}_subject-{subject}_session-{run}_data.csv"
            write_csv(folder / dataset.DATA / file, columns, table)
            parquet.add(table)
            summaries.append(_summarise_session(participant, session, table))
            advance(1)
    if parquet.unavailable_reason:
        warnings.warn(
            f"{dataset.PARQUET} was not written. {parquet.unavailable_reason}", VsegWarning, stacklevel=3
        )
    return summaries


def _summarise_session(participant: str, session: str, table: TableColumns) -> dict[str, Any]:
    correct = table.get("correct", [None] * len(table["i"]))
    times = table.get("rt_ms", [None] * len(table["i"]))
    used = [time for time, counts in zip(times, table["used"], strict=True) if counts and time is not None]
    return {
        "participant": participant,
        "session": session,
        "images": " ".join(dict.fromkeys(table["image"])),
        "responses": len(table["i"]),
        "answers_used": sum(table["used"]),
        "practice_correct": _share_correct(correct, table["practice"]),
        "catch_correct": _share_correct(correct, table["catch"]),
        "median_rt_ms": statistics.median(used) if used else None,
    }


def _share_correct(correct: Sequence[bool | None], selected: Sequence[bool]) -> float | None:
    known = [value for value, wanted in zip(correct, selected, strict=True) if wanted and value is not None]
    return round(sum(known) / len(known), 4) if known else None


def _write_documents(imported: ImportedData, folder: Path, name: str, columns: Sequence[Column]) -> None:
    """Write the description of the dataset, software.json and README.md."""
    now = datetime.now(UTC)
    description = (
        f"Same/different judgments about pairs of locations on {imported.layout}, imported. {imported}"
    )
    write_json(folder / dataset.DESCRIPTION, describe_dataset(name, description, columns, now))
    software = {
        "vseg": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "imported_at": now.isoformat(timespec="seconds"),
        "imported_from": [vars(source) for source in imported.sources],
        "columns": {target: _format_mapping(mapping) for target, mapping in imported.mappings.items()},
        "images": {new: old for old, new in imported.images.items()},
        "left_out": dict(imported.skipped.reasons),
        "remarks": list(imported.remarks),
    }
    write_json(folder / dataset.SOFTWARE, software)
    write_ignore_file(folder)
    parquet = "responses.parquet    all responses in one file\n" * folder.joinpath(dataset.PARQUET).exists()
    readme = README.format(
        name=name,
        version=__version__,
        date=f"{now:%Y-%m-%d}",
        summary=imported,
        schema=SCHEMA_VERSION,
        parquet=parquet,
    )
    folder.joinpath(dataset.README).write_text(readme, encoding="utf-8")


def _format_mapping(mapping: ColumnMapping) -> str:
    """Return the column and values of a mapping, as they are written after TARGET=."""
    return mapping.column + (f":{','.join(mapping.values)}" if mapping.values else "")
