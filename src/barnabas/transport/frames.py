"""Bytes to frames, for every kind of connection; no I/O here.

Whoever reads the socket (`stream`) calls `room`, fills it, and reports how much was `received`; complete frames are
handed to the sink at once. Where the bytes go is the choice of a buffer policy: `shared_buffers` hands out views that
are valid for one call, `kept_buffers` frames that their reader may keep. What is left over is kept: a little is copied
to the front of the next receive; a large frame is received straight into a buffer of its own. The size is checked
before memory is taken. Between frames a reader holds no buffer.
"""

import struct
import time
from collections.abc import Callable
from typing import Protocol

from barnabas.transport.budget import MemoryBudget

SIZE = struct.Struct(">i")
_unpack_size = SIZE.unpack_from
FRAMES_PER_TURN = 64
TURN_SECONDS = 0.004
"""A connection gives way to the others after so many frames or so much time, whichever comes first."""
PROGRESS_BYTES = 64 * 1024
"""A peer that takes its time for a large frame counts as active each time that this much of it has come."""


class FrameSink(Protocol):
    """Who gets the frames, and may stop them with `pauses`, a number that is not 0."""

    @property
    def pauses(self) -> int: ...
    def on_frame(self, frame: memoryview, /) -> None: ...
    def on_bad_size(self, size: int, /) -> None: ...
    def on_progress(self) -> None:
        """A frame, or a good part of a large one, has come."""
        ...

    def give_way(self) -> None:
        """The share of one turn is used up: pause, and call `go_on` later."""
        ...

    def wait_for_memory(self) -> None:
        """The budget is used up: pause, and call `go_on` when there is some."""
        ...


class Assembly(Protocol):
    """One large frame on its way in, size prefix included."""

    total_bytes: int
    filled: int

    def room(self) -> memoryview:
        """Where to receive the next bytes: never beyond the end of the frame, never empty before it is complete."""
        ...

    def frame(self) -> memoryview: ...
    def release(self) -> None:
        """The frame was handled, or its connection is gone."""
        ...


class FrameBuffers(Protocol):
    """Where bytes are received, and what a frame is made of."""

    copies_frames: bool
    """Whether frames outlive the call that hands them out."""
    frame_bytes: int
    """Frames up to this size, with the prefix, are put together in the receive buffer, larger ones in an assembly."""
    leftover_bytes: int
    """So is a frame of which more than this is there: copying it each time would cost more than a buffer."""

    def take(self) -> memoryview:
        """A view of a whole buffer to receive into, for one receive only."""
        ...

    def assemble(self, start: memoryview, total_bytes: int) -> Assembly: ...


class FrameReader:
    """`max_bytes` may be changed at any time, `is_dropped` is set when no more frames are wanted."""

    __slots__ = (
        "_assembly",
        "_budget",
        "_buffers",
        "_frames_per_turn",
        "_leftover",
        "_min_bytes",
        "_now",
        "_sink",
        "is_dropped",
        "max_bytes",
    )

    def __init__(
        self,
        sink: FrameSink,
        buffers: FrameBuffers,
        budget: MemoryBudget,
        *,
        max_bytes: int,
        min_bytes: int = 0,
        frames_per_turn: int = FRAMES_PER_TURN,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._buffers = buffers
        self._budget = budget
        self.max_bytes = max_bytes
        self._min_bytes = min_bytes
        self._frames_per_turn = frames_per_turn
        self._now = now
        self.is_dropped = False
        self._leftover: memoryview | None = None
        self._assembly: Assembly | None = None

    @property
    def has_backlog(self) -> bool:
        """Whether there are bytes that may hold complete frames without anything new from the socket."""
        return self._leftover is not None

    @property
    def missing_bytes(self) -> int:
        """Of the large frame that is on its way; 0 if none is."""
        assembly = self._assembly
        return 0 if assembly is None else assembly.total_bytes - assembly.filled

    def room(self) -> memoryview:
        """Where to receive next; it is released before another reader is called."""
        if self._assembly is not None:
            return self._assembly.room()
        view = self._buffers.take()
        if self._leftover is None:
            return view
        start = len(self._leftover)
        view[:start] = self._leftover
        return view[start:]

    def received(self, room: memoryview, count: int) -> None:
        """So much, more than nothing, now stands in the room; hand out the frames that are complete with it."""
        if self._assembly is not None:
            self._on_rest(self._assembly, count)
            return
        if self._leftover is not None:
            count += len(self._leftover)
            room = memoryview(room.obj)
            self._leftover = None
        self._consume(room[:count], private=False)

    def go_on(self) -> None:
        """Another turn for what was received in an earlier one."""
        if self._leftover is not None:
            leftover, self._leftover = self._leftover, None
            self._consume(leftover, private=True)

    def drop(self) -> None:
        """No more frames are wanted: give back what is held."""
        self.is_dropped = True
        self._leftover = None
        if self._assembly is not None:
            assembly, self._assembly = self._assembly, None
            assembly.release()
            self._budget.release(assembly.total_bytes)

    def _on_rest(self, assembly: Assembly, count: int) -> None:
        filled_before = assembly.filled
        assembly.filled += count
        complete = assembly.filled == assembly.total_bytes
        if complete or assembly.filled // PROGRESS_BYTES != filled_before // PROGRESS_BYTES:
            self._sink.on_progress()
        if complete:
            self._assembly = None
            self._sink.on_frame(assembly.frame())
            assembly.release()
            self._budget.release(assembly.total_bytes)

    def _consume(self, view: memoryview, private: bool) -> None:
        """Hand out the frames at the front of the view, keep the rest. `private`: the view is of our own leftover."""
        sink = self._sink
        on_frame = sink.on_frame
        copies = self._buffers.copies_frames
        budget = self._budget
        end = len(view)
        position = 0
        frames_left = self._frames_per_turn
        now = self._now
        turn_ends = now() + TURN_SECONDS
        while end - position >= 4 and not sink.pauses:
            size: int = _unpack_size(view, position)[0]
            if not self._min_bytes <= size <= self.max_bytes:
                sink.on_bad_size(size)
                return
            frame_end = position + 4 + size
            if frame_end > end:
                break
            if budget.exhausted:
                sink.wait_for_memory()
            elif not frames_left or (position and now() >= turn_ends):
                sink.give_way()
            else:
                frames_left -= 1
                frame = view[position + 4 : frame_end]
                on_frame(memoryview(bytes(frame)) if copies else frame)
                if self.is_dropped:
                    return
                position = frame_end
        if position:
            sink.on_progress()
        if position < end:
            self._keep(view[position:], private)

    def _keep(self, rest: memoryview, private: bool) -> None:
        sink, buffers = self._sink, self._buffers
        if not sink.pauses and len(rest) >= 4:
            total_bytes: int = 4 + _unpack_size(rest)[0]
            if total_bytes > buffers.frame_bytes or len(rest) > buffers.leftover_bytes:
                if not self._budget.exhausted:
                    self._budget.reserve(total_bytes)
                    self._assembly = buffers.assemble(rest, total_bytes)
                    return
                sink.wait_for_memory()
        # While paused, a slice of our own copy does; else a copy lets the larger one go.
        self._leftover = rest if private and sink.pauses else memoryview(bytearray(rest))
