"""Comparing folders of results: `from workflows.folders import read_folder`."""

import json
from pathlib import Path
from typing import Any

import numpy as np


def read_folder(folder: Path) -> dict[str, Any]:
    """Every file of a folder by its path: arrays, JSON without the time it took, and bytes of all others."""
    return {
        str(path.relative_to(folder)): _read(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _read(path: Path) -> Any:
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name].tolist() for name in arrays.files}
    if path.suffix == ".json":
        found = json.loads(path.read_text("utf-8"))
        found.pop("seconds", None)
        return found
    return path.read_bytes()
