"""Time and size limits of a connection.

uvicorn waits without limit for the rest of a request, for a client to read a response, and for the end of a request's
headers, which it keeps in memory. A few hundred connections that send one byte now and then would occupy the server.
Here each of these waits has a limit, after which the connection is closed; a client that was merely slow sends again.

The class overrides methods of uvicorn's HTTP protocol. Most are called by asyncio or by the parser (httptools), whose
interfaces are stable. Three are uvicorn's own and may change with any release, so pyproject.toml caps its version:

- `_start_asgi_task`, which is private: to know which request is being answered when several are sent at once
- `send_400_response`: to add the security headers
- `cycle`, `pipeline` and the cycle's `response_started`, `response_complete`, `disconnected` and `message_event`:
  to see whether a response is due, and to tell a waiting handler that the client has gone

tests/security/test_connections.py checks all of this over sockets.
"""

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from vseg.server.headers import SECURITY_HEADERS

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

HEAD_TIMEOUT_S = 20.0  # from the connection or the first byte of a request to the end of its headers
BODY_TIMEOUT_S = 120.0  # from there to the end of its body: the largest body allowed, at 20 kbit/s
UNREAD_TIMEOUT_S = 60.0  # while a response is waiting and the client hardly reads
MAX_HEAD_BYTES = 64 * 1024


class TimeoutProtocol(HttpToolsProtocol):
    """One connection, in which every wait has a limit."""

    head_timeout_s, body_timeout_s, unread_timeout_s = HEAD_TIMEOUT_S, BODY_TIMEOUT_S, UNREAD_TIMEOUT_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head, self._head_bytes = True, 0
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._current_cycle: RequestResponseCycle | None = None  # the request that is being answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self._set_read_timer(self.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers and tell the handler that is answering.

        uvicorn tells the handler of the newest request only, which may still be queued behind another one.
        """
        self._set_read_timer(None)
        self.resume_writing()
        self.pipeline.clear()
        if self._current_cycle is not None:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser; refuse headers that are too long."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or not self._in_head:
            return
        if self._head_bytes > MAX_HEAD_BYTES:
            self.refuse(431, "The headers of this request are too long.")
        elif self._read_timer is None and not self._is_answering:
            # Empty lines between two requests end uvicorn's own timeout for the next one.
            self._set_read_timer(self.head_timeout_s)

    def on_message_begin(self) -> None:
        """Start waiting for the headers of a request."""
        super().on_message_begin()
        self._set_read_timer(self.head_timeout_s)

    def on_headers_complete(self) -> None:
        """Start waiting for the body of a request."""
        self._set_read_timer(self.body_timeout_s)
        super().on_headers_complete()
        self._in_head = False

    def on_message_complete(self) -> None:
        """Stop waiting: the request is complete."""
        self._in_head, self._head_bytes = True, 0
        self._set_read_timer(None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start waiting for the client to read the response."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.unread_timeout_s, self._close_unread)

    def resume_writing(self) -> None:
        """Stop waiting: the client reads."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that uvicorn cannot parse."""
        self.refuse(400, msg)

    def refuse(self, status: int, message: str) -> None:
        """Send a plain-text response with the security headers, without calling the app, and close the connection.

        If an earlier request of this connection is still to be answered, or partly answered, the client would take
        this message for that response: then only close.
        """
        if self._owes_earlier_response:
            self.transport.abort()
            return
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in SECURITY_HEADERS.items()),
        ]
        lines += [
            "Content-Type: text/plain; charset=utf-8",
            f"Content-Length: {len(message)}",
            "Connection: close",
            "",
            message,
        ]
        self.transport.write("\r\n".join(lines).encode("ascii"))
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _owes_earlier_response(self) -> bool:
        """Whether a response is due or begun that does not belong to the request being read."""
        if self._in_head:
            return self._is_answering
        return self._current_cycle is not self.cycle or bool(self.cycle.response_started)

    def _set_read_timer(self, seconds: float | None) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
        self._read_timer = None if seconds is None else self.loop.call_later(seconds, self._close_late)

    def _close_late(self) -> None:
        self._read_timer = None
        if self._in_head and self._is_answering:  # the client may send its next request after this response
            self._set_read_timer(self.head_timeout_s)
        else:
            self.transport.abort()

    def _close_unread(self) -> None:
        """Close the socket without lingering: otherwise the system would keep the unread data for a long time."""
        connection: socket.socket = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
