"""In the background, once a day: identities whose time is up are deleted, and what deleted rows left is swept."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from vseg import store
from vseg.errors import VsegError
from vseg.server import wire

EVERY_S = 24 * 60 * 60
log = logging.getLogger("vseg.server")


@asynccontextmanager
async def keeping_promises(db: store.Database) -> AsyncIterator[None]:
    """Keep what the studies' `[privacy]` promises, at the start and every day, for as long as the block lasts."""
    over = asyncio.Event()
    task = asyncio.create_task(_every_day(db, over))
    try:
        yield
    finally:
        over.set()
        await task  # what is under way in the database comes to its end


async def _every_day(db: store.Database, over: asyncio.Event) -> None:
    while not over.is_set():
        try:
            gone = await wire.in_thread(store.sessions.keep_promises, db)
        except VsegError as error:
            log.warning("Identities could not be deleted, tomorrow again: %s", error)
        except Exception:  # a promise is kept tomorrow, whatever stood in its way today
            log.exception("Identities could not be deleted, tomorrow again.")
        else:
            for study, each in gone.items():
                # A warning, since the log has nothing below: what is deleted for good is told.
                log.warning(
                    "%s: nothing was heard of them for %d days, so %d identities and %d links are deleted.",
                    study, each.days, each.identities, each.links,
                )  # fmt: skip
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), EVERY_S)
