"""Write the data of a study to a dataset folder.

Sessions are read and written one at a time, so that memory does not grow with their number. Withdrawn sessions are
only counted.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from vseg import store
from vseg.data import dataset, durations
from vseg.data.catch_trials import is_scored
from vseg.data.columns import CHOICES, CONTOURS, EVENTS, RESPONSES, SESSIONS, Column
from vseg.data.contours import Contours, list_contour_rows
from vseg.data.table_writing import ParquetFile, TableColumns, write_csv
from vseg.errors import VsegWarning
from vseg.export.markers import write_markers, write_sidecar
from vseg.export.study_description import ExportCounts, write_description
from vseg.store.snapshot import Snapshot, SnapshotSession, take_snapshot
from vseg.store.studies import StudyRow
from vseg.study.sections import TimingSection
from vseg.study.trials import Trials

ITEM_COLUMN = next(column for column in RESPONSES if column.name == "item")
ANSWER_COLUMN = Column("answer", "boolean", "The correct answer of practice and catch trials", nullable=True)
TRIAL_COLUMNS = (
    ITEM_COLUMN,
    *(column for column in RESPONSES if column.name in Trials.__dataclass_fields__),
    ANSWER_COLUMN,
)
IDENTITY_COLUMNS = tuple(
    Column(name, "text", "") for name in ("participant", "prolific_pid", "prolific_study", "prolific_session")
)

Row = dict[str, Any]
Progress = Callable[[int], AbstractContextManager[Callable[[int], None]]]


def write_dataset(
    db: store.Database,
    study: StudyRow,
    folder: Path,
    *,
    identities: bool = False,
    progress: Progress = lambda total: nullcontext(lambda done: None),
) -> ExportCounts:
    """Write all data of a study to an empty folder.

    Parameters
    ----------
    db : Database
        The open database.
    study : StudyRow
        The study to export.
    folder : Path
        An existing empty folder.
    identities : bool
        Whether to write identities.csv with the participants' Prolific IDs.
    progress : callable
        Called with the number of sessions; returns a context manager whose value is called with 1 after each session.

    Returns
    -------
    ExportCounts
        How many sessions and responses were written.
    """
    _write_study(db, study, folder)
    folder.joinpath(dataset.DATA).mkdir()
    folder.joinpath(dataset.TRIALS).mkdir()
    if study.study.lab.markers:
        folder.joinpath(dataset.MARKERS).mkdir()
        write_sidecar(folder, study)
    with take_snapshot(db, study) as snapshot:
        counts = _write_sessions(snapshot, study, folder, progress)
        if identities:
            _write_identities(snapshot, folder)
        software = [session.software for session in snapshot.sessions]
    write_description(folder, study, counts, software)
    return counts


def _write_study(db: store.Database, study: StudyRow, folder: Path) -> None:
    """Write the study file, the images and the maps of generated images."""
    for name in (dataset.IMAGES, dataset.TRUTH):
        folder.joinpath(name).mkdir(parents=True)
    folder.joinpath(dataset.STUDY).write_text(study.text, encoding="utf-8")
    for name, image in study.images.items():
        png = store.studies.get_image(db, study.id, image.sha256)
        folder.joinpath(dataset.IMAGES, f"{name}.png").write_bytes(png)
        if (truth := study.truth(name)) is not None:
            truth.save(folder / dataset.TRUTH / f"{name}.npz")


def _write_identities(snapshot: Snapshot, folder: Path) -> None:
    identities = snapshot.identities()
    cells: dict[str, list[str]] = {"participant": list(identities)}
    for column in IDENTITY_COLUMNS[1:]:
        cells[column.name] = [getattr(identity, column.name) for identity in identities.values()]
    folder.joinpath(dataset.IDENTITIES).touch(mode=0o600)  # private before anything is written to it
    write_csv(folder / dataset.IDENTITIES, IDENTITY_COLUMNS, cells)


def _write_sessions(snapshot: Snapshot, study: StudyRow, folder: Path, progress: Progress) -> ExportCounts:
    """Write the tables of each session, the table of sessions and, if the study is adaptive, that of choices."""
    summaries: list[Row] = []
    choices: list[Row] = []
    with ParquetFile(folder / dataset.PARQUET) as parquet, progress(len(snapshot.sessions)) as advance:
        for session in snapshot.sessions:
            responses, events = _write_session(snapshot, session, study, folder)
            parquet.add(responses)
            summary = _summarise_session(session, responses, events, study.study.timing)
            if study.study.design.is_adaptive:
                session_choices = _list_choices(snapshot, session)
                summary |= _summarise_choices(snapshot, session, session_choices)
                choices += session_choices
            summaries.append(summary)
            advance(1)
    if parquet.unavailable_reason:
        warnings.warn(
            f"{dataset.PARQUET} was not written. {parquet.unavailable_reason}", VsegWarning, stacklevel=3
        )
    start = folder / dataset.DATA / f"study-{_alphanumeric(study.name)}"
    write_csv(Path(f"{start}_description-sessions_data.csv"), SESSIONS, _to_columns(SESSIONS, summaries))
    if study.study.design.is_adaptive:
        write_csv(Path(f"{start}_description-choices_data.csv"), CHOICES, _to_columns(CHOICES, choices))
    return ExportCounts(
        sessions=len(summaries),
        completed=sum(row["status"] == "completed" for row in summaries),
        withdrawn=snapshot.withdrawn,
        simulated=sum(row["simulated"] for row in summaries),
        responses=sum(row["responses"] for row in summaries),
        used=sum(row["answers_used"] for row in summaries),
    )


def _to_columns(columns: Sequence[Column], rows: Sequence[Row]) -> TableColumns:
    return {column.name: [row[column.name] for row in rows] for column in columns}


def _write_session(
    snapshot: Snapshot, session: SnapshotSession, study: StudyRow, folder: Path
) -> tuple[TableColumns, TableColumns]:
    """Write the tables of one session; return the columns of its responses and events."""
    trials = snapshot.trials(session)
    names = {"participant": session.participant, "session": session.name}
    responses = _with_names(names, snapshot.responses(session))
    responses |= _compute_columns(study, trials, responses)
    events = _with_names(names, snapshot.events(session))
    start = "_".join(
        (
            f"study-{_alphanumeric(study.name)}",
            f"subject-{_alphanumeric(session.participant)}",
            f"session-{_alphanumeric(session.name)}",
        )
    )
    write_csv(folder / dataset.DATA / f"{start}_data.csv", RESPONSES, responses)
    write_csv(folder / dataset.DATA / f"{start}_description-events_data.csv", EVENTS, events)
    if contours := _list_contour_rows(study, events):
        path = folder / dataset.DATA / f"{start}_description-contours_data.csv"
        write_csv(path, CONTOURS, _to_columns(CONTOURS, contours))
    if study.study.lab.markers:
        write_markers(folder, study, session, responses, events)
    trial_cells = {"item": range(len(trials)), **vars(trials)}
    write_csv(folder / dataset.TRIALS / f"{session.name}.csv", TRIAL_COLUMNS, trial_cells)
    return {column.name: responses[column.name] for column in RESPONSES}, events


def _with_names(names: dict[str, str], columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the columns of a session with its names repeated in every row."""
    count = len(columns["seq"])
    return {**{column: [name] * count for column, name in names.items()}, **columns}


