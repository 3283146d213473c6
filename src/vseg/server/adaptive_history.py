"""What is known of an image from a session, or from a crowd: a chooser, and how much of whose answers it has taken.

Answers are taken in one order, whoever takes them and when: those that a stored batch knew before those that only a
later one did, then session by session, then as they were given. So another worker, a restarted server and a replay
from the data all come to the same state.
"""

import math
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vseg import store
from vseg.adaptive.chooser import Answered, Chooser
from vseg.server.pending_choices import Ahead, Need
from vseg.store.choices import ContributingSession, Pair, SessionAnswers
from vseg.study.schema import Study

SILENT_S = 300  # whoever has not answered for so long is not expected to answer what was chosen for them
FRESH_S = 1.0  # a crowd's answers are read so often: those who ask meanwhile are served from the same draws
MOST_PENDING = 200  # pairs of others that a choice looks at


@dataclass(frozen=True)
class Pending:
    """Pairs that are to be answered before those that are chosen now; of others, the first item behind theirs."""

    pairs: list[Pair]
    ahead: dict[int, int] = field(default_factory=dict)


class Knowledge:
    """The chooser of an image; `sessions` are those it learns from, by id.

    Attributes
    ----------
    least : int
        How many answers it takes before it chooses.
    last : int
        The last batch about the image that it knows of.
    records : dict
        How many records of each session it has taken.
    good : dict
        The items of each session that have a good answer among these.
    given : dict
        The pairs that were chosen for each session, by item.
    """

    def __init__(self, study: Study, image: str, sessions: Mapping[int, ContributingSession]):
        self.image, self.sessions = image, dict(sessions)
        self.chooser = Chooser(study, image)
        self.least = study.start if study.design.shared else 1
        self.last = 0
        self.records: dict[int, int] = {}
        self.good: defaultdict[int, set[int]] = defaultdict(set)
        self.given: defaultdict[int, dict[int, Pair]] = defaultdict(dict)
        self._fresh_s = FRESH_S if study.design.shared else 0.0
        self._taken_s = -math.inf
        self._whole: set[int] = set()  # sessions that are over, and taken
        self._highest: defaultdict[int, int] = defaultdict(lambda: -1)
        self._moved_s: dict[int, float] = {}

    @staticmethod
    def of_whom(connection: Any, ahead: Ahead, image: str) -> dict[int, ContributingSession]:
        """The sessions to learn from: the person's own, or all on the image."""
        if not ahead.study.study.design.shared:
            return {ahead.session: ContributingSession(ahead.name)}
        return store.choices.list_contributing_sessions(connection, ahead.study.id, image)

    def holds(self, connection: Any, sessions: Mapping[int, ContributingSession]) -> bool:
        """Whether all it learnt from is still there, and nobody else has chosen since."""
        for session in self.records:
            if session not in sessions or sessions[session].name != self.sessions[session].name:
                return False
        return not store.choices.list_bases(connection, self.image, list(sessions), self.last)

    def take_in_order(self, connection: Any) -> None:
        """Take what stored batches knew, each behind those before it."""
        heard = {session: store.choices.read_answers(connection, session) for session in self.sessions}
        for number, taken in store.choices.list_bases(connection, self.image, list(self.sessions)).items():
            for session, records in taken.items():
                if session in heard:
                    self._take(session, heard[session], records)
            self.last = number
        self.given.update(store.choices.list_chosen_pairs(connection, self.image, list(self.sessions)))

    def take_all(self, connection: Any, asker: int) -> None:
        """Take what has arrived since, unless that was done a moment ago and knew the session that asks."""
        if asker in self.records and time.monotonic() - self._taken_s < self._fresh_s:
            return
        for session, whose in self.sessions.items():
            if session in self._whole:
                continue
            heard = store.choices.read_answers(connection, session, self.records.get(session, 0))
            self._take(session, heard, heard.records)
            if not whose.is_active:
                self._whole.add(session)
        self._taken_s = time.monotonic()

    def _take(self, session: int, heard: SessionAnswers, records: int) -> None:
        """The answers among the records from those taken so far up to this number."""
        before = self.records.get(session, 0)
        if records <= before and session in self.records:
            return
        new = [each for each in heard.answers if before <= each.seq < records and each.image == self.image]
        good = [each for each in new if each.good]
        self.chooser.take(Answered(each.i, each.j, each.same) for each in good)
        self.good[session].update(each.item for each in good)
        self._highest[session] = max([self._highest[session], *(each.item for each in new)])
        self.records[session] = records
        self._moved_s[session] = time.monotonic()

    def pending(self, ahead: Ahead, need: Need) -> Pending:
        """What this session will answer first, and what others have been given who are still answering."""
        pending = Pending(ahead.pending(need, self.good[ahead.session]))
        most, now = len(pending.pairs) + MOST_PENDING, time.monotonic()
        for session in self.records:
            if session == ahead.session or now - self._moved_s[session] > SILENT_S:
                continue
            open_items = [item for item in self.given[session] if item > self._highest[session]]
            if open_items and len(pending.pairs) + len(open_items) <= most:
                pending.pairs.extend(self.given[session][item] for item in open_items)
                pending.ahead[session] = max(open_items) + 1
        return pending
