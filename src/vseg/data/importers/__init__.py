"""Import data that other software collected: jsPsych's JSON or CSV, tables, JATOS archives.

files       find and read the files: single files, folders, archives within limits
rows        read the rows of a file, one for each trial or screen
mapping     which column holds what: column mappings and guesses
trials      read the trials of the task from the rows, and check each value
locations   find the locations of the dots
names       name participants, sessions and images
folder      write the dataset folder that `vseg.load` and `vseg fit` read

    imported = import_trials(["data.json"], columns=["same=response:f"], layout=Grid(16), image_size=(512, 512))
    write_dataset(imported, "imported")
"""

import statistics
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vseg.data.importers import files, names
from vseg.data.importers.folder import ImportedData, ProgressBar, no_progress_bar, write_dataset
from vseg.data.importers.locations import DotLocations, locate_dots, read_points
from vseg.data.importers.mapping import DOTS, ColumnMapping, complete_mappings, parse_mappings
from vseg.data.importers.rows import Row, RunNumbers, read_rows
from vseg.data.importers.trials import ImportedTrial, read_trials
from vseg.data.layout import Layout
from vseg.data.responses import is_real_trial
from vseg.errors import InvalidInput, VsegWarning

__all__ = ["ImportedData", "import_trials", "read_points", "write_dataset"]

SHORTEST_MEDIAN_RT_MS = 20  # nobody answers this quickly: a smaller median is in seconds


def import_trials(
    paths: Sequence[str | Path],
    *,
    columns: Sequence[str] = (),
    layout: Layout | None = None,
    image_size: tuple[float, float] | None = None,
    images: str | Path | None = None,
    units: str | None = None,
    count_from: int = 0,
    progress: ProgressBar = no_progress_bar,
) -> ImportedData:
    """Read the trials of one experiment from files that other software wrote.

    Parameters
    ----------
    paths : sequence of str or Path
        Files, folders of files, or archives.
    columns : sequence of str
        Column mappings such as "same=response:f", for columns that are not found by their names; see
        `vseg.data.importers.mapping`.
    layout : Layout, optional
        The locations; without it, the distinct positions of the dots are the locations.
    image_size : (float, float), optional
        Width and height in pixels, if neither the rows nor the pictures tell.
    images : str or Path, optional
        The folder of the pictures that were shown.
    units : {"px", "fraction"}, optional
        Unit of the dots' coordinates; by default "fraction" if all are from 0 to 1, else "px".
    count_from : int
        The number of the first location, 0 or 1.
    progress : callable
        Takes a title and a total; returns a context manager whose value is called with the steps done.

    Returns
    -------
    ImportedData
    """
    given = parse_mappings(columns)
    rows, sources = _read_all(files.find_files(paths), progress)
    mappings = complete_mappings(given, rows)
    with progress("Reading trials", len(rows)) as advance:
        trials, skipped = read_trials(rows, mappings, advance)
    _warn_about_seconds(trials, mappings.get("rt_ms"))
    image_texts = dict.fromkeys(trial.image for trial in trials)
    pictures = {} if images is None else names.find_pictures(images, image_texts)
    if image_size is None:
        sizes = names.read_picture_sizes(pictures)
    else:
        sizes = dict.fromkeys(image_texts, image_size)
    dots = locate_dots(trials, layout, units=units, count_from=count_from, sizes=sizes)
    participants, identities, remarks = names.name_participants(trials, mappings.get("participant"), rows)
    image_names = names.name_images(image_texts)
    return ImportedData(
        layout=dots.layout,
        columns=_build_columns(trials, dots, participants, image_names),
        mappings=mappings,
        skipped=skipped,
        sources=sources,
        images=image_names,
        pictures={image_names[image]: path for image, path in pictures.items()},
        identities=identities,
        remarks=[
            *_describe_mappings(mappings, trials),
            *remarks,
            *_describe_images(image_names),
            *dots.remarks,
        ],
    )


