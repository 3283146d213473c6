"""What every such folder says of itself in the same words, whoever wrote it: `vseg export` or an import."""

import json
from collections.abc import Iterable
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


def describe_dataset(
    name: str, description: str, variables: Iterable[Column], now: datetime
) -> dict[str, Any]:
    """The content of dataset_description.json; a column that several tables have is described once."""
    distinct = {variable.name: variable for variable in variables}
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
        "variableMeasured": [variable.as_property() for variable in distinct.values()],
    }


def write_ignore_file(folder: Path) -> None:
    """What is beside the tables and no matter of Psych-DS."""
    folder.joinpath(dataset.IGNORE).write_text(
        "".join(f"{name}\n" for name in IGNORED_FILES), encoding="utf-8"
    )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """A JSON file to read."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
