"""One connection to another broker: requests out, responses in, matched in the order in which they were sent.

Made and replaced by `link`. All of it happens in callbacks of the loop; nothing is retried here. Once it is closed it
stays closed, and everything that waits for a response fails with the reason.
"""

import asyncio
import logging
import ssl
import struct
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType

from barnabas.net.deferred import Deferred
from barnabas.protocol.api import FIRST_FLEXIBLE_VERSION, NEVER_FLEXIBLE, ApiKey
from barnabas.protocol.primitives import skip_tagged_fields
from barnabas.transport.budget import MemoryBudget
from barnabas.transport.channel import Channel
from barnabas.transport.kept_buffers import KeptBuffers
from barnabas.transport.parts import Memory
from barnabas.transport.stream import Stream

logger = logging.getLogger(__name__)
_HEADER = struct.Struct(">ihhi")
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_IDS = (1 << 31) - 1
FIRST_FRAME_MAX_BYTES = 1 << 20
"""Until the peer has responded to ApiVersions, little is believed."""
FRAME_MAX_BYTES = 1 << 30


class LinkError(Exception):
    """A request to another broker has no response.

    `refused`: nothing listens at its address, so its process is gone. `denied`: a certificate or a login was not
    accepted, by either end. `maybe_sent`: the peer may have received the request and carried it out.
    """

    def __init__(self, text: str, *, refused: bool = False, denied: bool = False, maybe_sent: bool = False) -> None:
        super().__init__(text)
        self.refused = refused
        self.denied = denied
        self.maybe_sent = maybe_sent


class Outgoing:
    """A request that has no response yet. Its version is known once the peer's versions are."""

    __slots__ = ("api_key", "correlation_id", "deadline", "response", "tagged_header", "timeout_ms", "write")

    def __init__(
        self,
        api_key: int,
        write: "Callable[[LinkConnection], tuple[int, tuple[Memory, ...]]]",
        response: Deferred[memoryview],
        deadline: float,
        timeout_ms: int,
    ) -> None:
        self.api_key = api_key
        self.write = write
        """Version and body of the request for this connection."""
        self.response = response
        self.deadline = deadline
        self.timeout_ms = timeout_ms
        self.correlation_id = 0
        self.tagged_header = False


class LinkConnection:
    """`on_closed` is called once, after everything that waited has failed."""

    __slots__ = ("_client_id", "_correlation_id", "_on_closed", "_stream", "address", "closed", "in_flight", "versions")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        channel: Channel,
        address: str,
        client_id: bytes,
        on_closed: "Callable[[LinkConnection, LinkError], None]",
    ) -> None:
        self.address = address
        self.closed = False
        self.in_flight: deque[Outgoing] = deque()
        self.versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        """API key -> lowest and highest version that the peer knows."""
        self._client_id = struct.pack(">h", len(client_id)) + client_id
        self._correlation_id = 0
        self._on_closed = on_closed
        self._stream = Stream(
            loop,
            channel,
            self,
            KeptBuffers(),
            MemoryBudget(),
            max_frame_bytes=FIRST_FRAME_MAX_BYTES,
            min_frame_bytes=_CORRELATION_ID.size,
            greedy=True,
        )

    def on_versions(self, versions: Mapping[int, tuple[int, int]]) -> None:
        """It is a broker: from now on its responses may be large."""
        self.versions = versions
        self._stream.frames.max_bytes = FRAME_MAX_BYTES

    def send(self, request: Outgoing) -> None:
        """Written at once, behind everything that was sent before."""
        try:
            version, body = request.write(self)
        except ValueError as error:
            request.response.fail(LinkError(f"{self.address}: {error}"))
            return
        correlation_id = self._correlation_id = (self._correlation_id + 1) & _CORRELATION_IDS
        request.correlation_id = correlation_id
        flexible = version >= FIRST_FLEXIBLE_VERSION.get(request.api_key, NEVER_FLEXIBLE)
        request.tagged_header = flexible and request.api_key != ApiKey.API_VERSIONS
        client_id = self._client_id + b"\0" if flexible else self._client_id
        size = 8 + len(client_id) + sum(map(len, body))
        self.in_flight.append(request)
        self._stream.output.add((_HEADER.pack(size, request.api_key, version, correlation_id) + client_id, *body))
        if not self._stream.writing:
            self.on_writable()

    def close(self, error: LinkError) -> None:
        if self.closed:
            return
        self.closed = True
        self._stream.close()
        waiting, self.in_flight = self.in_flight, deque()
        for request in waiting:
            request.response.fail(error)
        self._on_closed(self, error)

    # --- called by the stream ---

    def on_frame(self, frame: memoryview) -> None:
        if self.closed:
            return
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if not self.in_flight or self.in_flight[0].correlation_id != correlation_id:
            self._lost(f"it responded to request {correlation_id}, which is not the next one")
            return
        request = self.in_flight.popleft()
        position = 4
        if request.tagged_header:
            try:
                position = 5 if frame[4] == 0 else skip_tagged_fields(frame, 4)
            except IndexError:
                self.in_flight.appendleft(request)
                self._lost("the header of a response is cut short")
                return
        if request.response.done:
            return
        try:
            request.response.complete(frame[position:])
        except Exception:
            # Whoever waited made a mistake; the bytes behind this frame belong to others.
            logger.exception("%s: handling a response to request %d failed", self.address, request.api_key)

    def on_bad_size(self, size: int) -> None:
        self._lost(f"it sent a frame of {size} bytes")

    def on_progress(self) -> None:
        """Only whole responses count."""

    def on_received(self) -> None:
        """Requests are written when they are sent."""

    def on_end_of_input(self) -> None:
        self._lost("it closed the connection")

    def on_lost(self, error: OSError) -> None:
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            # In TLS 1.3 a client learns only now that its certificate was not accepted.
            why = f"{self.address}: it ended the TLS connection: {error.reason}"
            self.close(LinkError(why, denied=True, maybe_sent=True))
            return
        ended = isinstance(error, ssl.SSLEOFError)
        self._lost("it closed the connection" if ended else error.strerror or str(error) or type(error).__name__)

    def on_writable(self) -> None:
        if not self.closed:
            self._stream.write()

    def _lost(self, why: str) -> None:
        self.close(LinkError(f"{self.address}: {why}", maybe_sent=True))
