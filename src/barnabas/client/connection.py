"""One connection to one broker: requests out, responses in, matched in the order in which they were sent.

Made by `connecting`, kept by `node_connections`, used through `cluster`. All of it happens in callbacks of the loop; it
retries nothing and knows nothing of what the bytes mean beyond their headers. Once it is closed it stays closed, and
everything that waits for a response fails with the reason.
"""

import asyncio
import logging
import math
import os
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.client.api_versions import BrokerVersions
from barnabas.client.errors import ClientTimeoutError, UnreachableError
from barnabas.client.metrics.meters import NodeMeter
from barnabas.errors import KafkaError
from barnabas.protocol.api import FIRST_FLEXIBLE_VERSION, NEVER_FLEXIBLE, ApiKey
from barnabas.protocol.primitives import skip_tagged_fields
from barnabas.transport.budget import MemoryBudget
from barnabas.transport.channel import Channel
from barnabas.transport.kept_buffers import KeptBuffers
from barnabas.transport.parts import Memory
from barnabas.transport.stream import Stream

logger = logging.getLogger(__name__)
HEADER = struct.Struct(">ihhi")
CORRELATION_ID = struct.Struct(">i")
CORRELATION_IDS = (1 << 31) - 1
FIRST_FRAME_MAX_BYTES = 1 << 20
"""Until the peer has proved to be a broker, only small responses are accepted."""
FRAME_MAX_BYTES = 1 << 30
MAY_BE_TLS = "it may expect TLS (security_protocol), or be no Kafka broker"
CLOCK_RESOLUTION_S = time.get_clock_info("monotonic").resolution


class InFlight:
    """A request that was sent and has no response yet."""

    __slots__ = ("api_key", "correlation_id", "deadline", "response", "tagged_header", "timeout_s")

    def __init__(
        self,
        response: "asyncio.Future[memoryview]",
        api_key: int,
        correlation_id: int,
        tagged: bool,
        deadline: float,
        timeout_s: float,
    ) -> None:
        self.response = response
        self.api_key = api_key
        self.correlation_id = correlation_id
        self.tagged_header = tagged
        self.deadline = deadline
        self.timeout_s = timeout_s


