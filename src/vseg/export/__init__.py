"""A study out of the database: a Psych-DS folder that `vseg.load` and `vseg fit` take as it is.

markers      onsets and codes of every trial for EEG and the like, where the study file asks for them
description  dataset_description.json, README.md and the other words around the tables

What lies where is in vseg.data.dataset, with every column described and the writing of CSV and Parquet. Sessions are
read and written one by one, so that memory does not grow with their number. Whoever withdrew is in nothing but a
count.
"""

import json
import statistics
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from vseg import store
from vseg.data import dataset
from vseg.data.columns import CHOICES, EVENTS, RESPONSES, SESSIONS, Column
from vseg.data.table_writing import ParquetFile, TableColumns, write_csv
from vseg.errors import VsegWarning
from vseg.export.description import ExportCounts, write_description
from vseg.export.markers import write_markers, write_sidecar
from vseg.store.snapshot import Snapshot, SnapshotSession, take_snapshot
from vseg.study.trials import Trials

TRIALS = tuple(variable for variable in RESPONSES if variable.name in Trials.__dataclass_fields__)
ANSWER = Column("answer", "truth", "The known answer, of practice and catch trials")
ITEM = next(variable for variable in RESPONSES if variable.name == "item")
IDENTITY = tuple(
    Column(name, "text", "") for name in ("participant", "prolific_pid", "prolific_study", "prolific_session")
)

Progress = Callable[[int], AbstractContextManager[Callable[[int], None]]]


def write_dataset(
    db: store.Database,
    study: store.studies.StudyRow,
    folder: Path,
    *,
    identities: bool = False,
    progress: Progress = lambda total: nullcontext(lambda done: None),
) -> ExportCounts:
    """Write all that a study has collected into an empty folder.

    Parameters
    ----------
    identities : whether identities.csv says who the participants are on Prolific
    progress : given the number of sessions, a context whose value is called with 1 for each that is written
    """
    _write_study(db, study, folder)
    folder.joinpath(dataset.DATA).mkdir()
    folder.joinpath(dataset.TRIALS).mkdir()
    if study.study.lab.markers:
        folder.joinpath(dataset.MARKERS).mkdir()
        write_sidecar(folder, study)
    with take_snapshot(db, study) as found:
        counts = _write_sessions(found, study, folder, progress)
        who = found.identities() if identities else {}
        software = [session.software for session in found.sessions]
    if identities:
        columns = {each.name: [getattr(one, each.name) for one in who.values()] for each in IDENTITY[1:]}
        folder.joinpath(dataset.IDENTITIES).touch(mode=0o600)  # its owner's alone, from the first moment on
        write_csv(folder / dataset.IDENTITIES, IDENTITY, {"participant": list(who), **columns})
    write_description(folder, study, counts, software)
    return counts


def _write_study(db: store.Database, study: store.studies.StudyRow, folder: Path) -> None:
    for place in (dataset.IMAGES, dataset.TRUTH):
        folder.joinpath(place).mkdir(parents=True)
    folder.joinpath(dataset.STUDY).write_text(study.text, encoding="utf-8")
    for name, image in study.images.items():
        png = store.studies.get_image(db, study.id, image.sha256)
        folder.joinpath(dataset.IMAGES, f"{name}.png").write_bytes(png)
        if (truth := study.truth(name)) is not None:
            truth.save(folder / dataset.TRUTH / f"{name}.npz")


def _write_sessions(
    found: Snapshot, study: store.studies.StudyRow, folder: Path, progress: Progress
) -> ExportCounts:
    rows: list[dict[str, Any]] = []
    chosen: list[dict[str, Any]] = []
    with ParquetFile(folder / dataset.PARQUET) as parquet, progress(len(found.sessions)) as advance:
        for session in found.sessions:
            responses, events = _write_session(found, session, study, folder)
            parquet.add(responses)
            rows.append(_summary(session, responses, events))
            if study.study.design.adaptive:
                own = _choices(found, session)
                rows[-1] |= _outcome(found, session, own)
                chosen += own
            advance(1)
    if parquet.missing:
        warnings.warn(f"{dataset.PARQUET} is left out. {parquet.missing}", VsegWarning, stacklevel=3)
    table = {variable.name: [row[variable.name] for row in rows] for variable in SESSIONS}
    write_csv(
        folder / dataset.DATA / f"study-{_word(study.name)}_description-sessions_data.csv", SESSIONS, table
    )
    if study.study.design.adaptive:
        write_csv(
            folder / dataset.DATA / f"study-{_word(study.name)}_description-choices_data.csv",
            CHOICES,
            {variable.name: [row[variable.name] for row in chosen] for variable in CHOICES},
        )
    return ExportCounts(
        sessions=len(rows),
        completed=sum(row["status"] == "completed" for row in rows),
        withdrawn=found.withdrawn,
        simulated=sum(row["simulated"] for row in rows),
        responses=sum(row["responses"] for row in rows),
        used=sum(row["answers_used"] for row in rows),
    )


