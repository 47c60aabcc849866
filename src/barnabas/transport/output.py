"""What a connection still has to send: gathered into few system calls, files by sendfile.

Owned by one `Stream`. It never blocks and never reads a large file part into memory; a file that turns out shorter
than promised raises `TruncatedFileError`, because the size prefix of the frame is out already.
"""

from collections import deque
from collections.abc import Iterable

from barnabas.transport.channel import WOULD_BLOCK, Channel
from barnabas.transport.parts import MEMORY, FilePart, Memory, Part

GATHER_PARTS = 256
GATHER_BYTES = 512 * 1024
JOIN_BYTES = 32 * 1024
"""Below this, copying the parts together costs less than describing each of them to the kernel."""
SMALL_FILE_BYTES = 16 * 1024
"""Below this, reading a file part and gathering it costs less than a sendfile of its own."""
TURN_BYTES = 2 * 1024 * 1024
"""A connection gives way to the others after this much in one turn of the loop."""


class TruncatedFileError(OSError):
    """A file ended before the range that was promised from it."""


class OutputQueue:
    __slots__ = (
        "_channel",
        "_file_part_count",
        "_file_position",
        "_parts",
        "_takes_all",
        "gave_way",
        "queued_bytes",
        "sent_bytes",
    )

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._takes_all = not channel.is_encrypted  # a call that sends a part only has filled the socket
        self._parts: deque[Memory | FilePart] = deque()
        self._file_part_count = 0
        self._file_position = 0
        self.queued_bytes = 0
        self.sent_bytes = 0
        self.gave_way = False
        """Whether the last `write` ended because its turn was over: the socket would have taken more."""

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, parts: Iterable[Part]) -> None:
        """Queue one frame. File parts hold no memory, so only the others count in `queued_bytes`."""
        for part in parts:
            if isinstance(part, MEMORY):
                size = len(part)
                self.queued_bytes += size
            elif size := part.length:
                self._file_part_count += 1
            if size:
                self._parts.append(part)

    def add_bytes(self, frame: bytes) -> None:
        """Queue one frame that is in one piece, as small ones are."""
        self.queued_bytes += len(frame)
        self._parts.append(frame)

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
                # A few small frames and nothing else, the most common case: not checked one by one.
                frames: deque[Memory] = parts  # type: ignore[assignment]
                sent = self._channel.send(frames[0] if len(frames) == 1 else b"".join(frames))
                if sent == self.queued_bytes:
                    parts.clear()
                    self.queued_bytes = 0
                    self.sent_bytes += sent
                    return True
                self._on_sent(list(frames), sent)
                if self._takes_all:
                    return False
            while parts:
                part = parts[0]
                if not isinstance(part, MEMORY) and part.length - self._file_position >= SMALL_FILE_BYTES:
                    self._write_file(part)
                elif not self._write_gathered() and self._takes_all:
                    return False
                if parts and self.sent_bytes >= turn_end:
                    self.gave_way = True
                    return False
        except WOULD_BLOCK:
            return False
        return True

    def _write_gathered(self) -> bool:
        """Memory and small file parts up to the next large file part in one call; whether the socket took them all."""
        parts = self._parts
        if len(parts) == 1 and isinstance(part := parts[0], MEMORY):
            return self._on_sent([part], self._channel.send(part))
        gathered: list[Memory] = []
        gathered_bytes = 0
        flags = 0
        for part in parts:
            if not isinstance(part, MEMORY):
                if part.length - (0 if gathered else self._file_position) >= SMALL_FILE_BYTES:
                    flags = self._channel.more_flag
                    break
                part = read_part(part, 0 if gathered else self._file_position)
            gathered.append(part)
            gathered_bytes += len(part)
            if gathered_bytes >= GATHER_BYTES or len(gathered) >= GATHER_PARTS:
                break
        if gathered_bytes < JOIN_BYTES:
            sent = self._channel.send(b"".join(gathered), flags)
        else:
            sent = self._channel.sendmsg(gathered, (), flags)
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

    def _write_file(self, part: FilePart) -> None:
        """One call for a file; more of it may go out at once."""
        position = self._file_position
        wanted = part.length - position
        sent = self._channel.send_file(part.file, part.position + position, min(wanted, TURN_BYTES))
        if sent == 0:
            raise TruncatedFileError(f"the file ends {wanted} bytes before the promised range does")
        self.sent_bytes += sent
        if sent == wanted:
            self._parts.popleft()
            self._file_part_count -= 1
            self._file_position = 0
        else:
            self._file_position = position + sent


def read_part(part: FilePart, skip: int) -> bytes:
    length = part.length - skip
    data = part.file.pread(length, part.position + skip)
    if len(data) < length:
        raise TruncatedFileError(f"the file ends {length - len(data)} bytes before the promised range does")
    return data
