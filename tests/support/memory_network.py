"""A network within one loop: descriptors are made up, and no socket is opened. Shows that the seam is enough.

`run_in_memory(scenario)` runs a coroutine function with such a network, on a loop that knows its descriptors.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from barnabas.transport.channel import Channel, ResolvedAddress, SocketOptions
from barnabas.transport.parts import Memory, PartFile

FIRST_DESCRIPTOR = 1 << 20
CAPACITY_BYTES = 50_000
HOST = "10.0.0.1"


class MemoryLoop(asyncio.SelectorEventLoop):
    """Descriptors from FIRST_DESCRIPTOR on are channels of the network; they are ready as long as they say so."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[int, MemoryChannel | MemoryListener] = {}
        self._watches: dict[tuple[int, str], Callable[[], object]] = {}
        self._looks = False

    def changed(self) -> None:
        if not self._looks:
            self._looks = True
            self.call_soon(self._look)

    def _look(self) -> None:
        self._looks = False
        for (fd, what), callback in list(self._watches.items()):
            end = self.ends.get(fd)
            if end is not None and (fd, what) in self._watches and getattr(end, what):
                callback()
                self.changed()

    def _watch(self, fd: int, what: str, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._watches[fd, what] = lambda: callback(*arguments)
        self.changed()

    def add_reader(self, fd: Any, callback: Callable[..., object], *arguments: Any) -> None:  # type: ignore[override]
        if isinstance(fd, int) and fd >= FIRST_DESCRIPTOR:
            self._watch(fd, "readable", callback, arguments)
        else:
            super().add_reader(fd, callback, *arguments)

    def remove_reader(self, fd: Any) -> bool:
        if isinstance(fd, int) and fd >= FIRST_DESCRIPTOR:
            return self._watches.pop((fd, "readable"), None) is not None
        return super().remove_reader(fd)

    def add_writer(self, fd: Any, callback: Callable[..., object], *arguments: Any) -> None:  # type: ignore[override]
        self._watch(fd, "writable", callback, arguments)

    def remove_writer(self, fd: Any) -> bool:
        return self._watches.pop((fd, "writable"), None) is not None


class MemoryChannel:
    more_flag = 0
    is_encrypted = False

    def __init__(self, loop: MemoryLoop, own: tuple[str, int], peer: tuple[str, int]) -> None:
        self._loop = loop
        self._own, self._peer_address = own, peer
        self._fd = FIRST_DESCRIPTOR + len(loop.ends)
        loop.ends[self._fd] = self
        self.other: MemoryChannel
        self._inbox = bytearray()
        self._closed = False

    @property
    def readable(self) -> bool:
        return bool(self._inbox) or self.other._closed

    @property
    def writable(self) -> bool:
        return self.other._closed or len(self.other._inbox) < CAPACITY_BYTES

    def fileno(self) -> int:
        return self._fd

    def getsockname(self) -> Any:
        return self._own

    def getpeername(self) -> Any:
        return self._peer_address

    def recv_into(self, buffer: memoryview, /) -> int:
        if not self.readable:
            raise BlockingIOError
        count = min(len(buffer), len(self._inbox))
        buffer[:count] = self._inbox[:count]
        del self._inbox[:count]
        self._loop.changed()
        return count

    def send(self, data: Memory, flags: int = 0, /) -> int:
        if self.other._closed:
            raise BrokenPipeError
        if not self.writable:
            raise BlockingIOError
        sent = data[: CAPACITY_BYTES - len(self.other._inbox)]
        self.other._inbox += sent
        self._loop.changed()
        return len(sent)

    def sendmsg(self, parts: Sequence[Memory], ancillary: tuple[()] = (), flags: int = 0, /) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: PartFile, position: int, count: int) -> int:
        return self.send(file.pread(min(count, CAPACITY_BYTES), position))

    def pending(self) -> int:
        return 0

    def expect(self, missing_bytes: int) -> None: ...

    def shutdown(self, how: int, /) -> None: ...

    def close(self) -> None:
        self._closed = True
        self._loop.changed()


class MemoryListener:
    def __init__(self, loop: MemoryLoop, address: tuple[str, int]) -> None:
        self._address = address
        self._fd = FIRST_DESCRIPTOR + len(loop.ends)
        loop.ends[self._fd] = self
        self.waiting: list[MemoryChannel] = []
        self.closed = False

    @property
    def readable(self) -> bool:
        return bool(self.waiting)

    def fileno(self) -> int:
        return self._fd

    def getsockname(self) -> Any:
        return self._address

    def accept_channel(self, options: SocketOptions) -> tuple[Channel, Any]:
        if not self.waiting:
            raise BlockingIOError
        channel = self.waiting.pop(0)
        return channel, channel.getpeername()

    def close(self) -> None:
        self.closed = True


class MemoryNetwork:
    has_descriptors = False

    def __init__(self, loop: MemoryLoop) -> None:
        self._loop = loop
        self._listeners: dict[int, MemoryListener] = {}
        self.connection_count = 0

    def own_name(self) -> str:
        return HOST

    async def listen(self, host: str, port: int, backlog: int, options: SocketOptions) -> list[MemoryListener]:
        port = port or 9000 + len(self._listeners)
        self._listeners[port] = MemoryListener(self._loop, (HOST, port))
        return [self._listeners[port]]

    async def look_up(self, host: str, port: int) -> list[ResolvedAddress]:
        return [ResolvedAddress(socket.AF_INET, (host, port))]

    async def canonical_names(self, host: str, port: int) -> list[str]:
        return [host]

    async def connect(self, address: ResolvedAddress, options: SocketOptions) -> Channel:
        listener = self._listeners.get(address.sockaddr[1])
        if listener is None or listener.closed:
            raise ConnectionRefusedError
        self.connection_count += 1
        own = ("10.0.0.2", 40_000 + self.connection_count)
        near = MemoryChannel(self._loop, own, listener.getsockname())
        far = MemoryChannel(self._loop, listener.getsockname(), own)
        near.other, far.other = far, near
        listener.waiting.append(far)
        self._loop.changed()
        return near

    async def start_tls(self, channel: Channel, context: ssl.SSLContext, server_hostname: str | None = None) -> Channel:
        raise NotImplementedError


def run_in_memory(scenario: Callable[[MemoryNetwork], Awaitable[None]]) -> None:
    faults: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MemoryLoop)
        loop.set_exception_handler(lambda _, context: faults.append(context))
        await scenario(MemoryNetwork(loop))

    with asyncio.Runner(loop_factory=MemoryLoop) as runner:
        runner.run(main())
    assert not faults, faults
