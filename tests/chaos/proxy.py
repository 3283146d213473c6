"""Faults of the network between a page and its server, caused by an HTTP proxy.

`async with Proxy.to(port) as proxy` listens on `proxy.port`; `proxy.misbehave(["lost"] * 5, rng)` damages the next
five requests and returns when it has. Otherwise the proxy only forwards.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from chaos.connection import LARGEST_HEAD, read_message

OVERTAKEN_BY = 12  # a delayed request arrives after this number of other requests
CUT_FOR_S = 0.3
PIECES = 10
SLOW_S = 0.4  # in each direction; no sender gives up by then
TOO_SLOW_S = 3.0  # for a request; its sender gives up earlier and repeats it
GONE = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)

Answer = Callable[[bytes], Awaitable[bytes]]


class Proxy:
    """A proxy between `port` and a server; connections to the server are opened when needed."""

    UNANSWERED = ("half request", "half reply", "lost", "late", "too slow")
    """The sender of such a request gets no usable reply and must repeat it."""
    KINDS = (*UNANSWERED, "doubled", "slow")

    def __init__(self, server_port: int):
        self.server_port, self.port = server_port, 0
        self.passed = self.spoilt = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._spoiling: list[tuple[str, random.Random]] = []
        self._spoilt_all: asyncio.Future[None] | None = None
        self._held: list[tuple[int, bytes]] = []
        self._delivering: set[asyncio.Task[None]] = set()
        self._cut = False

    @classmethod
    @asynccontextmanager
    async def to(cls, server_port: int) -> AsyncIterator["Proxy"]:
        proxy = cls(server_port)
        listening = await asyncio.start_server(
            proxy._accepted, "127.0.0.1", 0, limit=LARGEST_HEAD, backlog=512
        )
        proxy.port = listening.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            listening.close()
            proxy.hang_up()
            await asyncio.gather(*proxy._serving)

    def hang_up(self) -> None:
        """Abort every connection."""
        for client in list(self._clients):
            client.transport.abort()

    async def cut(self) -> None:
        """Abort and refuse all connections for a moment."""
        self._cut = True
        self.hang_up()
        await asyncio.sleep(CUT_FOR_S)
        self._cut = False

    async def misbehave(self, kinds: Sequence[str], rng: random.Random) -> None:
        """Damage the next requests, each in one of the ways of `KINDS`; return when done."""
        assert set(kinds) <= set(self.KINDS), kinds
        self._spoilt_all = asyncio.get_running_loop().create_future()
        self._spoiling = [(kind, rng) for kind in kinds]
        await self._spoilt_all

    async def settled(self) -> None:
        """Deliver all delayed requests and wait for their replies."""
        self._deliver(everything=True)
        while self._delivering:
            await asyncio.gather(*self._delivering)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        self._clients.add(writer)
        server = Upstream(self.server_port)
        try:
            while True:
                request = await read_message(reader)
                self.passed += 1
                self._deliver()
                await self._pass_on(request, server, writer)
        except GONE:
            writer.transport.abort()
        finally:
            self._clients.discard(writer)
            server.close()

    async def _pass_on(self, request: bytes, server: "Upstream", client: asyncio.StreamWriter) -> None:
        if not self._spoiling:
            client.write(await server.ask(request))
            return
        kind, rng = self._spoiling.pop()
        self.spoilt += 1
        try:
            await self._spoil(kind, rng, request, server, client)
        finally:
            if not self._spoiling and self._spoilt_all is not None and not self._spoilt_all.done():
                self._spoilt_all.set_result(None)

    async def _spoil(
        self, kind: str, rng: random.Random, request: bytes, server: "Upstream", client: asyncio.StreamWriter
    ) -> None:
        if kind == "half request":
            await server.say(request[: rng.randrange(1, len(request))])
            raise ConnectionAbortedError
        if kind == "late":
            self._held.append((self.passed + OVERTAKEN_BY, request))
            raise ConnectionAbortedError
        if kind == "doubled":
            twin = Upstream(self.server_port)
            answers = await asyncio.gather(server.ask(request), twin.ask(request))
            twin.close()
            client.write(rng.choice(answers))
            return
        if kind in ("slow", "too slow"):
            async for piece in _slowly(request, SLOW_S if kind == "slow" else TOO_SLOW_S):
                reader = await server.say(piece)
            async for piece in _slowly(await read_message(reader), SLOW_S):
                if client.is_closing():
                    raise ConnectionAbortedError
                client.write(piece)
            return
        answer = await server.ask(request)
        if kind == "half reply":
            client.write(answer[: rng.randrange(1, len(answer))])
            await client.drain()
            client.close()  # delivers what was written
        raise ConnectionAbortedError

    def _deliver(self, *, everything: bool = False) -> None:
        due = [request for at, request in self._held if everything or at <= self.passed]
        self._held = [] if everything else [each for each in self._held if each[0] > self.passed]
        for request in due:
            task = asyncio.create_task(self._deliver_one(request))
            self._delivering.add(task)
            task.add_done_callback(self._delivering.discard)

    async def _deliver_one(self, request: bytes) -> None:
        server = Upstream(self.server_port)
        with suppress(*GONE):
            await server.ask(request)
        server.close()


async def _slowly(message: bytes, seconds: float) -> AsyncIterator[bytes]:
    """Yield the message in pieces with a pause before each, so that it takes this number of seconds."""
    size = -(-len(message) // PIECES)
    for start in range(0, len(message), size):
        await asyncio.sleep(seconds / PIECES)
        yield message[start : start + size]


class Upstream:
    """The proxy's connection to the server."""

    def __init__(self, port: int):
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def say(self, message: bytes) -> asyncio.StreamReader:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=LARGEST_HEAD)
        reader, writer = self._streams
        writer.write(message)
        await writer.drain()
        return reader

    async def ask(self, request: bytes) -> bytes:
        return await read_message(await self.say(request))

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
