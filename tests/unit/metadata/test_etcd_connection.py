"""Whether a kept connection to etcd is still there, also where descriptors are large."""

from __future__ import annotations

import fcntl
import http.client
import resource
import socket

from barnabas.metadata.stores.etcd_client import _is_closed

LARGE = 1500
"""More than select() takes."""


def test_a_connection_with_a_large_descriptor_is_seen_to_end() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft <= LARGE:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * LARGE), hard))
    ours, theirs = socket.socketpair()
    connection = http.client.HTTPConnection("127.0.0.1")
    connection.sock = socket.socket(fileno=fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD, LARGE))
    try:
        assert connection.sock.fileno() >= LARGE and not _is_closed(connection)
        theirs.close()
        assert _is_closed(connection)
    finally:
        connection.close()
        ours.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert _is_closed(connection)
