"""A part of the server that is loaded once people are served: nobody who takes part waits for it after a restart."""

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Receive, Scope, Send

from vseg.server import http
from vseg.server.background import beside, is_over

AFTER_S = 1.0
ONE_AT_A_TIME = threading.Lock()
"""Held by whoever loads much in a thread: Python gives two who meet in a circle of imports half-loaded modules."""
log = logging.getLogger("vseg.server")


class Later:
    """An app that is loaded when the server has served for a second, or for whoever asks for it before."""

    def __init__(self, load: Callable[[], ASGIApp]):
        self._load = load
        self._loaded: ASGIApp | None = None
        self._loading: asyncio.Task[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the app inside."""
        app = self._loaded or await self._in_thread()
        await app(scope, receive, send)

    def loaded(self) -> ASGIApp:
        """The app, loaded now if it was not yet."""
        with ONE_AT_A_TIME:
            if self._loaded is None:
                self._loaded = self._load()
                if gc.get_freeze_count():  # what is loaded first is frozen, see run.py: so is this
                    gc.freeze()
            return self._loaded

    def loading(self) -> AbstractAsyncContextManager[None]:
        """Load it while the block lasts, in the background."""
        return beside(self._in_a_moment)

    async def _in_a_moment(self, over: asyncio.Event) -> None:
        if await is_over(over, AFTER_S):
            return
        try:
            await self._in_thread()
        except Exception:  # whoever asks for it tries again and is told, and participants go on
            log.exception("A part of the server could not be loaded.")

    async def _in_thread(self) -> ASGIApp:
        """One thread for all who wait: participants need the others."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(http.in_thread(self.loaded))
        return await asyncio.shield(self._loading)
