"""One connection on an event loop: frames in, parts out, when to read and when to write.

Broker connections and client connections own one each, and are its `StreamOwner`. Reading stops while any bit of
`pauses` is set, and the kernel's window then holds the peer back. Nothing is dropped, and nothing here waits: all work
happens in callbacks of the loop.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Protocol

from barnabas.transport.budget import MemoryBudget
from barnabas.transport.channel import WOULD_BLOCK, Channel
from barnabas.transport.frames import FRAMES_PER_TURN, FrameBuffers, FrameReader
from barnabas.transport.output import OutputQueue

# Why reading is stopped, as bits; reading goes on when none is set. An owner has reasons of its own in higher bits.
NO_MEMORY = 1
TURN_IS_OVER = 2
FIRST_FREE_REASON = 4


def _clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """`loop.time`, which is read once per frame: where it is the system's clock, without a Python call in between."""
    return time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time


class StreamOwner(Protocol):
    """What `frames.FrameSink` says of `on_frame`, `on_bad_size` and `on_progress` holds here too."""

    def on_frame(self, frame: memoryview, /) -> None: ...
    def on_bad_size(self, size: int, /) -> None: ...
    def on_progress(self) -> None: ...
    def on_received(self) -> None:
        """What has been received is handled: now is the time to write."""
        ...

    def on_writable(self) -> None:
        """What could not be written may go out now: call `write`."""
        ...

    def on_end_of_input(self) -> None:
        """The peer sends no more; it may still read."""
        ...

    def on_lost(self, error: OSError, /) -> None: ...


class ReadWatch(Protocol):
    """How a connection waits for input: a policy. The loop's is the default."""

    def add(self, fd: int, callback: Callable[[], None], /) -> None: ...
    def remove(self, fd: int, /) -> None: ...


