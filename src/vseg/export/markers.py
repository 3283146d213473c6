"""Write event markers for EEG, MEG or eye tracking: onset and code of each phase of a trial, in tables like BIDS.

They are written if the study file has `lab = {markers = true}`. All times come from the responses: the frame that first
showed a phase, or the key press.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vseg.data import dataset
from vseg.data.columns import EPOCH_MS, MAX_EPOCH_MS, PAGE_CLOCK
from vseg.data.psych_ds import write_json
from vseg.data.table_writing import Cell, TableColumns
from vseg.store.snapshot import SnapshotSession
from vseg.store.studies import StudyRow

CODES = {"cue": 10, "image": 20, "response_screen": 30, "key_same": 41, "key_different": 42}
"""The code of each event: small enough for a parallel port; the first digit is the phase, the second the answer."""

MEANINGS = {
    "cue": "The frame that first showed the two dots alone",
    "image": "The frame that first showed the image with the dots",
    "response_screen": "The frame that first showed the question",
    "key_same": "The key for the answer: same segment",
    "key_different": "The key for the answer: different segments",
}

COLUMNS = {
    "onset": ("Time since the first frame of the dots in the first trial of the session", "s"),
    "duration": ("How long it was shown; 0 for a key press", "s"),
    "trial_type": ("The phase that began, or the key that was pressed", ""),
    "value": ("The code of trial_type", ""),
    "trial": ("Number of the trial in the order of presentation, from 1; a repeated trial gets a new number", ""),
    "item": ("Number of the trial in the session's list, as in the responses; a repeated trial keeps its number", ""),
    "image": ("Name of the image; practice and catch trials use the image called practice", ""),
    "block": ("Block within the image, from 0", ""),
    "practice": ("1 for a practice trial", ""),
    "catch": ("1 for a catch trial, with an obvious answer", ""),
    "flags": ("Problems with the presentation, see dataset_description.json; n/a if there were none", ""),
    "page_ms": (f"The same moment {PAGE_CLOCK}", "ms"),
    "epoch_ms": ("The same moment by the clock of the participant's computer", EPOCH_MS),
}  # fmt: skip
COPIED_COLUMNS = ("item", "image", "block", "practice", "catch", "flags")


def write_markers(
    folder: Path, study: StudyRow, session: SnapshotSession, responses: TableColumns, events: TableColumns
) -> None:
    """Write the table of markers of one session."""
    name = f"sub-{session.participant}_ses-{session.name}_{_task_label(study)}_events.tsv"
    rows = _list_markers(responses, events)
    lines = ["\t".join(COLUMNS), *("\t".join(map(_format_cell, row)) for row in rows)]
    folder.joinpath(dataset.MARKERS, name).write_text("\n".join([*lines, ""]), encoding="utf-8", newline="")


def write_sidecar(folder: Path, study: StudyRow) -> None:
    """Write the meaning of the columns and codes, once for all sessions (the inheritance principle of BIDS)."""
    sidecar: dict[str, Any] = {
        name: {"Description": description, **({"Units": unit} if unit else {})}
        for name, (description, unit) in COLUMNS.items()
    }
    sidecar["trial_type"]["Levels"] = MEANINGS
    sidecar["value"]["Levels"] = {str(code): MEANINGS[name] for name, code in CODES.items()}
    sidecar["Photodiode"] = None
    if (photodiode := study.study.lab.photodiode) is not None:
        description = (
            "A square in a corner of the screen: white during the frames of the phase, black otherwise"
        )
        sidecar["Photodiode"] = {"Description": description, **photodiode.model_dump()}
    write_json(folder / dataset.MARKERS / f"{_task_label(study)}_events.json", sidecar)


def _task_label(study: StudyRow) -> str:
    """Return the task label of BIDS, in which only letters and digits are allowed."""
    return f"task-{''.join(character for character in study.name if character.isalnum())}"


def _list_markers(responses: TableColumns, events: TableColumns) -> Iterator[Sequence[Cell]]:
    """Yield the rows of the table: the events of all trials, in the order in which the trials were shown."""
    opened_at_ms = _find_page_openings(responses, events)
    first_ms = opened_at_ms[0] + responses["cue_onset_ms"][0] if opened_at_ms else 0.0
    for number, opened_ms in enumerate(opened_at_ms):
        trial = {name: column[number] for name, column in responses.items()}
        trial_cells = [number + 1, *(trial[name] for name in COPIED_COLUMNS)]
        for name, page_ms, duration_ms in _list_phases(trial):
            epoch_ms = opened_ms + page_ms
            onset_s, duration_s = f"{(epoch_ms - first_ms) / 1000:.6f}", f"{duration_ms / 1000:.6f}"
            yield onset_s, duration_s, name, CODES[name], *trial_cells, f"{page_ms:.3f}", f"{epoch_ms:.3f}"


def _list_phases(trial: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield name, onset by the page's clock and duration of each phase; phases with planned duration 0 are skipped."""
    for phase in ("cue", "image"):
        if trial[f"{phase}_asked_ms"] > 0:
            yield phase, trial[f"{phase}_onset_ms"], trial[f"{phase}_ms"]
    response_onset_ms, rt_ms = trial["response_onset_ms"], trial["rt_ms"]
    yield "response_screen", response_onset_ms, rt_ms
    yield ("key_same" if trial["same"] else "key_different"), response_onset_ms + rt_ms, 0.0


def _find_page_openings(responses: TableColumns, events: TableColumns) -> list[float]:
    """Return for each response when its page was opened, in epoch ms: the zero of that page's clock.

    The page reports it before each block. Without such a report it follows from the two clocks of the trial itself, to
    the millisecond.
    """
    reports: list[tuple[int, float]] = []
    for seq, kind, data in zip(events["seq"], events["kind"], events["data"], strict=True):
        opened = json.loads(data).get("page_opened_at_ms") if kind == "screen" else None
        # A page may report anything.
        if isinstance(opened, int | float) and not isinstance(opened, bool) and 0 <= opened <= MAX_EPOCH_MS:
            reports.append((seq, float(opened)))
    openings, latest = [], None
    columns = zip(responses["seq"], responses["shown_at_ms"], responses["cue_onset_ms"], strict=True)
    for seq, shown_at_ms, cue_onset_ms in columns:
        while reports and reports[0][0] < seq:
            latest = reports.pop(0)[1]
        openings.append(shown_at_ms - cue_onset_ms if latest is None else latest)
    return openings


def _format_cell(value: Cell) -> str:
    """Return the text of a cell; BIDS writes n/a for a missing value."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value) if value not in (None, "") else "n/a"
