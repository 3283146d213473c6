"""Simulated participants through the real thing: they take a running study over HTTP, as a browser does.

run       many of them at once, each with a seed of its own
person    one of them: a session, its trials in order, flagged ones again, every record posted
asked     which pairs: the session's own, or those that the server chooses on the way
seeing    what they see: maps that are given, or made from the image itself

Only the wire is known here; neither the store nor the server is imported.

Examples
--------
>>> summary = run("http://localhost:8000/s/my-study/", count=15, seed=0)  # doctest: +SKIP
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vseg.bots.client import Wire, entry
from vseg.bots.participant import Taken, begin, take_part
from vseg.bots.perception import Model, Sight
from vseg.data.maps import Maps
from vseg.errors import Conflict, InvalidInput, NotFound, VsegError
from vseg.observers import Lapsing, Observer, ideal

AT_ONCE = 16

__all__ = ["Summary", "maps_of", "observer_named", "run"]


@dataclass(frozen=True)
class Summary:
    """What the participants did.

    Attributes
    ----------
    people : int
        Who came to the end.
    answers, flagged, chosen : int
        Answers in all, how many of them were flagged as not shown right, and how many were to pairs that the server
        chose on the way.
    refused : int
        Whom the study did not let in; `reason` is its sentence for the first of them.
    seconds : float
    """

    people: int
    answers: int
    flagged: int
    refused: int
    reason: str
    seconds: float
    chosen: int = 0

    def __str__(self) -> str:
        people = f"{self.people} participant{'' if self.people == 1 else 's'}"
        chosen = f", {self.chosen} to chosen pairs" if self.chosen else ""
        return f"{people} gave {self.answers} answers ({self.flagged} not shown right{chosen}) in {self.seconds:.1f} s."


@dataclass
class _Crowd:
    """Those who take part at this moment, and what came of the others."""

    count: int
    who: Mapping[str, str]
    progress: Callable[[int], None]
    answered: Callable[[int], None]
    taken: list[Taken] = field(default_factory=list)
    refused: list[Conflict] = field(default_factory=list)
    stored: int = 0

    def store(self, answers: int) -> None:
        """The server has so many answers more."""
        self.stored += answers
        self.answered(answers)

    def __str__(self) -> str:
        people = f"{len(self.taken)} of {self.count} participants"
        return f"{people} came to the end; {self.stored:,} answers are stored."


def run(
    url: str,
    *,
    count: int,
    observer: Observer | str = ideal,
    truth: Maps | Mapping[str, Maps] | None = None,
    segments: int | None = None,
    model: Model | None = None,
    flagged: float = 0.0,
    pace: float = 0.0,
    at_once: int = AT_ONCE,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
    answered: Callable[[int], None] = lambda answers: None,
) -> Summary:
    """Let `count` simulated participants take the study at this address.

    Parameters
    ----------
    url : str
        The participants' address, such as http://localhost:8000/s/my-study/; with a personal link or Prolific's
        parameters it is one person's.
    count : int
    observer : Observer or str
        Who answers: any `(maps, pairs) -> P(same)`, or ideal, lapsing:RATE, random.
    truth : Maps, or a mapping from image names to Maps, optional
        What they see; of images without, the maps are made from the picture's colours.
    segments : int, optional
        K of maps made from a picture; the study's own by default.
    model : callable, optional
        What they see instead: an image (H, W, 3) as uint8 -> labels (H, W), or probabilities (H, W, K).
    flagged : float
        Share of trials reported as not shown right; these are asked again.
    pace : float
        0: without waiting; 1: as slowly as people.
    at_once : int
        Most participants at the same time.
    seed : int
    progress : callable, optional
        Called with 1 for each participant who is done.
    answered : callable, optional
        Called with the number of answers that the server has stored since its last call.
    """
    _check(count, flagged, pace, at_once)
    chosen = observer_named(observer) if isinstance(observer, str) else observer
    sight = Sight(chosen, truth, segments, model)
    started = time.perf_counter()
    manner = {"flagged": flagged, "pace": pace}
    crowd = _Crowd(count, entry(url, count), progress, answered)
    try:
        asyncio.run(_all(url, crowd, sight, manner, at_once, seed))
    except ExceptionGroup as group:
        first = _first(group)
        if isinstance(first, VsegError) and crowd.stored:
            first.args = (f"{first} {crowd}",)
        raise first from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(str(crowd)) from None
    if crowd.refused and not crowd.taken:
        raise crowd.refused[0]
    return Summary(
        people=len(crowd.taken),
        answers=sum(taken.answers for taken in crowd.taken),
        flagged=sum(taken.flagged for taken in crowd.taken),
        refused=len(crowd.refused),
        reason=str(crowd.refused[0]) if crowd.refused else "",
        seconds=time.perf_counter() - started,
        chosen=sum(taken.chosen for taken in crowd.taken),
    )


def observer_named(name: str) -> Observer:
    """The observer behind a name: ideal, lapsing:RATE, random.

    Examples
    --------
    >>> observer_named("lapsing:0.1").lapse
    0.1
    """
    kind, _, rate = name.partition(":")
    if name == "ideal":
        return ideal
    if name == "random":
        return Lapsing(1.0)
    try:
        share = float(rate) if kind == "lapsing" else np.nan
    except ValueError:
        share = np.nan
    if not 0 <= share <= 1:
        raise InvalidInput(
            f"An observer is ideal, lapsing:RATE with a rate from 0 to 1, or random, got {name!r}."
        )
    return Lapsing(share)


def maps_of(path: Path) -> Maps | dict[str, Maps]:
    """What people see: a file of maps for every image, a folder with one called after each, or a study file's own."""
    if path.suffix == ".toml":
        return _true_maps(path)
    if not path.is_dir():
        return Maps.load(path)
    found = {file.stem: Maps.load(file) for file in sorted(path.glob("*.npz"))}
    if not found:
        raise NotFound(
            f"{path} holds no .npz files; expected maps called after the images, such as IMAGE.npz."
        )
    return found


