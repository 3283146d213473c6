"""Event markers: when each trial's phases began, with a code each, as BIDS-like tables for EEG, MEG or eye tracking.

Written where the study file has `lab = {markers = true}`. Nothing here was measured for the markers' sake: every
time is that of the frame which showed a phase, or of the key press, as it is in the responses.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vseg.data import dataset
from vseg.data.table_writing import TableColumns
from vseg.store.studies import StudyRow

CODES = {"cue": 10, "image": 20, "response_screen": 30, "key_same": 41, "key_different": 42}
"""The code of each event: small enough for a parallel port, the tens say what, the ones say which."""

MEANINGS = {
    "cue": "The frame that first showed the two dots alone",
    "image": "The frame that first showed the image with the dots",
    "response_screen": "The frame that first showed the question",
    "key_same": "The key that says: same segment",
    "key_different": "The key that says: different segments",
}

COLUMNS = {
    "onset": ("Since the first trial of the session: the frame that first showed its dots", "s"),
    "duration": ("For how long it was shown; 0 for a key", "s"),
    "trial_type": ("What began", ""),
    "value": ("The code of trial_type", ""),
    "trial": ("Number of the trial as it was shown, from 1; one that is asked again has a new number", ""),
    "item": ("Number of the trial in the session's list, as in the table of responses; asked again, it keeps it", ""),
    "image": ("Name of the image; practice and catch trials are on the one called practice", ""),
    "block": ("Block within the image, from 0", ""),
    "practice": ("1 for a practice trial", ""),
    "catch": ("1 for a catch trial, with an obvious answer", ""),
    "flags": ("What went wrong with the presentation; n/a if nothing did. See dataset_description.json", ""),
    "page_ms": ("The same instant by the clock of the page, which counts from when it was opened", "ms"),
    "epoch_ms": ("The same instant by the clock of the computer", "ms since 1970-01-01 UTC"),
}  # fmt: skip
KEPT = ("item", "image", "block", "practice", "catch", "flags")
LATEST_MS = 10_000_000_000_000  # epoch ms, until the year 2286; a page may report anything


def write_markers(
    folder: Path, study: StudyRow, who: dict[str, str], responses: TableColumns, events: TableColumns
) -> None:
    """The table of one session."""
    name = f"sub-{who['participant']}_ses-{who['session']}_{_task(study)}_events.tsv"
    lines = ["\t".join(COLUMNS), *("\t".join(map(_cell, row)) for row in _rows(responses, events))]
    folder.joinpath(dataset.MARKERS, name).write_text("\n".join([*lines, ""]), encoding="utf-8", newline="")


def write_sidecar(folder: Path, study: StudyRow) -> None:
    """What the columns and the codes mean; by BIDS's rule of inheritance once for all sessions."""
    described: dict[str, Any] = {
        name: {"Description": said, **({"Units": unit} if unit else {})}
        for name, (said, unit) in COLUMNS.items()
    }
    described["trial_type"]["Levels"] = MEANINGS
    described["value"]["Levels"] = {str(code): MEANINGS[name] for name, code in CODES.items()}
    photodiode = study.study.lab.photodiode
    described["Photodiode"] = (
        None
        if photodiode is None
        else {
            "Description": "A square in a corner of the screen: white exactly with the frames of phase, else black",
            **photodiode.model_dump(),
        }
    )
    path = folder / dataset.MARKERS / f"{_task(study)}_events.json"
    path.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _task(study: StudyRow) -> str:
    """BIDS allows letters and digits alone."""
    return f"task-{''.join(character for character in study.name if character.isalnum())}"


def _rows(responses: TableColumns, events: TableColumns) -> Iterator[Sequence[Any]]:
    """The events of all trials in the order in which they were shown."""
    opened_at_ms = _page_opened(responses, events)
    first_ms = opened_at_ms[0] + responses["cue_onset_ms"][0] if opened_at_ms else 0.0
    for number, opened_ms in enumerate(opened_at_ms):
        trial = {name: column[number] for name, column in responses.items()}
        about = [number + 1, *(trial[name] for name in KEPT)]
        for what, page_ms, duration_ms in _phases(trial):
            epoch_ms = opened_ms + page_ms
            onset_s, duration_s = f"{(epoch_ms - first_ms) / 1000:.6f}", f"{duration_ms / 1000:.6f}"
            yield onset_s, duration_s, what, CODES[what], *about, f"{page_ms:.3f}", f"{epoch_ms:.3f}"


def _phases(trial: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """What began when, by the page's clock, and how long it lasted; a phase that was not to be shown is left out."""
    for phase in ("cue", "image"):
        if trial[f"{phase}_asked_ms"] > 0:
            yield phase, trial[f"{phase}_onset_ms"], trial[f"{phase}_ms"]
    asked, rt_ms = trial["response_onset_ms"], trial["rt_ms"]
    yield "response_screen", asked, rt_ms
    yield ("key_same" if trial["same"] else "key_different"), asked + rt_ms, 0.0


def _page_opened(responses: TableColumns, events: TableColumns) -> list[float]:
    """For each response when its page was opened, in epoch ms: the zero of that page's own clock.

    The page says so before each block. Without its word the trial's own two clocks tell, to the millisecond.
    """
    said: list[tuple[int, float]] = []
    for seq, kind, data in zip(events["seq"], events["kind"], events["data"], strict=True):
        opened = json.loads(data).get("page_opened_at_ms") if kind == "screen" else None
        if isinstance(opened, int | float) and not isinstance(opened, bool) and 0 <= opened <= LATEST_MS:
            said.append((seq, float(opened)))
    found, latest = [], None
    columns = zip(responses["seq"], responses["shown_at_ms"], responses["cue_onset_ms"], strict=True)
    for seq, shown_at_ms, cue_onset_ms in columns:
        while said and said[0][0] < seq:
            latest = said.pop(0)[1]
        found.append(shown_at_ms - cue_onset_ms if latest is None else latest)
    return found


def _cell(value: Any) -> str:
    """BIDS writes n/a where there is nothing."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value) if value not in (None, "") else "n/a"
