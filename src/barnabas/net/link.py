"""A link to another broker: connects on demand, pipelines requests, and backs off while the peer cannot be reached.

    link.request(AlterPartitionRequest(...)) -> Deferred[AlterPartitionResponse]
    link.post(ApiKey.FETCH, 17, body) -> Deferred[memoryview], the body of the response as bytes

Requests go out in the order in which they were made and are answered in that order, so a request that waits at the
peer (a fetch) holds up those behind it: each kind of use has a link of its own (`server/broker_links`). A request that
is made while there is no connection waits for the next attempt, which comes at once the first time and after a growing
pause once attempts have failed; if that attempt fails, so do all that waited for it. Nothing is sent twice. Every
failure is a LinkError. With `security` a connection is encrypted and logged in before its first request, and logged in
again before the session ends; requests wait meanwhile. Network, loop and randomness are injected, so that whole
clusters run in virtual time.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.clock import Random
from barnabas.errors import ProtocolError
from barnabas.machines.sasl.login import RENEWED_SHARE
from barnabas.net.deferred import Deferred
from barnabas.net.link_connection import LinkConnection, LinkError, Outgoing
from barnabas.net.link_login import ask_versions, log_in, open_channel
from barnabas.net.security import LinkSecurity
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode, schema_of
from barnabas.protocol.message_types import response_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.transport.channel import Network, SocketOptions
from barnabas.transport.parts import Memory

__all__ = ["Link", "LinkError"]

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 5_000
SECURE_TIMEOUT_MS = 15_000
"""With a TLS handshake and a login. A login on an open connection has its turn behind responses that wait."""
REQUEST_TIMEOUT_MS = 30_000
FIRST_BACKOFF_MS = 50
MAX_BACKOFF_MS = 1_000
BACKOFF_JITTER = 0.2
_DEFAULT_OPTIONS = SocketOptions()


class Link:
    """Made on the loop that it runs on. `on_lost` is called for every connection and attempt that failed."""

    def __init__(
        self,
        network: Network,
        random: Random,
        host: str,
        port: int,
        *,
        client_id: str,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        options: SocketOptions = _DEFAULT_OPTIONS,
        security: LinkSecurity | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._network = network
        self._random = random
        self.host, self.port = host, port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._client_id = client_id.encode()
        self._request_timeout_ms = request_timeout_ms
        self._options = options
        self._security = security
        self._timeout_ms = CONNECT_TIMEOUT_MS if security is None else SECURE_TIMEOUT_MS
        self.on_lost: Callable[[LinkError], None] | None = None
        self._closed = ""  # or why
        self._connection: LinkConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        """Opens a connection, or renews the session of the one that is there: requests wait for its end."""
        self._session_timer: asyncio.TimerHandle | None = None
        self._queue: deque[Outgoing] = deque()
        """Requests that wait for a connection."""
        self._failures = 0
        self._next_attempt_at = -math.inf
        self._attempt_timer: asyncio.TimerHandle | None = None
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._soonest_deadline = math.inf

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def in_flight_count(self) -> int:
        return len(self._queue) + (len(self._connection.in_flight) if self._connection is not None else 0)

    # --- requests ---

    def request(
        self, message: Any, max_version: int | None = None, *, timeout_ms: int | None = None
    ) -> "Deferred[Any]":
        """The response to a message, in the newest version that both ends know."""
        schema = schema_of(message)
        assert schema.api_key is not None, f"{schema.name} is not a request"
        api_key = ApiKey(schema.api_key)  # type: ignore[call-arg]
        newest = schema.max_version if max_version is None else max_version
        chosen = newest

        def write(connection: LinkConnection) -> tuple[int, tuple[Memory, ...]]:
            nonlocal chosen
            # An API that only brokers use may not be listed: those of this cluster know it.
            chosen = min(newest, connection.versions.get(api_key, (0, newest))[1])
            return chosen, (encode(message, chosen),)

        def read(body: memoryview) -> Any:
            try:
                return decode(response_type(api_key), chosen, body)[0]
            except ProtocolError as error:
                raise LinkError(f"{self.address}: {error}", maybe_sent=True) from error

        return self._submit(api_key, write, timeout_ms).then(read)

    def post(self, api_key: int, version: int, *body: Memory, timeout_ms: int | None = None) -> "Deferred[memoryview]":
        """A request as bytes, without its header; the body of the response as bytes, which may be kept."""
        return self._submit(api_key, lambda _: (version, body), timeout_ms)

    def ping(self, timeout_ms: int | None = None) -> "Deferred[None]":
        """Done when the peer has responded to a request that every broker answers at once."""
        return self.request(ApiVersionsRequest(), 0, timeout_ms=timeout_ms).then(lambda _: None)

    def retry_now(self) -> None:
        """The peer is known to be there again: do not wait for the end of the pause."""
        self._failures = 0
        self._next_attempt_at = -math.inf
        if self._attempt_timer is not None:
            self._attempt_timer.cancel()
            self._attempt_timer = None
            self._begin_attempt()

    def close(self, why: str = "the link was closed") -> None:
        """Everything that waits fails, and so does everything that comes later."""
        if self._closed:
            return
        self._closed = why
        self.on_lost = None
        for timer in (self._attempt_timer, self._deadline_timer, self._session_timer):
            if timer is not None:
                timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        error = LinkError(f"{self.address}: {why}", maybe_sent=True)
        if self._connection is not None:
            self._connection.close(error)
        self._fail_queue(LinkError(f"{self.address}: {why}"))

    def _submit(
        self,
        api_key: int,
        write: Callable[[LinkConnection], tuple[int, tuple[Memory, ...]]],
        timeout_ms: int | None,
    ) -> Deferred[memoryview]:
        response: Deferred[memoryview] = Deferred()
        if self._closed:
            response.fail(LinkError(f"{self.address}: {self._closed}"))
            return response
        if timeout_ms is None:
            timeout_ms = self._request_timeout_ms
        deadline = self._loop.time() + timeout_ms / 1000
        request = Outgoing(api_key, write, response, deadline, timeout_ms)
        if deadline < self._soonest_deadline:
            self._set_deadline(deadline)
        if self._connection is not None and self._connecting is None:
            self._connection.send(request)
        else:
            self._queue.append(request)
            if self._connecting is None and self._attempt_timer is None:
                self._begin_attempt()
        return response

    # --- connecting ---

    def _begin_attempt(self) -> None:
        self._attempt_timer = None
        if self._loop.time() < self._next_attempt_at:
            self._attempt_timer = self._loop.call_at(self._next_attempt_at, self._begin_attempt_now)
        else:
            self._begin_attempt_now()

    def _begin_attempt_now(self) -> None:
        self._attempt_timer = None
        self._connecting = self._loop.create_task(self._connect(), name=f"link to {self.address}")

    async def _connect(self) -> None:
        connection: LinkConnection | None = None
        lifetime_ms = 0
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                channel = await open_channel(self._network, self.host, self.port, self._options, self._security)
                connection = LinkConnection(self._loop, channel, self.address, self._client_id, self._on_closed)
                await ask_versions(connection, is_encrypted=channel.is_encrypted)
                if self._security is not None:
                    lifetime_ms = await log_in(connection, self._security)
        except (OSError, LinkError, ProtocolError) as error:
            # OSError includes TimeoutError.
            self._connecting = None
            self._on_attempt_failed(connection, error)
            return
        except asyncio.CancelledError:
            if connection is not None:
                connection.close(LinkError(f"{self.address}: the link was closed"))
            raise
        self._connecting = None
        if connection.closed:
            self._on_attempt_failed(None, LinkError(f"{self.address}: it closed the connection"))
            return
        self._failures = 0
        self._connection = connection
        if self._security is not None:
            self._security.on_connected(self.address)
        self._renew_before(connection, lifetime_ms)
        self._send_queue(connection)

    # --- a session that ends (KIP-368) ---

    def _renew_before(self, connection: LinkConnection, lifetime_ms: int) -> None:
        if lifetime_ms > 0:
            share = self._random.uniform(*RENEWED_SHARE)
            self._session_timer = self._loop.call_later(share * lifetime_ms / 1000, self._renew, connection)

    def _renew(self, connection: LinkConnection) -> None:
        if connection is self._connection and self._connecting is None:
            self._connecting = self._loop.create_task(self._log_in_again(connection), name=f"login at {self.address}")

    async def _log_in_again(self, connection: LinkConnection) -> None:
        assert self._security is not None
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                lifetime_ms = await log_in(connection, self._security)
        except (OSError, LinkError, ProtocolError) as error:
            self._connecting = None
            self._on_attempt_failed(connection, error)
            return
        self._connecting = None
        logger.debug("%s: logged in again", self.address)
        self._renew_before(connection, lifetime_ms)
        self._send_queue(connection)

    def _send_queue(self, connection: LinkConnection) -> None:
        waiting, self._queue = self._queue, deque()
        for request in waiting:
            if connection.closed:
                self._queue.append(request)
            elif not request.response.done:
                connection.send(request)
        if self._queue and self._connecting is None and self._attempt_timer is None:
            self._begin_attempt()

    def _on_attempt_failed(self, connection: LinkConnection | None, cause: Exception) -> None:
        if isinstance(cause, TimeoutError):
            error = LinkError(f"{self.address}: no connection within {self._timeout_ms} ms")
        elif isinstance(cause, ConnectionRefusedError):
            error = LinkError(f"{self.address}: connection refused, nothing listens there", refused=True)
        elif isinstance(cause, LinkError):
            error = LinkError(str(cause), denied=cause.denied)
            if error.denied and self._security is not None:
                self._security.on_denied(self.address, str(error))
        else:
            error = LinkError(f"{self.address}: {getattr(cause, 'strerror', None) or cause}")
        if connection is not None:
            connection.close(error)
        jitter = self._random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)
        pause_ms = jitter * min(FIRST_BACKOFF_MS << min(self._failures, 10), MAX_BACKOFF_MS)
        self._failures += 1
        self._next_attempt_at = self._loop.time() + pause_ms / 1000
        self._fail_queue(error)
        self._tell_lost(error)

    def _on_closed(self, connection: LinkConnection, error: LinkError) -> None:
        if connection is self._connection:
            self._connection = None
            # A peer that takes connections only to close them must not be asked without a pause.
            self._next_attempt_at = self._loop.time() + FIRST_BACKOFF_MS / 1000
            self._tell_lost(error)

    def _tell_lost(self, error: LinkError) -> None:
        logger.debug("%s", error)
        if self.on_lost is not None:
            self.on_lost(error)

    def _fail_queue(self, error: LinkError) -> None:
        waiting, self._queue = self._queue, deque()
        for request in waiting:
            request.response.fail(error)

    # --- deadlines: one timer for all requests, since nearly all are answered long before ---

    def _set_deadline(self, deadline: float) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        self._soonest_deadline = deadline
        self._deadline_timer = self._loop.call_at(deadline, self._on_deadline)

    def _on_deadline(self) -> None:
        self._deadline_timer = None
        self._soonest_deadline = math.inf
        # The loop calls a little early: timers are due within the resolution of its clock.
        now = self._loop.time() + 0.001
        overdue = [request for request in self._queue if request.deadline <= now]
        if overdue:
            self._queue = deque(request for request in self._queue if request.deadline > now)
        connection = self._connection
        if connection is not None:
            late = next((request for request in connection.in_flight if request.deadline <= now), None)
            if late is not None:
                # Responses come in order: behind one that does not come there is nothing to wait for.
                connection.close(LinkError(self._late(late), maybe_sent=True))
        for request in overdue:
            request.response.fail(LinkError(self._late(request)))
        waiting = [*self._queue, *(self._connection.in_flight if self._connection is not None else ())]
        soonest = min((request.deadline for request in waiting), default=math.inf)
        if soonest < self._soonest_deadline:
            self._set_deadline(soonest)

    def _late(self, request: Outgoing) -> str:
        name = ApiKey(request.api_key).name  # type: ignore[call-arg]
        return f"{self.address}: no response to {name} within {request.timeout_ms} ms"
