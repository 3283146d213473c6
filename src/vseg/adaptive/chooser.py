"""Chooser: takes the answers of a study about one image, in their order, and chooses the next pairs.

State and acquisition take a second to load, too long for a server that starts again: they are loaded with the first
chooser, not with this module.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import Generic, NamedTuple

import numpy as np

from vseg.adaptive.history import AdaptiveAnswer, AnswerHistory, Pair, Session
from vseg.data.layout import Grid
from vseg.data.pairs import Pairs
from vseg.study.schema import Study

BATCH, BATCH_SHARE = (
    16,
    0.08,
)  # pairs chosen at a time: at least this many, or this share of the answers so far
LAPSES = (0.02, 0.02)  # everyone lapses now and then; estimates would depend on when they were made


class ChosenPairs(NamedTuple):
    """A batch of pairs: the locations of the first and of the second dot of each."""

    i: list[int]
    j: list[int]


class Chooser(Generic[Session]):
    """Chooses pairs about one image of an adaptive study from the answers of one session or of several.

    Parameters
    ----------
    study : Study
        An adaptive study.
    image : str
        Name of the image.

    Attributes
    ----------
    history : AnswerHistory
        Which answers have been taken, and which pairs were chosen for whom.

    Examples
    --------
    >>> from vseg.study.schema import parse_study
    >>> study = parse_study('''
    ... name = "patches"
    ... segments = 2
    ... participants = 1
    ... layout = {grid = 4}
    ... images = [{name = "patches", colours = 2}]
    ... design = {name = "adaptive", trials = 60}
    ... ''')
    >>> chooser = Chooser[str](study, "patches")
    >>> answer = AdaptiveAnswer(seq=0, item=0, image="patches", i=0, j=15, same=False, good=True, chosen=False)
    >>> chooser.take("s1", [answer], records=1)
    >>> len(chooser.choose(3, seed=0).i)
    3
    """

    def __init__(self, study: Study, image: str):
        from vseg import adaptive

        self.history: AnswerHistory[Session] = AnswerHistory(image)
        self._rule = study.design.rule or "variance_reduction"
        self._state = adaptive.State(
            study.layout.build(),
            segments=study.planned_segments,
            lapses=LAPSES,
            shared=bool(study.design.shared),
            seed=derive_seed(study, image),
        )

    @property
    def answers(self) -> int:
        """The number of answers that the chooser has learnt from."""
        return self._state.trials

    @property
    def expected_error(self) -> float:
        """The expected error of one probability of the maps: the mean over all of them."""
        return float(self._state.expected_error)

    @property
    def batch_size(self) -> int:
        """How many pairs to choose at a time: more as each answer changes less."""
        return max(BATCH, int(BATCH_SHARE * self.answers))

    def take(self, session: Session, answers: Iterable[AdaptiveAnswer], records: int) -> None:
        """Take the answers of a session among its records below `records` that were not taken before."""
        self._add(self.history.take(session, answers, records))

    def take_basis(
        self, basis: Mapping[Session, int], answers: Mapping[Session, Iterable[AdaptiveAnswer]]
    ) -> None:
        """Take the answers that a stored batch rests on, see `AnswerHistory.take_basis`."""
        self._add(self.history.take_basis(basis, answers))

    def _add(self, answers: list[AdaptiveAnswer]) -> None:
        if answers:
            i, j, same = zip(*((answer.i, answer.j, answer.same) for answer in answers), strict=True)
            self._state.add(i, j, same)

    def choose(self, count: int, *, pending: Collection[Pair] = (), seed: int) -> ChosenPairs:
        """Choose the next pairs, given that the pending ones will be answered too.

        Which of the two locations is the first dot is random.

        Parameters
        ----------
        count : int
            Number of pairs; fewer are chosen if fewer are left that were not asked.
        pending : list of (i, j)
            Pairs that will be answered before these.
        seed : int
            The same answers, pending pairs and seed give the same pairs.
        """
        from vseg import adaptive

        pair_seed, swap_seed = (
            np.random.SeedSequence(seed).generate_state(2, np.uint64) >> np.uint64(1)
        ).tolist()
        waiting = sorted({(min(pair), max(pair)) for pair in pending})
        i, j = zip(*waiting, strict=True) if waiting else ((), ())
        pairs = adaptive.next_pairs(
            self._state, count, rule=self._rule, pending=Pairs(self._state.layout, i, j), seed=pair_seed
        )
        swap = np.random.default_rng(swap_seed).random(len(pairs)) < 0.5
        return ChosenPairs(
            np.where(swap, pairs.j, pairs.i).tolist(), np.where(swap, pairs.i, pairs.j).tolist()
        )


def warm_up_chooser() -> None:
    """Load, or compile, everything that a choice needs; it takes seconds that no participant should wait for.

    Examples
    --------
    >>> warm_up_chooser()
    """
    from vseg import adaptive

    state = adaptive.State(Grid(3), segments=2, lapses=LAPSES, seed=0)
    state.add([0, 0, 1, 2, 3, 4, 5, 6], [1, 8, 2, 5, 4, 5, 8, 7], [True, False] * 4)
    adaptive.next_pairs(state, 1, seed=0)


def derive_seed(study: Study, image: str, session: str = "", item: int = 0) -> int:
    """Derive the seed of an image's state, or of the batch of a session that begins with this item.

    Examples
    --------
    >>> from vseg.study.schema import parse_study
    >>> study = parse_study('''
    ... name = "patches"
    ... segments = 2
    ... participants = 1
    ... layout = {grid = 4}
    ... images = [{name = "patches", colours = 2}]
    ... ''')
    >>> derive_seed(study, "patches") == derive_seed(study, "patches")
    True
    >>> derive_seed(study, "patches", "s1", 7) == derive_seed(study, "patches", "s1", 8)
    False
    """
    words = [zlib.crc32(text.encode()) for text in (image, session)]
    root = np.random.SeedSequence((study.seed, *words, item))
    return int(root.generate_state(1, np.uint64)[0] >> np.uint64(1))
