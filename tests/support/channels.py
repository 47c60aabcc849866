"""Two ends of a connection within the test: a channel of the transport, and a plain socket that the test plays."""

import socket

from barnabas.transport.system import SocketChannel


def channel_pair() -> tuple[SocketChannel, socket.socket]:
    """Both non-blocking."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return SocketChannel(ours.family, ours.detach()), theirs
