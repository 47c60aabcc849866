"""One client connection: frames in, replies out in request order, on a non-blocking socket.

Made by `Server` for each socket accepted. Bytes arrive in the server's shared buffer and complete frames are handed to
the handler as views of it; what is left over is kept by the connection (little: copied to the front of the next
receive; a large frame: received straight into a buffer of its own). An idle connection holds no buffer.

Reading stops while too many replies are pending, the peer does not read its answers, the memory budget is used up, or
the connection has had its share of a turn; the kernel's window then holds the client back. Nothing is ever dropped, and
nothing here waits: all work happens in callbacks of the loop.
"""

import logging
import socket
import struct
from collections import deque
from typing import Any

from barnabas.errors import ProtocolError
from barnabas.net.buffers import FrameAssembly
from barnabas.net.context import ConnectionContext
from barnabas.net.output import OutputQueue, TruncatedFileError
from barnabas.net.reply import MEMORY, PendingReply
from barnabas.net.settings import Listener

logger = logging.getLogger(__name__)

SIZE = struct.Struct(">i")
FRAMES_PER_TURN = 64
SHARED_FRAME_BYTES = 128 * 1024
"""Frames up to this size are put together in the shared buffer, larger ones in a buffer of their own."""
LEFTOVER_BYTES = 32 * 1024
"""Where more than this is left over, copying it to the shared buffer each time would cost more than a buffer."""

# Why reading is stopped, as bits; reading goes on when none is set.
PENDING_REPLIES = 1
UNREAD_REPLIES = 2
NO_MEMORY = 4
TURN_IS_OVER = 8
MUTED = 16
STOPPING = 32