def _choices(found: Snapshot, session: SnapshotSession) -> list[dict[str, Any]]:
    """The session's rows in the table of choices."""
    who = {"participant": session.participant, "session": session.name}
    rows = found.choices(session)
    return [
        {**row, **who, "taken": " ".join(":".join(map(str, each)) for each in row["taken"])} for row in rows
    ]


def _outcome(found: Snapshot, session: SnapshotSession, chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """Where it was stopped, and how well its maps were known."""
    stops = found.stops(session)
    errors = [(row["batch"], row["expected_error"]) for row in chosen]
    last = stops[-1].expected_error if stops else max(errors)[1] if errors else None
    return {"stops": " ".join(f"{stop.image}:{stop.item}" for stop in stops), "expected_error": last}


def _write_session(
    found: Snapshot, session: SnapshotSession, study: store.studies.StudyRow, folder: Path
) -> tuple[TableColumns, TableColumns]:
    """The tables of a session; its responses and its events are handed back."""
    trials, responses, events = found.trials(session), found.responses(session), found.events(session)
    who = {"participant": session.participant, "session": session.name}
    responses = {**_repeated(who, responses), **responses}
    responses |= _added(study, trials, responses)
    events = {**_repeated(who, events), **events}
    start = f"study-{_word(study.name)}_subject-{_word(session.participant)}_session-{_word(session.name)}"
    write_csv(folder / dataset.DATA / f"{start}_data.csv", RESPONSES, responses)
    write_csv(folder / dataset.DATA / f"{start}_description-events_data.csv", EVENTS, events)
    if study.study.lab.markers:
        write_markers(folder, study, who, responses, events)
    given = {"item": range(len(trials)), **vars(trials)}
    write_csv(folder / dataset.TRIALS / f"{session.name}.csv", (ITEM, *TRIALS, ANSWER), given)
    return {variable.name: responses[variable.name] for variable in RESPONSES}, events


def _added(study: store.studies.StudyRow, trials: Trials, responses: TableColumns) -> dict[str, list[Any]]:
    """What follows from the trials and from all answers together."""

    def asked(name: str) -> list[Any]:
        column = getattr(trials, name)
        return [column[item] for item in responses["item"]]

    right = zip(asked("answer"), responses["same"], strict=True)
    return {
        **_places(study, {name: asked(name) for name in ("x1", "y1", "x2", "y2")}, responses),
        "correct": [None if answer is None else answer == same for answer, same in right],
        "used": store.responses.find_used(responses),
    }


def _places(
    study: store.studies.StudyRow, fixed: dict[str, list[float]], responses: TableColumns
) -> dict[str, list[float]]:
    """Where the dots were: of chosen pairs not where the trials have them."""
    layout = study.study.layout.build()
    chosen = [row for row, was_chosen in enumerate(responses["chosen"]) if was_chosen]
    centres = {
        name: layout.pixels(study.images[name].width_px, study.images[name].height_px).round(2).tolist()
        for name in {responses["image"][row] for row in chosen}
    }
    for row in chosen:
        of_image = centres[responses["image"][row]]
        fixed["x1"][row], fixed["y1"][row] = of_image[responses["i"][row]]
        fixed["x2"][row], fixed["y2"][row] = of_image[responses["j"][row]]
    return fixed


def _repeated(who: dict[str, str], columns: TableColumns) -> dict[str, list[str]]:
    return {name: [value] * len(columns["seq"]) for name, value in who.items()}


def _word(name: str) -> str:
    """Psych-DS allows letters and digits alone in a file's name."""
    return "".join(character for character in name if character.isalnum())


def _summary(session: SnapshotSession, responses: TableColumns, events: TableColumns) -> dict[str, Any]:
    """The session's row in the table of sessions."""
    last = {kind: json.loads(data) for kind, data in zip(events["kind"], events["data"], strict=True)}
    times = [rt for rt, used in zip(responses["rt_ms"], responses["used"], strict=True) if used]
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
        "answers_used": len(times),
        "practice_correct": _share(responses["correct"], responses["practice"]),
        "catch_correct": _share(responses["correct"], responses["catch"]),
        "median_rt_ms": statistics.median(times) if times else None,
        "measured_refresh_hz": _number(last, "device", "refresh_hz"),
        "px_per_mm": _number(last, "distance", "px_per_mm"),
        "distance_mm": _number(last, "distance", "distance_mm"),
        "width_deg_asked": _number(last, "screen", "width_deg_asked"),
        "width_deg": _number(last, "screen", "width_deg"),
        "gamma": _number(last, "gamma", "gamma"),
        "gamma_spread": _number(last, "gamma", "spread"),
        "stops": "",
        "expected_error": None,
        "simulated": last.get("consent", {}).get("simulated") is True,
        "vseg_version": session.software.get("vseg", ""),
    }


def _number(last: dict[str, dict[str, Any]], kind: str, name: str) -> float | None:
    """A number that a page reported; a page may report anything."""
    value = last.get(kind, {}).get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share(correct: Any, chosen: Any) -> float | None:
    right = [answer for answer, wanted in zip(correct, chosen, strict=True) if wanted and answer is not None]
    return round(sum(right) / len(right), 4) if right else None
