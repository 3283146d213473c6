"""A dataset folder as what models are fitted to: its answers, its images, its number of segments."""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vseg.data.dataset import Dataset
from vseg.data.responses import COLUMNS
from vseg.data.tables import load as load_responses
from vseg.errors import InvalidInput, NotFound
from vseg.models.task import Task
from vseg.stimuli import read


def load(folder: str | Path, segments: int | None = None, image: str | None = None) -> Task:
    """The task of a folder that `vseg export`, `vseg import` or `vseg bench dataset` wrote.

    Parameters
    ----------
    folder : path
    segments : int, optional
        K of models that predict maps; without it, what the study fixed.
    image : str, optional
        Only the answers about this image.

    Examples
    --------
    >>> load("exported", segments=3)  # doctest: +SKIP
    <Task: 7680 trials on a 16x16 grid, participants: 4, images: 2, segments: 3>
    """
    if not Path(folder).is_dir():
        raise NotFound(
            f"There is no folder {folder}; expected a dataset that vseg export or vseg import wrote."
        )
    dataset = Dataset(folder)
    responses = load_responses(folder)
    if image is not None:
        responses = responses.of(image=image)
    return Task(responses, _pictures(dataset, responses.images), segments or _fixed(dataset))


def digest(task: Task) -> str:
    """SHA-256 of the answers and the images, wherever they lie and whenever they were written."""
    found = hashlib.sha256(np.ascontiguousarray(task.layout.positions).tobytes())
    order = np.lexsort([getattr(task.responses, name) for name in ("trial", "block", "image", "participant")])
    for name in COLUMNS[:-1]:
        values = getattr(task.responses, name)[order]
        found.update("\n".join(map(str, values.tolist())).encode())
    for name in sorted(task.images):
        found.update(f"{name} {task.images[name].shape}".encode() + task.images[name].tobytes())
    return found.hexdigest()


def _pictures(dataset: Dataset, images: list[str]) -> dict[str, NDArray[np.uint8]]:
    """Those that are there: a model that looks at one that is not says so itself."""
    return {name: read(path) for name in images if (path := dataset.image_file(name)).is_file()}


def _fixed(dataset: Dataset) -> int:
    segments = dataset.study.segments
    if segments == "free":
        raise InvalidInput(
            f"The study in {dataset.folder} leaves the number of segments free; say it, such as --segments 3."
        )
    return segments
