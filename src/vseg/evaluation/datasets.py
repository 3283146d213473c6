"""Datasets to try models on: BSDS500 with its annotators as observers, sample pictures with simulated ones.

Both are folders as `vseg export` writes them, through the same writing as imports, so that `vseg.load`, `vseg fit`,
`vseg models score` and `vseg bench run` take them as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg import designs
from vseg.data import dataset, importers
from vseg.data.importers.names import image_names
from vseg.data.importers.trials import LeftOut
from vseg.data.layout import Grid, Layout
from vseg.data.maps import Maps
from vseg.data.responses import Responses, concatenated
from vseg.errors import InvalidInput
from vseg.image_observers import annotation
from vseg.observers import Lapsing, simulate
from vseg.stimuli import Bsds, sample

SAMPLES = ("coffee", "chelsea", "rocket")
SIZE_PX = 320
LAPSE = 0.02
# How much each person goes by position rather than by colour.
PLACES = (0.1, 0.2, 0.3, 0.4)
MINDS = 3  # ways in which one simulated person may see a picture, one of them at each trial

ABOUT_BSDS = (
    "The observers are the annotators of BSDS500 (Arbeláez, Maire, Fowlkes, Malik 2011): each answers 'same' where "
    "both locations lie in one region that they drew. Nobody is asked twice, since an annotator would only repeat what "
    "was drawn: there is no ceiling within a participant. Annotators of two photographs count as two people, since "
    "BSDS500 does not say who is who. The photographs are for non-commercial research and not to be passed on."
)
ABOUT_SAMPLES = (
    "The pictures come with scikit-image; the observers are simulated. Each has three ways to see a picture (k-means "
    "over colour and position), one of which is drawn at each trial, and answers without looking at one trial in fifty."
)


@dataclass(frozen=True)
class Made:
    """What a new dataset holds, in a sentence."""

    responses: Responses
    segments: int

    def __str__(self) -> str:
        found = self.responses
        return (
            f"{len(found)} answers of {len(found.participants)} observers about {len(found.images)} images "
            f"on {found.layout}, {self.segments} segments."
        )


def from_bsds(
    bsds: str | Path,
    folder: Path,
    *,
    images: Sequence[str] | None = None,
    count: int = 3,
    grid: int = 16,
    segments: int = 4,
    seed: int = 0,
) -> Made:
    """Some photographs of BSDS500, every annotator of a photograph answering the same scattered pairs once.

    Parameters
    ----------
    bsds : path
        The user's own copy.
    folder : Path
        An empty folder to write.
    images : sequence of str, optional
        Names of photographs; without it, the first `count`.
    """
    held = Bsds(bsds)
    chosen = list(images) if images else held.ids[:count]
    layout = Grid(grid)
    pictures = {name: held.image(name, SIZE_PX) for name in chosen}
    called, parts = image_names(chosen), []
    for name, own in zip(chosen, np.random.SeedSequence(seed).spawn(len(chosen)), strict=True):
        annotators = held.annotator_maps(name, layout)
        pairs_seed, *people = own.spawn(1 + len(annotators))
        pairs = designs.scattered(layout, segments=segments, seed=pairs_seed)
        for number, (maps, person) in enumerate(zip(annotators, people, strict=True), 1):
            who = f"{called[name]}-a{number}"
            parts.append(simulate(maps, pairs, participant=who, image=called[name], seed=person))
    return _write(folder, "bsds500", concatenated(parts), pictures, called, segments, ABOUT_BSDS)


def from_samples(
    folder: Path,
    *,
    images: Sequence[str] = SAMPLES,
    people: int = 4,
    blocks: int = 2,
    grid: int = 12,
    segments: int = 3,
    seed: int = 0,
) -> Made:
    """Sample pictures of scikit-image, everyone answering the same scattered pairs of each, block after block."""
    if people < 1 or blocks < 1:
        raise InvalidInput(f"Expected one observer and one block or more, got {people} and {blocks}.")
    layout, called = Grid(grid), image_names(images)
    pictures = {name: _coloured(sample(name, SIZE_PX)) for name in images}
    parts = []
    for name, own in zip(images, np.random.SeedSequence(seed).spawn(len(images)), strict=True):
        pairs_seed, *persons = own.spawn(1 + people)
        pairs = designs.scattered(layout, segments=segments, seed=pairs_seed)
        for number, person in enumerate(persons):
            answering, *minds = person.spawn(1 + MINDS)
            place = PLACES[number % len(PLACES)]
            seen = [
                _seen(pictures[name], layout, segments, place, turn, mind) for turn, mind in enumerate(minds)
            ]
            who = f"observer-{number + 1}"
            parts.append(
                simulate(
                    seen, pairs, blocks=blocks, observer=Lapsing(LAPSE), participant=who, image=called[name],
                    seed=answering,
                )
            )  # fmt: skip
    return _write(folder, "samples", concatenated(parts), pictures, called, segments, ABOUT_SAMPLES)


def _seen(
    picture: NDArray[np.uint8],
    layout: Layout,
    segments: int,
    place: float,
    turn: int,
    seed: np.random.SeedSequence,
) -> Maps:
    """One of the ways in which a person may see a picture: some go more by position than others."""
    return annotation(picture, layout, segments, place * (1 + 0.5 * turn), seed)


def _coloured(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.repeat(picture[:, :, None], 3, axis=2) if picture.ndim == 2 else picture


def _write(
    folder: Path,
    name: str,
    responses: Responses,
    pictures: dict[str, NDArray[np.uint8]],
    called: dict[str, str],
    segments: int,
    about: str,
) -> Made:
    from PIL import Image

    with TemporaryDirectory() as place:
        files = {called[each]: Path(place) / f"{called[each]}.png" for each in pictures}
        for each, pixels in pictures.items():
            Image.fromarray(pixels).save(files[called[each]])
        found = importers.Imported(
            layout=responses.layout,
            columns=_columns(responses),
            fields={},
            left_out=LeftOut(),
            sources=[],
            images=called,
            pictures=files,
            identities={},
            remarks=[about],
        )
        importers.write(found, folder, name=name, segments=segments)
    made = Made(responses, segments)
    words = (
        f"# {name}\n\nA dataset to try models on, written by vseg bench dataset: {made}\n\n{about}\n\n"
        "```sh\nvseg models score this-folder --models base_rate,logistic,mixture --out scores\n```\n"
    )
    folder.joinpath(dataset.README).write_text(words, encoding="utf-8")
    return made


def _columns(responses: Responses) -> dict[str, list[Any]]:
    """The table of an export: one session a person, answers numbered in their order."""
    numbers = np.zeros(len(responses), np.int64)
    for person in responses.participants:
        own = np.flatnonzero(responses.participant == person)
        numbers[own] = np.arange(len(own))
    count, seq, people = len(responses), numbers.tolist(), responses.participant.tolist()
    centres = responses.layout.pixels(SIZE_PX, SIZE_PX).round(4)
    first, second = centres[responses.i].T.tolist(), centres[responses.j].T.tolist()
    return {
        "participant": people,
        "session": [f"s-{person}" for person in people],
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
