"""The server beside something else: in a thread of its own, for as long as a block lasts."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from vseg import store
from vseg.server.app import app
from vseg.server.run import uvicorn_server


@contextmanager
def serving(db: store.Database, listening: socket.socket) -> Iterator[None]:
    """Serve a database on a socket; at the end requests under way are answered first."""
    server = uvicorn_server(app(db))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="vseg server")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
