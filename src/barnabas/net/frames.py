"""The receiving side of a connection: bytes to frames, with as few copies as the arrival of the bytes allows.

Owned by one `Connection`. Bytes arrive in the server's shared buffer, and frames that are complete there are handed out
as views of it. What is left over is kept: a little is copied to the front of the next receive; a large frame is
received straight into a buffer of its own. The size is checked before memory is taken. An idle connection holds no
buffer.
"""

import socket
import struct
from typing import TYPE_CHECKING

from barnabas.net.buffers import FrameAssembly
from barnabas.net.context import ConnectionContext

if TYPE_CHECKING:
    from barnabas.net.connection import Connection

SIZE = struct.Struct(">i")
_unpack_size = SIZE.unpack_from
FRAMES_PER_TURN = 64
TURN_MS = 4
"""A connection gives way to the others after so many frames or so much time, whichever comes first."""
SHARED_FRAME_BYTES = 128 * 1024
"""Frames up to this size are put together in the shared buffer, larger ones in a buffer of their own."""
LEFTOVER_BYTES = 32 * 1024
"""Where more than this is left over, copying it to the shared buffer each time would cost more than a buffer."""
PROGRESS_BYTES = 64 * 1024
"""A peer that takes its time for a large frame counts as active each time that this much of it has come."""


class FrameReader:
    __slots__ = ("_assembly", "_connection", "_context", "_leftover", "_socket")

    def __init__(self, connection: "Connection", context: ConnectionContext, sock: socket.socket) -> None:
        self._connection = connection
        self._context = context
        self._socket = sock
        self._leftover: memoryview | None = None
        self._assembly: FrameAssembly | None = None

    @property
    def has_backlog(self) -> bool:
        """Whether there are bytes that may hold complete frames without anything new from the socket."""
        return self._leftover is not None

    def receive(self) -> None:
        """The socket is readable: one receive, then the frames that are complete with it."""
        if self._assembly is not None:
            self._receive_rest(self._assembly)
            return
        view = self._context.receive_buffer.take()
        start = 0
        if self._leftover is not None:
            start = len(self._leftover)
            view[:start] = self._leftover
        received = self._receive_into(view[start:] if start else view)
        if received:
            self._leftover = None
            self._consume(view[: start + received], private=False)

    def go_on(self) -> None:
        """Another turn for what was received in an earlier one."""
        if self._leftover is not None:
            leftover, self._leftover = self._leftover, None
            self._consume(leftover, private=True)

    def drop(self) -> None:
        """The connection is over: give back what it holds."""
        self._leftover = None
        if self._assembly is not None:
            assembly, self._assembly = self._assembly, None
            assembly.release()
            self._context.budget.release(assembly.total_bytes)

    def _receive_into(self, room: memoryview) -> int:
        """How many bytes came; 0 if none did, for whatever reason, of which the connection has been told."""
        try:
            received = self._socket.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._connection.on_lost(error)
            return 0
        if not received:
            self._connection.on_end_of_input()
        return received

    def _receive_rest(self, assembly: FrameAssembly) -> None:
        filled_before = assembly.filled
        assembly.filled += self._receive_into(assembly.room())
        if assembly.filled // PROGRESS_BYTES != filled_before // PROGRESS_BYTES or assembly.complete:
            self._connection.on_progress()
        if assembly.complete:
            self._assembly = None
            self._connection.on_frame(assembly.frame())
            assembly.release()
            self._context.budget.release(assembly.total_bytes)

    def _consume(self, view: memoryview, private: bool) -> None:
        """Hand out the frames at the front of the view, keep the rest. `private`: the view is of our own leftover."""
        connection = self._connection
        on_frame = connection.on_frame
        budget = self._context.budget
        end = len(view)
        position = 0
        frames_left = FRAMES_PER_TURN
        monotonic_ms = self._context.clock.monotonic_ms
        turn_end_ms = monotonic_ms() + TURN_MS
        while end - position >= 4 and not connection.pauses:
            size: int = _unpack_size(view, position)[0]
            if not 0 <= size <= connection.max_frame_bytes:
                connection.on_bad_size(size)
                return
            frame_end = position + 4 + size
            if frame_end > end:
                break
            if budget.exhausted:
                connection.wait_for_memory()
            elif not frames_left or (position and monotonic_ms() >= turn_end_ms):
                connection.give_way()
            else:
                frames_left -= 1
                on_frame(view[position + 4 : frame_end])
                if connection.closed:
                    return
                position = frame_end
        if position:
            connection.on_progress()
        if position < end:
            self._keep(view[position:], private)

    def _keep(self, rest: memoryview, private: bool) -> None:
        connection = self._connection
        if not connection.pauses and len(rest) >= 4:
            total_bytes: int = 4 + SIZE.unpack_from(rest)[0]
            if total_bytes > SHARED_FRAME_BYTES or len(rest) > LEFTOVER_BYTES:
                if not self._context.budget.exhausted:
                    self._context.budget.reserve(total_bytes)
                    self._assembly = FrameAssembly(self._context.pool, rest, total_bytes)
                    return
                connection.wait_for_memory()
        # While paused, a slice of our own copy does; else a copy lets the larger one go.
        self._leftover = rest if private and connection.pauses else memoryview(bytearray(rest))
