"""The words around the tables: dataset_description.json, README.md, software.json."""

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vseg import __version__
from vseg.data import dataset
from vseg.data.columns import CHOICES, EVENTS, RESPONSES, SESSIONS
from vseg.data.psych_ds import SCHEMA_VERSION, describe_dataset, write_ignore_file, write_json
from vseg.store.studies import StudyRow

README_TEMPLATE = """# {title}

Same/different judgments about pairs of locations in images, collected with vseg {version} and exported on {date}.
{counted}

```
dataset_description.json   this dataset, and every column of the tables in data/ ({schema})
data/
  study-…_subject-…_session-…_data.csv                      a row an answer
  study-…_subject-…_session-…_description-events_data.csv   a row for everything else: consent, calibration, breaks
  study-…_description-sessions_data.csv                     a row a session: status, images, calibration
{choices}{parquet}{markers}study/
  study.toml         the study file, with its seed
  images/            what was shown
  truth/             the maps behind images that vseg generated, and behind the practice picture
  trials/            what each session was given to do, as the server fixed it
software.json        versions and seeds
```

A row of responses is identified by `session` and `seq`. Nothing was left out or changed: practice, catch trials,
answers to trials that were not shown right (`flags`) and those to the same item when it was asked again are all
there. The answers that count have `used` = 1: the last one without flags to each item of the real trials.

Text that a spreadsheet would take for a formula, such as a key `=`, stands behind an apostrophe in the CSV files.
Participants and sessions have random names. {identities}

With vseg:

```python
import vseg

responses = vseg.load("this-folder")  # the answers that count
```

```sh
vseg fit this-folder{segments} --out fit
```
"""


@dataclass(frozen=True)
class ExportCounts:
    """How much was exported; `responses` are all answers, `used` those that count."""

    sessions: int
    completed: int
    withdrawn: int
    simulated: int
    responses: int
    used: int

    def __str__(self) -> str:
        gone = (
            f" {self.withdrawn} withdrew: of them nothing is here but this count." if self.withdrawn else ""
        )
        made = f" Sessions of simulated people: {self.simulated}." if self.simulated else ""
        return (
            f"{self.sessions} session{'' if self.sessions == 1 else 's'} ({self.completed} completed) gave "
            f"{self.responses} answers, of which {self.used} count.{made}{gone}"
        )


def write_description(
    folder: Path, study: StudyRow, counts: ExportCounts, software: list[dict[str, str]]
) -> None:
    """All that explains the tables; they are there already."""
    now = datetime.now(UTC)
    write_json(folder / dataset.DESCRIPTION, _description(study, counts, now))
    write_json(folder / dataset.SOFTWARE, _software(study, software, now))
    write_ignore_file(folder)
    identified = folder.joinpath(dataset.IDENTITIES).exists()
    folder.joinpath(dataset.README).write_text(
        README_TEMPLATE.format(
            title=_title(study),
            version=__version__,
            date=f"{now:%Y-%m-%d}",
            counted=counts,
            segments=" --segments 2..6" if study.study.segments == "free" else "",
            schema=SCHEMA_VERSION,
            choices="  study-…_description-choices_data.csv                      a row a pair that was chosen\n"
            * study.study.design.adaptive,
            parquet="responses.parquet    all responses once more\n"
            * folder.joinpath(dataset.PARQUET).exists(),
            markers="markers/             onsets of every trial with their codes, BIDS-like, a table a session\n"
            * folder.joinpath(dataset.MARKERS).exists(),
            identities=(
                "Who they are on Prolific stands in identities.csv: keep it apart, and delete it when it has served."
                if identified
                else "Who they are elsewhere is not in this folder."
            ),
        ),
        encoding="utf-8",
    )


def _description(study: StudyRow, counts: ExportCounts, now: datetime) -> dict[str, Any]:
    segments = study.study.segments
    asked = "as many segments as they saw" if segments == "free" else f"{segments} segments"
    about = (
        f"Same/different judgments about pairs of locations on {study.study.layout.build()}, "
        f"images: {len(study.study.images)}, by people who were asked to see {asked}. {counts}"
    )
    choices = CHOICES if study.study.design.adaptive else ()
    return describe_dataset(_title(study), about, (*choices, *RESPONSES, *EVENTS, *SESSIONS), now)


def _software(study: StudyRow, drawn_by: list[dict[str, str]], now: datetime) -> dict[str, Any]:
    """The versions that exported, those that drew the trials, and what started chance."""
    distinct = {json.dumps(versions, sort_keys=True): versions for versions in drawn_by}
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
