"""The data set behind a fit: a folder that `vseg export` wrote, a table of responses, or Responses."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vseg.bayes.segment_evidence import check_segment_counts
from vseg.data.catch_trials import count_catch_trials
from vseg.data.dataset import Dataset, check_layout
from vseg.data.durations import DurationTable, measure_durations
from vseg.data.layout import Layout
from vseg.data.responses import Responses
from vseg.data.tables import load, missing_data_error
from vseg.errors import InvalidInput
from vseg.stimuli import read_image
from vseg.workflows.fits import Pixels

MAX_PICTURE_PX = 1600

ReadImage = Callable[[str], Pixels | None]
Segments = int | Iterable[int] | str


@dataclass(frozen=True)
class DataSource:
    """Where responses come from; a folder also knows its layout, images and number of segments.

    Attributes
    ----------
    data : Path or Responses
    layout : Layout or None
        The locations, for a table.
    dataset : Dataset or None
        The exported folder, if the data is one.
    """

    data: Path | Responses
    layout: Layout | None
    dataset: Dataset | None = None

    @classmethod
    def open(cls, data: str | Path | Responses, layout: Layout | None) -> "DataSource":
        """Check that the data exists and that its layout is known; read no responses yet."""
        if isinstance(data, Responses):
            if layout is not None and layout != data.layout:
                raise InvalidInput(f"The responses are on {data.layout}, not on {layout}; leave layout out.")
            return cls(data, data.layout)
        path = Path(data)
        if path.is_dir():
            dataset = Dataset(path)
            return cls(path, check_layout(dataset, layout), dataset)
        if not path.exists():
            raise missing_data_error(path)
        return cls(path, layout)

    def load(self) -> Responses:
        """Return the responses that count."""
        return self.data if isinstance(self.data, Responses) else load(self.data, self.layout)

    def list_counts(self, segments: Segments | None) -> list[int]:
        """Return the numbers of segments to choose from: as given, else as the folder's study fixed it, else "auto"."""
        if segments is None:
            segments = self._study_segments()
        if isinstance(segments, str):
            if segments != "auto" or self.layout is None:
                raise InvalidInput(
                    f"Expected a number of segments, several to choose from, or 'auto', got {segments!r}."
                )
            return check_segment_counts("auto", self.layout)
        if not isinstance(segments, Iterable):
            return [segments]
        counts = list(segments)
        if not counts:
            raise InvalidInput("Expected one or more numbers of segments, got none.")
        return counts

    def count_catch_trials(self) -> dict[str, tuple[int, int]]:
        """Return (right, asked) for each participant who had catch trials."""
        return {} if isinstance(self.data, Responses) else count_catch_trials(self.data)

    def measure_durations(self, participants: Collection[str]) -> DurationTable | None:
        """Return reaction times and durations of these participants; None if the data hold no reaction times."""
        table = measure_durations(self.data).select(participants)
        return None if table.study.rt_ms.median is None else table

    def image_reader(self, picture: str | Path | Pixels | None, images: list[str]) -> ReadImage:
        """Return a function that reads an image by its name: the given picture, the folder's own, or none."""
        if picture is not None:
            if len(images) > 1:
                raise InvalidInput(
                    f"One picture was given, but the responses are about {len(images)} images; choose one image."
                )
            pixels = _read_pixels(picture) if isinstance(picture, (str, Path)) else _shrink(picture)
            return lambda image: pixels
        if (dataset := self.dataset) is not None:
            return lambda image: _read_pixels(path) if (path := dataset.image_file(image)).is_file() else None
        return lambda image: None

    def _study_segments(self) -> int | str:
        """Return the number of segments of the folder's study; "auto" if it leaves the number free."""
        if self.dataset is None:
            raise InvalidInput(
                "Give the number of segments; only a folder written by vseg export knows its own."
            )
        segments = self.dataset.study.segments
        return "auto" if segments == "free" else segments


def _read_pixels(path: str | Path) -> Pixels:
    return _shrink(read_image(path))


def _shrink(pixels: Pixels) -> Pixels:
    """Leave out rows and columns of a picture that is larger than any figure shows it."""
    pixels = np.asarray(pixels)
    step = -(-max(pixels.shape[:2]) // MAX_PICTURE_PX)
    return pixels[::step, ::step]
