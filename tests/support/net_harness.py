"""A server of barnabas.net with a handler under the test's control, and plain clients for it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from barnabas.clock import Clock
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.net.server import Server
from barnabas.net.settings import Listener, NetworkSettings

Result = TypeVar("Result")
Answer = bytes | Parts | Deferred[Parts] | None


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Handler:
    """Answers with `respond(connection, payload)`; by default an echo. Remembers what it saw."""

    def __init__(self, respond: Callable[[Connection, bytes], Answer] | None = None) -> None:
        self.respond = respond or (lambda connection, payload: framed(payload))
        self.requests: list[bytes] = []
        self.closed: list[Connection] = []
        self._changed = asyncio.Event()

    def on_request(self, connection: Connection, frame: memoryview) -> Answer:
        payload = bytes(frame)
        self.requests.append(payload)
        self._changed.set()
        return self.respond(connection, payload)

    def on_closed(self, connection: Connection) -> None:
        self.closed.append(connection)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for requests or closes to make the condition true."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()


class Client:
    """A peer that sends and reads bytes as it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def port(self) -> int:
        """Its own, by which the server knows it."""
        return int(self.writer.get_extra_info("sockname")[1])

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def ask(self, payload: bytes) -> bytes:
        await self.send(framed(payload))
        return await self.read_frame()

    async def read_to_end(self) -> bytes:
        """What still comes until the server closes; a reset is an end too."""
        received = b""
        try:
            while chunk := await self.reader.read(1 << 20):
                received += chunk
        except ConnectionResetError:
            pass
        return received

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


class Network:
    """A running server and the clients that a test opens."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._clients: list[Client] = []

    async def connect(self, host: str = "127.0.0.1", limit: int = 1 << 20) -> Client:
        client = Client(*await asyncio.open_connection(host, self.server.port, limit=limit))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        await self.server.stop(drain_seconds=0)
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def network(
    handler: Handler,
    settings: NetworkSettings | None = None,
    listener: Listener | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Network]:
    server = Server(handler, [listener or Listener(host="127.0.0.1", port=0)], settings, clock=clock)
    await server.start()
    running = Network(server)
    try:
        yield running
    finally:
        await running.close()


def run(test: Callable[[], Awaitable[Result]]) -> Result:
    """Run a test's coroutine on a fresh loop; a fault in a callback of the loop fails the test."""
    faults: list[dict[str, object]] = []

    async def main() -> Result:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        return await test()

    result = asyncio.run(main())
    assert not faults, faults
    return result
