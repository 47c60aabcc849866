"""Bytes that come in on a connection, cut into frames: few system calls, each large frame straight into its own buffer.

Owned by one `Connection`. A small buffer takes what comes first; it holds whole small answers, or the start of a large
one, whose rest is then received into a buffer of its own. Frames are handed out as views of buffers that nothing else
uses, so their reader may keep them as long as it likes, and write to them; large buffers are used again once nobody
looks at them, because fresh pages cost more than it takes to fill them (`receive_buffers`).
"""

import socket
import ssl
import struct
from collections.abc import Callable

from barnabas.client.receive_buffers import ReceiveBuffers
from barnabas.errors import ProtocolError

SIZE = struct.Struct(">i")
START_BYTES = 8 * 1024
WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
FIRST_FRAME_MAX_BYTES = 1 << 20
FRAME_MAX_BYTES = 1 << 30
WAKE_UP_BYTES = 1024 * 1024
"""In the middle of a large frame the loop is woken for so much at once, and not for every segment."""
WINDOW_BYTES = 4 * WAKE_UP_BYTES
"""So much may be on its way at least. To wait for a number of bytes makes Linux open the window that far, but no
further: the sender would stand still while what is there is read."""


class Incoming:
    __slots__ = (
        "_buffers",
        "_filled",
        "_is_tls",
        "_large",
        "_large_filled",
        "_on_frame",
        "_socket",
        "_start",
        "_wake_up_bytes",
        "_window_is_open",
        "max_bytes",
    )

    def __init__(self, sock: socket.socket, on_frame: Callable[[memoryview], None]) -> None:
        self._socket = sock
        self._is_tls = isinstance(sock, ssl.SSLSocket)
        self._on_frame = on_frame
        self._start = memoryview(bytearray(START_BYTES))
        self._filled = 0
        self._large: memoryview | None = None
        self._large_filled = 0
        self._buffers = ReceiveBuffers()
        self._wake_up_bytes = 1
        self._window_is_open = False
        self.max_bytes = FIRST_FRAME_MAX_BYTES
        """Until the peer has shown that it is a broker, little is believed."""

    def receive(self) -> bool:
        """The socket is readable: take what is there. False at the end of the input. Raises OSError, ProtocolError."""
        while True:
            large = self._large
            room = self._start[self._filled :] if large is None else large[self._large_filled :]
            try:
                received = self._socket.recv_into(room)
            except WOULD_BLOCK:
                return True
            if not received:
                return False
            if large is None:
                self._filled += received
                self._cut()
            else:
                self._large_filled += received
                self._wake_up_at(len(large) - self._large_filled)
                if received == len(room):
                    self._large = None
                    self._on_frame(large)
            # Less than there was room for: the socket is empty. TLS gives a record at a time, and may hold more that
            # no selector knows of.
            if received < len(room) and not self._is_tls:
                return True

    def _cut(self) -> None:
        """Hand out the whole frames in the small buffer; what is left goes to its front, or into a large buffer."""
        start, end, position = self._start, self._filled, 0
        while end - position >= 4:
            size: int = SIZE.unpack_from(start, position)[0]
            if not 4 <= size <= self.max_bytes:
                raise ProtocolError(self._bad_size(start[position : position + 4], size))
            if end - position - 4 < size:
                if size + 4 > START_BYTES:
                    self._begin_large(start[position + 4 : end], size)
                    position = end
                break
            frame = memoryview(bytes(start[position + 4 : position + 4 + size]))
            position += 4 + size
            self._on_frame(frame)
        if position:
            rest = bytes(start[position:end])
            start[: len(rest)] = rest
            self._filled = len(rest)

    def _begin_large(self, arrived: memoryview, size: int) -> None:
        self._large = self._buffers.take(size)
        self._large[: len(arrived)] = arrived
        self._large_filled = len(arrived)
        self._wake_up_at(size - len(arrived))

    def _wake_up_at(self, missing: int) -> None:
        wanted = max(1, min(missing, WAKE_UP_BYTES))
        if wanted != self._wake_up_bytes and not self._is_tls:
            self._wake_up_bytes = wanted
            try:
                if wanted == WAKE_UP_BYTES and not self._window_is_open:
                    self._window_is_open = True
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, WINDOW_BYTES)
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
            except OSError:
                pass  # not every system has it, and it changes nothing but the pace

    def _bad_size(self, prefix: memoryview, size: int) -> str:
        if bytes(prefix) == b"HTTP":
            return "it answers in HTTP: this is not the address of a Kafka broker"
        if prefix[0] in (0x15, 0x16) and prefix[1] == 3:
            return "it speaks TLS: set security_protocol to SSL or SASL_SSL"
        return f"it sent a frame of {size} bytes, where 4 to {self.max_bytes} are possible: is it a Kafka broker?"
