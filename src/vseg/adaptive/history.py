"""The order in which an adaptive study takes its answers: one rule for the server, the dashboard and a replay.

The chooser of an image takes answers batch by batch. Before it chooses a batch of pairs it takes what is new of each
session, one session after the other in the order in which they began, and the answers of a session in the order of its
records. A stored batch has a basis: how many records of each session were taken when it was chosen. So another worker,
a restarted server, the dashboard and a replay of exported data all take the same answers in the same order.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Pair = tuple[int, int]
Session = TypeVar("Session", bound=Hashable)
"""What identifies a session: its id in the database, its name in exported data."""


@dataclass(frozen=True)
class AdaptiveAnswer:
    """One answer to a real trial; `good` if the trial was presented as planned, `chosen` if its pair was chosen."""

    seq: int
    item: int
    image: str
    i: int
    j: int
    same: bool
    good: bool
    chosen: bool


@dataclass
class SessionHistory:
    """What has been taken of one session's answers about an image, and which pairs were chosen for it.

    Attributes
    ----------
    records : int
        How many of the session's records have been taken.
    answered : set of int
        The items with a good answer among these.
    last_item : int
        The highest item with any answer among these, -1 before the first.
    chosen : dict
        The pairs that were chosen for the session about the image, by item.
    """

    records: int = 0
    answered: set[int] = field(default_factory=set)
    last_item: int = -1
    chosen: dict[int, Pair] = field(default_factory=dict)

    def list_unanswered(self, fixed: Iterable[tuple[int, Pair]]) -> list[Pair]:
        """Return the pairs of these items that have no good answer yet: the chosen pair, else the fixed one."""
        return [self.chosen.get(item, pair) for item, pair in fixed if item not in self.answered]

    def get_open_choices(self) -> dict[int, Pair]:
        """Return the chosen pairs, by item, that lie behind everything the session has answered."""
        return {item: pair for item, pair in self.chosen.items() if item > self.last_item}


class AnswerHistory(Generic[Session]):
    """The answers about one image that have been taken, of one session or of several.

    Examples
    --------
    >>> answers = [AdaptiveAnswer(seq, seq, "a", 0, 1, True, good=seq != 1, chosen=False) for seq in range(3)]
    >>> history = AnswerHistory[str]("a")
    >>> [answer.seq for answer in history.take("s1", answers, 2)]
    [0]
    >>> [answer.seq for answer in history.take("s1", answers, 3)]
    [2]
    """

    def __init__(self, image: str):
        self.image = image
        self.sessions: dict[Session, SessionHistory] = {}

    def take(self, session: Session, answers: Iterable[AdaptiveAnswer], records: int) -> list[AdaptiveAnswer]:
        """Take a session's records below `records`; return the good answers among those not taken before."""
        own = self.sessions.setdefault(session, SessionHistory())
        taken = own.records
        new = [each for each in answers if taken <= each.seq < records and each.image == self.image]
        good = [answer for answer in new if answer.good]
        own.records = max(own.records, records)
        own.answered.update(answer.item for answer in good)
        own.last_item = max([own.last_item, *(answer.item for answer in new)])
        return good

    def add_choices(self, session: Session, pairs: Mapping[int, Pair]) -> None:
        """Add pairs that were chosen for a session, by item."""
        self.sessions.setdefault(session, SessionHistory()).chosen.update(pairs)

    def take_basis(
        self, basis: Mapping[Session, int], answers: Mapping[Session, Iterable[AdaptiveAnswer]]
    ) -> list[AdaptiveAnswer]:
        """Take the records of each session that a batch rests on; return the good answers that are new.

        Sessions without an entry in `answers` were withdrawn or erased and are skipped.
        """
        return [
            answer
            for session, records in basis.items()
            if session in answers
            for answer in self.take(session, answers[session], records)
        ]


def order_answers(
    image: str,
    bases: Iterable[Mapping[Session, int]],
    answers: Mapping[Session, Iterable[AdaptiveAnswer]],
) -> list[AdaptiveAnswer]:
    """Return the good answers about an image in the order in which its chooser takes them.

    Parameters
    ----------
    image : str
        Name of the image.
    bases : iterable of dict
        How many records of each session were taken for each batch, in the order of the batches.
    answers : dict
        Each session's answers to real trials, in the order of their records.

    Returns
    -------
    list of AdaptiveAnswer
    """
    history: AnswerHistory[Session] = AnswerHistory(image)
    return [answer for basis in bases for answer in history.take_basis(basis, answers)]
