"""Where a fit's answers come from: a table, with its locations as options, or a folder that knows them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vseg.cli import options
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vseg.data.dataset import Dataset
    from vseg.data.layout import Layout

LARGEST_PICTURE_PX = 1600

Pictures = Callable[[str], "NDArray[np.uint8] | None"]


@dataclass(frozen=True)
class Source:
    """Where answers are, their locations, the K to try (all that may be, if automatic), and the folder if it is one."""

    path: Path
    layout: "Layout"
    counts: list[int]
    dataset: "Dataset | None" = None
    automatic: bool = False

    def catch(self) -> dict[str, tuple[int, int]]:
        """(right, asked) of each participant who had catch trials."""
        from vseg.data.catch_trials import catch_trials

        return catch_trials(self.path)

    def pictures(self, given: Path | None, by: str, images: list[str]) -> Pictures:
        """What to draw over: the picture that was given, or the folder's own of each image."""
        if given is not None:
            if by == "image" and len(images) > 1:
                raise InvalidInput(
                    f"--picture is one image, but there are {len(images)}; choose one with --image NAME."
                )
            pixels = _picture(given)
            return lambda image: pixels
        if (dataset := self.dataset) is not None:
            return lambda image: _picture(path) if (path := dataset.image_file(image)).is_file() else None
        return lambda image: None


def source_of(responses: Path, grid: str | None, segments: str | None) -> Source:
    """The source behind RESPONSES, from what was typed and, in a folder, from what lies there."""
    from vseg.data.layout import Grid

    size = None if grid is None else Grid(options.whole(grid, "--grid", least=3))
    automatic = segments == "auto"
    counts = None if segments is None or automatic else options.segments_range(segments)
    if responses.is_dir():
        from vseg.data.dataset import Dataset, check_layout

        dataset = Dataset(responses)
        layout = check_layout(dataset, size)
        counts = _possible(layout) if automatic else counts or _fixed(dataset)
        return Source(responses, layout, counts, dataset, automatic)
    if not responses.exists():
        from vseg.data.tables import missing_data_error

        raise missing_data_error(responses)
    if size is not None and automatic:
        counts = _possible(size)
    if size is None or counts is None:
        missing = "--grid" if size is None else "--segments"
        raise typer.BadParameter(
            "a file of responses needs it; only a folder written by vseg export knows its own.",
            param_hint=missing,
        )
    return Source(responses, size, counts, automatic=automatic)


def _possible(layout: "Layout") -> list[int]:
    """The K among which the evidence chooses."""
    from vseg.bayes.segment_evidence import counts_of

    return counts_of("auto", layout)


def _fixed(dataset: "Dataset") -> list[int]:
    segments = dataset.study.segments
    if segments == "free":
        raise InvalidInput(
            f"The study in {dataset.folder} leaves the number of segments free; "
            "choose it by evidence with --segments auto, or give a number or a range, such as 2..6."
        )
    return [segments]


def _picture(path: Path) -> "NDArray[np.uint8]":
    """The picture, coarser if it is larger than any figure shows."""
    from vseg.stimuli import read

    pixels = read(path)
    step = -(-max(pixels.shape[:2]) // LARGEST_PICTURE_PX)
    return pixels[::step, ::step]
