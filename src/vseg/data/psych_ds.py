"""The Psych-DS files that describe a dataset folder, for `vseg export` and `vseg import` alike."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from vseg import __version__
from vseg.data import dataset
from vseg.data.columns import Column

SCHEMA_VERSION = "Psych-DS 1.5.0"
CITATION = (
    "Vacher J, Launay C, Mamassian P, Coen-Cagli R (2023). Measuring uncertainty in human visual segmentation. "
    "PLoS Computational Biology 19(9): e1011483. https://doi.org/10.1371/journal.pcbi.1011483"
)
IGNORED_FILES = ["study/", f"{dataset.MARKERS}/", dataset.SOFTWARE, dataset.PARQUET, dataset.IDENTITIES]


def describe_dataset(name: str, description: str, columns: Iterable[Column], now: datetime) -> dict[str, Any]:
    """Return the content of dataset_description.json; a column of several tables is described once."""
    distinct = {column.name: column for column in columns}
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "schemaVersion": SCHEMA_VERSION,
        "name": name,
        "description": description,
        "author": ["Put the names of those who collected these data here"],
        "citation": CITATION,
        "keywords": ["vision science", "psychophysics", "image segmentation", "same-different"],
        "dateModified": f"{now:%Y-%m-%d}",
        "isBasedOn": {"@type": "SoftwareApplication", "name": "vseg", "softwareVersion": __version__},
        "variableMeasured": [column.to_property() for column in distinct.values()],
    }


def write_ignore_file(folder: Path) -> None:
    """Write the list of files that a Psych-DS validator should ignore."""
    text = "".join(f"{name}\n" for name in IGNORED_FILES)
    folder.joinpath(dataset.IGNORE).write_text(text, encoding="utf-8")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, indented for people to read."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
