"""Task: what models are fitted to and scored on. Answers, the images they are about, the number of segments."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg import features
from vseg.data.layout import Layout
from vseg.data.pairs import as_index
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, NotFound
from vseg.features.cache import cached

Features = "str | features.Feature | Mapping[str, ArrayLike]"


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Answers of any number of participants about any number of images, all on one layout.

    Parameters
    ----------
    responses : Responses
    images : mapping from image names to arrays, uint8, (H, W) or (H, W, 3)
        Needed by models that look at images; those that only look at answers do without.
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
    _seen: dict[Any, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.segments < 2:
            raise InvalidInput(f"A task has 2 or more segments, got {self.segments}.")
        if not len(self.responses):
            raise InvalidInput("There are no responses; models are fitted to at least one.")

    def __repr__(self) -> str:
        return f"<Task: {str(self.responses)[12:-1]}, segments: {self.segments}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent without the features that were computed: they are computed anew where they are needed."""
        return Task, (self.responses, dict(self.images), self.segments)

    @property
    def layout(self) -> Layout:
        """Where the answers were asked."""
        return self.responses.layout

    def where(self, chosen: ArrayLike) -> "Task":
        """The task of these rows alone; features that were computed stay."""
        return Task(self.responses.where(as_index(chosen)), self.images, self.segments, self._seen)

    def tallies(self) -> dict[str, Tally]:
        """Counts of each image, over all participants."""
        return {name: self.responses.of(image=name).tally() for name in self.responses.images}

    def features(self, what: Any, image: str) -> NDArray[np.float64]:
        """(n, D) features of one image: by name (kept on disk) or function, or from a mapping of arrays by image."""
        if isinstance(what, Mapping):
            if image not in what:
                raise NotFound(
                    f"There are no features for image {image}; there are some for {', '.join(what)}."
                )
            return features.of(np.asarray(what[image]), self._picture(image, needed=False), self.layout)
        kept = cached(what) if isinstance(what, str) else what
        return self.once((what, image), lambda: features.of(kept, self._picture(image), self.layout))

    def once(self, key: Hashable, make: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """What `make` gives, computed once for this task and all parts of it."""
        if key not in self._seen:
            self._seen[key] = make()
        return self._seen[key]

    def picture(self, image: str) -> NDArray[np.uint8]:
        """The image of that name as (H, W, 3)."""
        return features.as_image(self._picture(image))

    def _picture(self, image: str, needed: bool = True) -> NDArray[np.uint8]:
        if image in self.images:
            return self.images[image]
        if needed:
            raise NotFound(
                f"There is no picture of image {image}, which this model looks at; give it in images."
            )
        return np.zeros((1, 1), np.uint8)
