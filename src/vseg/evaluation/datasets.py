"""Datasets to try models on: BSDS500 with its annotators as observers, or sample images with simulated observers.

Both are written like imported data, in the folder format of `vseg export`, so that `vseg.load`, `vseg fit` and
`vseg models score` read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg import designs
from vseg._support.temporary_folders import temporary_folder
from vseg.data import dataset, importers
from vseg.data.importers.names import name_images
from vseg.data.importers.trials import SkippedRows
from vseg.data.layout import Grid
from vseg.data.responses import Responses, concatenate
from vseg.errors import InvalidInput
from vseg.image_observers import simulate_annotation
from vseg.observers import LapsingObserver, simulate
from vseg.stimuli import Bsds, load_sample

SAMPLES = ("coffee", "chelsea", "rocket")
SIZE_PX = 320
LAPSE_RATE = 0.02
POSITION_WEIGHTS = (0.1, 0.2, 0.3, 0.4)  # of each observer: how much position counts relative to colour
SEGMENTATIONS = 3  # of an image by one simulated observer, who uses one of them at each trial

ABOUT_BSDS = (
    "The observers are the annotators of BSDS500 (Arbeláez, Maire, Fowlkes, Malik 2011): each answers 'same' where "
    "both locations lie in one region that they drew. Nobody is asked twice, since an annotator would only repeat what "
    "was drawn: there is no ceiling within a participant. Annotators of two photographs count as two participants, "
    "since BSDS500 does not identify them. The photographs are for non-commercial research and may not be passed on."
)
ABOUT_SAMPLES = (
    "The pictures come with scikit-image; the observers are simulated. Each has three segmentations of a picture "
    "(k-means over colour and position), one of which is drawn at each trial, and guesses at one trial in fifty."
)


@dataclass(frozen=True)
class DatasetSummary:
    """The responses and K of a new dataset; `str` describes it in a sentence."""

    responses: Responses
    segments: int

    def __str__(self) -> str:
        responses = self.responses
        return (
            f"{len(responses)} answers of {len(responses.participants)} observers about {len(responses.images)} images "
            f"on {responses.layout}, {self.segments} segments."
        )


def write_bsds_dataset(
    bsds: str | Path,
    folder: Path,
    *,
    images: Sequence[str] | None = None,
    count: int = 3,
    grid: int = 16,
    segments: int = 4,
    seed: int = 0,
) -> DatasetSummary:
    """Write a dataset of BSDS500 photographs; each annotator of a photograph answers the same scattered pairs once.

    Parameters
    ----------
    bsds : path
        The user's own copy of BSDS500.
    folder : Path
        An empty folder to write.
    images : sequence of str, optional
        Names of photographs; by default the first `count`.
    count : int
        Number of photographs if there are no names.
    grid : int
        Locations along a side.
    segments : int
        K of the study.
    seed : int
        Seed of the pairs.
    """
    photographs = Bsds(bsds)
    chosen = list(images) if images else photographs.ids[:count]
    layout = Grid(grid)
    pictures = {name: photographs.image(name, SIZE_PX) for name in chosen}
    new_names, parts = name_images(chosen), []
    for name, own in zip(chosen, np.random.SeedSequence(seed).spawn(len(chosen)), strict=True):
        annotators = photographs.annotator_maps(name, layout)
        pairs_seed, *seeds = own.spawn(1 + len(annotators))
        pairs = designs.scattered(layout, segments=segments, seed=pairs_seed)
        for number, (maps, observer_seed) in enumerate(zip(annotators, seeds, strict=True), 1):
            image = new_names[name]
            parts.append(
                simulate(maps, pairs, participant=f"{image}-a{number}", image=image, seed=observer_seed)
            )
    return _write(folder, "bsds500", concatenate(parts), pictures, new_names, segments, ABOUT_BSDS)


def write_sample_dataset(
    folder: Path,
    *,
    images: Sequence[str] = SAMPLES,
    observers: int = 4,
    blocks: int = 2,
    grid: int = 12,
    segments: int = 3,
    seed: int = 0,
) -> DatasetSummary:
    """Write a dataset of scikit-image's sample pictures; all simulated observers answer the same scattered pairs.

    Parameters
    ----------
    folder : Path
        An empty folder to write.
    images : sequence of str
        Names of sample pictures.
    observers : int
        Number of observers.
    blocks : int
        How often each observer answers the pairs of each picture.
    grid : int
        Locations along a side.
    segments : int
        K of the study and of the observers.
    seed : int
        Seed of pairs and answers.
    """
    if observers < 1 or blocks < 1:
        raise InvalidInput(f"Expected at least one observer and one block, got {observers} and {blocks}.")
    layout, new_names = Grid(grid), name_images(images)
    pictures = {name: _as_colour(load_sample(name, SIZE_PX)) for name in images}
    parts = []
    for name, own in zip(images, np.random.SeedSequence(seed).spawn(len(images)), strict=True):
        pairs_seed, *seeds = own.spawn(1 + observers)
        pairs = designs.scattered(layout, segments=segments, seed=pairs_seed)
        for number, observer_seed in enumerate(seeds):
            answer_seed, *map_seeds = observer_seed.spawn(1 + SEGMENTATIONS)
            weight = POSITION_WEIGHTS[number % len(POSITION_WEIGHTS)]
            maps = [
                simulate_annotation(pictures[name], layout, segments, weight * (1 + 0.5 * turn), map_seed)
                for turn, map_seed in enumerate(map_seeds)
            ]
            parts.append(
                simulate(
                    maps, pairs, blocks=blocks, observer=LapsingObserver(LAPSE_RATE),
                    participant=f"observer-{number + 1}", image=new_names[name], seed=answer_seed,
                )
            )  # fmt: skip
    return _write(folder, "samples", concatenate(parts), pictures, new_names, segments, ABOUT_SAMPLES)


def _as_colour(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.repeat(picture[:, :, None], 3, axis=2) if picture.ndim == 2 else picture


def _write(
    folder: Path,
    name: str,
    responses: Responses,
    pictures: dict[str, NDArray[np.uint8]],
    new_names: dict[str, str],
    segments: int,
    about: str,
) -> DatasetSummary:
    from PIL import Image

    with temporary_folder("dataset") as temporary:
        files = {new_names[each]: temporary / f"{new_names[each]}.png" for each in pictures}
        for each, pixels in pictures.items():
            Image.fromarray(pixels).save(files[new_names[each]])
        imported = importers.ImportedData(
            layout=responses.layout,
            columns=_make_columns(responses),
            mappings={},
            skipped=SkippedRows(),
            sources=[],
            images=new_names,
            pictures=files,
            identities={},
            remarks=[about],
        )
        importers.write_dataset(imported, folder, name=name, segments=segments)
    summary = DatasetSummary(responses, segments)
    readme = (
        f"# {name}\n\nA dataset to try models on, written by vseg bench dataset: {summary}\n\n{about}\n\n"
        "```sh\nvseg models score this-folder --models base_rate,logistic,mixture --out scores\n```\n"
    )
    folder.joinpath(dataset.README).write_text(readme, encoding="utf-8")
    return summary


def _make_columns(responses: Responses) -> dict[str, list[Any]]:
    """Return the columns of an exported table, with one session for each participant."""
    numbers = np.zeros(len(responses), np.int64)
    for name in responses.participants:
        rows = np.flatnonzero(responses.participant == name)
        numbers[rows] = np.arange(len(rows))
    count, seq, participants = len(responses), numbers.tolist(), responses.participant.tolist()
    centres = responses.layout.pixels(SIZE_PX, SIZE_PX).round(4)
    first, second = centres[responses.i].T.tolist(), centres[responses.j].T.tolist()
    return {
        "participant": participants,
        "session": [f"s-{name}" for name in participants],
        "seq": seq,
        "item": seq,
        "image": responses.image.tolist(),
        "block": responses.block.tolist(),
        "trial": seq,
        "i": responses.i.tolist(),
        "j": responses.j.tolist(),
        "x1": first[0],
        "y1": first[1],
        "x2": second[0],
        "y2": second[1],
        "practice": [False] * count,
        "catch": [False] * count,
        "same": responses.same.tolist(),
        "used": [True] * count,
        "source": ["vseg bench dataset"] * count,
    }