def _compute_columns(study: StudyRow, trials: Trials, responses: TableColumns) -> dict[str, list[Any]]:
    """Return the columns that are not stored: where the dots were, which answers are correct and which count."""

    def look_up(name: str) -> list[Any]:
        column = getattr(trials, name)
        return [column[item] for item in responses["item"]]

    answers = zip(look_up("answer"), responses["same"], strict=True)
    return {
        **_locate_dots(study, {name: look_up(name) for name in ("x1", "y1", "x2", "y2")}, responses),
        "correct": [None if answer is None else answer == same for answer, same in answers],
        "used": store.responses.find_used(responses),
    }


def _locate_dots(
    study: StudyRow, planned: dict[str, list[float]], responses: TableColumns
) -> dict[str, list[float]]:
    """Replace the planned positions of the dots by the actual ones, for the pairs that were chosen."""
    layout = study.study.layout.build()
    chosen_rows = [row for row, is_chosen in enumerate(responses["chosen"]) if is_chosen]
    centres = {
        name: layout.pixels(study.images[name].width_px, study.images[name].height_px).round(2).tolist()
        for name in {responses["image"][row] for row in chosen_rows}
    }
    for row in chosen_rows:
        image_centres = centres[responses["image"][row]]
        planned["x1"][row], planned["y1"][row] = image_centres[responses["i"][row]]
        planned["x2"][row], planned["y2"][row] = image_centres[responses["j"][row]]
    return planned


def _list_choices(snapshot: Snapshot, session: SnapshotSession) -> list[Row]:
    """Return the rows of a session in the table of choices."""
    names = {"participant": session.participant, "session": session.name}
    return [
        {**row, **names, "taken": " ".join(":".join(map(str, basis)) for basis in row["taken"])}
        for row in snapshot.choices(session)
    ]


