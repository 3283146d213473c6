"""Time and size limits of a connection, and where each of its requests ends.

uvicorn waits without limit for the rest of a request, for a client to read a response, and for the end of a request's
headers, which it keeps in memory. A few hundred connections that send one byte now and then would occupy the server.
Here each of these waits has a limit, after which the connection is closed; a client that was merely slow sends again.
Every byte of a request counts: its line, its headers, the framing and extensions of its chunks, its body, its trailers.

A request may offer to change to another protocol (`Upgrade`), which this server never does. httptools then takes the
head for the whole request, and uvicorn would parse its body as the next one: behind a proxy that sends the requests of
several people over one connection, a stranger could write the beginning of somebody else's request. Here the offer is
removed and the head parsed again, so that the body keeps its length; the response closes the connection, and nothing
that follows the request is read.

The class overrides methods of uvicorn's HTTP protocol. Most are called by asyncio or by the parser (httptools), whose
interfaces are stable. The following are uvicorn's own and may change with any release, so pyproject.toml caps its
version:

- `_start_asgi_task`, which is private: to know which request is being answered when several are sent at once
- `cycle`, `pipeline` and the cycle's `response_started`, `response_complete`, `disconnected` and `message_event`:
  to see whether a response is due, and to tell a waiting handler that the client has gone
- `_unset_keepalive_if_required`, which is private, `parser`, `url` and `headers`: to pass data to the parser ourselves

tests/security/test_connections.py checks all of this over sockets.
"""

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from vseg.server.headers import SECURITY_HEADERS

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

HEAD_TIMEOUT_S = 20.0  # from the connection or the first byte of a request to the end of its headers
BODY_TIMEOUT_S = 120.0  # from there to the end of its body: the largest body allowed, at 20 kbit/s
UNREAD_TIMEOUT_S = 60.0  # while a response is waiting and the client hardly reads
MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 8_000_000  # more than any route reads; for the bodies that no route reads
MAX_PIPELINED = 16  # requests that wait for the response to an earlier one; browsers and proxies send none
LINGER_S = 5.0  # after a refusal, while the client reads it; what it sends meanwhile is discarded
MAX_DISCARDED_BYTES = 1_000_000
INVALID_REQUEST = "Invalid HTTP request received."
HEAD_TOO_LONG = "The headers of this request are too long."
TOO_MANY_AT_ONCE = "Too many requests were sent at once; wait for their responses."


