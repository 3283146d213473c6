"""Write the files that describe an exported dataset: dataset_description.json, README.md and software.json."""

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vseg import __version__
from vseg.data import dataset
from vseg.data.columns import CHOICES, CONTOURS, EVENTS, RESPONSES, SESSIONS
from vseg.data.psych_ds import SCHEMA_VERSION, describe_dataset, write_ignore_file, write_json
from vseg.store.studies import StudyRow

README_TEMPLATE = """# {title}

Same/different judgments about pairs of locations in images, collected with vseg {version} and exported on {date}.
{counts}

```
dataset_description.json   this dataset, and every column of the tables in data/ ({schema})
data/
  study-…_subject-…_session-…_data.csv                      responses of a session, one per row
  study-…_subject-…_session-…_description-events_data.csv   its other events: consent, calibration, breaks
  study-…_description-sessions_data.csv                     sessions, one per row: status, durations, calibration
{contours}{choices}{parquet}{markers}study/
  study.toml         the study file, with its seed
  images/            the images as they were shown
  truth/             the maps of the images that vseg generated, and of the practice image
  trials/            the trials that each session was assigned when it began
software.json        versions and seeds
```

A response is identified by `session` and `seq`. All responses are included unchanged: those to practice and catch
trials, those to trials that were not shown correctly (`flags`), and repeated responses to an item that was asked again.
The answers that count have `used` = 1: the last one without flags to each item of the real trials.

Text that a spreadsheet would read as a formula, such as the key `=`, has an apostrophe in front of it in the CSV files.
Participants and sessions have random names. {identities}

With vseg:

```python
import vseg

responses = vseg.load("this-folder")  # the answers that count
```

```sh
vseg fit this-folder --out fit
```
"""


@dataclass(frozen=True)
class ExportCounts:
    """What was exported: numbers of sessions and of responses; `used` are the responses that count."""

    sessions: int
    completed: int
    withdrawn: int
    simulated: int
    responses: int
    used: int

    def __str__(self) -> str:
        withdrawn = f" {self.withdrawn} withdrew; their data are not included." if self.withdrawn else ""
        simulated = f" Sessions of simulated participants: {self.simulated}." if self.simulated else ""
        return (
            f"{self.sessions} session{'' if self.sessions == 1 else 's'} ({self.completed} completed) gave "
            f"{self.responses} answers, of which {self.used} count.{simulated}{withdrawn}"
        )


def write_description(
    folder: Path, study: StudyRow, counts: ExportCounts, software: list[dict[str, str]]
) -> None:
    """Write all files that describe the tables, after the tables were written."""
    now = datetime.now(UTC)
    has_contours = bool(dataset.Dataset(folder).contours_tables)
    write_json(folder / dataset.DESCRIPTION, _describe(study, counts, now, has_contours=has_contours))
    write_json(folder / dataset.SOFTWARE, _describe_software(study, software, now))
    write_ignore_file(folder)
    folder.joinpath(dataset.README).write_text(
        README_TEMPLATE.format(
            title=_title(study),
            version=__version__,
            date=f"{now:%Y-%m-%d}",
            counts=counts,
            schema=SCHEMA_VERSION,
            contours="  study-…_subject-…_session-…_description-contours_data.csv drawn lines, one point per row\n"
            * has_contours,
            choices="  study-…_description-choices_data.csv                      chosen pairs, one per row\n"
            * study.study.design.is_adaptive,
            parquet="responses.parquet    all responses in one file\n"
            * folder.joinpath(dataset.PARQUET).exists(),
            markers="markers/             onsets and codes of the events of every trial, similar to BIDS\n"
            * folder.joinpath(dataset.MARKERS).exists(),
            identities=(
                "Their Prolific IDs are in identities.csv: store it separately, and delete it once it is not needed."
                if folder.joinpath(dataset.IDENTITIES).exists()
                else "This folder does not say who they are."
            ),
        ),
        encoding="utf-8",
    )


def _describe(study: StudyRow, counts: ExportCounts, now: datetime, *, has_contours: bool) -> dict[str, Any]:
    segments = study.study.segments
    instruction = "as many segments as they saw" if segments == "free" else f"{segments} segments"
    about = (
        f"Same/different judgments about pairs of locations on {study.study.layout.build()}, "
        f"images: {len(study.study.images)}, by participants who were asked to see {instruction}. {counts}"
    )
    choices = CHOICES if study.study.design.is_adaptive else ()
    contours = CONTOURS if has_contours else ()  # Psych-DS allows no column that no table has
    return describe_dataset(_title(study), about, (*choices, *contours, *RESPONSES, *EVENTS, *SESSIONS), now)


def _describe_software(
    study: StudyRow, trial_software: list[dict[str, str]], now: datetime
) -> dict[str, Any]:
    """Return the versions that exported the data, the versions that drew the trials, and the seeds."""
    distinct = {json.dumps(versions, sort_keys=True): versions for versions in trial_software}
    return {
        "vseg": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "exported_at": now.isoformat(timespec="seconds"),
        "study": study.name,
        "study_sha256": study.digest,
        "frozen_at_ms": study.frozen_at_ms,
        "trials_drawn_by": list(distinct.values()),
        "seed": study.study.seed,
        "image_seeds": {image.name: image.seed for image in study.study.images},
        "image_sha256": {name: image.sha256 for name, image in study.images.items()},
    }


def _title(study: StudyRow) -> str:
    return " ".join(study.study.title.split()) or study.name