def _list_contour_rows(study: StudyRow, events: TableColumns) -> list[Row]:
    """Return the rows of a session in its table of contours: the last drawing of each image."""
    last: dict[str, Contours] = {}
    columns = (events[name] for name in ("participant", "session", "kind", "data"))
    for participant, session, kind, data in zip(*columns, strict=True):
        if kind == "contours":
            drawing = Contours.from_record(json.loads(data), participant=participant, session=session)
            if drawing is not None and drawing.image in study.images:  # a page may report anything
                last[drawing.image] = drawing
    return [row for drawing in last.values() for row in list_contour_rows(drawing)]


def _summarise_choices(snapshot: Snapshot, session: SnapshotSession, choices: list[Row]) -> Row:
    """Return where a session was stopped early, and the last expected error of its maps."""
    stops = snapshot.stops(session)
    if stops:
        expected_error = stops[-1].expected_error
    elif choices:
        expected_error = max((row["batch"], row["expected_error"]) for row in choices)[1]
    else:
        expected_error = None
    return {
        "stops": " ".join(f"{stop.image}:{stop.item}" for stop in stops),
        "expected_error": expected_error,
    }


def _summarise_session(
    session: SnapshotSession, responses: TableColumns, events: TableColumns, timing: TimingSection
) -> Row:
    """Return the row of a session in the table of sessions."""
    last_events = {kind: json.loads(data) for kind, data in zip(events["kind"], events["data"], strict=True)}
    used = np.array(responses["used"], np.bool_)
    rt_ms, cue_ms, image_ms = (
        np.array(responses[name], float)[used] for name in ("rt_ms", "cue_ms", "image_ms")
    )
    trial = durations.estimate_median(durations.trial_ms(cue_ms + image_ms, rt_ms))
    last_at_ms = max([*responses["received_at_ms"], *events["received_at_ms"], session.started_at_ms])
    return {
        "participant": session.participant,
        "session": session.name,
        "status": session.status,
        "images": " ".join(unit.image for unit in session.units),
        "units": " ".join(str(unit.unit) for unit in session.units),
        "started_at_ms": session.started_at_ms,
        "finished_at_ms": session.finished_at_ms,
        "responses": len(responses["seq"]),
        "flagged": sum(map(bool, responses["flags"])),
        "answers_used": len(rt_ms),
        "practice_correct": _proportion_correct(responses, "practice"),
        "catch_correct": _proportion_correct(responses, "catch"),
        "median_rt_ms": durations.estimate_median(rt_ms).median,
        **durations.describe_median("trial", trial),
        "engaged_minutes": durations.engaged_minutes(len(responses["seq"]), trial.median),
        "minutes": durations.session_minutes(session.started_at_ms, session.finished_at_ms, last_at_ms),
        "measured_refresh_hz": _get_number(last_events, "device", "refresh_hz"),
        "px_per_mm": _get_number(last_events, "distance", "px_per_mm"),
        "distance_mm": _get_number(last_events, "distance", "distance_mm"),
        "width_deg_asked": _get_number(last_events, "screen", "width_deg_asked"),
        "width_deg": _get_number(last_events, "screen", "width_deg"),
        "gamma": _get_number(last_events, "gamma", "gamma"),
        "gamma_spread": _get_number(last_events, "gamma", "spread"),
        "stops": "",
        "expected_error": None,
        "simulated": last_events.get("consent", {}).get("simulated") is True,
        "vseg_version": session.software.get("vseg", ""),
        "too_fast": timing.is_too_fast(
            len(responses["seq"]), session.started_at_ms, max(responses["received_at_ms"], default=None)
        ),
    }


def _get_number(last_events: dict[str, Row], kind: str, name: str) -> float | None:
    """Return a number from the last event of a kind; None if it is no number, since a page may report anything."""
    value = last_events.get(kind, {}).get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _proportion_correct(responses: TableColumns, kind: str) -> float | None:
    """Return the proportion of correct answers among the scored practice or catch trials, or None if there are none."""
    is_selected = is_scored(list(map(bool, responses["flags"]))) & np.array(responses[kind], np.bool_)
    answers = [
        is_correct
        for is_correct, selected in zip(responses["correct"], is_selected, strict=True)
        if selected and is_correct is not None
    ]
    return round(sum(answers) / len(answers), 4) if answers else None


def _alphanumeric(name: str) -> str:
    """Remove all characters but letters and digits, the only ones that Psych-DS allows in file names."""
    return "".join(character for character in name if character.isalnum())
