"""Export a study from the database to a Psych-DS folder that `vseg.load` and `vseg fit` read.

folder       write_dataset(): the tables of all sessions, session by session
markers      onsets and codes of trial events for EEG, MEG or eye tracking
description  dataset_description.json, README.md and software.json

The names of the files are in vseg.data.dataset, the columns in vseg.data.columns.
"""

from vseg.export.folder import write_dataset
from vseg.export.study_description import ExportCounts

__all__ = ["ExportCounts", "write_dataset"]
