"""One client connection: frames in, replies out in request order, on a non-blocking socket.

Made by `Server` for each socket accepted. Frames come from its `FrameReader` and go to the server's handler; answers
wait here for earlier ones and leave by its `OutputQueue`.

Reading stops while too many replies are pending, the peer does not read its answers, the memory budget is used up, or
the connection has had its share of a turn; the kernel's window then holds the client back. Nothing is ever dropped, and
nothing here waits: all work happens in callbacks of the loop.
"""

import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.errors import ProtocolError
from barnabas.net.context import ConnectionContext
from barnabas.net.deferred import Deferred
from barnabas.net.frames import FrameReader
from barnabas.net.output import OutputQueue, TruncatedFileError
from barnabas.net.reply import MEMORY, Parts
from barnabas.net.resting import SUPPORTED as RESTING_IS_SUPPORTED
from barnabas.net.settings import Listener

logger = logging.getLogger(__name__)

# Why reading is stopped, as bits; reading goes on when none is set.
PENDING_REPLIES = 1
UNREAD_REPLIES = 2
NO_MEMORY = 4
TURN_IS_OVER = 8
MUTED = 16
STOPPING = 32


class Connection:
    """`session` is the handler's to use, and `repeated` for what comes on this connection again and again.

    `max_frame_bytes` is its to raise once the peer has authenticated.
    """

    __slots__ = (
        "_context",
        "_end_of_input",
        "_frames",
        "_has_turn",
        "_heartbeat_came",
        "_held_bytes",
        "_idle_timer",
        "_last_active_ms",
        "_output",
        "_reading",
        "_resting",
        "_socket",
        "_waiting",
        "_watching",
        "_writing",
        "closed",
        "listener",
        "max_frame_bytes",
        "pauses",
        "peer_host",
        "peer_port",
        "repeated",
        "session",
    )

    def __init__(
        self, context: ConnectionContext, sock: socket.socket, peer: tuple[str, int], listener: Listener
    ) -> None:
        self._context = context
        self._socket = sock
        self.peer_host, self.peer_port = peer
        self.listener = listener
        self.session: Any = None
        self.repeated: Any = None
        self.max_frame_bytes = listener.first_frame_max_bytes or context.settings.socket_request_max_bytes
        self.closed = False
        self._output = OutputQueue(sock)
        self._waiting: deque[Deferred[Parts]] = deque()
        self._held_bytes = 0
        self._frames = FrameReader(self, context, sock)
        self.pauses = 0
        self._reading = False
        self._resting = False
        self._heartbeat_came = False
        self._writing = False  # not all is out, and the rest will go on its own
        self._watching = False  # ... when the socket says that it takes more
        self._has_turn = False  # ... in a turn of its own
        self._end_of_input = False
        self._last_active_ms = context.clock.monotonic_ms()
        max_idle_ms = context.settings.connections_max_idle_ms
        self._idle_timer = context.timers.call_after(max_idle_ms, self._on_idle) if max_idle_ms > 0 else None
        self._update_reader()

    def __repr__(self) -> str:
        return f"Connection({self.peer_host}:{self.peer_port} on {self.listener.name})"

    @property
    def pending_count(self) -> int:
        """Requests that were read and whose answers are not on their way yet."""
        return len(self._waiting)

    @property
    def is_resting(self) -> bool:
        return self._resting

    # --- for the handler and the server ---

    def pause_reading(self) -> None:
        """Read no further requests (a client over its quota); replies still go out."""
        self._pause(MUTED)

    def resume_reading(self) -> None:
        self._resume(MUTED)

    def rest(self) -> None:
        """The request at hand only says that the peer is alive: the next may wait a little, to be read with others'.

        It rests until something is read in which there is no such request.
        """
        self._heartbeat_came = True
        if self._reading and not self._resting and RESTING_IS_SUPPORTED:
            self._change_rest(True)

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
        self._output.clear()
        self._frames.drop()
        while self._waiting:
            reply = self._waiting.popleft()
            if not reply.done:
                self._context.budget.release(reply.memory_bytes)
                self._tell(reply.abandon)
        self._context.on_closed(self)
        self._tell(lambda: self._context.handler.on_closed(self))

    def _tell(self, callback: Callable[[], None]) -> None:
        """Somebody else's fault must not leave this connection half closed."""
        try:
            callback()
        except Exception:
            logger.exception("%r: could not be cleaned up after", self)

    # --- called by the frame reader ---

    def on_frame(self, frame: memoryview) -> None:
        try:
            answer = self._context.handler.on_request(self, frame)
        except Exception as error:
            self._log_failure(error)
            self.close()
            return
        output = self._output
        if type(answer) is bytes and not self._waiting and not self.closed:
            output.add_bytes(answer)
        else:
            self._take(answer)
        if output.queued_bytes > self._context.settings.queued_reply_bytes_per_connection:
            self._write()

    def _log_failure(self, error: BaseException | None) -> None:
        if isinstance(error, ProtocolError):
            logger.info("%r: %s: closing", self, error)
        elif error is not None:
            logger.error("%r: a request could not be handled: closing", self, exc_info=error)

    def _take(self, answer: bytes | Parts | Deferred[Parts] | None) -> None:
        if answer is None or self.closed:
            return
        if isinstance(answer, Deferred):
            self._wait_for(answer)
            return
        parts: Parts = [answer] if isinstance(answer, bytes) else answer
        if self._waiting:
            reply: Deferred[Parts] = Deferred()
            reply.complete(parts)
            self._wait_for(reply)
        else:
            self._output.add(parts)

    def on_bad_size(self, size: int) -> None:
        logger.info("%r: frame of %d bytes, at most %d are taken: closing", self, size, self.max_frame_bytes)
        self.close()

    def on_progress(self) -> None:
        """A request, or a good part of a large one, has come: the peer is not idle."""
        # An answer that goes out in this turn is noted by `_write`.
        if self._writing or not self._output.queued_bytes:
            self._last_active_ms = self._context.clock.monotonic_ms()

    def on_end_of_input(self) -> None:
        """The client sends no more; it may still read, so the replies in progress go out before the close."""
        self._end_of_input = True
        self._frames.drop()
        self._update_reader()
        for pending in list(self._waiting):
            pending.end_input()

    def on_lost(self, error: OSError) -> None:
        logger.debug("%r: %s", self, error)
        self.close()

    def give_way(self) -> None:
        """Go on with what was received on a later turn, so that others get theirs."""
        self._pause(TURN_IS_OVER)
        self._context.loop.call_soon(self._on_turn)

    def wait_for_memory(self) -> None:
        self._pause(NO_MEMORY)
        self._context.budget.wait(self._on_memory)

    # --- replies, in request order ---

    def _wait_for(self, reply: Deferred[Parts]) -> None:
        self._waiting.append(reply)
        if reply.done:
            self._hold(reply)
        else:
            self._context.budget.reserve(reply.memory_bytes)
            reply.on_held = self._context.budget.reserve
            reply.when_done(self.on_reply_done)
        if len(self._waiting) >= self._context.settings.pending_replies_per_connection:
            self._pause(PENDING_REPLIES)

    def on_reply_done(self, reply: Deferred[Parts]) -> None:
        """Called by the reply; it may be any of those that wait."""
        self._context.budget.release(reply.memory_bytes)
        self._hold(reply)
        if reply is self._waiting[0] or reply.failed:
            self._context.flush_soon(self)

    def _hold(self, reply: Deferred[Parts]) -> None:
        """Count an answer that may have to wait for earlier ones."""
        if reply.failed:
            self._log_failure(reply.error)
            return
        self._held_bytes += sum(len(part) for part in reply.value if isinstance(part, MEMORY))
        if self._held_bytes > self._context.settings.queued_reply_bytes_per_connection:
            self._pause(UNREAD_REPLIES)

    def flush(self) -> None:
        """Send every reply whose turn has come."""
        waiting = self._waiting
        while waiting and waiting[0].done:
            reply = waiting.popleft()
            if not reply.completed:
                self._write()
                self.close()
                return
            parts = reply.value
            self._held_bytes -= sum(len(part) for part in parts if isinstance(part, MEMORY))
            self._output.add(parts)
        if not self._writing and self._output:
            self._write()
        if self.pauses & PENDING_REPLIES and len(waiting) * 2 <= self._context.settings.pending_replies_per_connection:
            self._resume(PENDING_REPLIES)
        if self._end_of_input or self.pauses & STOPPING:
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
            self.on_lost(error)
            return
        if output.sent_bytes != sent_before:
            self._last_active_ms = self._context.clock.monotonic_ms()
        if self._writing or not finished:
            self._go_on_writing(not finished)
        limit_bytes = self._context.settings.queued_reply_bytes_per_connection
        unread_bytes = output.queued_bytes + self._held_bytes
        if unread_bytes > limit_bytes:
            self._pause(UNREAD_REPLIES)
        elif self.pauses & UNREAD_REPLIES and unread_bytes * 2 <= limit_bytes:
            self._resume(UNREAD_REPLIES)

    def _go_on_writing(self, wanted: bool) -> None:
        self._writing = wanted
        if not self._output.gave_way:
            self._watch_writable(wanted)
        elif not self._watching and not self._has_turn:
            # The socket takes more: to have it say so would cost more than a turn.
            self._has_turn = True
            self._context.loop.call_soon(self._on_turn_to_write)

    def _on_turn_to_write(self) -> None:
        self._has_turn = False
        if not self.closed:
            self._on_writable()

    def _on_writable(self) -> None:
        self._write()
        self._close_if_finished()

    def _close_if_finished(self) -> None:
        if (self._end_of_input or self.pauses & STOPPING) and not self._waiting and not self._output:
            self.close()

    # --- when to read, when to give up ---

    def _pause(self, reason: int) -> None:
        self.pauses |= reason
        self._update_reader()

    def _resume(self, reason: int) -> None:
        if not self.pauses & reason or self.closed:
            return
        self.pauses &= ~reason
        if self._frames.has_backlog and not self.pauses:
            self.give_way()
        self._update_reader()

    def _on_readable(self) -> None:
        self._frames.receive()
        if self._waiting or self._writing or self.pauses or self._end_of_input or not self._output.queued_bytes:
            self.flush()
        else:
            self._write()  # what a flush comes to where every request has been answered

    def _on_readable_at_rest(self) -> None:
        self._heartbeat_came = False
        self._on_readable()
        if self._reading and not self._heartbeat_came:
            self._change_rest(False)

    def _change_rest(self, resting: bool) -> None:
        self._unwatch_readable()
        self._resting = resting
        self._watch_readable()

    def _on_turn(self) -> None:
        """Another turn for frames that were received in an earlier one."""
        self.pauses &= ~TURN_IS_OVER
        if not self.closed and not self.pauses:
            self._frames.go_on()
            self._update_reader()
            self.flush()

    def _on_memory(self) -> None:
        self._resume(NO_MEMORY)

    def _update_reader(self) -> None:
        wanted = not (self.pauses or self._end_of_input or self.closed)
        if wanted == self._reading:
            return
        self._reading = wanted
        if wanted:
            self._watch_readable()
        else:
            self._unwatch_readable()

    def _watch_readable(self) -> None:
        if self._resting:
            self._context.resting.add(self._socket.fileno(), self._on_readable_at_rest)
        else:
            self._context.loop.add_reader(self._socket.fileno(), self._on_readable)

    def _unwatch_readable(self) -> None:
        if self._resting:
            self._context.resting.remove(self._socket.fileno())
        else:
            self._context.loop.remove_reader(self._socket.fileno())

    def _watch_writable(self, wanted: bool) -> None:
        if wanted == self._watching:
            return
        self._watching = wanted
        if wanted:
            self._context.loop.add_writer(self._socket.fileno(), self._on_writable)
        else:
            self._context.loop.remove_writer(self._socket.fileno())

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
