"""Bytes to MQTT packets on the broker's transport: the framing of MQTT instead of Kafka's size prefix.

Small packets are handed out together, as a view of all that was received, so that a client which publishes much costs
one call per receive. A packet larger than the shared buffer is put together in a buffer of its own and counts against
the memory budget, as a large request of Kafka does.
"""

from collections.abc import Callable

from barnabas.transport.frames import FrameReader
from barnabas.transport.shared_buffers import FrameAssembly, SharedBuffers

OnPackets = Callable[[memoryview], int]
"""Takes whole packets from the front of the view, as many as it likes; returns where it stopped."""


class PacketAssembly(FrameAssembly):
    __slots__ = ()

    def frame(self) -> memoryview:
        return memoryview(self._buffer)[: self.total_bytes]


class PacketBuffers(SharedBuffers):
    """One for all MQTT connections of a broker."""

    __slots__ = ()

    def assemble(self, start: memoryview, total_bytes: int) -> FrameAssembly:
        return PacketAssembly(self._pool, start, total_bytes)


class PacketReader(FrameReader):
    """`on_packets` must be set before anything is received."""

    __slots__ = ("on_packets",)
    on_packets: OnPackets

    def keep_whole(self, packet: memoryview) -> None:
        """A packet that cannot be handled yet: it is handed out again when reading goes on."""
        self._leftover = memoryview(bytearray(packet))

    def _consume(self, view: memoryview, private: bool) -> None:
        sink = self._sink
        if self._budget.exhausted:
            sink.wait_for_memory()
            position = 0
        else:
            position = self.on_packets(view)
        if self.is_dropped:
            return
        if position:
            sink.on_progress()
        if position < len(view):
            self._keep(view[position:], private)

    def _keep(self, rest: memoryview, private: bool) -> None:
        sink, buffers = self._sink, self._buffers
        total_bytes = packet_bytes(rest)
        if not sink.pauses and total_bytes > len(rest):
            if not total_bytes <= self.max_bytes:
                sink.on_bad_size(total_bytes)
                return
            if total_bytes > buffers.frame_bytes or len(rest) > buffers.leftover_bytes:
                if not self._budget.exhausted:
                    self._budget.reserve(total_bytes)
                    self._assembly = buffers.assemble(rest, total_bytes)
                    return
                sink.wait_for_memory()
        self._leftover = rest if private and sink.pauses else memoryview(bytearray(rest))


def packet_bytes(view: memoryview) -> int:
    """The size of the packet at the front, as far as it shows; 0 if more bytes are needed to know."""
    size = shift = 0
    for index in range(1, min(5, len(view))):
        byte = view[index]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return index + 1 + size
        shift += 7
    return 0
