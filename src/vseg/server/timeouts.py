"""How long a connection may take, and how much it may say before it asks for anything.

uvicorn waits for ever for the rest of a request, for the reading of an answer, and for the end of a request's head,
which it keeps in memory meanwhile. A stranger with a few hundred connections that dribble would hold them all. Here
each has so many seconds for each of these, then it is closed; whoever was merely slow sends again.
"""

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vseg.server.headers import SECURITY

HEAD_S = 20.0  # from the first byte of a request, or from the connection on, to the end of its headers
BODY_S = 120.0  # then to the end of its body: the largest of ours at 20 kbit/s
UNREAD_S = 60.0  # while an answer waits and hardly anything of it is read
LARGEST_HEAD = 64 * 1024


class Patient(HttpToolsProtocol):
    """One connection, with an end to every wait."""

    head_s, body_s, unread_s = HEAD_S, BODY_S, UNREAD_S

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._in_head, self._head_bytes = True, 0
        self._until: asyncio.TimerHandle | None = None
        self._until_read: asyncio.TimerHandle | None = None
        self._answered: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Whoever connects has something to say soon."""
        super().connection_made(transport)
        self._wait(self.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more; of several requests sent at once, the one being answered learns of it too."""
        self._wait(None)
        self.resume_writing()
        self.pipeline.clear()
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head has no end."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or not self._in_head:
            return
        if self._head_bytes > LARGEST_HEAD:
            self.refuse(431, "The headers of this request are too long.")
        elif self._until is None and not self._answering:
            # Empty lines between two requests end uvicorn's own wait for the next one.
            self._wait(self.head_s)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._wait(self.head_s)

    def on_headers_complete(self) -> None:
        """Its body is next."""
        self._wait(self.body_s)
        super().on_headers_complete()
        self._in_head = False

    def on_message_complete(self) -> None:
        """All of it is here."""
        self._in_head, self._head_bytes = True, 0
        self._wait(None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        """An answer waits to be read."""
        super().pause_writing()
        if self._until_read is None:
            self._until_read = self.loop.call_later(self.unread_s, self._unread)

    def resume_writing(self) -> None:
        """It is being read."""
        if self._until_read is not None:
            self._until_read.cancel()
            self._until_read = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn itself cannot read."""
        self.refuse(400, msg)

    def refuse(self, status: int, said: str) -> None:
        """An answer without asking the app, and the end; with the headers that all answers have.

        Where an earlier request of this connection waits for its answer, or is being answered, these words would be
        taken for that answer or for a part of it: then only the end.
        """
        if self._owes_another:
            self.transport.abort()
            return
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in SECURITY.items()),
        ]
        lines += [
            "Content-Type: text/plain; charset=utf-8",
            f"Content-Length: {len(said)}",
            "Connection: close",
            "",
            said,
        ]
        self.transport.write("\r\n".join(lines).encode("ascii"))
        self.transport.close()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _owes_another(self) -> bool:
        """Whether an answer is due, or begun, that is not the one to the request that is being read."""
        if self._in_head:
            return self._answering
        return self._answered is not self.cycle or bool(self.cycle.response_started)

    def _wait(self, seconds: float | None) -> None:
        if self._until is not None:
            self._until.cancel()
        self._until = None if seconds is None else self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        self._until = None
        if self._in_head and self._answering:  # the next request may wait for the answer to this one
            self._wait(self.head_s)
        else:
            self.transport.abort()

    def _unread(self) -> None:
        """Close at once: what was not read would else wait in the system, for a long time yet."""
        held = self.transport.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