class TimeoutProtocol(HttpToolsProtocol):
    """One connection, in which every wait has a limit."""

    head_timeout_s, body_timeout_s, unread_timeout_s = HEAD_TIMEOUT_S, BODY_TIMEOUT_S, UNREAD_TIMEOUT_S
    linger_s = LINGER_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._request_bytes, self._body_bytes = 0, 0  # received so far: of the whole request, and of its body
        self._is_last, self._is_over = (
            False,
            False,
        )  # no other request is read after this one; nothing more is read
        self._discarded_bytes = 0
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
            self._end_cycle(self._current_cycle)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser; refuse a request that is invalid or too long."""
        if self._is_over:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > MAX_DISCARDED_BYTES:
                self.transport.abort()
            return
        self._unset_keepalive_if_required()
        self._request_bytes += len(data)
        try:
            self._parse(data)
            self._check_size()
        except httptools.HttpParserError:
            if not self.transport.is_closing() and not self._is_over:
                self.logger.warning(INVALID_REQUEST)
                self.refuse(400, INVALID_REQUEST)
        is_waiting = self._in_head and not self._is_over and not self._is_answering
        if is_waiting and self._read_timer is None and not self.transport.is_closing():
            # Empty lines between two requests end uvicorn's own timeout for the next one.
            self._set_read_timer(self.head_timeout_s)

    def on_message_begin(self) -> None:
        """Start waiting for the headers of a request."""
        super().on_message_begin()
        self._set_read_timer(self.head_timeout_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; ignore trailers, which a client could send without end, or in place of a proxy's headers."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start waiting for the body of a request."""
        if self.parser.should_upgrade():  # see _parse
            return
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refuse_while_parsing(431, HEAD_TOO_LONG)
        self._check_framing()
        self._set_read_timer(self.body_timeout_s)
        super().on_headers_complete()
        self._in_head = False
        if len(self.pipeline) > MAX_PIPELINED:
            self.pipeline[0] = self.cycle, self._refuse_in_turn
            self._is_over = True
            self._set_read_timer(None)
            raise httptools.HttpParserError(TOO_MANY_AT_ONCE)

    def _check_framing(self) -> None:
        """Refuse a request that others on its way may read differently: what it is for, and where its body ends."""
        values = {
            name: [value for other, value in self.headers if other == name]
            for name in (b"host", b"transfer-encoding")
        }
        hosts, codings = len(values[b"host"]), b",".join(values[b"transfer-encoding"]).strip().lower()
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() != "1.0"):
            self._refuse_while_parsing(400, f"Expected one Host header, got {hosts or 'none'}.")
        if codings not in (b"", b"chunked"):  # httptools takes the chunks for the body, still compressed
            self._refuse_while_parsing(
                501, "Expected no Transfer-Encoding but chunked; send the body as it is."
            )

    def on_body(self, body: bytes) -> None:
        """Count the bytes of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop waiting: the request is complete."""
        if self.parser.should_upgrade():
            return
        self._in_head, self._is_over = True, self._is_last
        self._request_bytes, self._body_bytes = 0, 0
        self._set_read_timer(None)
        super().on_message_complete()

    def _parse(self, data: bytes) -> None:
        """Pass data to the parser; if a request offers another protocol, parse its head again without the offer."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            method, version = self.parser.get_method(), self.parser.get_http_version().encode()
            if method == b"CONNECT" or any(name == b"sec-websocket-key" for name, _ in self.headers):
                self.refuse(
                    501, "Expected a plain HTTP request; this server has no tunnels and no WebSockets."
                )
                return
            kept = [header for header in self.headers if header[0] not in (b"connection", b"upgrade")]
            if any(b"\r" in value or b"\n" in value for _, value in kept):
                raise httptools.HttpParserError(INVALID_REQUEST) from None
            lines = [b"%s: %s" % header for header in (*kept, (b"connection", b"close"))]
            self._is_last = True
            self.parser = httptools.HttpRequestParser(self)
            head = b"%s %s HTTP/%s" % (method, self.url, version)
            self.parser.feed_data(b"\r\n".join([head, *lines, b"", b""]))
            self.parser.feed_data(data[offer.args[0] :])

    def _check_size(self) -> None:
        """Refuse a request that is too long; beside its body, a request may send as much as a head and its body."""
        if self.transport.is_closing() or self._is_over:
            return
        if self._request_bytes > MAX_HEAD_BYTES + 2 * self._body_bytes:
            self.refuse(431, HEAD_TOO_LONG)
        elif self._body_bytes > MAX_BODY_BYTES:
            self.refuse(413, f"The body is larger than {MAX_BODY_BYTES} bytes; send less at once.")

    def _refuse_while_parsing(self, status: int, message: str) -> None:
        """Refuse a request in a method that the parser calls, and stop the parser."""
        self.refuse(status, message)
        raise httptools.HttpParserError(message)

    async def _refuse_in_turn(self, *_: Any) -> None:
        """Refuse the newest request, in place of the app, once all earlier ones are answered."""
        self.refuse(429, TOO_MANY_AT_ONCE)

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

    def refuse(self, status: int, message: str) -> None:
        """Send a plain-text response with the security headers, without calling the app, and close the connection.

        Closing it at once, with data unread, would make some systems discard the response before the client reads it.
        So only the sending side is closed first, and what the client still sends is discarded for a moment.

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
        self._is_over = True
        if not self._in_head:  # its handler may be waiting for the rest
            self._end_cycle(self.cycle)
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.flow.resume_reading()
            self._set_read_timer(self.linger_s)
        else:
            self.transport.close()

    @staticmethod
    def _end_cycle(cycle: RequestResponseCycle) -> None:
        """Tell the handler of a request that the client has gone."""
        cycle.disconnected = True
        cycle.message_event.set()

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
        if (
            self._in_head and self._is_answering and not self._is_over
        ):  # the client may send its next request after this response
            self._set_read_timer(self.head_timeout_s)
        else:
            self.transport.abort()

    def _close_unread(self) -> None:
        """Close the socket without lingering: otherwise the system would keep the unread data for a long time."""
        connection: socket.socket = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
