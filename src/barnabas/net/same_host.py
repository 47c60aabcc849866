"""Connections whose other end is on this machine.

Nothing is lost or delayed between the two ends, so there is nothing to be careful about; but some congestion controls,
BBR above all, send by a timer all the same, and that costs more than the sending: four times the system's time for a
fetched byte. Others leave such a connection alone.
"""

import contextlib
import socket

PLAIN_CONTROL = b"reno"
"""Every Linux has it and everybody may ask for it; without losses it does nothing."""


def is_same_host(sock: socket.socket) -> bool:
    """Of a connected TCP socket; it raises OSError if the peer is gone already."""
    same: bool = sock.getsockname()[0] == sock.getpeername()[0]
    return same


def send_at_once(sock: socket.socket) -> None:
    """No more pacing; on systems without a choice nothing changes."""
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, PLAIN_CONTROL)
