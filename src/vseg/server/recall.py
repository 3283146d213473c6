"""Sessions that this process does not know yet, looked up many at a time: after a restart everyone comes at once.

The mirror of the writer's group commit: while one query is under way those who come meanwhile gather for the next.
Those who begin with another worker are looked up before they come, a few at a time, while they read what to do.
"""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial

from vseg import store
from vseg.server.beside import beside, is_over
from vseg.server.known import Known, KnownSessions
from vseg.server.wire import in_thread
from vseg.store.studies import StudyRow

AT_ONCE = 20  # so that the first of a thousand need not wait for the last
LATEST = 200  # among so many there may be strangers
LOOK_S, NEXT_LOOK_S = 0.5, 0.1  # between looks for those who have begun; after one that found someone
log = logging.getLogger("vseg.server")


class Recall:
    """Looks up sessions by their token's hash, for one event loop."""

    def __init__(self, db: store.Database):
        self.db = db
        self._studies: dict[int, StudyRow] = {}  # one with sessions is frozen
        self._wanted: dict[str, asyncio.Future[Known | None]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def of(self, hashed: str) -> Known | None:
        """The session of a token; None if there is none."""
        if hashed not in self._wanted:
            self._wanted[hashed] = asyncio.get_running_loop().create_future()
        found = self._wanted[hashed]
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(found)  # others may wait for the same

    def all_of(self, hashes: list[str]) -> dict[str, Known]:
        """Those of these that there are, in one query."""
        asked = store.sessions.asked(self.db, hashes)
        if new := {each.study for each in asked.values()} - self._studies.keys():
            self._studies |= store.studies.numbered(self.db, new)
        return {hashed: Known.of(self._studies[each.study], each) for hashed, each in asked.items()}

    async def _ask(self) -> None:
        while self._wanted:
            asked = {hashed: self._wanted.pop(hashed) for hashed in list(self._wanted)[:AT_ONCE]}
            try:
                found = await in_thread(self.all_of, list(asked))
                for hashed, each in asked.items():
                    each.set_result(found.get(hashed))
            except Exception as error:
                for each in asked.values():
                    each.set_exception(error)
            finally:
                for each in asked.values():
                    each.cancel()  # unless it is done: the server stops


def getting_to_know(recall: Recall, known: KnownSessions) -> AbstractAsyncContextManager[None]:
    """Remember also those who begin with another worker, for as long as the block lasts; SQLite has one worker."""
    return nullcontext() if recall.db.is_sqlite else beside(partial(_following, recall, known))


async def _following(recall: Recall, known: KnownSessions, over: asyncio.Event) -> None:
    first: int | None = None
    met, in_trouble = 0, False
    while not over.is_set():
        try:
            if first is None:  # of those before there may be thousands, who are long gone
                first = await in_thread(store.sessions.newest, recall.db)
            met, in_trouble = await in_thread(_meet, recall, known, first), False
        except Exception as error:  # whoever comes meanwhile is looked up then, and told what is the matter
            if not in_trouble:
                log.warning("Who begins with another worker cannot be looked up now (%r).", error)
            met, in_trouble = 0, True
        await is_over(over, NEXT_LOOK_S if met else LOOK_S)


def _meet(recall: Recall, known: KnownSessions, first: int) -> int:
    """Remember some of those who have just begun, after the session with this number; how many."""
    begun = store.sessions.latest(recall.db, first, LATEST)
    strangers = [hashed for hashed in begun if hashed not in known][:AT_ONCE]
    if strangers:
        for hashed, each in recall.all_of(strangers).items():
            known.remember(hashed, each)
    return len(strangers)
