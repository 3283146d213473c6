"""An exported folder: what lies where in it, and what it says of itself.

`vseg export` and `vseg import` write such folders, `vseg.load` and `vseg fit` read them; the names stand here, once.

dataset_description.json   Psych-DS: the dataset, and every column of the tables in data/
data/                      a table of responses and one of events for each session, and one of the sessions;
                           one of the pairs that were chosen, if the study is adaptive
responses.parquet          all responses once more, if pyarrow was there
markers/                   onsets and codes of every trial, BIDS-like, if the study file asks for them
study/                     study.toml, images/, truth/ where it is known, trials/ as each session was given them
software.json, README.md   versions and seeds; what this folder is
identities.csv             who the participants are elsewhere, only if that was asked for

variables.py has every column described, writing.py writes CSV and Parquet, description.py what all such folders say.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vseg.data.layout import Layout
from vseg.errors import InvalidInput, NotFound
from vseg.study.schema import Study, load

DESCRIPTION, DATA, PARQUET = "dataset_description.json", "data", "responses.parquet"
MARKERS = "markers"
STUDY, IMAGES, TRUTH, TRIALS = "study/study.toml", "study/images", "study/truth", "study/trials"
SOFTWARE, README, IDENTITIES, IGNORE = "software.json", "README.md", "identities.csv", ".psychds-ignore"
TOP_LEVEL_NAMES = {DESCRIPTION, DATA, PARQUET, MARKERS, "study", SOFTWARE, README, IDENTITIES, IGNORE}
"""Everything at the top of such a folder."""


@dataclass(frozen=True)
class Dataset:
    """A folder written by `vseg export`.

    Examples
    --------
    >>> Dataset("exported").study.segments  # doctest: +SKIP
    3
    """

    folder: Path

    def __init__(self, folder: str | Path):
        object.__setattr__(self, "folder", Path(folder))
        if not (self.folder / STUDY).is_file():
            raise NotFound(
                f"{folder} is a folder without {STUDY}; expected one written by vseg export, or a CSV or Parquet "
                "file with the columns i, j, same."
            )

    @cached_property
    def study(self) -> Study:
        """The study as people took it."""
        return load(self.folder / STUDY)

    @property
    def layout(self) -> Layout:
        """The locations that were asked about."""
        return self.study.layout.build()

    @property
    def response_tables(self) -> list[Path]:
        """The sessions' responses as CSV, in a lasting order."""
        tables = self.folder.joinpath(DATA).glob("study-*_subject-*_session-*_data.csv")
        return sorted(path for path in tables if "_description-" not in path.name)

    @property
    def choices_table(self) -> Path | None:
        """The pairs that an adaptive study chose, where there are any."""
        return next(iter(self.folder.joinpath(DATA).glob("study-*_description-choices_data.csv")), None)

    def trials_file(self, session: str) -> Path:
        """What a session was given to do when it began."""
        return self.folder / TRIALS / f"{session}.csv"

    @property
    def parquet_file(self) -> Path:
        """All responses in one file, where it was written."""
        return self.folder / PARQUET

    def image_file(self, image: str) -> Path:
        """The file of an image, as it was shown."""
        return self.folder / IMAGES / f"{image}.png"

    def truth_file(self, image: str) -> Path:
        """The maps from which an image was generated, if it was."""
        return self.folder / TRUTH / f"{image}.npz"


def is_export(folder: str | Path) -> bool:
    """Whether a folder was written by `vseg export`, and by nobody else since, as far as its top shows."""
    try:
        software: Any = json.loads((Path(folder) / SOFTWARE).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    names = {entry.name for entry in Path(folder).iterdir()}
    return isinstance(software, dict) and "vseg" in software and names <= TOP_LEVEL_NAMES


def check_layout(dataset: Dataset, layout: Layout | None) -> Layout:
    """The folder's layout, or a sentence if another one was asked for."""
    own = dataset.layout
    if layout is not None and layout != own:
        raise InvalidInput(f"{dataset.folder} holds answers on {own}, not on {layout}; leave the layout out.")
    return own
