"""Run a group of simulated participants through a study."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vseg._support.text import format_count
from vseg.bots.client import StudyClient, parse_entry
from vseg.bots.participant import ParticipantResult, begin_session, take_part
from vseg.bots.perception import ImageModel, Perception
from vseg.data.maps import Maps
from vseg.errors import Conflict, InvalidInput, NotFound, VsegError
from vseg.observers import LapsingObserver, Observer, ideal_observer

AT_ONCE = 16


@dataclass(frozen=True)
class GroupSummary:
    """What a group of simulated participants did.

    Attributes
    ----------
    participants : int
        How many completed the study.
    answers, flagged, chosen : int
        All answers; those flagged because their trial was not shown right; those to pairs that the server chose.
    refused : int
        How many were not admitted; `reason` is the server's message for the first of them.
    seconds : float
        How long the whole group took.
    """

    participants: int
    answers: int
    flagged: int
    refused: int
    reason: str
    seconds: float
    chosen: int = 0

    def __str__(self) -> str:
        participants = format_count(self.participants, "participant")
        chosen = f", {self.chosen} to chosen pairs" if self.chosen else ""
        return (
            f"{participants} gave {self.answers} answers ({self.flagged} flagged{chosen}) "
            f"in {self.seconds:.1f} s."
        )


@dataclass
class _Group:
    """The state of a group: its results and refusals so far, and how many answers the server has stored."""

    count: int
    entry: Mapping[str, str]
    progress: Callable[[int], None]
    on_stored: Callable[[int], None]
    results: list[ParticipantResult] = field(default_factory=list)
    refusals: list[Conflict] = field(default_factory=list)
    stored: int = 0

    def add_stored(self, answers: int) -> None:
        """Count answers that the server has stored."""
        self.stored += answers
        self.on_stored(answers)

    def __str__(self) -> str:
        return f"{len(self.results)} of {self.count} participants came to the end; {self.stored:,} answers are stored."


def run_bots(
    url: str,
    *,
    count: int,
    observer: Observer | str = ideal_observer,
    truth: Maps | Mapping[str, Maps] | None = None,
    segments: int | None = None,
    model: ImageModel | None = None,
    borders: Mapping[str, Maps] | None = None,
    flagged: float = 0.0,
    pace: float = 0.0,
    at_once: int = AT_ONCE,
    seed: int,
    progress: Callable[[int], None] = lambda finished: None,
    on_stored: Callable[[int], None] = lambda answers: None,
) -> GroupSummary:
    """Let `count` simulated participants take the study at this address.

    Parameters
    ----------
    url : str
        The participants' address, such as http://localhost:8000/s/my-study/. With a personal link or Prolific's
        parameters it belongs to one participant.
    count : int
        How many take part.
    observer : Observer or str
        How they answer: any function `(maps, pairs) -> P(same)`, or "ideal", "lapsing:RATE", "random".
    truth : Maps, or a mapping from image names to Maps, optional
        The maps they see; for other images, maps are made from the picture's colours.
    segments : int, optional
        K of maps made from a picture; the study's own by default.
    model : callable, optional
        What they see instead: a function from an image (H, W, 3) as uint8 to labels (H, W) or probabilities (H, W, K).
    borders : mapping from image names to Maps, optional
        Finer true maps, whose borders they draw if the study asks for contours; by default the borders of what they
        see.
    flagged : float
        Share of trials reported as not shown right; these are repeated.
    pace : float
        0 answers without waiting, 1 as slowly as people do.
    at_once : int
        Maximum number of participants at the same time.
    seed : int
        Seed of all answers and timings.
    progress : callable, optional
        Called with 1 for each participant who is done.
    on_stored : callable, optional
        Called with the number of answers that the server has stored since the last call.

    Returns
    -------
    GroupSummary
    """
    _check_settings(count, flagged, pace, at_once)
    perception = Perception(
        parse_observer(observer) if isinstance(observer, str) else observer, truth, segments, model, borders
    )
    started = time.perf_counter()
    group = _Group(count, parse_entry(url, count), progress, on_stored)
    try:
        asyncio.run(_run_group(url, group, perception, flagged, pace, at_once, seed))
    except ExceptionGroup as errors:
        first = _first_error(errors)
        if isinstance(first, VsegError) and group.stored:
            first.args = (f"{first} {group}",)
        raise first from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(str(group)) from None
    if group.refusals and not group.results:
        raise group.refusals[0]
    return GroupSummary(
        participants=len(group.results),
        answers=sum(result.answers for result in group.results),
        flagged=sum(result.flagged for result in group.results),
        refused=len(group.refusals),
        reason=str(group.refusals[0]) if group.refusals else "",
        seconds=time.perf_counter() - started,
        chosen=sum(result.chosen for result in group.results),
    )


def parse_observer(name: str) -> Observer:
    """Return the observer with this name: "ideal", "lapsing:RATE" or "random".

    Examples
    --------
    >>> parse_observer("lapsing:0.1").lapse
    0.1
    """
    kind, _, rate = name.partition(":")
    if name == "ideal":
        return ideal_observer
    if name == "random":
        return LapsingObserver(1.0)
    try:
        lapse = float(rate) if kind == "lapsing" else np.nan
    except ValueError:
        lapse = np.nan
    if not 0 <= lapse <= 1:
        raise InvalidInput(
            f"An observer is ideal, lapsing:RATE with a rate from 0 to 1, or random, got {name!r}."
        )
    return LapsingObserver(lapse)


def load_true_maps(path: Path) -> Maps | dict[str, Maps]:
    """Load the maps that participants see.

    `path` is a file of maps for every image, a folder with a file IMAGE.npz for each, or a study file, whose generated
    images have known maps.
    """
    if path.suffix == ".toml":
        return _generate_true_maps(path)
    if not path.is_dir():
        return Maps.load(path)
    maps = {file.stem: Maps.load(file) for file in sorted(path.glob("*.npz"))}
    if not maps:
        raise NotFound(
            f"{path} holds no .npz files; expected maps called after the images, such as IMAGE.npz."
        )
    return maps


def load_borders(path: Path) -> dict[str, Maps]:
    """Load finer true maps, whose borders participants draw, from what `load_true_maps` reads; {} if there are none.

    They are the generated images of a study file, or files IMAGE.npz in a folder `borders` beside the maps.
    """
    if path.suffix == ".toml":
        from vseg.study.pictures import refine_truth
        from vseg.study.schema import load_study

        study, truths = load_study(path), _generate_true_maps(path)
        refined = {name: refine_truth(study, name, truth) for name, truth in truths.items()}
        return {name: maps for name, maps in refined.items() if maps is not None}
    return {file.stem: Maps.load(file) for file in sorted(path.joinpath("borders").glob("*.npz"))}


def _generate_true_maps(path: Path) -> dict[str, Maps]:
    """Return the maps of those images of a study file that vseg generates."""
    from vseg.study.pictures import render_pictures
    from vseg.study.schema import load_study
    from vseg.study.sections import PRACTICE_IMAGE

    pictures = render_pictures(load_study(path), path.parent)
    truths = {name: picture.truth for name, picture in pictures.items() if picture.truth is not None}
    if not truths.keys() - {PRACTICE_IMAGE}:
        raise NotFound(
            f"No image of {path} is generated by vseg, so their true maps are unknown; give your own maps as "
            "IMAGE.npz in a folder, or none, and participants see the pictures' colours."
        )
    return truths


async def _run_group(
    url: str, group: _Group, perception: Perception, flagged: float, pace: float, at_once: int, seed: int
) -> None:
    """Begin sessions one by one, so that a seed always meets the same trials; then run them concurrently."""
    async with StudyClient.connect(url, at_once) as client, asyncio.TaskGroup() as tasks:
        free_places, study = asyncio.Semaphore(at_once), await client.fetch_study()

        async def run_session(session: dict[str, Any], session_seed: np.random.SeedSequence) -> None:
            try:
                result = await take_part(
                    client, study, session, perception,
                    flagged=flagged, pace=pace, seed=session_seed, on_stored=group.add_stored,
                )  # fmt: skip
            finally:
                free_places.release()
            group.results.append(result)
            group.progress(1)

        for session_seed in np.random.SeedSequence(seed).spawn(group.count):
            await free_places.acquire()
            try:
                session = await begin_session(client, study, group.entry)
            except Conflict as error:
                group.refusals.append(error)
                free_places.release()
                group.progress(1)
                continue
            tasks.create_task(run_session(session, session_seed))


def _first_error(group: ExceptionGroup) -> Exception:
    """Return the first error of participants that ran at the same time."""
    first = group.exceptions[0]
    return _first_error(first) if isinstance(first, ExceptionGroup) else first


def _check_settings(count: int, flagged: float, pace: float, at_once: int) -> None:
    for name, value in (("count", count), ("at_once", at_once)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise InvalidInput(f"{name} is a whole number from 1 up, got {value!r}.")
    if not 0 <= flagged < 1:
        raise InvalidInput(f"flagged is a share of trials from 0 to less than 1, got {flagged!r}.")
    if not 0 <= pace < np.inf:
        raise InvalidInput(f"pace is 0 for no waiting, 1 for people's own, got {pace!r}.")
