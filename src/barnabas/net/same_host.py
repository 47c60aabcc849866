"""Connections whose other end is on this machine.

Nothing is lost or delayed between the two ends, so there is nothing to be careful about; but some congestion controls,
BBR above all, send by a timer all the same, and that costs more than the sending: four times the system's time for a
fetched byte. Others leave such a connection alone. One that has begun with BBR stays paced, whatever it is given
afterwards. So every connection begins without, as its listener has it, and one from elsewhere gets what is usual on
this system when it is accepted.
"""

import contextlib
import socket

PLAIN_CONTROL = b"reno"
"""Every Linux has it and everybody may ask for it; without losses it does nothing."""
_NAME_BYTES = 16


def is_same_host(sock: socket.socket) -> bool:
    """Of a connected TCP socket; it raises OSError if the peer is gone already."""
    same: bool = sock.getsockname()[0] == sock.getpeername()[0]
    return same


def accept_unpaced(listening: socket.socket) -> None:
    """Before it listens; on systems without a choice nothing changes."""
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, PLAIN_CONTROL)


def send_as_usual(sock: socket.socket) -> None:
    """What is usual on this system, unless the route to the peer has a control of its own."""
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError), socket.socket(sock.family, socket.SOCK_STREAM) as fresh:
            if congestion_control(sock) == PLAIN_CONTROL:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control(fresh))


def congestion_control(sock: socket.socket) -> bytes:
    """Its name."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES).partition(b"\0")[0]
