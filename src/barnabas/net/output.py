"""What a connection still has to send: gathered into few system calls, files by sendfile.

Owned by one `Connection`. It never blocks and never reads a large file part into memory; a file that turns out shorter
than promised raises `TruncatedFileError`, because the size prefix of the frame is out already.
"""

import os
import socket
from collections import deque

from barnabas.net.reply import MEMORY, FilePart, Memory, Parts

GATHER_PARTS = 256
GATHER_BYTES = 512 * 1024
JOIN_BYTES = 32 * 1024
"""Below this, copying the parts together costs less than describing each of them to the kernel."""
SMALL_FILE_BYTES = 16 * 1024
"""Below this, reading a file part and gathering it costs less than a sendfile of its own."""
TURN_BYTES = 2 * 1024 * 1024
"""A connection gives way to the others after this much in one turn of the loop."""

MSG_MORE = getattr(socket, "MSG_MORE", 0)


class TruncatedFileError(OSError):
    """A file ended before the range that was promised from it."""


class OutputQueue:
    __slots__ = ("_file_part_count", "_file_position", "_parts", "_socket", "gave_way", "queued_bytes", "sent_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parts: deque[Memory | FilePart] = deque()
        self._file_part_count = 0
        self._file_position = 0
        self.queued_bytes = 0
        self.sent_bytes = 0
        self.gave_way = False
        """Whether the last `write` ended because its turn was over: the socket would have taken more."""

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, parts: Parts) -> None:
        """Queue one reply. File parts hold no memory, so only the others count in `queued_bytes`."""
        for part in parts:
            if isinstance(part, MEMORY):
                self.queued_bytes += len(part)
            else:
                self._file_part_count += 1
        self._parts.extend(parts)

    def add_bytes(self, reply: bytes) -> None:
        """Queue one reply that is in one piece, as small ones are."""
        self.queued_bytes += len(reply)
        self._parts.append(reply)

    def clear(self) -> None:
        self._parts.clear()
        self._file_part_count = 0
        self.queued_bytes = 0

    def write(self) -> bool:
        """Send what the socket takes, up to a bound; whether everything is out. Raises OSError if the peer is gone."""
        parts = self._parts
        turn_end = self.sent_bytes + TURN_BYTES
        self.gave_way = False
        try:
            if not self._file_part_count and 0 < self.queued_bytes < JOIN_BYTES:
                # A few small replies and nothing else, the commonest case: without a look at each of them.
                replies: deque[Memory] = parts  # type: ignore[assignment]
                sent = self._socket.send(replies[0] if len(replies) == 1 else b"".join(replies))
                if sent < self.queued_bytes:
                    return self._on_sent(list(replies), sent)
                parts.clear()
                self.queued_bytes = 0
                self.sent_bytes += sent
                return True
            while parts:
                part = parts[0]
                if isinstance(part, MEMORY) or part.length - self._file_position < SMALL_FILE_BYTES:
                    if not self._write_gathered():
                        return False
                elif not self._write_file(part):
                    return False
                if parts and self.sent_bytes >= turn_end:
                    self.gave_way = True
                    return False
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def _write_gathered(self) -> bool:
        """Memory and small file parts up to the next large file part in one call; whether the socket took them all."""
        parts = self._parts
        if len(parts) == 1 and isinstance(part := parts[0], MEMORY):
            return self._on_sent([part], self._socket.send(part))
        gathered: list[Memory] = []
        gathered_bytes = 0
        flags = 0
        for part in parts:
            if not isinstance(part, MEMORY):
                if part.length - (0 if gathered else self._file_position) >= SMALL_FILE_BYTES:
                    flags = MSG_MORE
                    break
                part = read_part(part, 0 if gathered else self._file_position)
            gathered.append(part)
            gathered_bytes += len(part)
            if gathered_bytes >= GATHER_BYTES or len(gathered) >= GATHER_PARTS:
                break
        if gathered_bytes < JOIN_BYTES:
            sent = self._socket.send(b"".join(gathered), flags)
        else:
            sent = self._socket.sendmsg(gathered, (), flags)
        return self._on_sent(gathered, sent)

    def _on_sent(self, gathered: list[Memory], sent: int) -> bool:
        """Drop what went out from the front of the queue; what was gathered stands for the same number of parts."""
        parts = self._parts
        self.sent_bytes += sent
        for memory in gathered:
            size = len(memory)
            part = parts[0]
            if sent < size:
                if isinstance(part, MEMORY):
                    parts[0] = memoryview(part)[sent:]
                    self.queued_bytes -= sent
                else:
                    self._file_position += sent
                return False
            sent -= size
            parts.popleft()
            if isinstance(part, MEMORY):
                self.queued_bytes -= size
            else:
                self._file_part_count -= 1
                self._file_position = 0
        return True

    def _write_file(self, part: FilePart) -> bool:
        """One sendfile; whether the file part is finished or more of it may go out at once."""
        position = self._file_position
        wanted = part.length - position
        sent = os.sendfile(self._socket.fileno(), part.file.fileno(), part.position + position, min(wanted, TURN_BYTES))
        if sent == 0:
            raise TruncatedFileError(f"the file ends {wanted} bytes before the promised range does")
        self.sent_bytes += sent
        if sent == wanted:
            self._parts.popleft()
            self._file_part_count -= 1
            self._file_position = 0
        else:
            self._file_position = position + sent
        return True


def read_part(part: FilePart, skip: int) -> bytes:
    length = part.length - skip
    data = os.pread(part.file.fileno(), length, part.position + skip)
    if len(data) < length:
        raise TruncatedFileError(f"the file ends {length - len(data)} bytes before the promised range does")
    return data