class Connection:
    """One connection to one broker."""

    __slots__ = (
        "_client_id",
        "_correlation_id",
        "_idle_timer",
        "_in_flight",
        "_is_proven",
        "_last_used",
        "_loop",
        "_max_idle_s",
        "_meter",
        "_soonest_deadline",
        "_stream",
        "_throttled_until",
        "_timeout_s",
        "_timeout_timer",
        "_without_response",
        "address",
        "closed",
        "gate",
        "on_closed",
        "reauthenticate_at",
        "versions",
    )

    def __init__(
        self,
        channel: Channel,
        address: str,
        *,
        client_id: str,
        request_timeout_ms: int,
        max_idle_ms: int,
        meter: NodeMeter | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.address = address
        self._client_id = _nullable_string(client_id)
        self._timeout_s = request_timeout_ms / 1000
        self._meter = NodeMeter({}) if meter is None else meter
        self._in_flight: deque[InFlight] = deque()
        self._without_response: list[asyncio.Future[memoryview]] = []
        """Requests that get no response, until their bytes are out."""
        self._correlation_id = 0
        self._is_proven = False  # whether it ever responded to anything but ApiVersions
        self._throttled_until = 0.0
        self.versions = BrokerVersions(address, {}, {})
        self.closed: KafkaError | None = None
        """Why the connection is over, once it is."""
        self.on_closed: Callable[[Connection], None] | None = None
        self.gate: asyncio.Future[None] | None = None
        """While set, requests other than those of the one who set it wait for it."""
        self.reauthenticate_at: float | None = None
        self._timeout_timer: asyncio.TimerHandle | None = None
        """One for all that wait, set again when it fires: a timer for each would cost more than most requests."""
        self._soonest_deadline = math.inf
        self._last_used = self._loop.time()
        self._max_idle_s = max_idle_ms / 1000
        self._idle_timer = self._loop.call_later(self._max_idle_s, self._on_idle) if max_idle_ms >= 0 else None
        self._stream = Stream(
            self._loop,
            channel,
            self,
            KeptBuffers(),
            MemoryBudget(),
            max_frame_bytes=FIRST_FRAME_MAX_BYTES,
            min_frame_bytes=CORRELATION_ID.size,
            greedy=True,
        )

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def throttled_s(self) -> float:
        """How long the broker wants no requests."""
        return max(0.0, self._throttled_until - self._loop.time())

    @property
    def session_ends(self) -> bool:
        """Whether it is time to authenticate again, before anything else is sent (KIP-368)."""
        return self.reauthenticate_at is not None and self._loop.time() >= self.reauthenticate_at

    @property
    def takes_requests(self) -> bool:
        """Whether a request may be sent now."""
        if self.gate is not None or self.closed is not None:
            return False
        now = self._loop.time()
        return now >= self._throttled_until and (self.reauthenticate_at is None or now < self.reauthenticate_at)

    def throttle(self, throttle_time_ms: int) -> None:
        """The broker said in a response that a quota is used up (KIP-219)."""
        if throttle_time_ms > 0:
            self._throttled_until = max(self._throttled_until, self._loop.time() + throttle_time_ms / 1000)

    def on_handshake_done(self, versions: BrokerVersions) -> None:
        """It is a broker: from now on its responses may be large."""
        self.versions = versions
        self._stream.frames.max_bytes = FRAME_MAX_BYTES

    # --- requests ---

    async def request(self, api_key: int, version: int, *parts: Memory, timeout_ms: int | None = None) -> memoryview:
        """Send, and wait for the response's body. Raises UnreachableError, ClientTimeoutError."""
        return await self.post(api_key, version, parts, timeout_ms=timeout_ms)

    def post(
        self,
        api_key: int,
        version: int,
        parts: Sequence[Memory],
        *,
        timeout_ms: int | None = None,
        expect_response: bool = True,
    ) -> "asyncio.Future[memoryview]":
        """Send now, before anything that is posted later; the future gets the body of the response.

        Without a response, as for Produce with acks=0, the future is done with an empty view when the bytes are out.
        """
        response: asyncio.Future[memoryview] = self._loop.create_future()
        if self.closed is not None:
            response.set_exception(self.closed)
            return response
        correlation_id = self._correlation_id = (self._correlation_id + 1) & CORRELATION_IDS
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        flexible = version >= FIRST_FLEXIBLE_VERSION.get(api_key, NEVER_FLEXIBLE)
        client_id = self._client_id + b"\0" if flexible else self._client_id
        size = 8 + len(client_id) + sum(map(len, parts))
        now = self._last_used = self._loop.time()
        self._meter.request_size.add(size + 4)
        if expect_response:
            tagged = flexible and api_key != ApiKey.API_VERSIONS
            self._in_flight.append(InFlight(response, api_key, correlation_id, tagged, now + timeout_s, timeout_s))
            if now + timeout_s < self._soonest_deadline:
                self._set_timeout(now + timeout_s)
        else:
            self._without_response.append(response)
            timer = self._loop.call_later(timeout_s, self._on_unsent, timeout_s)
            response.add_done_callback(lambda _: timer.cancel())
        self._stream.output.add((HEADER.pack(size, api_key, version, correlation_id) + client_id, *parts))
        if not self._stream.writing:
            self.on_writable()
        return response

    def close(self, why: str = "the client closed it") -> None:
        self._end(UnreachableError(self.address, why))

    # --- called by the stream ---

    def on_frame(self, frame: memoryview) -> None:
        if self.closed is not None:
            return
        (correlation_id,) = CORRELATION_ID.unpack_from(frame)
        if not self._in_flight or self._in_flight[0].correlation_id != correlation_id:
            expected = self._in_flight[0].correlation_id if self._in_flight else "none"
            self.close(f"it responded to request {correlation_id}, expected was {expected}")
            return
        waiting = self._in_flight[0]
        try:
            position = 4
            if waiting.tagged_header:
                position = 5 if frame[4] == 0 else skip_tagged_fields(frame, 4)
        except IndexError:
            self.close("the header of a response is cut short")
            return
        self._in_flight.popleft()
        now = self._last_used = self._loop.time()
        took_ms = (now - waiting.deadline + waiting.timeout_s) * 1000
        self._meter.responded(waiting.api_key, len(frame) + 4, took_ms, int(now * 1000))
        if waiting.response.done():
            return
        self._is_proven = bool(self.versions.ranges)
        waiting.response.set_result(frame[position:])

    def on_bad_size(self, size: int) -> None:
        prefix = CORRELATION_ID.pack(size)
        if prefix == b"HTTP":
            why = "it responds in HTTP: this is not the address of a Kafka broker"
        elif prefix[0] in (0x15, 0x16) and prefix[1] == 3:
            why = "it speaks TLS: set security_protocol to SSL or SASL_SSL"
        else:
            most = self._stream.frames.max_bytes
            why = f"it sent a frame of {size} bytes, where 4 to {most} are possible: is it a Kafka broker?"
        self.close(why)

    def on_progress(self) -> None:
        """Only whole responses count."""

    def on_received(self) -> None:
        """Requests are written when they are posted."""

    def on_end_of_input(self) -> None:
        self.close(self._why_ended())

    def on_lost(self, error: OSError) -> None:
        why = f"the connection was lost ({reason(error)})"
        # A TLS listener closes with bytes still unread, and that resets the connection before its alert arrives.
        self.close(why if self.versions.ranges else f"{why} at the first request: {MAY_BE_TLS}")

    def on_writable(self) -> None:
        if self._stream.write() and self._without_response:
            self._settle_without_response()

    def _settle_without_response(self) -> None:
        waiting, self._without_response = self._without_response, []
        for response in waiting:
            if not response.done():
                response.set_result(memoryview(b""))

    # --- its end ---

    def _set_timeout(self, deadline: float) -> None:
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
        self._soonest_deadline = deadline
        self._timeout_timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        """That of the timer has passed; the request that it was set for may have its response long ago."""
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
        """Responses come in order, so after one that does not arrive no later one will."""
        name = ApiKey(waiting.api_key).name  # type: ignore[call-arg]
        why = f"no response to {name} within {waiting.timeout_s * 1000:.0f} ms"
        if not waiting.response.done():
            waiting.response.set_exception(ClientTimeoutError(f"{self.address}: {why}"))
        self._end(UnreachableError(self.address, f"closed after there was {why}"))

    def _on_unsent(self, timeout_s: float) -> None:
        """A request without a response, and the peer does not even take its bytes."""
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
            return f"it closed the connection at the first request: {MAY_BE_TLS}"
        if not self._is_proven:
            return "it reported its versions and then closed the connection: it may expect SASL (security_protocol)"
        return "it closed the connection"

    def _end(self, error: KafkaError) -> None:
        if self.closed is not None:
            return
        self.closed = error
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._stream.close()
        unanswered, self._without_response = self._without_response, []
        for response in unanswered:
            if not response.done():
                response.set_exception(error)
        waiting, self._in_flight = self._in_flight, deque()
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
        for each in waiting:
            if not each.response.done():
                each.response.set_exception(error)
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
