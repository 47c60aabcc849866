"""Listening sockets and the accept loop of one listener.

Owned by `Server`. Accepting pauses while the server is full (`max.connections`: as in Kafka the newcomers wait in the
backlog) and, for a moment, when the process has run out of file descriptors; neither ends the listener.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

from barnabas.net.settings import Listener
from barnabas.same_host import begin_unpaced

logger = logging.getLogger(__name__)

ACCEPTS_PER_TURN = 64
BACK_OFF_SECONDS = 0.25
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
BIND_ATTEMPTS = 16

OnAccepted = Callable[[socket.socket, Any, Listener], None]


class AcceptLoop:
    """`may_accept` says whether there is room for one more; `on_accepted` takes the socket over."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: Listener,
        sock: socket.socket,
        may_accept: Callable[[], bool],
        on_accepted: OnAccepted,
    ) -> None:
        self._loop = loop
        self.listener = listener
        self._socket = sock
        name = sock.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])
        self._may_accept = may_accept
        self._on_accepted = on_accepted
        self._accepting = False
        self._back_off: asyncio.TimerHandle | None = None
        self._out_of_resources = False
        self.closed = False

    def resume(self) -> None:
        """There is room again (or for the first time)."""
        if not self.closed and not self._accepting and self._back_off is None:
            self._accepting = True
            self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._back_off is not None:
            self._back_off.cancel()
        self._pause()
        self._socket.close()

    def _pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._socket.fileno())

    def _on_readable(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not self._may_accept():
                self._pause()
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._on_accept_failed(error)
                return
            self._out_of_resources = False
            self._on_accepted(sock, address, self.listener)

    def _on_accept_failed(self, error: OSError) -> None:
        """Try again in a moment: the socket stays readable, so going on at once would spin."""
        if error.errno not in OUT_OF_RESOURCES:
            logger.warning("listener %s: accept failed: %s", self.listener.name, error)
        elif not self._out_of_resources:
            self._out_of_resources = True
            logger.error("listener %s: %s; new connections wait until some are closed", self.listener.name, error)
        self._pause()
        self._back_off = self._loop.call_later(BACK_OFF_SECONDS, self._after_back_off)

    def _after_back_off(self) -> None:
        self._back_off = None
        self.resume()


def bind(listener: Listener, backlog: int, receive_buffer_bytes: int) -> list[socket.socket]:
    """Listening sockets for every address of the listener's host, all on one port."""
    for attempt in range(BIND_ATTEMPTS):
        sockets: list[socket.socket] = []
        port = listener.port
        try:
            for family, address in resolve(listener.host):
                sock = bind_one(family, address, port, backlog, receive_buffer_bytes)
                sockets.append(sock)
                port = sock.getsockname()[1]
            return sockets
        except OSError as error:
            for sock in sockets:
                sock.close()
            # The port that the first address got by chance may be taken on the second: take another.
            if not (error.errno == errno.EADDRINUSE and listener.port == 0 and attempt < BIND_ATTEMPTS - 1):
                raise
    raise AssertionError("unreachable")


def resolve(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        return [(socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A host's IPv4 address first: it is the one that is always usable, and the one whose port is shown.
    addresses = {(family, str(sockaddr[0])): None for family, _, _, _, sockaddr in found}
    return sorted(addresses, key=lambda entry: entry[0] != socket.AF_INET)


def bind_one(
    family: socket.AddressFamily, address: str, port: int, backlog: int, receive_buffer_bytes: int
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
        if receive_buffer_bytes > 0:
            # Before listen, so that the window scale offered to clients fits; accepted sockets inherit it.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        begin_unpaced(sock)
        sock.bind((address, port))
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock
