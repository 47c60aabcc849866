"""The system's network as one broker of a test has it: connections can be cut off, and all of them dropped at once.

Between two brokers that are partitioned, connections end and new ones get no response until the partition is healed, as
behind a firewall. `drop_all` is what the kernel does when a process is killed.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
import weakref
from typing import Any

from barnabas.transport.channel import Channel, ResolvedAddress, SocketOptions
from barnabas.transport.system import ListeningSocket, SocketChannel, SystemNetwork
from barnabas.transport.tls import TlsChannel


class _Listener:
    """A listening socket whose connections are noted."""

    def __init__(self, inner: ListeningSocket, network: "BreakableNetwork") -> None:
        self._inner = inner
        self._network = network

    def fileno(self) -> int:
        return self._inner.fileno()

    def getsockname(self) -> Any:
        return self._inner.getsockname()

    def accept_channel(self, options: SocketOptions) -> tuple[Channel, Any]:
        channel, address = self._inner.accept_channel(options)
        self._network.accepted.add(channel)
        return channel, address

    def close(self) -> None:
        self._inner.close()


class BreakableNetwork(SystemNetwork):
    def __init__(self) -> None:
        self.accepted: weakref.WeakSet[SocketChannel | TlsChannel] = weakref.WeakSet()
        self._connected: weakref.WeakSet[SocketChannel | TlsChannel] = weakref.WeakSet()
        self._listeners: list[_Listener] = []
        self._lock = threading.Lock()
        self._cut_ports: frozenset[int] = frozenset()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    async def listen(  # type: ignore[override]  # a listener of our own in place of the socket
        self, host: str, port: int, backlog: int, options: SocketOptions
    ) -> list[_Listener]:
        listeners = [_Listener(each, self) for each in await super().listen(host, port, backlog, options)]
        self._listeners += listeners
        return listeners

    async def connect(self, address: ResolvedAddress, options: SocketOptions) -> SocketChannel:
        port = address.sockaddr[1]
        while True:
            await self._wait_until_healed(port)
            channel = await super().connect(address, options)
            with self._lock:
                if port not in self._cut_ports:
                    self._connected.add(channel)
                    return channel
            channel.close()

    def wrap_tls(self, channel: Channel, context: ssl.SSLContext) -> TlsChannel:
        wrapped = super().wrap_tls(channel, context)
        self.accepted.add(wrapped)
        return wrapped

    async def start_tls(
        self, channel: Channel, context: ssl.SSLContext, server_hostname: str | None = None
    ) -> TlsChannel:
        wrapped = await super().start_tls(channel, context, server_hostname)
        with self._lock:
            if _peer_port(wrapped) not in self._cut_ports:
                self._connected.add(wrapped)
                return wrapped
        wrapped.close()
        raise ConnectionResetError("cut off")

    def cut(self, ports: frozenset[int]) -> None:
        """From now on nothing gets to these ports of this machine; with none, everything gets through again."""
        with self._lock:
            self._cut_ports = ports
            lost = [each for each in self._connected if _peer_port(each) in ports]
            waiting, self._waiting = self._waiting, []
        for channel in lost:
            with contextlib.suppress(OSError):
                # Not that of an SSLSocket, which forgets its encryption and would read on in plain text.
                socket.socket.shutdown(channel, socket.SHUT_RDWR)
        for loop, future in waiting:
            with contextlib.suppress(RuntimeError):  # that broker was killed meanwhile
                loop.call_soon_threadsafe(_complete, future)

    def drop_all(self) -> None:
        """Close every socket without a word. To be called when the broker's loop has stopped: it watches them."""
        for listener in self._listeners:
            listener.close()
        for channel in [*self.accepted, *self._connected]:
            channel.close()
        self._listeners.clear()

    async def _wait_until_healed(self, port: int) -> None:
        while True:
            loop = asyncio.get_running_loop()
            with self._lock:
                if port not in self._cut_ports:
                    return
                future: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, future))
            await future


def _peer_port(channel: SocketChannel | TlsChannel) -> int:
    try:
        port: int = channel.getpeername()[1]
    except OSError:
        return -1
    return port


def _complete(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