def _read_all(paths: Sequence[Path], progress: ProgressBar) -> tuple[list[Row], list[files.SourceFile]]:
    rows: list[Row] = []
    sources, runs = [], RunNumbers()
    with progress("Reading", len(paths)) as advance:
        for path in paths:
            source, texts = files.read_file(path)
            sources.append(source)
            for text in texts:
                rows.extend(read_rows(text, runs))
            advance(1)
    if not rows:
        raise InvalidInput(f"{', '.join(map(str, paths[:5]))}: found no rows; expected one row per trial.")
    return rows, sources


def _build_columns(
    trials: Sequence[ImportedTrial],
    dots: DotLocations,
    participants: list[str],
    image_names: Mapping[str, str],
) -> dict[str, list[Any]]:
    """Return the columns of a dataset's table of responses, all sessions together."""
    sessions = names.name_sessions(trials, participants)
    seq, last_seq = [], dict[tuple[str, str], int]()
    for key in zip(participants, sessions, strict=True):
        last_seq[key] = last_seq.get(key, -1) + 1
        seq.append(last_seq[key])
    dots_px = [None] * len(trials) if dots.dots_px is None else dots.dots_px.round(4).tolist()
    return {
        "participant": participants,
        "session": sessions,
        "seq": seq,
        "item": seq,
        "image": [image_names[trial.image] for trial in trials],
        "block": [trial.block for trial in trials],
        "trial": [
            number if trial.trial is None else trial.trial for number, trial in zip(seq, trials, strict=True)
        ],
        "i": dots.i.tolist(),
        "j": dots.j.tolist(),
        **{name: [trial_dots and trial_dots[n] for trial_dots in dots_px] for n, name in enumerate(DOTS)},
        "practice": [trial.practice for trial in trials],
        "catch": [trial.catch for trial in trials],
        "same": [trial.same for trial in trials],
        "correct": [trial.correct for trial in trials],
        "used": [is_real_trial(practice=trial.practice, catch=trial.catch) for trial in trials],
        "rt_ms": [trial.rt_ms for trial in trials],
        "key": [trial.key for trial in trials],
        "source": [
            f"{files.short_source_name(row.file)}, {row.kind} {row.number}"
            for row in (trial.row for trial in trials)
        ],
    }


# ── remarks for the user ──


def _warn_about_seconds(trials: Sequence[ImportedTrial], mapping: ColumnMapping | None) -> None:
    """Warn if reaction times that were read as milliseconds are probably seconds."""
    times = [trial.rt_ms for trial in trials if trial.rt_ms is not None]
    if mapping is None or not times:
        return
    median = statistics.median(times)
    if 0 < median < SHORTEST_MEDIAN_RT_MS:
        warnings.warn(
            f"The median reaction time is {median:.3g} ms, which looks like seconds; to convert the times, map the "
            f"column as rt_ms={mapping.column}:s.",
            VsegWarning,
            stacklevel=3,
        )


def _describe_mappings(mappings: Mapping[str, ColumnMapping], trials: Sequence[ImportedTrial]) -> list[str]:
    answers: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for trial in trials:
        counts = answers[trial.same]
        counts[trial.key] = counts.get(trial.key, 0) + 1
    listed = [
        f"{word}: {', '.join(f'{key} ({count})' for key, count in list(counts.items())[:5]) or 'never'}"
        for word, counts in (("same", answers[True]), ("different", answers[False]))
    ]
    guesses = [mapping for mapping in mappings.values() if mapping.guessed]
    by_name = [mapping.column for mapping in guesses if mapping.column == mapping.target.name]
    guessed = [str(mapping) for mapping in guesses if mapping.column != mapping.target.name]
    return [
        *([f"Columns found by name: {', '.join(by_name)}."] if by_name else []),
        *([f"Columns guessed: {', '.join(guessed)}."] if guessed else []),
        f"Answers read as {'; as '.join(listed)}.",
    ]


def _describe_images(image_names: Mapping[str, str]) -> list[str]:
    renamed = [f"{name} is {text}" for text, name in image_names.items() if name != text]
    if not renamed:
        return []
    more = f" and {len(renamed) - 5} more" if len(renamed) > 5 else ""
    return [f"Images: {', '.join(renamed[:5])}{more}."]
