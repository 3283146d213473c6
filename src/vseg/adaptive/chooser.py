"""Between a study and the engine in `vseg.adaptive`: what is known of an image, and what to ask next.

The engine takes a second to load, which a server that starts again has no time for: it is loaded with the first state.
"""

import zlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from vseg.data.layout import Grid
from vseg.data.pairs import Pairs
from vseg.study.schema import Study

BATCH, BATCH_SHARE = 16, 0.08  # pairs chosen at once: so many, or this share of the answers so far
LAPSES = (0.02, 0.02)  # anybody slips now and then; estimates would depend on when they were made


class Answered(NamedTuple):
    """What the state takes of an answer."""

    i: int
    j: int
    same: bool


class Chosen(NamedTuple):
    """A batch: the first and the second dot of each pair."""

    i: list[int]
    j: list[int]


class Chooser:
    """What is known of one image from some answers, and what to ask next.

    Examples
    --------
    >>> from vseg.study.schema import parsed
    >>> study = parsed('''
    ... name = "patches"
    ... segments = 2
    ... participants = 1
    ... layout = {grid = 4}
    ... images = [{name = "patches", colours = 2}]
    ... design = {name = "adaptive", trials = 60}
    ... ''')
    >>> chooser = Chooser(study, "patches")
    >>> chooser.take([Answered(0, 1, True), Answered(0, 15, False)])
    >>> len(chooser.choose(3, seed=0).i)
    3
    """

    def __init__(self, study: Study, image: str):
        from vseg import adaptive

        self._rule = study.design.rule or "variance_reduction"
        self._state = adaptive.State(
            study.layout.build(), segments=study.planned_segments, lapses=LAPSES, seed=seed_of(study, image)
        )

    @property
    def answers(self) -> int:
        """How many answers it has taken."""
        return self._state.trials

    def take(self, answers: Iterable[Answered]) -> None:
        """Learn from answers, in their order."""
        new = list(answers)
        if new:
            self._state.add(*zip(*new, strict=True))

    @property
    def expected_error(self) -> float:
        """How far the maps are expected to be from what the person sees: the mean over their entries."""
        return float(self._state.expected_error)

    def batch_size(self) -> int:
        """How many pairs to choose at once; more as each answer changes less."""
        return max(BATCH, int(BATCH_SHARE * self.answers))

    def choose(self, count: int, *, pending: Collection[tuple[int, int]] = (), seed: int) -> Chosen:
        """The next pairs, given that the pending ones will be answered too.

        Which of two locations is the first dot is left to chance.
        """
        from vseg import adaptive

        first, second = (np.random.SeedSequence(seed).generate_state(2, np.uint64) >> np.uint64(1)).tolist()
        waiting = sorted({(min(pair), max(pair)) for pair in pending})
        i, j = zip(*waiting, strict=True) if waiting else ((), ())
        pairs = adaptive.next_pairs(
            self._state, count, rule=self._rule, pending=Pairs(self._state.layout, i, j), seed=first
        )
        swap = np.random.default_rng(second).random(len(pairs)) < 0.5
        return Chosen(np.where(swap, pairs.j, pairs.i).tolist(), np.where(swap, pairs.i, pairs.j).tolist())


def rehearse() -> None:
    """Load, or compile, all that a choice needs: seconds, which the first to be served should not wait for.

    Examples
    --------
    >>> rehearse()
    """
    from vseg import adaptive

    state = adaptive.State(Grid(3), segments=2, lapses=LAPSES, seed=0)
    state.add([0, 0, 1, 2, 3, 4, 5, 6], [1, 8, 2, 5, 4, 5, 8, 7], [True, False] * 4)
    adaptive.next_pairs(state, 1, seed=0)


def seed_of(study: Study, image: str, session: str = "", item: int = 0) -> int:
    """What starts chance: of an image's state, or of the batch of a session whose first item this is.

    Examples
    --------
    >>> from vseg.study.schema import parsed
    >>> study = parsed('name="a"\\nsegments=2\\nparticipants=1\\nlayout={grid=4}\\nimages=[{name="b", colours=2}]')
    >>> seed_of(study, "b") == seed_of(study, "b"), seed_of(study, "b", "s1", 7) == seed_of(study, "b", "s1", 8)
    (True, False)
    """
    words = [zlib.crc32(text.encode()) for text in (image, session)]
    root = np.random.SeedSequence((study.seed, *words, item))
    return int(root.generate_state(1, np.uint64)[0] >> np.uint64(1))
