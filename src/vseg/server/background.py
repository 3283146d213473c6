"""The server beside something else: in a thread of its own, for as long as a block lasts."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from vseg import store
from vseg.server.app import app

STOP_WITHIN_S = 10


@contextmanager
def serving(db: store.Database, listening: socket.socket) -> Iterator[None]:
    """Serve a database on a socket; at the end requests under way are answered first."""
    config = uvicorn.Config(
        app(db), access_log=False, log_level="warning", server_header=False, ws="none",
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="vseg server")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
