"""The trials of one session, drawn from the study alone.

The pairs of an image are divided into units, one per session. Unit u is part u % S of round u // S, where S is the
design's `split`: the S parts of a round together test each of its pairs once per block, and every round draws new
pairs. A unit's trials depend only on the study, so a participant who takes over an abandoned unit gets the same trials.
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
from vseg.study.pictures import PRACTICE_PX, practice_labels
from vseg.study.schema import Study
from vseg.study.sections import PRACTICE_IMAGE, DesignSection

MAX_ATTEMPTS = 3  # of a trial that is never shown right; then its flagged answer stands
# The design of an adaptive study's first pairs, and of trials whose pair was not chosen in time.
FALLBACK = "covering"


@dataclass(frozen=True)
class Unit:
    """One session's share of the pairs of an image; see the module for what its number means."""

    image: str
    unit: int


@dataclass(frozen=True)
class Trials:
    """The trials of a session as columns of equal length; an item is the number of a row.

    Attributes
    ----------
    image : list of str
    block, trial : list of int
        The block within the image, and the position within the block, catch trials included.
    i, j : list of int
        The locations of the first and the second dot.
    x1, y1, x2, y2 : list of float
        The centres of the two dots in pixels of the image.
    practice, catch : list of bool
    answer : list of bool or None
        Whether the two are in the same segment; None except for practice and catch trials.
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
            raise InvalidInput(f"Expected columns of equal length, got {lengths}.")

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        return f"<Trials: {len(self)}, {sum(self.practice)} practice and {sum(self.catch)} catch trials>"

    def to_wire(self) -> dict[str, list[Any]]:
        """Return the columns for the browser: without `catch`, and only practice trials have their answer."""
        answers = [a if practice else None for a, practice in zip(self.answer, self.practice, strict=True)]
        return {name: column for name, column in vars(self).items() if name != "catch"} | {"answer": answers}

    def to_json(self) -> str:
        """Return all columns as JSON, as they are stored."""
        return json.dumps(vars(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` returned."""
        return cls(**pydantic_core.from_json(text))  # four times as fast as json.loads


def draw_trials(study: Study, units: Sequence[Unit], sizes: Mapping[str, tuple[int, int]]) -> Trials:
    """Draw the trials of a session: practice first, then image by image and block by block.

    Parameters
    ----------
    study : Study
    units : sequence of Unit
        The share of each image that the session gets, in the order of the images.
    sizes : mapping of str to (int, int)
        Width and height of each image in pixels.

    Returns
    -------
    Trials

    Examples
    --------
    >>> from vseg.study.schema import parse_study
    >>> study = parse_study('''
    ... name = "textures"
    ... segments = 2
    ... participants = 10
    ... layout = {grid = 11}
    ... images = [{name = "low", texture = "low"}]
    ... ''')
    >>> len(draw_trials(study, [Unit("low", 0)], {"low": (512, 512)}))
    1230
    """
    layout = study.layout.build()
    rows = _draw_practice(study, layout, units)
    for unit in units:
        rows += _draw_unit(study, layout, unit)
    sizes = {PRACTICE_IMAGE: (PRACTICE_PX, PRACTICE_PX), **sizes}
    centres = {name: layout.pixels(*sizes[name]).round(2).tolist() for name in {row["image"] for row in rows}}
    for row in rows:
        row["x1"], row["y1"] = centres[row["image"]][row["i"]]
        row["x2"], row["y2"] = centres[row["image"]][row["j"]]
    return Trials(**{name: [row[name] for row in rows] for name in Trials.__dataclass_fields__})


TrialRow = dict[str, Any]  # a row of Trials without the positions of the dots


@dataclass(frozen=True)
class Round:
    """One round of an image: everything its pairs depend on."""

    seed: int
    segments: int
    design: DesignSection
    layout: Layout
    image: str
    number: int
    labels: tuple[int, ...] | None = None  # of an oracle design

    @classmethod
    def from_study(cls, study: Study, image: str, number: int = 0) -> Self:
        """Return a round of an image of the study, by its number."""
        given = next((each.labels for each in study.images if each.name == image), None)
        labels = None if given is None else tuple(given)
        return cls(
            study.seed, study.planned_segments, study.design, study.layout.build(), image, number, labels
        )

    @property
    def seeds(self) -> list[np.random.SeedSequence]:
        """The random seeds: for drawing the pairs, for splitting them, and one for each part."""
        root = np.random.SeedSequence((self.seed, zlib.crc32(self.image.encode()), self.number))
        return root.spawn(2 + self.design.split)

    def draw_pairs(self) -> list[Pairs]:
        """Draw the pairs of each block if the design draws fresh ones, else of one block that is repeated."""
        fresh = self.design.pairs == "fresh"
        return designs.draw_blocks(
            FALLBACK if self.design.is_adaptive else self.design.name,
            self.layout,
            blocks=self.design.blocks if fresh else 1,
            fresh=fresh,
            seed=self.seeds[0],
            segments=self.segments,
            trials=self.design.trials,
            **({} if self.labels is None else {"labels": self.labels}),
        )

    def part_blocks(self, part: int) -> list[Pairs]:
        """Return the pairs of each block of one part of the round."""
        blocks = [parts[part] for parts in _split_round(self)]
        return blocks if self.design.pairs == "fresh" else blocks * self.design.blocks


