"""Bytes on their way out of a connection: gathered into few system calls, never copied where they are large.

Owned by one `Connection`. The buffers must not change until they are out.
"""

import socket
import ssl
from collections import deque
from collections.abc import Iterable

Buffer = bytes | bytearray | memoryview
GATHER_PARTS = 512
JOIN_BYTES = 16 * 1024
"""Below this, copying parts together costs less than describing each of them to the kernel."""
WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantWriteError, ssl.SSLWantReadError)


class Outgoing:
    __slots__ = ("_parts", "_socket", "sent_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parts: deque[Buffer] = deque()
        self.sent_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, parts: Iterable[Buffer]) -> None:
        """One request. Small neighbours are put together."""
        gathered: list[Buffer] = []
        gathered_bytes = 0
        for part in parts:
            if len(part) > JOIN_BYTES:
                self._add_joined(gathered)
                gathered, gathered_bytes = [], 0
                self._parts.append(part)
            elif len(part):
                gathered.append(part)
                gathered_bytes += len(part)
                if gathered_bytes > JOIN_BYTES:
                    self._add_joined(gathered)
                    gathered, gathered_bytes = [], 0
        self._add_joined(gathered)

    def clear(self) -> None:
        self._parts.clear()

    def write(self) -> bool:
        """Send what the socket takes; whether everything is out. Raises OSError if the peer is gone."""
        parts = self._parts
        plain = not isinstance(self._socket, ssl.SSLSocket)
        try:
            while parts:
                if len(parts) == 1 or not plain:
                    sent = self._socket.send(parts[0])
                else:
                    sent = self._socket.sendmsg([parts[index] for index in range(min(len(parts), GATHER_PARTS))])
                self.sent_bytes += sent
                self._drop(sent)
        except WOULD_BLOCK:
            return False
        return True

    def _add_joined(self, gathered: list[Buffer]) -> None:
        if gathered:
            self._parts.append(gathered[0] if len(gathered) == 1 else b"".join(gathered))

    def _drop(self, sent: int) -> None:
        parts = self._parts
        while sent:
            size = len(parts[0])
            if sent < size:
                parts[0] = memoryview(parts[0])[sent:]
                return
            sent -= size
            parts.popleft()
