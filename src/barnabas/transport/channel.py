"""The seam between this program and a network: what sockets, listeners and name look-ups must be able to do.

`system.SystemNetwork` is the real one. Another one (simulated, for tests) implements the same protocols with numbers of
its own as descriptors; the event loop that it runs on must know them in `add_reader` and `add_writer`. Everything is
non-blocking: a call that would have to wait raises one of `WOULD_BLOCK`.
"""

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.transport.parts import Memory, PartFile

if TYPE_CHECKING:
    from barnabas.transport.tls import TlsChannel

WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ResolvedAddress(NamedTuple):
    family: socket.AddressFamily
    sockaddr: Any
    """In the form for socket.connect."""

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOptions:
    """Sizes in bytes; a negative one leaves the choice to the system."""

    send_buffer_bytes: int = -1
    same_host_send_buffer_bytes: int = -1
    """In place of the one above on accepted connections whose peer is on this machine."""
    receive_buffer_bytes: int = -1


class Channel(Protocol):
    """One end of a connection. The methods of a plain socket are used as they are: no call lies in between."""

    @property
    def more_flag(self) -> int:
        """For `send` and `sendmsg`: more follows at once. 0 where there is no such flag."""
        ...

    @property
    def is_encrypted(self) -> bool:
        """Whether `pending` may be more than 0: bytes that were received and that no selector knows of."""
        ...

    def fileno(self) -> int: ...
    def getsockname(self) -> Any: ...
    def getpeername(self) -> Any: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def send(self, data: Memory, flags: int = 0, /) -> int: ...
    def sendmsg(self, parts: Sequence[Memory], ancillary: tuple[()] = (), flags: int = 0, /) -> int: ...

    def send_file(self, file: PartFile, position: int, count: int) -> int:
        """Like `send`; 0 means that the file ends at the position."""
        ...

    def pending(self) -> int: ...

    def expect(self, missing_bytes: int) -> None:
        """A hint: so much of a frame is still missing. It may wake the reader up less often."""
        ...

    def shutdown(self, how: int, /) -> None: ...
    def close(self) -> None: ...


class ListeningChannel(Protocol):
    def fileno(self) -> int: ...
    def getsockname(self) -> Any: ...

    def accept_channel(self, options: SocketOptions) -> tuple[Channel, Any]:
        """The next connection and its peer's address. ConnectionAbortedError: the peer is gone again."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    @property
    def has_descriptors(self) -> bool:
        """Whether descriptors are the operating system's, so that they can be counted and given to epoll."""
        ...

    def own_name(self) -> str:
        """The name of this machine, for others to connect to."""
        ...

    async def listen(self, host: str, port: int, backlog: int, options: SocketOptions) -> Sequence[ListeningChannel]:
        """For every address of the host, all on one port; no host is every interface. Raises OSError."""
        ...

    async def look_up(self, host: str, port: int) -> list[ResolvedAddress]:
        """Every address of the host, in the system's order. Raises OSError where the name is not known."""
        ...

    async def canonical_names(self, host: str, port: int) -> list[str]:
        """The names that the addresses of a host go by."""
        ...

    async def connect(self, address: ResolvedAddress, options: SocketOptions) -> Channel: ...

    def wrap_tls(self, channel: Channel, context: ssl.SSLContext) -> "TlsChannel":
        """The server's end of an accepted connection, before its handshake. The channel given is used up."""
        ...

    async def start_tls(self, channel: Channel, context: ssl.SSLContext, server_hostname: str | None = None) -> Channel:
        """Encrypt a connection; without a host name as its server. The channel given is used up. Raises OSError."""
        ...
