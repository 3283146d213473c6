"""All that one session is asked, drawn from the study alone.

An image's pairs are dealt out in units. Unit u is part u % S of round u // S, where S is the design's
`split`: the S parts of a round together ask each of its pairs once a block, and every round draws pairs of
its own. A unit's trials depend on nothing but the study, so whoever takes over a unit is asked the same.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pydantic_core
from numpy.typing import NDArray

from vseg import designs
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput
from vseg.study.pictures import PRACTICE, PRACTICE_PX, practice_labels
from vseg.study.schema import Design, Study

FALLBACK = "covering"  # what an adaptive design asks at first, and where nothing was chosen in time


@dataclass(frozen=True)
class Unit:
    """One person's share of an image: its number counts through rounds and their parts."""

    image: str
    unit: int


@dataclass(frozen=True)
class Trials:
    """A session's trials as columns of equal length; an item is a row's number.

    Attributes
    ----------
    image : list of str
    block, trial : list of int
        The block within the image and the place within the block, catch trials included.
    i, j : list of int
        The locations of the first and the second dot.
    x1, y1, x2, y2 : list of float
        Their centres in pixels of the image.
    practice, catch : list of bool
    answer : list of bool or None
        Whether the two are the same, known for practice and catch trials only.
    """

    image: list[str] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    trial: list[int] = field(default_factory=list)
    i: list[int] = field(default_factory=list)
    j: list[int] = field(default_factory=list)
    x1: list[float] = field(default_factory=list)
    y1: list[float] = field(default_factory=list)
    x2: list[float] = field(default_factory=list)
    y2: list[float] = field(default_factory=list)
    practice: list[bool] = field(default_factory=list)
    catch: list[bool] = field(default_factory=list)
    answer: list[bool | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in vars(self).items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInput(f"Trials are columns of equal length, got {lengths}.")

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        return f"<Trials: {len(self)}, {sum(self.practice)} of practice and {sum(self.catch)} to catch>"

    def wire(self) -> dict[str, list[Any]]:
        """The columns for the browser; of the known answers only those of practice trials travel."""
        told = [a if practice else None for a, practice in zip(self.answer, self.practice, strict=True)]
        return {**vars(self), "answer": told}

    def to_json(self) -> str:
        """All columns, as they are stored."""
        return json.dumps(vars(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        return cls(**pydantic_core.from_json(text))  # four times as fast as json.loads


def trials(study: Study, units: Sequence[Unit], sizes: Mapping[str, tuple[int, int]]) -> Trials:
    """The trials of a session: practice first, then image by image and block by block.

    Parameters
    ----------
    study : Study
    units : sequence of Unit
        Which share of which image, in the order in which they are shown.
    sizes : mapping
        Width and height of each image in pixels.

    Examples
    --------
    >>> from vseg.study.schema import parsed
    >>> study = parsed('''
    ... name = "textures"
    ... segments = 2
    ... participants = 10
    ... layout = {grid = 11}
    ... images = [{name = "low", texture = "low"}]
    ... ''')
    >>> len(trials(study, [Unit("low", 0)], {"low": (512, 512)}))
    1230
    """
    layout = study.layout.build()
    rows = _practice(study, layout, units)
    for unit in units:
        rows += _of_unit(study, layout, unit)
    sizes = {PRACTICE: (PRACTICE_PX, PRACTICE_PX), **sizes}
    centres = {name: layout.pixels(*sizes[name]).round(2).tolist() for name in {row["image"] for row in rows}}
    for row in rows:
        row["x1"], row["y1"] = centres[row["image"]][row["i"]]
        row["x2"], row["y2"] = centres[row["image"]][row["j"]]
    return Trials(**{name: [row[name] for row in rows] for name in Trials.__dataclass_fields__})


Row = dict[str, Any]


@dataclass(frozen=True)
class Round:
    """A round of an image: all that its pairs depend on."""

    seed: int
    segments: int
    design: Design
    layout: Layout
    image: str
    number: int

    @classmethod
    def of(cls, study: Study, image: str, number: int = 0) -> Self:
        """The round of that number, as the study has it."""
        return cls(study.seed, study.planned_segments, study.design, study.layout.build(), image, number)

    @property
    def seeds(self) -> list[np.random.SeedSequence]:
        """What starts chance: the drawing, the dealing, and one for each part."""
        root = np.random.SeedSequence((self.seed, zlib.crc32(self.image.encode()), self.number))
        return root.spawn(2 + self.design.split)

    def drawn(self) -> list[Pairs]:
        """The pairs of each block if they are fresh, else of one for all."""
        fresh = self.design.pairs == "fresh"
        return designs.blocks(
            FALLBACK if self.design.adaptive else self.design.name,
            self.layout,
            blocks=self.design.blocks if fresh else 1,
            fresh=fresh,
            seed=self.seeds[0],
            segments=self.segments,
            trials=self.design.trials,
        )

    def part(self, number: int) -> list[Pairs]:
        """What one of those who share the round is asked, block by block."""
        own = [parts[number] for parts in _dealt(self)]
        return own if self.design.pairs == "fresh" else own * self.design.blocks


@lru_cache(maxsize=8)
def _dealt(which: Round) -> list[list[Pairs]]:
    """[block][part]. Kept for a while: those who share a round mostly come one after the other."""
    drawn = which.drawn()
    if which.design.split == 1:
        return [[pairs] for pairs in drawn]
    seeds = which.seeds[1].spawn(len(drawn))
    return [
        designs.split(pairs, which.design.split, seed=seed) for pairs, seed in zip(drawn, seeds, strict=True)
    ]


def _of_unit(study: Study, layout: Layout, unit: Unit) -> list[Row]:
    """The blocks of one unit, each in an order of its own and with catch trials strewn in."""
    number, part = divmod(unit.unit, study.design.split)
    own = Round.of(study, unit.image, number)
    rng = np.random.default_rng(own.seeds[2 + part])
    rows: list[Row] = []
    for block, pairs in enumerate(own.part(part)):
        order = rng.permutation(len(pairs))
        ends = _shuffled_ends(pairs.i[order], pairs.j[order], rng)
        asked = [_row(unit.image, i, j) for i, j in ends]
        for place, catch in zip(*_catches(study, layout, len(asked), rng), strict=True):
            asked.insert(place, catch)
        rows += [{**row, "block": block, "trial": trial} for trial, row in enumerate(asked)]
    return rows


def _catches(
    study: Study, layout: Layout, real: int, rng: np.random.Generator
) -> tuple[list[int], list[Row]]:
    """Where the catch trials of a block go, never first, and what they ask."""
    count = study.catch.per_block
    places = np.sort(rng.choice(np.arange(1, real + count), count, replace=False)).tolist() if count else []
    return places, [{**row, "catch": True} for row in _known(layout, count, rng)]


def _practice(study: Study, layout: Layout, units: Sequence[Unit]) -> list[Row]:
    seeds = [number for unit in units[:1] for number in (zlib.crc32(unit.image.encode()), unit.unit)]
    rng = np.random.default_rng(np.random.SeedSequence((study.seed, zlib.crc32(PRACTICE.encode()), *seeds)))
    rows = _known(layout, study.practice.trials, rng)
    return [{**row, "practice": True, "trial": trial} for trial, row in enumerate(rows)]


def _known(layout: Layout, count: int, rng: np.random.Generator) -> list[Row]:
    """Trials on the practice picture, clear of its borders; as many 'same' as 'different', ±1."""
    labels, clear = practice_labels(layout)
    candidates = np.flatnonzero(clear) if clear.sum() > 1 else np.arange(len(layout))
    wanted = rng.permutation((np.arange(count) + rng.integers(2)) % 2 == 0).tolist()
    rows = []
    for same in wanted:
        i, j = _pair_with(same, labels, candidates, rng)
        rows.append({**_row(PRACTICE, i, j), "answer": bool(labels[i] == labels[j])})
    return rows


def _pair_with(
    same: bool, labels: NDArray[np.int64], candidates: NDArray[np.int64], rng: np.random.Generator
) -> tuple[int, int]:
    """Two of the candidates with the wanted answer; any two where points lie too close for it to occur."""
    for i in rng.permutation(candidates):
        others = candidates[((labels[candidates] == labels[i]) == same) & (candidates != i)]
        if len(others):
            return int(i), int(rng.choice(others))
    i, j = rng.choice(candidates, 2, replace=False)
    return int(i), int(j)


def _shuffled_ends(i: Any, j: Any, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Which of the two locations is the first dot is left to chance."""
    swap = rng.random(len(i)) < 0.5
    return list(zip(np.where(swap, j, i).tolist(), np.where(swap, i, j).tolist(), strict=True))


def _row(image: str, i: int, j: int) -> Row:
    return {"image": image, "block": 0, "i": i, "j": j, "practice": False, "catch": False, "answer": None}
