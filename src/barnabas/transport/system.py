"""The operating system's network: the only place where sockets are made, names looked up and files sent.

Broker and clients take a `SystemNetwork` unless they are given another network.
"""

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import ssl
from typing import Any

from barnabas.transport.channel import Channel, ResolvedAddress, SocketOptions
from barnabas.transport.parts import PartFile
from barnabas.transport.same_host import begin_unpaced, is_own_address, is_same_host, send_as_usual
from barnabas.transport.tls import TlsChannel, start_tls, wrap_server

BIND_ATTEMPTS = 16
WAKE_UP_BYTES = 1024 * 1024
"""In the middle of a large frame the loop is woken for so much at once, and not for every segment."""
WINDOW_BYTES = 4 * WAKE_UP_BYTES
"""At least so much may be in flight. Waiting for a number of bytes makes Linux open the window that far, but no
further: the sender would stand still while what has come is read."""


class SocketChannel(socket.socket):
    """A connected TCP socket, non-blocking."""

    __slots__ = ("_wake_up_bytes", "_window_is_open")
    more_flag = getattr(socket, "MSG_MORE", 0)
    is_encrypted = False

    def __init__(self, family: int = -1, fileno: int | None = None) -> None:
        super().__init__(family, socket.SOCK_STREAM, fileno=fileno)
        self.setblocking(False)
        self._wake_up_bytes = 1
        self._window_is_open = False

    def send_file(self, file: PartFile, position: int, count: int) -> int:
        return os.sendfile(self.fileno(), file.fileno(), position, count)

    def pending(self) -> int:
        return 0

    def expect(self, missing_bytes: int) -> None:
        wanted = max(1, min(missing_bytes, WAKE_UP_BYTES))
        if wanted == self._wake_up_bytes:
            return
        self._wake_up_bytes = wanted
        with contextlib.suppress(OSError):  # not every system has it, and it changes nothing but the pace
            if wanted == WAKE_UP_BYTES and not self._window_is_open:
                self._window_is_open = True
                self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, WINDOW_BYTES)
            self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)


class ListeningSocket(socket.socket):
    __slots__ = ()

    def accept_channel(self, options: SocketOptions) -> tuple[SocketChannel, Any]:
        sock, address = self.accept()
        channel = SocketChannel(self.family, sock.detach())
        try:
            send_buffer_bytes = options.send_buffer_bytes
            if is_same_host(channel):
                send_buffer_bytes = options.same_host_send_buffer_bytes
            else:
                send_as_usual(channel)
            _set_options(channel, send_buffer_bytes)
        except OSError as error:
            channel.close()
            raise ConnectionAbortedError(error.errno, error.strerror) from error
        return channel, address


class SystemNetwork:
    has_descriptors = True

    def own_name(self) -> str:
        return socket.getfqdn()

    async def listen(self, host: str, port: int, backlog: int, options: SocketOptions) -> list[ListeningSocket]:
        # Off the loop: the name of the host may have to be looked up.
        return await asyncio.get_running_loop().run_in_executor(None, _listen, host, port, backlog, options)

    async def look_up(self, host: str, port: int) -> list[ResolvedAddress]:
        if _is_literal(host):
            # No thread is needed to read digits, and as bytes they do not load what international names need.
            found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        else:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [ResolvedAddress(socket.AddressFamily(family), sockaddr) for family, _, _, _, sockaddr in found]

    async def canonical_names(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        names = []
        for address in await self.look_up(host, port):
            name, _ = await loop.getnameinfo(address.sockaddr)
            if name not in names:
                names.append(name)
        return names

    async def connect(self, address: ResolvedAddress, options: SocketOptions) -> SocketChannel:
        channel = SocketChannel(address.family)
        try:
            _set_options(channel, options.send_buffer_bytes, options.receive_buffer_bytes)
            if is_own_address(*address):
                begin_unpaced(channel)
            await asyncio.get_running_loop().sock_connect(channel, address.sockaddr)
            if channel.getsockname() == channel.getpeername():
                # With nobody there, the system may pick the very port as our own end, and TCP joins the two.
                raise ConnectionRefusedError
        except BaseException:
            channel.close()
            raise
        return channel

    def wrap_tls(self, channel: Channel, context: ssl.SSLContext) -> TlsChannel:
        assert isinstance(channel, SocketChannel)
        return wrap_server(channel, context)

    async def start_tls(
        self, channel: Channel, context: ssl.SSLContext, server_hostname: str | None = None
    ) -> TlsChannel:
        assert isinstance(channel, SocketChannel)
        return await start_tls(channel, context, server_hostname)


def _set_options(channel: SocketChannel, send_buffer_bytes: int, receive_buffer_bytes: int = -1) -> None:
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer_bytes >= 0:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if receive_buffer_bytes >= 0:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)


def _listen(host: str, port: int, backlog: int, options: SocketOptions) -> list[ListeningSocket]:
    for attempt in range(BIND_ATTEMPTS):
        sockets: list[ListeningSocket] = []
        bound_port = port
        try:
            for family, address in _addresses_to_bind(host):
                sockets.append(_listen_at(family, address, bound_port, backlog, options))
                bound_port = sockets[-1].getsockname()[1]
            return sockets
        except OSError as error:
            for sock in sockets:
                sock.close()
            # The port that the first address happened to get may be taken on the second: take another.
            if not (error.errno == errno.EADDRINUSE and port == 0 and attempt < BIND_ATTEMPTS - 1):
                raise
    raise AssertionError("unreachable")


def _addresses_to_bind(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        return [(socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A host's IPv4 address first: it is the one that is always usable, and the one whose port is shown.
    addresses = {(family, str(sockaddr[0])): None for family, _, _, _, sockaddr in found}
    return sorted(addresses, key=lambda entry: entry[0] != socket.AF_INET)


def _listen_at(
    family: socket.AddressFamily, address: str, port: int, backlog: int, options: SocketOptions
) -> ListeningSocket:
    sock = ListeningSocket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
        if options.receive_buffer_bytes >= 0:
            # Before listen, so that the window scale offered to clients fits; accepted sockets inherit it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)
        begin_unpaced(sock)
        sock.bind((address, port))
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
