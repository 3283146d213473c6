"""Load sessions that are not cached, many in one query: after a restart all participants return at once.

While one query runs, the next requests gather for the following one, as records do in the store's writer. Sessions
that begin with another worker are loaded ahead, while their participants read the instructions.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import ParamSpec, TypeVar

import anyio

from vseg import store
from vseg.errors import VsegError
from vseg.server.http import run_in_thread
from vseg.server.session_cache import CachedSession, SessionCache
from vseg.store.studies import StudyRow

BATCH_SIZE = 20  # sessions per query, so that the first of a thousand need not wait for the last
RECENT_SESSIONS = 200  # look for other workers' sessions among the newest ones
POLL_INTERVAL_S, BUSY_POLL_INTERVAL_S = 0.5, 0.1  # the latter after a query that found a new session
log = logging.getLogger("vseg.server")

P = ParamSpec("P")
T = TypeVar("T")


class SessionLoader:
    """Loads sessions by the hash of their token, for one event loop."""

    def __init__(self, db: store.Database):
        self._db = db
        self._studies: dict[int, StudyRow] = {}  # a study with sessions never changes
        self._waiting: dict[str, asyncio.Future[CachedSession | None]] = {}
        self._worker: asyncio.Task[None] | None = None

    async def load(self, token_hash: str) -> CachedSession | None:
        """Return the session of a token, or None if there is none."""
        if token_hash not in self._waiting:
            self._waiting[token_hash] = asyncio.get_running_loop().create_future()
        result = self._waiting[token_hash]
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._load_waiting())
        return await asyncio.shield(result)  # other requests may wait for the same session

    def load_many(self, token_hashes: list[str]) -> dict[str, CachedSession]:
        """Load the sessions with these token hashes in one query; omit unknown ones."""
        rows = store.sessions.find_by_token_hashes(self._db, token_hashes)
        if new_studies := {row.study for row in rows.values()} - self._studies.keys():
            self._studies |= store.studies.get_studies(self._db, new_studies)
        return {
            token_hash: CachedSession.from_row(self._studies[row.study], row)
            for token_hash, row in rows.items()
        }

    async def _load_waiting(self) -> None:
        while self._waiting:
            batch = {key: self._waiting.pop(key) for key in list(self._waiting)[:BATCH_SIZE]}
            try:
                await self._resolve(batch)
            finally:
                for result in batch.values():
                    result.cancel()  # no effect on those that are done; the others remain if the server stops

    async def _resolve(self, batch: dict[str, "asyncio.Future[CachedSession | None]"]) -> None:
        try:
            sessions = await run_in_thread(self.load_many, list(batch))
        except Exception as error:
            is_database_error = type(error) is VsegError  # the database does not answer: all of them fail
            if (
                len(batch) > 1 and not is_database_error
            ):  # one of them is unreadable: the others must not fail
                for token_hash, result in batch.items():
                    await self._resolve({token_hash: result})
            else:
                for result in batch.values():
                    result.set_exception(error)
        else:
            for token_hash, result in batch.items():
                result.set_result(sessions.get(token_hash))


@asynccontextmanager
async def follow_other_workers(
    db: store.Database, loader: SessionLoader, cache: SessionCache
) -> AsyncIterator[None]:
    """While the block lasts, cache the sessions that begin with another worker."""
    task = asyncio.create_task(_follow(db, loader, cache))
    try:
        yield
    finally:
        # The task only reads, so it may be cancelled. If the database hangs, its thread stays behind until the
        # process is stopped by force (see runner.py).
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(db: store.Database, loader: SessionLoader, cache: SessionCache) -> None:
    seen: set[str] | None = None
    is_failing = False
    while True:
        new: list[str] = []
        try:
            recent = await _run_abandonable(store.sessions.list_latest_token_hashes, db, RECENT_SESSIONS)
            if seen is None:  # participants of sessions before the start may have left long ago
                seen = set(recent)
            # Each session is loaded once: one that was dropped from the cache is not loaded again, and one that
            # cannot be read does not hold up the others.
            new = [token for token in recent if token not in seen and token not in cache][:BATCH_SIZE]
            seen = (seen | set(new)) & set(recent)
            if new:
                for token_hash, session in (await _run_abandonable(loader.load_many, new)).items():
                    cache.add(token_hash, session)
            is_failing = False
        except (
            Exception
        ) as error:  # these sessions are loaded, and the error reported, when they send records
            if not is_failing:
                is_bug = not isinstance(error, VsegError)
                log.warning("Cannot load the sessions of other workers now: %s", error, exc_info=is_bug)
            is_failing = True
        await asyncio.sleep(BUSY_POLL_INTERVAL_S if new else POLL_INTERVAL_S)


async def _run_abandonable(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await anyio.to_thread.run_sync(lambda: function(*args, **kwargs), abandon_on_cancel=True)
