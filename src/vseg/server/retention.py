"""Daily deletion of identities that a study promises to keep for a limited time."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from functools import partial

from vseg import store
from vseg._support.temporary_folders import remove_abandoned_folders
from vseg.errors import VsegError
from vseg.server import http
from vseg.server.background import run_in_background, wait_for_stop
from vseg.server.formatting import format_grouped_count

INTERVAL_S = 24 * 60 * 60
log = logging.getLogger("vseg.server")


def enforce_retention(db: store.Database) -> AbstractAsyncContextManager[None]:
    """Delete identities as each study's `[privacy]` promises, at the start and daily, while the block lasts.

    So are exports that a killed server left in the folder of temporary files: they, too, hold participants' data.
    """
    return run_in_background(partial(_delete_daily, db))


async def _delete_daily(db: store.Database, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await http.run_in_thread(remove_abandoned_folders)
        try:
            deleted = await http.run_in_thread(store.sessions.apply_retention, db)
        except VsegError as error:
            log.warning("Could not delete identities; the next attempt is tomorrow: %s", error)
        except Exception:  # any failure must not end the daily loop
            log.exception("Could not delete identities; the next attempt is tomorrow.")
        else:
            for study, counts in deleted.items():
                # Logged as a warning: lower levels are not written, and permanent deletion must be.
                log.warning(
                    "Study %s: deleted %s and %s, as keep_identities_days = %d requires.",
                    study,
                    format_grouped_count(counts.identities, "identity", "identities"),
                    format_grouped_count(counts.links, "personal link"),
                    counts.days,
                )
        await wait_for_stop(stop, INTERVAL_S)
