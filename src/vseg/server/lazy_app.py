"""A part of the app that is loaded after the server has started, so that participants need not wait for it."""

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Receive, Scope, Send

from vseg.server import http
from vseg.server.background import run_in_background, wait_for_stop

LOAD_DELAY_S = 1.0
IMPORT_LOCK = threading.Lock()
"""Held while a thread imports many modules: two threads in the same import cycle may see half-loaded modules."""
log = logging.getLogger("vseg.server")


class LazyApp:
    """An app that is loaded one second after the server started, or by the first request for it."""

    def __init__(self, create_app: Callable[[], ASGIApp]):
        self._create_app = create_app
        self._app: ASGIApp | None = None
        self._loading: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the inner app; load it first if necessary."""
        app = self._app or await self._load_in_thread()
        await app(scope, receive, send)

    def load(self) -> ASGIApp:
        """Return the inner app; load it first if necessary."""
        with IMPORT_LOCK:
            if self._app is None:
                self._app = self._create_app()
                if gc.get_freeze_count():  # runner.py has frozen what was loaded before: freeze this, too
                    gc.freeze()
            return self._app

    def load_in_background(self) -> AbstractAsyncContextManager[None]:
        """Load the inner app in the background while the block lasts."""
        return run_in_background(self._load_after_delay)

    async def _load_after_delay(self, stop: asyncio.Event) -> None:
        if await wait_for_stop(stop, LOAD_DELAY_S):
            return
        try:
            await self._load_in_thread()
        except Exception:  # participants are not affected, and the next request for this part tries again
            log.exception("Could not load a part of the server.")

    async def _load_in_thread(self) -> ASGIApp:
        """Load in one thread for all waiting requests: participants need the other threads."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(http.run_in_thread(self.load))
        return await asyncio.shield(self._loading)
