"""A part of the server that is loaded once people are served: nobody who takes part waits for it after a restart."""

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starlette.types import ASGIApp, Receive, Scope, Send

from vseg.server import wire

AFTER_S = 1.0
log = logging.getLogger("vseg.server")


class Later:
    """An app that is loaded when the server has served for a second, or by whoever asks for it before."""

    def __init__(self, load: Callable[[], ASGIApp]):
        self._load = load
        self._loaded: ASGIApp | None = None
        self._one = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the app inside."""
        if self._loaded is None:
            await wire.in_thread(self.loaded)
        await self.loaded()(scope, receive, send)

    def loaded(self) -> ASGIApp:
        """The app, loaded now if it was not yet."""
        with self._one:
            if self._loaded is None:
                self._loaded = self._load()
                gc.freeze()  # it stays for good, and is not looked through for garbage (see run.py)
            return self._loaded

    @asynccontextmanager
    async def loading(self) -> AsyncIterator[None]:
        """Load it while the block lasts, in the background."""
        task = asyncio.create_task(self._in_a_moment())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _in_a_moment(self) -> None:
        await asyncio.sleep(AFTER_S)
        try:
            await wire.in_thread(self.loaded)
        except Exception:  # whoever asks for it will be told as much, and participants go on
            log.exception("The researchers' pages could not be loaded.")
