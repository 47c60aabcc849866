"""One connection to one broker: requests out, answers in, matched in the order in which they were sent.

Made by `connecting`, kept by `node_connections`, used through `cluster`. All of it happens in callbacks of the loop; it
retries nothing and knows nothing of what the bytes mean beyond their headers. Once it is closed it stays closed, and
everything that waits for an answer hears why.
"""

import asyncio
import logging
import math
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.client.api_versions import BrokerVersions
from barnabas.client.errors import ClientTimeoutError, UnreachableError
from barnabas.client.incoming import FRAME_MAX_BYTES, Incoming
from barnabas.client.outgoing import Buffer, Outgoing
from barnabas.errors import KafkaError, ProtocolError
from barnabas.protocol.api import FIRST_FLEXIBLE_VERSION, NEVER_FLEXIBLE, ApiKey
from barnabas.protocol.primitives import skip_tagged_fields

logger = logging.getLogger(__name__)
HEADER = struct.Struct(">ihhi")
CORRELATION_ID = struct.Struct(">i")
CORRELATION_IDS = (1 << 31) - 1
CLOCK_RESOLUTION_S = time.get_clock_info("monotonic").resolution


class InFlight:
    """A request that was sent and not answered yet."""

    __slots__ = ("answer", "api_key", "correlation_id", "deadline", "tagged_header", "timeout_s")

    def __init__(
        self,
        answer: "asyncio.Future[memoryview]",
        api_key: int,
        correlation_id: int,
        tagged: bool,
        deadline: float,
        timeout_s: float,
    ) -> None:
        self.answer = answer
        self.api_key = api_key
        self.correlation_id = correlation_id
        self.tagged_header = tagged
        self.deadline = deadline
        self.timeout_s = timeout_s