class Stream:
    """`greedy`: receive until nothing is left, and wake up for much of a large frame at once.

    That is for a client, which has few connections and nobody to share its thread with. A server reads each connection
    once per turn, and a bounded number of frames.
    """

    __slots__ = (
        "_budget",
        "_channel",
        "_expects",
        "_greedy",
        "_has_turn",
        "_input_ended",
        "_is_encrypted",
        "_loop",
        "_owner",
        "_read_watch",
        "_reading",
        "_watching",
        "closed",
        "frames",
        "on_bad_size",
        "on_frame",
        "on_progress",
        "output",
        "pauses",
        "writing",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: Channel,
        owner: StreamOwner,
        buffers: FrameBuffers,
        budget: MemoryBudget,
        *,
        max_frame_bytes: int,
        min_frame_bytes: int = 0,
        greedy: bool = False,
        reader: type[FrameReader] = FrameReader,
    ) -> None:
        """`reader` takes the bytes apart: Kafka's frames, or what another protocol has."""
        self._loop = loop
        self._channel = channel
        self._is_encrypted = channel.is_encrypted
        self._owner = owner
        self._budget = budget
        self._greedy = greedy
        self._expects = False
        self.on_frame = owner.on_frame
        self.on_bad_size = owner.on_bad_size
        self.on_progress = owner.on_progress
        self.frames = reader(
            self,
            buffers,
            budget,
            max_bytes=max_frame_bytes,
            min_bytes=min_frame_bytes,
            frames_per_turn=sys.maxsize if greedy else FRAMES_PER_TURN,
            now=_clock_of(loop),
        )
        self.output = OutputQueue(channel)
        self.pauses = 0
        self.closed = False
        self.writing = False
        """Not all is out, and the rest will go on its own ..."""
        self._watching = False  # ... when the socket says that it takes more
        self._has_turn = False  # ... in a turn of its own
        self._input_ended = False
        self._reading = False
        self._read_watch: ReadWatch | None = None
        self._update_reading()

    @property
    def channel(self) -> Channel:
        return self._channel

    @property
    def read_watch(self) -> ReadWatch | None:
        return self._read_watch

    def close(self) -> None:
        """Close at once, and give back what is held."""
        self.closed = True
        self._update_reading()
        self._watch_writable(False)
        self._channel.close()
        self.output.clear()
        self.frames.drop()

    # --- reading ---

    def pause(self, reason: int) -> None:
        self.pauses |= reason
        self._update_reading()

    def resume(self, reason: int) -> None:
        if not self.pauses & reason or self.closed:
            return
        self.pauses &= ~reason
        if not self.pauses and (self.frames.has_backlog or self._channel.pending()):
            self.give_way()
        self._update_reading()

    def watch_with(self, watch: ReadWatch | None) -> None:
        """Wait for input in another way from now on; None is the loop's own. Only while reading is not paused."""
        if watch is not self._read_watch and self._reading:
            self._watch_readable(False)
            self._read_watch = watch
            self._watch_readable(True)

    def give_way(self) -> None:
        """Go on with what was received on a later turn, so that others get theirs."""
        self.pause(TURN_IS_OVER)
        self._loop.call_soon(self._on_turn)

    def wait_for_memory(self) -> None:
        self.pause(NO_MEMORY)
        self._budget.wait(self._on_memory)

    def _on_memory(self) -> None:
        self.resume(NO_MEMORY)

    def _on_turn(self) -> None:
        self.pauses &= ~TURN_IS_OVER
        if not self.closed and not self.pauses:
            self.frames.go_on()
            if self._is_encrypted and not self.pauses and not self.closed and self._channel.pending():
                self._receive()
            self._update_reading()
            self._owner.on_received()

    def _on_readable(self) -> None:
        self._receive()
        self._owner.on_received()

    def _receive(self) -> None:
        frames = self.frames
        while True:
            room = frames.room()
            try:
                received = self._channel.recv_into(room)
            except WOULD_BLOCK:
                return
            except OSError as error:
                self._owner.on_lost(error)
                return
            if not received:
                self._on_end_of_input()
                return
            frames.received(room, received)
            if self._greedy:
                self._expect(frames.missing_bytes)
                # Less than there was room for: the socket is empty.
                goes_on = received == len(room)
            else:
                goes_on = False
            del room  # a shared buffer is free only when no view of it is left
            if self._is_encrypted:
                # A record at a time is decrypted, and no selector knows of more.
                goes_on = goes_on or self._greedy or self._channel.pending() > 0
            if not goes_on or self.pauses or self.closed:
                return

    def _expect(self, missing_bytes: int) -> None:
        if (missing_bytes or self._expects) and not self.closed:
            self._expects = missing_bytes > 0
            self._channel.expect(missing_bytes)

    def _on_end_of_input(self) -> None:
        self._input_ended = True
        self.frames.drop()
        self._update_reading()
        self._owner.on_end_of_input()

    def _update_reading(self) -> None:
        wanted = not (self.pauses or self._input_ended or self.closed)
        if wanted != self._reading:
            self._reading = wanted
            self._watch_readable(wanted)

    def _watch_readable(self, wanted: bool) -> None:
        fd, watch = self._channel.fileno(), self._read_watch
        if wanted:
            (self._loop.add_reader if watch is None else watch.add)(fd, self._on_readable)
        else:
            (self._loop.remove_reader if watch is None else watch.remove)(fd)

    # --- writing ---

    def write(self) -> bool:
        """Send what the socket takes, and see to the rest; whether all is out. A failure goes to `on_lost`."""
        try:
            finished = self.output.write()
        except OSError as error:
            self._owner.on_lost(error)
            return False
        if self.writing or not finished:
            self._go_on_writing(not finished)
        return finished

    def _go_on_writing(self, wanted: bool) -> None:
        self.writing = wanted
        if not self.output.gave_way:
            self._watch_writable(wanted)
        elif not self._watching and not self._has_turn:
            # The socket takes more: to have it say so would cost more than a turn.
            self._has_turn = True
            self._loop.call_soon(self._on_turn_to_write)

    def _on_turn_to_write(self) -> None:
        self._has_turn = False
        if not self.closed:
            self._owner.on_writable()

    def _watch_writable(self, wanted: bool) -> None:
        if wanted == self._watching:
            return
        self._watching = wanted
        if wanted:
            self._loop.add_writer(self._channel.fileno(), self._owner.on_writable)
        else:
            self._loop.remove_writer(self._channel.fileno())
