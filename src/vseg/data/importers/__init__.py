"""Data from elsewhere: jsPsych's JSON or CSV, tidy tables with pixels, JATOS archives, into the form of an export.

files     what to read: files, folders, archives within limits
rows      their texts as rows, a row a trial or screen
mapping   which column holds what: the language of --map, and guesses
trials    rows as trials, each value checked
places    from where the dots were to locations
names     what participants, sessions and images are called
folder    the Psych-DS folder, which `vseg.load` and `vseg fit` take as it is

    found = importing.read(["data.json"], maps=["same=response:f"], layout=Grid(16), image_size=(512, 512))
    importing.write(found, Path("imported"))
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vseg.data.importers import files, folder as writing, mapping, names
from vseg.data.importers.folder import ImportedData, Progress
from vseg.data.importers.locations import DotLocations, locate_dots, read_points
from vseg.data.importers.rows import Row, RunNumbers, read_rows
from vseg.data.importers.trials import ImportedTrial, read_trials
from vseg.data.layout import Layout
from vseg.errors import InvalidInput

__all__ = ["ImportedData", "import_trials", "read_points", "write"]


@contextmanager
def _silent(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    yield lambda done: None


def import_trials(
    paths: Sequence[str | Path],
    *,
    maps: Sequence[str] = (),
    layout: Layout | None = None,
    image_size: tuple[float, float] | None = None,
    images: str | Path | None = None,
    units: str | None = None,
    count_from: int = 0,
    progress: Progress = _silent,
) -> ImportedData:
    """Read files of trials, all of one experiment.

    Parameters
    ----------
    paths : files, folders of them, or archives
    maps : TARGET=COLUMN, as behind --map; see vseg.data.importers.mapping
    layout : where the locations are; without it, the distinct dots are the locations
    image_size : width and height in pixels, where neither the rows nor the pictures say it
    images : a folder of the pictures that were shown
    units : px or fraction, of the dots
    count_from : the number of the first location, 0 or 1
    progress : given what is done and its total, a context whose value is called with what has been done
    """
    given = mapping.parse_mappings(maps)
    found, sources = _all_rows(files.find_files(paths), progress)
    fields = mapping.complete_mappings(given, found)
    with progress("Reading trials", len(found)) as advance:
        taken, left_out = read_trials(found, fields, advance)
    shown = (
        {} if images is None else names.find_pictures(images, dict.fromkeys(trial.image for trial in taken))
    )
    sizes = (
        names.read_picture_sizes(shown)
        if image_size is None
        else {trial.image: image_size for trial in taken}
    )
    where = locate_dots(taken, layout, units=units, count_from=count_from, sizes=sizes)
    people, identities, remarks = names.name_participants(taken, fields.get("participant"), found)
    called = names.name_images(trial.image for trial in taken)
    return ImportedData(
        layout=where.layout,
        columns=_columns(taken, where, people, called),
        fields=fields,
        left_out=left_out,
        sources=sources,
        images=called,
        pictures={called[image]: path for image, path in shown.items()},
        identities=identities,
        remarks=[*_about_fields(fields, taken), *remarks, *_about_images(called), *where.remarks],
    )


def write(
    found: ImportedData,
    folder: str | Path,
    *,
    name: str = "imported",
    segments: int | None = None,
    identities: bool = False,
    progress: Progress = _silent,
) -> None:
    """Write what was read into an empty folder.

    Parameters
    ----------
    name : of the study: lower-case letters, digits and hyphens
    segments : how many people were asked to see; without it, as many as they saw
    identities : whether identities.csv says who the participants are elsewhere
    """
    writing.write(found, Path(folder), name=name, segments=segments, identities=identities, progress=progress)


def _all_rows(paths: Sequence[Path], progress: Progress) -> tuple[list[Row], list[files.SourceFile]]:
    found: list[Row] = []
    sources, runs = [], RunNumbers()
    with progress("Reading", len(paths)) as advance:
        for path in paths:
            source, texts = files.read_file(path)
            sources.append(source)
            for text in texts:
                found.extend(read_rows(text, runs))
            advance(1)
    if not found:
        raise InvalidInput(
            f"{', '.join(map(str, paths[:5]))}: there are no rows in it; expected a row a trial."
        )
    return found, sources


def _columns(
    taken: Sequence[ImportedTrial], where: DotLocations, people: list[str], called: dict[str, str]
) -> dict[str, list[Any]]:
    """The table of an export, all sessions together."""
    held = names.name_sessions(taken, people)
    numbers, counted = [], dict[tuple[str, str], int]()
    for key in zip(people, held, strict=True):
        counted[key] = counted.get(key, -1) + 1
        numbers.append(counted[key])
    dots = [None] * len(taken) if where.dots_px is None else where.dots_px.round(4).tolist()
    return {
        "participant": people,
        "session": held,
        "seq": numbers,
        "item": numbers,
        "image": [called[trial.image] for trial in taken],
        "block": [trial.block for trial in taken],
        "trial": [
            seq if trial.trial is None else trial.trial for seq, trial in zip(numbers, taken, strict=True)
        ],
        "i": where.i.tolist(),
        "j": where.j.tolist(),
        **{name: [each and each[at] for each in dots] for at, name in enumerate(mapping.DOTS)},
        "practice": [trial.practice for trial in taken],
        "catch": [trial.catch for trial in taken],
        "same": [trial.same for trial in taken],
        "correct": [trial.correct for trial in taken],
        "used": [not (trial.practice or trial.catch) for trial in taken],
        "rt_ms": [trial.rt_ms for trial in taken],
        "key": [trial.key for trial in taken],
        "source": [
            f"{files.short_source_name(row.file)}, {row.kind} {row.number}"
            for row in (trial.row for trial in taken)
        ],
    }


# ── what is said aloud ──


def _about_fields(fields: dict[str, mapping.ColumnMapping], taken: Sequence[ImportedTrial]) -> list[str]:
    answers: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for trial in taken:
        held = answers[trial.same]
        held[trial.key] = held.get(trial.key, 0) + 1
    listed = [
        f"{word}: {', '.join(f'{key} ({count})' for key, count in list(held.items())[:5]) or 'never'}"
        for word, held in (("same", answers[True]), ("different", answers[False]))
    ]
    found = [field for field in fields.values() if field.guessed]
    own = [field.column for field in found if field.column == field.target.name]
    guessed = [str(field) for field in found if field.column != field.target.name]
    named = [f"Columns by their names: {', '.join(own)}."] if own else []
    return [
        *named,
        *([f"Guessed: {', '.join(guessed)}."] if guessed else []),
        f"Answers taken as {'; as '.join(listed)}.",
    ]


def _about_images(called: dict[str, str]) -> list[str]:
    changed = [f"{new} is {old}" for old, new in called.items() if new != old]
    if not changed:
        return []
    more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
    return [f"Images: {', '.join(changed[:5])}{more}."]
