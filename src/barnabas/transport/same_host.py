"""Connections whose other end is on this machine; for both ends of them.

Nothing is lost or delayed between the two ends, so there is nothing to be careful about; but some congestion controls,
BBR above all, send by a timer all the same, and that costs more than the sending: four times the system's time for a
fetched byte. Others leave such a connection alone. One that has begun with BBR stays paced, whatever it is given
afterwards, so the choice comes first. A client checks before it connects whether the address is one of this machine. A
listener cannot know who will come: its connections begin without, and those from elsewhere get what is usual on this
system when they are accepted.
"""

import contextlib
import socket
from typing import Any

PLAIN_CONTROL = b"reno"
"""Every Linux has it and everybody may set it; without losses it does nothing."""
_NAME_BYTES = 16


def is_same_host(sock: socket.socket) -> bool:
    """Of a connected TCP socket; it raises OSError if the peer is gone already."""
    same: bool = sock.getsockname()[0] == sock.getpeername()[0]
    return same


def is_own_address(family: socket.AddressFamily, address: Any) -> bool:
    """Whether who connects there stays on this machine. Nothing is sent: the system only looks for a route."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        own: bool = probe.getsockname()[0] == address[0]
        return own
    return False


def begin_unpaced(sock: socket.socket) -> None:
    """Before it connects or listens; on systems without a choice nothing changes."""
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, PLAIN_CONTROL)


def send_as_usual(sock: socket.socket) -> None:
    """What is usual on this system, unless the route to the peer has a control of its own."""
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError), socket.socket(sock.family, socket.SOCK_STREAM) as fresh:
            if congestion_control(sock) == PLAIN_CONTROL:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control(fresh))


def congestion_control(sock: socket.socket) -> bytes:
    """Its name."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES).partition(b"\0")[0]
