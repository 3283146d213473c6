"""HTTP over one kept-alive connection, faster than a client library, so that tests measure the server alone."""

import asyncio
import json
from typing import Any

HEAD_ENDS = b"\r\n\r\n"
LARGEST_HEAD = 1_000_000


class Connection:
    """A connection from `await Connection.open(port)`; `post` and `get` return the status and the body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str):
        self.reader, self.writer = reader, writer
        self.token = token

    @classmethod
    async def open(cls, port: int, token: str = "") -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=LARGEST_HEAD), token)

    async def post(self, path: str, body: Any) -> tuple[int, bytes]:
        content = json.dumps(body).encode()
        self.writer.write(self._head("POST", path, len(content)) + content)
        return await self._answer()

    async def get(self, path: str) -> tuple[int, bytes]:
        self.writer.write(self._head("GET", path, 0))
        return await self._answer()

    def close(self) -> None:
        self.writer.close()

    def _head(self, method: str, path: str, length: int) -> bytes:
        bearer = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return (  # without compression, which Caddy would undo, and then send the reply in chunks
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Accept-Encoding: identity\r\n{bearer}Content-Length: {length}\r\n\r\n"
        ).encode()

    async def _answer(self) -> tuple[int, bytes]:
        message = await read_message(self.reader)
        head, _, body = message.partition(HEAD_ENDS)
        return int(head.split(None, 2)[1]), body


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """Read a complete request or reply, head and body; raise IncompleteReadError if the connection ends early."""
    head = await reader.readuntil(HEAD_ENDS)
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    size = int(lengths[0].partition(b":")[2]) if lengths else 0
    return head + (await reader.readexactly(size) if size else b"")