class Connection:
    """`session` is the handler's to use; `max_frame_bytes` is its to raise once the peer has authenticated."""

    __slots__ = (
        "_assembly",
        "_context",
        "_end_of_input",
        "_held_bytes",
        "_idle_timer",
        "_last_active_ms",
        "_leftover",
        "_output",
        "_pauses",
        "_reading",
        "_socket",
        "_waiting",
        "_writing",
        "closed",
        "listener",
        "max_frame_bytes",
        "peer_host",
        "peer_port",
        "session",
    )

    def __init__(self, context: ConnectionContext, sock: socket.socket, address: Any, listener: Listener) -> None:
        self._context = context
        self._socket = sock
        self.peer_host: str = address[0] if address else ""
        self.peer_port: int = address[1] if address else 0
        self.listener = listener
        self.session: Any = None
        self.max_frame_bytes = listener.first_frame_max_bytes or context.settings.socket_request_max_bytes
        self.closed = False
        self._output = OutputQueue(sock)
        self._waiting: deque[PendingReply] = deque()
        self._held_bytes = 0
        self._leftover: memoryview | None = None
        self._assembly: FrameAssembly | None = None
        self._pauses = 0
        self._reading = False
        self._writing = False
        self._end_of_input = False
        self._last_active_ms = context.clock.monotonic_ms()
        self._idle_timer = (
            context.timers.call_after(max_idle, self._on_idle) if (max_idle := self._max_idle()) else None
        )
        self._update_reader()

    def __repr__(self) -> str:
        return f"Connection({self.peer_host}:{self.peer_port} on {self.listener.name})"

    @property
    def pending_count(self) -> int:
        """Requests that were read and whose answers are not on their way yet."""
        return len(self._waiting)

    # --- for the handler and the server ---

    def pause_reading(self) -> None:
        """Read no further requests (a client over its quota); replies still go out."""
        self._pause(MUTED)

    def resume_reading(self) -> None:
        self._resume(MUTED)

    def finish(self) -> None:
        """Read no more, send the replies in progress, then close."""
        self._pause(STOPPING)
        self._close_if_finished()

    def close(self) -> None:
        """Close at once. Open replies are abandoned; safe to call at any time, also twice."""
        if self.closed:
            return
        self.closed = True
        self._update_reader()
        self._watch_writable(False)
        self._socket.close()
        if self._idle_timer is not None:
            self._context.timers.cancel(self._idle_timer)
        self._leftover = None
        self._output.clear()
        self._drop_assembly()
        while self._waiting:
            reply = self._waiting.popleft()
            if not reply.done:
                self._context.budget.release(reply.memory_bytes)
                reply.abandon()
        self._context.on_closed(self)
        self._context.handler.on_closed(self)

    # --- frames in ---

    def _on_readable(self) -> None:
        if self._assembly is not None:
            self._receive_rest(self._assembly)
            return
        view = self._context.receive_buffer.take()
        start = 0
        if self._leftover is not None:
            start = len(self._leftover)
            view[:start] = self._leftover
        received = self._receive(view[start:] if start else view)
        if received:
            self._leftover = None
            self._consume(view[: start + received], private=False)

    def _receive(self, room: memoryview) -> int:
        """How many bytes came; 0 if none did, for whatever reason, which has been dealt with."""
        try:
            received = self._socket.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            logger.debug("%r: %s", self, error)
            self.close()
            return 0
        if not received:
            self._on_end_of_input()
        return received

    def _receive_rest(self, assembly: FrameAssembly) -> None:
        assembly.filled += self._receive(assembly.room())
        if self.closed or not assembly.complete:
            return
        self._last_active_ms = self._context.clock.monotonic_ms()
        self._assembly = None
        self._handle(assembly.frame())
        assembly.release()
        self._context.budget.release(assembly.total_bytes)
        self.flush()

    def _consume(self, view: memoryview, private: bool) -> None:
        """Handle the frames at the front of the view and keep the rest. `private`: the view is of our own leftover."""
        end = len(view)
        position = 0
        frames_left = FRAMES_PER_TURN
        budget = self._context.budget
        unpack_size = SIZE.unpack_from
        while end - position >= 4 and not self._pauses:
            size: int = unpack_size(view, position)[0]
            if not 0 <= size <= self.max_frame_bytes:
                logger.info("%r: frame of %d bytes, at most %d are taken: closing", self, size, self.max_frame_bytes)
                self.close()
                return
            frame_end = position + 4 + size
            if frame_end > end:
                break
            if budget.exhausted:
                self._wait_for_memory()
            elif not frames_left:
                self._give_way()
            else:
                frames_left -= 1
                self._handle(view[position + 4 : frame_end])
                if self.closed:
                    return
                position = frame_end
        if position:
            self._last_active_ms = self._context.clock.monotonic_ms()
        if position < end:
            self._keep(view[position:], private)
        self.flush()

    def _keep(self, rest: memoryview, private: bool) -> None:
        if not self._pauses and len(rest) >= 4:
            total_bytes = 4 + SIZE.unpack_from(rest)[0]
            if total_bytes > SHARED_FRAME_BYTES or len(rest) > LEFTOVER_BYTES:
                if not self._context.budget.exhausted:
                    self._context.budget.reserve(total_bytes)
                    self._assembly = FrameAssembly(self._context.pool, rest, total_bytes)
                    return
                self._wait_for_memory()
        # While paused, a slice of our own copy does; else a copy lets the larger one go.
        self._leftover = rest if private and self._pauses else memoryview(bytearray(rest))

    def _on_turn(self) -> None:
        """Another turn for frames that were received in an earlier one."""
        self._pauses &= ~TURN_IS_OVER
        leftover = self._leftover
        if self.closed or self._pauses:
            return
        if leftover is not None:
            self._leftover = None
            self._consume(leftover, private=True)
        self._update_reader()

    def _on_end_of_input(self) -> None:
        """The client sends no more; it may still read, so the replies in progress go out before the close."""
        self._end_of_input = True
        self._leftover = None
        self._drop_assembly()
        self._update_reader()
        self._close_if_finished()

    def _drop_assembly(self) -> None:
        if self._assembly is not None:
            assembly, self._assembly = self._assembly, None
            assembly.release()
            self._context.budget.release(assembly.total_bytes)

    # --- the handler's answers ---

    def _handle(self, frame: memoryview) -> None:
        try:
            answer = self._context.handler.on_request(self, frame)
        except ProtocolError as error:
            logger.info("%r: %s: closing", self, error)
            self.close()
            return
        except Exception:
            logger.exception("%r: a request could not be handled: closing", self)
            self.close()
            return
        if answer is None or self.closed:
            return
        if isinstance(answer, PendingReply):
            self._wait_for(answer)
        elif self._waiting:
            reply = PendingReply()
            reply.parts = answer
            self._wait_for(reply)
        else:
            self._output.add(answer)
            if self._output.queued_bytes > self._context.settings.queued_reply_bytes_per_connection:
                self._write()

    def _wait_for(self, reply: PendingReply) -> None:
        if reply.done:
            self._hold(reply)
        else:
            reply.attach(self)
            self._context.budget.reserve(reply.memory_bytes)
        self._waiting.append(reply)
        if len(self._waiting) >= self._context.settings.pending_replies_per_connection:
            self._pause(PENDING_REPLIES)

    def on_reply_done(self, reply: PendingReply) -> None:
        """Called by the reply; it may be any of those that wait."""
        self._context.budget.release(reply.memory_bytes)
        self._hold(reply)
        if reply is self._waiting[0] or reply.failed:
            self._context.flush_soon(self)

    def _hold(self, reply: PendingReply) -> None:
        """Count an answer that may have to wait for earlier ones."""
        self._held_bytes += sum(len(part) for part in reply.parts or () if isinstance(part, MEMORY))
        if self._held_bytes > self._context.settings.queued_reply_bytes_per_connection:
            self._pause(UNREAD_REPLIES)

    def flush(self) -> None:
        """Send every reply whose turn has come."""
        waiting = self._waiting
        while waiting and waiting[0].done:
            reply = waiting.popleft()
            if reply.parts is None:
                self._write()
                self.close()
                return
            self._held_bytes -= sum(len(part) for part in reply.parts if isinstance(part, MEMORY))
            self._output.add(reply.parts)
        if self._output and not self._writing:
            self._write()
        if self._pauses & PENDING_REPLIES and len(waiting) * 2 <= self._context.settings.pending_replies_per_connection:
            self._resume(PENDING_REPLIES)
        if self._end_of_input or self._pauses & STOPPING:
            self._close_if_finished()

    # --- bytes out ---

    def _write(self) -> None:
        output = self._output
        sent_before = output.sent_bytes
        try:
            finished = output.write()
        except TruncatedFileError as error:
            logger.error("%r: a reply could not be finished: %s: closing", self, error)
            self.close()
            return
        except OSError as error:
            logger.debug("%r: %s", self, error)
            self.close()
            return
        if output.sent_bytes != sent_before:
            self._last_active_ms = self._context.clock.monotonic_ms()
        self._watch_writable(not finished)
        limit_bytes = self._context.settings.queued_reply_bytes_per_connection
        unread_bytes = output.queued_bytes + self._held_bytes
        if unread_bytes > limit_bytes:
            self._pause(UNREAD_REPLIES)
        elif unread_bytes * 2 <= limit_bytes:
            self._resume(UNREAD_REPLIES)

    def _on_writable(self) -> None:
        self._write()
        self._close_if_finished()

    def _close_if_finished(self) -> None:
        if (self._end_of_input or self._pauses & STOPPING) and not self._waiting and not self._output:
            self.close()

    # --- when to read, when to give up ---

    def _pause(self, reason: int) -> None:
        self._pauses |= reason
        self._update_reader()

    def _resume(self, reason: int) -> None:
        if not self._pauses & reason or self.closed:
            return
        self._pauses &= ~reason
        if self._leftover is not None and not self._pauses:
            self._give_way()
        self._update_reader()

    def _give_way(self) -> None:
        """Go on with what was received on a later turn, so that others get theirs."""
        self._pause(TURN_IS_OVER)
        self._context.loop.call_soon(self._on_turn)

    def _wait_for_memory(self) -> None:
        self._pause(NO_MEMORY)
        self._context.budget.wait(self._on_memory)

    def _on_memory(self) -> None:
        self._resume(NO_MEMORY)

    def _update_reader(self) -> None:
        wanted = not (self._pauses or self._end_of_input or self.closed)
        if wanted == self._reading:
            return
        self._reading = wanted
        if wanted:
            self._context.loop.add_reader(self._socket.fileno(), self._on_readable)
        else:
            self._context.loop.remove_reader(self._socket.fileno())

    def _watch_writable(self, wanted: bool) -> None:
        if wanted == self._writing:
            return
        self._writing = wanted
        if wanted:
            self._context.loop.add_writer(self._socket.fileno(), self._on_writable)
        else:
            self._context.loop.remove_writer(self._socket.fileno())

    def _max_idle(self) -> int:
        return max(0, self._context.settings.connections_max_idle_ms)

    def _on_idle(self) -> None:
        """The idle time may have passed: look, rather than move a timer at each request.

        A request that the broker is still working on does not make a connection idle, unless its client has gone.
        """
        max_idle_ms = self._context.settings.connections_max_idle_ms
        idle_ms = self._context.clock.monotonic_ms() - self._last_active_ms
        broker_is_slow = bool(self._waiting) and not self._output and not self._end_of_input
        if idle_ms >= max_idle_ms and not broker_is_slow:
            logger.debug("%r: idle for %d ms: closing", self, idle_ms)
            self._idle_timer = None
            self.close()
            return
        wait_ms = max_idle_ms if broker_is_slow else max_idle_ms - idle_ms
        self._idle_timer = self._context.timers.call_after(max(1, wait_ms), self._on_idle)
