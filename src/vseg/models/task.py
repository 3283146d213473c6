"""Task: what models are fitted to and scored on, that is answers, the images they are about, and K."""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg import features
from vseg.data.layout import Layout
from vseg.data.pairs import as_index
from vseg.data.responses import COLUMNS, Responses, Tally
from vseg.errors import InvalidInput, NotFound
from vseg.features import FeatureSource

if TYPE_CHECKING:
    from vseg.data.dataset import Dataset


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Answers of any number of participants about any number of images, all on one layout.

    Parameters
    ----------
    responses : Responses
        The answers.
    images : mapping from image names to arrays, uint8, (H, W) or (H, W, 3)
        Needed by models that look at images, but not by those that only use answers.
    segments : int
        K of models that predict maps.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=2, seed=0)
    >>> pairs = vseg.designs.scattered(truth.layout, segments=2, seed=1)
    >>> Task(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2)
    <Task: 384 trials on an 8x8 grid, participants: 1, images: 1, segments: 2>
    """

    responses: Responses
    images: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    segments: int = 2
    _cache: dict[Hashable, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.segments < 2:
            raise InvalidInput(f"A task has 2 or more segments, got {self.segments}.")
        if not len(self.responses):
            raise InvalidInput("There are no responses; models are fitted to at least one.")

    @classmethod
    def load(cls, folder: str | Path, segments: int | None = None, image: str | None = None) -> "Task":
        """Load a dataset folder written by `vseg export`, `vseg import` or `vseg bench dataset`.

        Parameters
        ----------
        folder : path
            The dataset.
        segments : int, optional
            K of models that predict maps; by default the number that the study fixes.
        image : str, optional
            Load only the answers about this image.

        Returns
        -------
        Task
            Images without an image file are left out; a model that needs one raises NotFound.

        Examples
        --------
        >>> Task.load("exported", segments=3)  # doctest: +SKIP
        <Task: 7680 trials on a 16x16 grid, participants: 4, images: 2, segments: 3>
        """
        from vseg.data.dataset import Dataset
        from vseg.data.tables import load
        from vseg.stimuli import read_image

        if not Path(folder).is_dir():
            raise NotFound(
                f"There is no folder {folder}; expected a dataset written by vseg export or vseg import."
            )
        dataset = Dataset(folder)
        responses = load(folder)
        if image is not None:
            responses = responses.select(image=image)
        files = {name: dataset.image_file(name) for name in responses.images}
        images = {name: read_image(file) for name, file in files.items() if file.is_file()}
        return cls(responses, images, segments or _fixed_segments(dataset))

    def __repr__(self) -> str:
        return f"<Task: {str(self.responses)[12:-1]}, segments: {self.segments}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the computed features; another process computes those it needs."""
        return Task, (self.responses, dict(self.images), self.segments)

    @property
    def layout(self) -> Layout:
        """The locations that were asked about."""
        return self.responses.layout

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the answers and the images; it does not depend on the order of the rows or on K."""
        digest = hashlib.sha256(np.ascontiguousarray(self.layout.positions).tobytes())
        for name in COLUMNS[:-1]:
            values = getattr(self.responses, name)[self.canonical_order]
            digest.update("\n".join(map(str, values.tolist())).encode())
        for name in sorted(self.images):
            digest.update(f"{name} {self.images[name].shape}".encode() + self.images[name].tobytes())
        return digest.hexdigest()

    @cached_property
    def canonical_order(self) -> NDArray[np.int64]:
        """The rows sorted by participant, image, block and trial."""
        return np.lexsort(
            [getattr(self.responses, name) for name in ("trial", "block", "image", "participant")]
        )

    def take(self, chosen: ArrayLike) -> "Task":
        """Return the task with these rows only; it shares the computed features."""
        return Task(self.responses.take(as_index(chosen)), self.images, self.segments, self._cache)

    def tallies(self) -> dict[str, Tally]:
        """Return the counts of answers for each image, over all participants."""
        return {name: self.responses.select(image=name).tally() for name in self.responses.images}

    def features(self, source: FeatureSource, image: str) -> NDArray[np.float64]:
        """Return the features (n, D) of one image.

        Parameters
        ----------
        source : str, callable or mapping
            Names (then cached on disk), a function, or arrays by image name.
        image : str
            The name of the image.
        """
        if isinstance(source, Mapping):
            if image not in source:
                raise NotFound(
                    f"There are no features for image {image}; there are some for {', '.join(source)}."
                )
            # Features given per location do not need the image itself.
            pixels = self.images.get(image, np.zeros((1, 1), np.uint8))
            return features.extract(np.asarray(source[image]), pixels, self.layout)
        feature = features.cache_feature(source) if isinstance(source, str) else source
        return self.compute_once(
            (source, image), lambda: features.extract(feature, self.get_image(image), self.layout)
        )

    def compute_once(self, key: Hashable, compute: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the cached value for this key, or compute and cache it for this task and all its parts."""
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def get_image(self, name: str) -> NDArray[np.uint8]:
        """Return the image with this name as (H, W, 3)."""
        if name not in self.images:
            raise NotFound(
                f"There is no picture of image {name}, which this model looks at; give it in images."
            )
        return features.as_image(self.images[name])


def _fixed_segments(dataset: "Dataset") -> int:
    segments = dataset.study.segments
    if segments == "free":
        raise InvalidInput(
            f"The study in {dataset.folder} leaves the number of segments free; give the number, such as 3."
        )
    return segments
