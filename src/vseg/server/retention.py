"""In the background, once a day: identities whose time is up are deleted, and what deleted rows left is swept."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from functools import partial

from vseg import store
from vseg.errors import VsegError
from vseg.server import http
from vseg.server.background import beside, is_over
from vseg.server.formatting import plural

EVERY_S = 24 * 60 * 60
log = logging.getLogger("vseg.server")


def keeping_promises(db: store.Database) -> AbstractAsyncContextManager[None]:
    """Keep what the studies' `[privacy]` promises, at the start and every day, for as long as the block lasts."""
    return beside(partial(_every_day, db))


async def _every_day(db: store.Database, over: asyncio.Event) -> None:
    while not over.is_set():
        try:
            gone = await http.in_thread(store.sessions.keep_promises, db)
        except VsegError as error:
            log.warning("Identities could not be deleted, tomorrow again: %s", error)
        except Exception:  # a promise is kept tomorrow, whatever stood in its way today
            log.exception("Identities could not be deleted, tomorrow again.")
        else:
            for study, each in gone.items():
                # A warning, since the log has nothing below: what is deleted for good is told.
                log.warning(
                    "Study %s: %s and %s were deleted, as keep_identities_days = %d asks.",
                    study, plural(each.identities, "identity", "identities"), plural(each.links, "personal link"),
                    each.days,
                )  # fmt: skip
        await is_over(over, EVERY_S)
