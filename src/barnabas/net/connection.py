"""One client connection: frames in, replies out in request order.

Made by `Server` for each connection accepted. Frames come from its `Stream` and go to the server's handler; responses
wait here for earlier ones and leave by the stream's output.

Reading stops while too many replies are pending or the peer does not read its responses, besides what the stream itself
stops for (memory, its share of a turn). Nothing is ever dropped, and nothing here waits: all work happens in callbacks
of the loop.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.errors import ProtocolError
from barnabas.machines.timing_wheel import TimerHandle
from barnabas.net.context import ConnectionContext, RequestHandler
from barnabas.net.deferred import Deferred
from barnabas.net.reply import MEMORY, Parts
from barnabas.net.resting import Rest
from barnabas.net.settings import Listener
from barnabas.transport.channel import Channel
from barnabas.transport.output import TruncatedFileError
from barnabas.transport.stream import FIRST_FREE_REASON, Stream

logger = logging.getLogger(__name__)

TLS_HANDSHAKE = 0x1603
"""The first two bytes of every TLS connection; a request that begins so would have 352 MiB or more."""
UNKNOWN_SOFTWARE = ("unknown", "unknown")

# Why reading is stopped, besides the stream's own reasons.
PENDING_REPLIES = FIRST_FREE_REASON
UNREAD_REPLIES = FIRST_FREE_REASON << 1
MUTED = FIRST_FREE_REASON << 2
STOPPING = FIRST_FREE_REASON << 3
LONG_REQUEST = FIRST_FREE_REASON << 4
THROTTLED = FIRST_FREE_REASON << 5


class Connection:
    """`session` says who the peer is: the listener's security sets it, or the handler that authenticates the peer.
    `repeated` is the handler's, for what comes on this connection again and again.

    `max_frame_bytes` is its to raise once the peer has authenticated.
    """

    __slots__ = (
        "_context",
        "_end_of_input",
        "_held_bytes",
        "_idle_timer",
        "_last_active_ms",
        "_output",
        "_rest",
        "_stream",
        "_throttle_timer",
        "_throttled_until_ms",
        "_waiting",
        "closed",
        "handler",
        "listener",
        "peer_host",
        "peer_port",
        "repeated",
        "session",
        "software",
    )

    def __init__(self, context: ConnectionContext, channel: Channel, peer: tuple[str, int], listener: Listener) -> None:
        self._context = context
        self.peer_host, self.peer_port = peer
        self.listener = listener
        self.handler: RequestHandler = context.handler
        """Who is given the frames: one that authenticates the peer puts the server's own in its place."""
        self.session: Any = None
        self.repeated: Any = None
        self.software = UNKNOWN_SOFTWARE
        """Name and version of the client's software, if it has named them."""
        self.closed = False
        self._waiting: deque[Deferred[Parts]] = deque()
        self._held_bytes = 0
        self._end_of_input = False
        self._rest: Rest | None = None
        self._throttle_timer: TimerHandle[Callable[[], None]] | None = None
        self._throttled_until_ms = 0
        self._last_active_ms = context.clock.monotonic_ms()
        max_idle_ms = context.settings.connections_max_idle_ms
        self._idle_timer = context.timers.call_after(max_idle_ms, self._on_idle) if max_idle_ms > 0 else None
        self._stream = Stream(
            context.loop,
            channel,
            self,
            context.buffers,
            context.budget,
            max_frame_bytes=listener.first_frame_max_bytes or context.settings.socket_request_max_bytes,
        )
        self._output = self._stream.output

    def __repr__(self) -> str:
        return f"Connection({self.peer_host}:{self.peer_port} on {self.listener.name})"

    @property
    def pending_count(self) -> int:
        """Requests that were read and whose responses are not on their way yet."""
        return len(self._waiting)

    @property
    def is_resting(self) -> bool:
        return self._stream.read_watch is not None

    @property
    def max_frame_bytes(self) -> int:
        return self._stream.frames.max_bytes

    @max_frame_bytes.setter
    def max_frame_bytes(self, size: int) -> None:
        self._stream.frames.max_bytes = size

    # --- for the handler and the server ---

    @property
    def last_active_ms(self) -> int:
        return self._last_active_ms

    def pause_reading(self) -> None:
        """Read no further requests while one is carried out; replies still go out."""
        self._stream.pause(MUTED)

    def resume_reading(self) -> None:
        self._stream.resume(MUTED)

    def pause_for_long_request(self) -> None:
        """Read no further requests while one is worked on in slices. Kafka does so with every request."""
        self._stream.pause(LONG_REQUEST)

    def resume_after_long_request(self) -> None:
        self._stream.resume(LONG_REQUEST)

    def throttle(self, throttle_ms: int) -> None:
        """Read no further requests for so long: the client is over its quota (KIP-219). Replies still go out."""
        until_ms = self._context.clock.monotonic_ms() + throttle_ms
        if self.closed or until_ms <= self._throttled_until_ms:
            return
        self._throttled_until_ms = until_ms
        if self._throttle_timer is not None:
            self._context.timers.cancel(self._throttle_timer)
        self._throttle_timer = self._context.timers.call_at(until_ms, self._end_throttle)
        self._stream.pause(THROTTLED)

    def _end_throttle(self) -> None:
        self._throttle_timer = None
        self._stream.resume(THROTTLED)

    def rest(self) -> None:
        """The request at hand only says that the peer is alive: the next may wait a little, to be read with others'.

        It rests until something is read in which there is no such request (`resting`).
        """
        if self._rest is None:
            if self._context.resting is None:
                return
            self._rest = Rest(self._stream, self._context.resting)
        self._rest.on_heartbeat()

    def finish(self) -> None:
        """Read no more, send the replies in progress, then close."""
        self._stream.pause(STOPPING)
        self._close_if_finished()

    def close(self) -> None:
        """Close at once. Open replies are abandoned; safe to call at any time, also twice."""
        if self.closed:
            return
        self.closed = True
        self._stream.close()
        if self._idle_timer is not None:
            self._context.timers.cancel(self._idle_timer)
        if self._throttle_timer is not None:
            self._context.timers.cancel(self._throttle_timer)
        while self._waiting:
            reply = self._waiting.popleft()
            if not reply.done:
                self._context.budget.release(reply.memory_bytes)
                self._call_safely(reply.abandon)
        self._context.on_closed(self)
        self._call_safely(lambda: self.handler.on_closed(self))

    def _call_safely(self, callback: Callable[[], None]) -> None:
        """Somebody else's fault must not leave this connection half closed."""
        try:
            callback()
        except Exception:
            logger.exception("%r: could not be cleaned up after", self)

    # --- called by the stream ---

    def on_frame(self, frame: memoryview) -> None:
        try:
            response = self.handler.on_request(self, frame)
        except Exception as error:
            self._log_failure(error)
            self.close()
            return
        output = self._output
        if type(response) is bytes and not self._waiting and not self.closed:
            output.add_bytes(response)
        else:
            self._take(response)
        if output.queued_bytes > self._context.settings.queued_reply_bytes_per_connection:
            self._write()

    def _log_failure(self, error: BaseException | None) -> None:
        if isinstance(error, ProtocolError):
            logger.info("%r: %s: closing", self, error)
        elif error is not None:
            logger.error("%r: a request could not be handled: closing", self, exc_info=error)

    def _take(self, response: bytes | Parts | Deferred[Parts] | None) -> None:
        if response is None or self.closed:
            return
        if isinstance(response, Deferred):
            self._wait_for(response)
            return
        parts: Parts = [response] if isinstance(response, bytes) else response
        if self._waiting:
            reply: Deferred[Parts] = Deferred()
            reply.complete(parts)
            self._wait_for(reply)
        else:
            self._output.add(parts)

    def on_bad_size(self, size: int) -> None:
        if size >> 16 == TLS_HANDSHAKE:
            logger.info("%r: it sent TLS, but this listener takes plain text: closing", self)
        else:
            logger.info("%r: frame of %d bytes, at most %d are taken: closing", self, size, self.max_frame_bytes)
        self.close()

    def on_progress(self) -> None:
        """A request, or a good part of a large one, has come: the peer is not idle."""
        # A response that goes out in this turn is noted by `_write`.
        if self._stream.writing or not self._output.queued_bytes:
            self._last_active_ms = self._context.clock.monotonic_ms()

    def on_end_of_input(self) -> None:
        """The client sends no more; it may still read, so the replies in progress go out before the close."""
        self._end_of_input = True
        for pending in list(self._waiting):
            pending.end_input()

    def on_lost(self, error: OSError) -> None:
        if isinstance(error, TruncatedFileError):
            logger.error("%r: a reply could not be finished: %s: closing", self, error)
        else:
            logger.debug("%r: %s", self, error)
        self.close()

    def on_received(self) -> None:
        stream = self._stream
        if self._waiting or stream.writing or stream.pauses or self._end_of_input or not self._output.queued_bytes:
            self.flush()
        else:
            self._write()  # what a flush comes to if no response is pending

    def on_writable(self) -> None:
        self._write()
        self._close_if_finished()

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
            self._stream.pause(PENDING_REPLIES)

    def on_reply_done(self, reply: Deferred[Parts]) -> None:
        """Called by the reply; it may be any of those that wait."""
        self._context.budget.release(reply.memory_bytes)
        self._hold(reply)
        if reply is self._waiting[0] or reply.failed:
            self._context.flush_soon(self)

    def _hold(self, reply: Deferred[Parts]) -> None:
        """Count a response that may have to wait for earlier ones."""
        if reply.failed:
            self._log_failure(reply.error)
            return
        self._held_bytes += sum(len(part) for part in reply.value if isinstance(part, MEMORY))
        if self._held_bytes > self._context.settings.queued_reply_bytes_per_connection:
            self._stream.pause(UNREAD_REPLIES)

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
        stream = self._stream
        if not stream.writing and self._output:
            self._write()
        limit = self._context.settings.pending_replies_per_connection
        if stream.pauses & PENDING_REPLIES and len(waiting) * 2 <= limit:
            stream.resume(PENDING_REPLIES)
        if self._end_of_input or stream.pauses & STOPPING:
            self._close_if_finished()

    def _write(self) -> None:
        stream, output = self._stream, self._output
        sent_before = output.sent_bytes
        stream.write()
        if self.closed:
            return
        if output.sent_bytes != sent_before:
            self._last_active_ms = self._context.clock.monotonic_ms()
        limit_bytes = self._context.settings.queued_reply_bytes_per_connection
        unread_bytes = output.queued_bytes + self._held_bytes
        if unread_bytes > limit_bytes:
            stream.pause(UNREAD_REPLIES)
        elif stream.pauses & UNREAD_REPLIES and unread_bytes * 2 <= limit_bytes:
            stream.resume(UNREAD_REPLIES)

    def _close_if_finished(self) -> None:
        if (self._end_of_input or self._stream.pauses & STOPPING) and not self._waiting and not self._output:
            self.close()

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
