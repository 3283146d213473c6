"""GET /health, for monitoring: it needs no login and says nothing about the data; and what is watched without it."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from functools import partial

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vseg import store
from vseg.errors import VsegError
from vseg.server.background import run_in_background, wait_for_stop

TIMEOUT_S = 10
WATCH_INTERVAL_S = 1
log = logging.getLogger("vseg.server")


async def health(request: Request) -> Response:
    """Return 200 if the database answers within `TIMEOUT_S`, else 503."""
    try:
        with anyio.fail_after(TIMEOUT_S):
            await anyio.to_thread.run_sync(request.app.state.db.check_health, abandon_on_cancel=True)
    except (VsegError, TimeoutError):
        return _status_response("unavailable", 503)
    return _status_response("ok", 200)


def watch_database(db: store.Database) -> AbstractAsyncContextManager[None]:
    """Check every second, while the block lasts, that records can be stored; log it once if not.

    A deleted log can be rescued only by this process, so it must be noticed even if nobody sends anything; so must a
    thread that has died while requests wait for it.
    """
    return run_in_background(partial(_watch, db))


async def _watch(db: store.Database, stop: asyncio.Event) -> None:
    reported = ""
    while not await wait_for_stop(stop, WATCH_INTERVAL_S):
        try:
            db.writer.ensure_running()
            db.check_file_in_place()  # both take some microseconds
        except VsegError as error:
            if str(error) != reported:
                log.error("%s", error)
            reported = str(error)
        else:
            reported = ""


def _status_response(status: str, code: int) -> Response:
    return JSONResponse({"status": status}, code, headers={"Cache-Control": "no-store"})