@lru_cache(maxsize=8)
def _split_round(image_round: Round) -> list[list[Pairs]]:
    """Return the pairs by block and part. Cached because the parts of a round are mostly requested in succession."""
    blocks = image_round.draw_pairs()
    if image_round.design.split == 1:
        return [[pairs] for pairs in blocks]
    seeds = image_round.seeds[1].spawn(len(blocks))
    return [
        designs.split(pairs, image_round.design.split, seed=seed)
        for pairs, seed in zip(blocks, seeds, strict=True)
    ]


def _draw_unit(study: Study, layout: Layout, unit: Unit) -> list[TrialRow]:
    """Draw the blocks of one unit, each in its own random order and with catch trials mixed in."""
    number, part = divmod(unit.unit, study.design.split)
    image_round = Round.from_study(study, unit.image, number)
    rng = np.random.default_rng(image_round.seeds[2 + part])
    rows: list[TrialRow] = []
    for block, pairs in enumerate(image_round.part_blocks(part)):
        order = rng.permutation(len(pairs))
        ends = _shuffle_ends(pairs.i[order], pairs.j[order], rng)
        block_rows = [_make_row(unit.image, i, j) for i, j in ends]
        for position, catch in zip(*_draw_catch_trials(study, layout, len(block_rows), rng), strict=True):
            block_rows.insert(position, catch)
        rows += [{**row, "block": block, "trial": trial} for trial, row in enumerate(block_rows)]
    return rows


def _draw_catch_trials(
    study: Study, layout: Layout, other_trials: int, rng: np.random.Generator
) -> tuple[list[int], list[TrialRow]]:
    """Draw the positions of the catch trials in a block, never the first, and the catch trials."""
    count = study.catch.per_block
    choices = np.arange(1, other_trials + count)
    positions = np.sort(rng.choice(choices, count, replace=False)).tolist() if count else []
    return positions, [{**row, "catch": True} for row in _draw_known_trials(layout, count, rng)]


def _draw_practice(study: Study, layout: Layout, units: Sequence[Unit]) -> list[TrialRow]:
    seeds = [number for unit in units[:1] for number in (zlib.crc32(unit.image.encode()), unit.unit)]
    rng = np.random.default_rng(
        np.random.SeedSequence((study.seed, zlib.crc32(PRACTICE_IMAGE.encode()), *seeds))
    )
    rows = _draw_known_trials(layout, study.practice.trials, rng)
    return [{**row, "practice": True, "trial": trial} for trial, row in enumerate(rows)]


def _draw_known_trials(layout: Layout, count: int, rng: np.random.Generator) -> list[TrialRow]:
    """Draw trials on the practice image, away from its borders; equally many 'same' and 'different' (±1)."""
    labels, clear = practice_labels(layout)
    candidates = np.flatnonzero(clear) if clear.sum() > 1 else np.arange(len(layout))
    wanted = rng.permutation((np.arange(count) + rng.integers(2)) % 2 == 0).tolist()
    rows = []
    for same in wanted:
        i, j = _draw_pair(same, labels, candidates, rng)
        rows.append({**_make_row(PRACTICE_IMAGE, i, j), "answer": bool(labels[i] == labels[j])})
    return rows


def _draw_pair(
    same: bool, labels: NDArray[np.int64], candidates: NDArray[np.int64], rng: np.random.Generator
) -> tuple[int, int]:
    """Draw two candidates with the wanted answer, or any two if no pair has that answer."""
    for i in rng.permutation(candidates):
        others = candidates[((labels[candidates] == labels[i]) == same) & (candidates != i)]
        if len(others):
            return int(i), int(rng.choice(others))
    i, j = rng.choice(candidates, 2, replace=False)
    return int(i), int(j)


def _shuffle_ends(
    i: NDArray[np.int64], j: NDArray[np.int64], rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Draw at random which location of each pair is the first dot."""
    swap = rng.random(len(i)) < 0.5
    return list(zip(np.where(swap, j, i).tolist(), np.where(swap, i, j).tolist(), strict=True))


def _make_row(image: str, i: int, j: int) -> TrialRow:
    return {"image": image, "block": 0, "i": i, "j": j, "practice": False, "catch": False, "answer": None}