def _true_maps(path: Path) -> dict[str, Maps]:
    """Of those images of a study file that vseg generates."""
    from vseg.study import pictures as pictures_module, schema

    pictures = pictures_module.shown(schema.parsed(schema.read(path), str(path)), path.parent)
    known = {name: picture.truth for name, picture in pictures.items() if picture.truth is not None}
    if not known.keys() - {schema.RESERVED}:
        raise NotFound(
            f"No image of {path} is generated by vseg, so that their true maps are unknown; give maps of your own as "
            "IMAGE.npz in a folder, or leave them out, and people see the pictures' colours."
        )
    return known


async def _all(
    url: str, crowd: _Crowd, sight: Sight, manner: dict[str, float], at_once: int, seed: int
) -> None:
    """Sessions begin one by one, so that a seed always meets the same trials; the rest goes on side by side."""
    async with Wire.to(url, at_once) as wire, asyncio.TaskGroup() as group:
        places, study = asyncio.Semaphore(at_once), await wire.study()

        async def one(session: dict[str, Any], own: np.random.SeedSequence) -> None:
            try:
                taken = await take_part(wire, study, session, sight, seed=own, stored=crowd.store, **manner)
            finally:
                places.release()
            crowd.taken.append(taken)
            crowd.progress(1)

        for own in np.random.SeedSequence(seed).spawn(crowd.count):
            await places.acquire()
            try:
                session = await begin(wire, study, crowd.who)
            except Conflict as error:
                crowd.refused.append(error)
                places.release()
                crowd.progress(1)
                continue
            group.create_task(one(session, own))


def _first(group: ExceptionGroup) -> Exception:
    """One of the errors of those who took part at the same time: the first says what is wrong."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


def _check(count: int, flagged: float, pace: float, at_once: int) -> None:
    for name, value in (("count", count), ("at_once", at_once)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise InvalidInput(f"{name} is a whole number from 1 up, got {value!r}.")
    if not 0 <= flagged < 1:
        raise InvalidInput(f"flagged is a share of trials from 0 to less than 1, got {flagged!r}.")
    if not 0 <= pace < np.inf:
        raise InvalidInput(f"pace is 0 for no waiting, 1 for people's own, got {pace!r}.")
