"""The layout of a dataset folder: the names of its files, and `Dataset`, which finds them.

`vseg export` and `vseg import` write such folders; `vseg.load` and `vseg fit` read them.

dataset_description.json   the dataset and every column of the tables in data/, in the form of Psych-DS
data/                      for each session a table of responses and a table of events; one table of all sessions;
                           if the study is adaptive, one table of the chosen pairs; for each session with a drawing,
                           a table of the drawn contours
responses.parquet          all responses in one file, if pyarrow was installed
markers/                   onset and code of every event of a trial, similar to BIDS, if the study file asks for them
study/                     study.toml, images/, truth/ (the maps of generated images) and trials/ (of each session)
software.json, README.md   versions and seeds; an introduction to the folder
identities.csv             the Prolific IDs of the participants, only on request
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vseg.data.layout import Layout
from vseg.errors import InvalidInput, NotFound
from vseg.study.schema import Study, load_study

DESCRIPTION, DATA, PARQUET = "dataset_description.json", "data", "responses.parquet"
MARKERS = "markers"
STUDY, IMAGES, TRUTH, TRIALS = "study/study.toml", "study/images", "study/truth", "study/trials"
SOFTWARE, README, IDENTITIES, IGNORE = "software.json", "README.md", "identities.csv", ".psychds-ignore"
TOP_LEVEL_NAMES = {DESCRIPTION, DATA, PARQUET, MARKERS, "study", SOFTWARE, README, IDENTITIES, IGNORE}
"""Everything that may be at the top level of a dataset folder."""


@dataclass(frozen=True)
class Dataset:
    """A folder written by `vseg export` or `vseg import`.

    Parameters
    ----------
    folder : str or Path
        `NotFound` is raised if it holds no study file.

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
        """The study file, as the participants took it."""
        return load_study(self.folder / STUDY)

    @property
    def layout(self) -> Layout:
        """The layout of the locations."""
        return self.study.layout.build()

    @property
    def response_tables(self) -> list[Path]:
        """The CSV files with the responses of each session, sorted by name."""
        tables = self.folder.joinpath(DATA).glob("study-*_subject-*_session-*_data.csv")
        return sorted(path for path in tables if "_description-" not in path.name)

    @property
    def sessions_table(self) -> Path | None:
        """The CSV file with one row per session, or None if there is none."""
        return next(iter(self.folder.joinpath(DATA).glob("study-*_description-sessions_data.csv")), None)

    @property
    def choices_table(self) -> Path | None:
        """The CSV file with the pairs that an adaptive study chose, or None if the study is not adaptive."""
        return next(iter(self.folder.joinpath(DATA).glob("study-*_description-choices_data.csv")), None)

    @property
    def contours_tables(self) -> list[Path]:
        """The CSV files with the contours that participants drew, one per session with a drawing, sorted by name."""
        return sorted(self.folder.joinpath(DATA).glob("study-*_description-contours_data.csv"))

    def trials_file(self, session: str) -> Path:
        """Return the CSV file with the trials that a session was assigned when it began."""
        return self.folder / TRIALS / f"{session}.csv"

    @property
    def parquet_file(self) -> Path:
        """The Parquet file with all responses; it may not exist."""
        return self.folder / PARQUET

    def truth_file(self, image: str) -> Path:
        """Return the file with the true maps of an image; it exists only if they are known."""
        return self.folder / TRUTH / f"{image}.npz"

    def image_file(self, image: str) -> Path:
        """Return the file of an image as it was shown; it may not exist."""
        return self.folder / IMAGES / f"{image}.png"


def is_export(folder: str | Path) -> bool:
    """Return whether `vseg export` wrote a folder and nothing else was added at its top level."""
    try:
        software: object = json.loads((Path(folder) / SOFTWARE).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    names = {entry.name for entry in Path(folder).iterdir()}
    return isinstance(software, dict) and "vseg" in software and names <= TOP_LEVEL_NAMES


def check_layout(dataset: Dataset, layout: Layout | None) -> Layout:
    """Return the layout of a dataset; `InvalidInput` if the caller expects another one."""
    own = dataset.layout
    if layout is not None and layout != own:
        raise InvalidInput(f"{dataset.folder} holds answers on {own}, not on {layout}; leave the layout out.")
    return own
