"""Two ends of a connection within the test: channels of the transport, sockets that the test plays, streams on them."""

import asyncio
import socket
from collections.abc import Callable

from barnabas.transport.budget import MemoryBudget
from barnabas.transport.channel import Channel
from barnabas.transport.kept_buffers import KeptBuffers
from barnabas.transport.shared_buffers import SharedBuffers
from barnabas.transport.stream import Stream
from barnabas.transport.system import SocketChannel


def channel_pair() -> tuple[SocketChannel, socket.socket]:
    """Both non-blocking."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return SocketChannel(ours.family, ours.detach()), theirs


class End:
    """One end of a connection: remembers the frames that come, and writes what it is given."""

    def __init__(self, channel: Channel, *, greedy: bool) -> None:
        self.frames: list[bytes] = []
        self.ended: OSError | str | None = None
        self.on_frame_seen: Callable[[bytes], None] = lambda frame: None
        self._changed = asyncio.Event()
        self.stream = Stream(
            asyncio.get_running_loop(),
            channel,
            self,
            KeptBuffers() if greedy else SharedBuffers(),
            MemoryBudget(),
            max_frame_bytes=1 << 30,
            greedy=greedy,
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert self.ended is None, self.ended
            self._changed.clear()
            await self._changed.wait()

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        self._changed.set()
        self.on_frame_seen(self.frames[-1])

    def on_bad_size(self, size: int) -> None:
        self.on_lost(OSError(f"a frame of {size} bytes"))

    def on_progress(self) -> None: ...

    def on_received(self) -> None:
        if self.stream.output and not self.stream.writing:
            self.stream.write()

    def on_writable(self) -> None:
        self.stream.write()

    def on_end_of_input(self) -> None:
        self.ended = "end of input"
        self._changed.set()

    def on_lost(self, error: OSError) -> None:
        self.ended = error
        self.stream.close()
        self._changed.set()