class Connection:
    __slots__ = (
        "_client_id",
        "_correlation_id",
        "_idle_timer",
        "_in_flight",
        "_incoming",
        "_is_proven",
        "_last_used",
        "_loop",
        "_max_idle_s",
        "_outgoing",
        "_socket",
        "_soonest_deadline",
        "_throttled_until",
        "_timeout_s",
        "_timeout_timer",
        "_unanswered",
        "_writing",
        "address",
        "closed",
        "gate",
        "on_closed",
        "reauthenticate_at",
        "versions",
    )

    def __init__(
        self, sock: socket.socket, address: str, *, client_id: str, request_timeout_ms: int, max_idle_ms: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self.address = address
        self._client_id = _nullable_string(client_id)
        self._timeout_s = request_timeout_ms / 1000
        self._in_flight: deque[InFlight] = deque()
        self._unanswered: list[asyncio.Future[memoryview]] = []
        """Requests that get no answer, until their bytes are out."""
        self._outgoing = Outgoing(sock)
        self._incoming = Incoming(sock, self._on_frame)
        self._correlation_id = 0
        self._writing = False
        self._is_proven = False  # whether anything but its versions was ever answered
        self._throttled_until = 0.0
        self.versions = BrokerVersions(address, {}, {})
        self.closed: KafkaError | None = None
        """Why the connection is over, once it is."""
        self.on_closed: Callable[[Connection], None] | None = None
        self.gate: asyncio.Future[None] | None = None
        """While set, requests other than those of the one who set it wait for it."""
        self.reauthenticate_at: float | None = None
        self._timeout_timer: asyncio.TimerHandle | None = None
        """One for all that wait, set anew when it fires: a timer for each would cost more than most requests."""
        self._soonest_deadline = math.inf
        self._last_used = self._loop.time()
        self._max_idle_s = max_idle_ms / 1000
        self._idle_timer = self._loop.call_later(self._max_idle_s, self._on_idle) if max_idle_ms >= 0 else None
        self._loop.add_reader(sock.fileno(), self._on_readable)

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def throttled_s(self) -> float:
        """How long the broker wants to hear nothing."""
        return max(0.0, self._throttled_until - self._loop.time())

    @property
    def session_ends(self) -> bool:
        """Whether it is time to authenticate again, before anything else is sent (KIP-368)."""
        return self.reauthenticate_at is not None and self._loop.time() >= self.reauthenticate_at

    @property
    def takes_requests(self) -> bool:
        """Whether nothing stands in the way of a request."""
        if self.gate is not None or self.closed is not None:
            return False
        now = self._loop.time()
        return now >= self._throttled_until and (self.reauthenticate_at is None or now < self.reauthenticate_at)

    def throttle(self, throttle_time_ms: int) -> None:
        """The broker said in an answer that a quota is used up (KIP-219)."""
        if throttle_time_ms > 0:
            self._throttled_until = max(self._throttled_until, self._loop.time() + throttle_time_ms / 1000)

    def on_handshake_done(self, versions: BrokerVersions) -> None:
        """It is a broker: from now on its answers may be large."""
        self.versions = versions
        self._incoming.max_bytes = FRAME_MAX_BYTES

    # --- requests ---

    async def request(self, api_key: int, version: int, *parts: Buffer, timeout_ms: int | None = None) -> memoryview:
        """Send, and wait for the answer's body. Raises UnreachableError, ClientTimeoutError."""
        return await self.post(api_key, version, parts, timeout_ms=timeout_ms)

    def post(
        self,
        api_key: int,
        version: int,
        parts: Sequence[Buffer],
        *,
        timeout_ms: int | None = None,
        expect_response: bool = True,
    ) -> "asyncio.Future[memoryview]":
        """Send now, before anything that is posted later; the future gets the body of the answer.

        Without a response, as for Produce with acks=0, the future is done with an empty view when the bytes are out.
        """
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        if self.closed is not None:
            answer.set_exception(self.closed)
            return answer
        correlation_id = self._correlation_id = (self._correlation_id + 1) & CORRELATION_IDS
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        flexible = version >= FIRST_FLEXIBLE_VERSION.get(api_key, NEVER_FLEXIBLE)
        client_id = self._client_id + b"\0" if flexible else self._client_id
        size = 8 + len(client_id) + sum(map(len, parts))
        now = self._last_used = self._loop.time()
        if expect_response:
            tagged = flexible and api_key != ApiKey.API_VERSIONS
            self._in_flight.append(InFlight(answer, api_key, correlation_id, tagged, now + timeout_s, timeout_s))
            if now + timeout_s < self._soonest_deadline:
                self._set_timeout(now + timeout_s)
        else:
            self._unanswered.append(answer)
            timer = self._loop.call_later(timeout_s, self._on_unsent, timeout_s)
            answer.add_done_callback(lambda _: timer.cancel())
        self._outgoing.add((HEADER.pack(size, api_key, version, correlation_id) + client_id, *parts))
        if not self._writing:
            self._write()
        return answer

    def close(self, why: str = "the client closed it") -> None:
        self._end(UnreachableError(self.address, why))

    # --- the socket ---

    def _on_readable(self) -> None:
        try:
            if not self._incoming.receive() and self.closed is None:
                self._end(UnreachableError(self.address, self._why_ended()))
        except ProtocolError as error:
            self._end(UnreachableError(self.address, str(error)))
        except OSError as error:
            self._end(UnreachableError(self.address, f"the connection was lost ({reason(error)})"))

    def _on_frame(self, frame: memoryview) -> None:
        if self.closed is not None:
            return
        (correlation_id,) = CORRELATION_ID.unpack_from(frame)
        if not self._in_flight or self._in_flight[0].correlation_id != correlation_id:
            expected = self._in_flight[0].correlation_id if self._in_flight else "none"
            raise ProtocolError(f"it answered request {correlation_id}, expected was {expected}")
        waiting = self._in_flight[0]
        try:
            position = 4
            if waiting.tagged_header:
                position = 5 if frame[4] == 0 else skip_tagged_fields(frame, 4)
        except IndexError:
            raise ProtocolError("the header of an answer is cut short") from None
        self._in_flight.popleft()
        self._last_used = self._loop.time()
        if waiting.answer.done():
            return
        self._is_proven = bool(self.versions.ranges)
        waiting.answer.set_result(frame[position:])

    def _write(self) -> None:
        try:
            finished = self._outgoing.write()
        except OSError as error:
            self._end(UnreachableError(self.address, f"the connection was lost ({reason(error)})"))
            return
        if finished and self._unanswered:
            self._settle_unanswered()
        if finished == self._writing:
            self._writing = not finished
            if finished:
                self._loop.remove_writer(self._socket.fileno())
            else:
                self._loop.add_writer(self._socket.fileno(), self._write)

    def _settle_unanswered(self) -> None:
        waiting, self._unanswered = self._unanswered, []
        for answer in waiting:
            if not answer.done():
                answer.set_result(memoryview(b""))

    # --- its end ---

    def _set_timeout(self, deadline: float) -> None:
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
        self._soonest_deadline = deadline
        self._timeout_timer = self._loop.call_at(deadline, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        """That of the timer has passed; the request that it was set for may have been answered long ago."""
        self._timeout_timer = None
        self._soonest_deadline = math.inf
        if not self._in_flight:
            return
        soonest = min(self._in_flight, key=lambda waiting: waiting.deadline)
        # The loop calls a little early: timers are due within the resolution of its clock.
        if soonest.deadline <= self._loop.time() + CLOCK_RESOLUTION_S:
            self._on_timeout(soonest)
        else:
            self._set_timeout(soonest.deadline)

    def _on_timeout(self, waiting: InFlight) -> None:
        """Answers come in order, so behind one that does not come there is nothing to wait for."""
        name = ApiKey(waiting.api_key).name  # type: ignore[call-arg]
        why = f"no answer to {name} within {waiting.timeout_s * 1000:.0f} ms"
        if not waiting.answer.done():
            waiting.answer.set_exception(ClientTimeoutError(f"{self.address}: {why}"))
        self._end(UnreachableError(self.address, f"closed after there was {why}"))

    def _on_unsent(self, timeout_s: float) -> None:
        """A request without an answer, and the peer does not even take its bytes."""
        self._end(UnreachableError(self.address, f"closed, it took no bytes within {timeout_s * 1000:.0f} ms"))

    def _on_idle(self) -> None:
        idle_s = self._loop.time() - self._last_used
        if idle_s >= self._max_idle_s and not self._in_flight:
            logger.debug("%s: idle for %.0f s: closing", self.address, idle_s)
            self.close("it was idle")
            return
        wait_s = self._max_idle_s if self._in_flight else self._max_idle_s - idle_s
        self._idle_timer = self._loop.call_later(max(wait_s, 0.001), self._on_idle)

    def _why_ended(self) -> str:
        if not self.versions.ranges:
            return (
                "it closed the connection at the first request: it may expect TLS (security_protocol), or be no Kafka"
                " broker"
            )
        if not self._is_proven:
            return "it told its versions and then closed the connection: it may expect SASL (security_protocol)"
        return "it closed the connection"

    def _end(self, error: KafkaError) -> None:
        if self.closed is not None:
            return
        self.closed = error
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._outgoing.clear()
        unanswered, self._unanswered = self._unanswered, []
        for answer in unanswered:
            if not answer.done():
                answer.set_exception(error)
        waiting, self._in_flight = self._in_flight, deque()
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
        for each in waiting:
            if not each.answer.done():
                each.answer.set_exception(error)
        if self.on_closed is not None:
            self.on_closed(self)


def reason(error: OSError) -> str:
    """An operating system's error in words."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused, nothing listens there"
    if error.errno is not None and error.errno > 0 and (error.strerror or "").startswith("Connect call failed"):
        return os.strerror(error.errno)  # asyncio put the address in place of the reason
    return error.strerror or str(error) or type(error).__name__


def _nullable_string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
