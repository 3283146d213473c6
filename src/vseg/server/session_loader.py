"""Sessions that this process does not know yet, looked up many at a time: after a restart everyone comes at once.

The mirror of the writer's group commit: while one query is under way those who come meanwhile gather for the next.
Those who begin with another worker are looked up before they come, a few at a time, while they read what to do.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio

from vseg import store
from vseg.errors import VsegError
from vseg.server.http import run_in_thread
from vseg.server.session_cache import CachedSession, SessionCache
from vseg.store.studies import StudyRow

BATCH_SIZE = 20  # so that the first of a thousand need not wait for the last
RECENT_SESSIONS = 200  # among so many there may be strangers
POLL_INTERVAL_S, BUSY_POLL_INTERVAL_S = (
    0.5,
    0.1,
)  # between looks for those who have begun; after one that found someone
log = logging.getLogger("vseg.server")

T = TypeVar("T")


class SessionLoader:
    """Looks up sessions by their token's hash, for one event loop."""

    def __init__(self, db: store.Database):
        self._db = db
        self._studies: dict[int, StudyRow] = {}  # one with sessions is frozen
        self._wanted: dict[str, asyncio.Future[CachedSession | None]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def of(self, hashed: str) -> CachedSession | None:
        """The session of a token; None if there is none."""
        if hashed not in self._wanted:
            self._wanted[hashed] = asyncio.get_running_loop().create_future()
        found = self._wanted[hashed]
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(found)  # others may wait for the same

    def all_of(self, hashes: list[str]) -> dict[str, CachedSession]:
        """Those of these that there are, in one query."""
        asked = store.sessions.find_by_token_hashes(self._db, hashes)
        if new := {each.study for each in asked.values()} - self._studies.keys():
            self._studies |= store.studies.get_studies(self._db, new)
        return {hashed: CachedSession.of(self._studies[each.study], each) for hashed, each in asked.items()}

    async def _ask(self) -> None:
        while self._wanted:
            asked = {hashed: self._wanted.pop(hashed) for hashed in list(self._wanted)[:BATCH_SIZE]}
            try:
                await self._answer(asked)
            finally:
                for each in asked.values():
                    each.cancel()  # unless it is done: the server stops

    async def _answer(self, asked: dict[str, "asyncio.Future[CachedSession | None]"]) -> None:
        try:
            found = await run_in_thread(self.all_of, list(asked))
        except Exception as error:
            is_of_all = type(error) is VsegError  # the database does not answer
            if len(asked) > 1 and not is_of_all:  # one of them cannot be read: nobody else is to hear of it
                for hashed, each in asked.items():
                    await self._answer({hashed: each})
            else:
                for each in asked.values():
                    each.set_exception(error)
        else:
            for hashed, each in asked.items():
                each.set_result(found.get(hashed))


@asynccontextmanager
async def follow_other_workers(
    db: store.Database, recall: SessionLoader, known: SessionCache
) -> AsyncIterator[None]:
    """Remember also those who begin with another worker, for as long as the block lasts."""
    task = asyncio.create_task(_following(db, recall, known))
    try:
        yield
    finally:
        task.cancel()  # it only reads: where the database hangs, a thread is left behind (run.py has an end to that)
        with suppress(asyncio.CancelledError):
            await task


async def _following(db: store.Database, recall: SessionLoader, known: SessionCache) -> None:
    met: set[str] | None = None
    is_told = False
    while True:
        new: list[str] = []
        try:
            begun = await _abandonable(store.sessions.list_latest_token_hashes, db, RECENT_SESSIONS)
            if met is None:  # those of before may be long gone
                met = set(begun)
            # Each once: who has made room for others is not met again, and one that cannot be read holds up no one.
            new = [hashed for hashed in begun if hashed not in met and hashed not in known][:BATCH_SIZE]
            met = (met | set(new)) & set(begun)
            if new:
                for hashed, each in (await _abandonable(recall.all_of, new)).items():
                    known.remember(hashed, each)
            is_told = False
        except Exception as error:  # whoever comes meanwhile is looked up then, and told what is the matter
            if not is_told:
                is_ours = not isinstance(error, VsegError)
                log.warning(
                    "Who begins with another worker cannot be looked up now: %s", error, exc_info=is_ours
                )
            is_told = True
        await asyncio.sleep(BUSY_POLL_INTERVAL_S if new else POLL_INTERVAL_S)


async def _abandonable(function: Callable[..., T], *arguments: Any) -> T:
    return await anyio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
