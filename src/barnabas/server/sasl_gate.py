"""The way in on a SASL listener: takes the frames of a connection until its peer has authenticated.

Only ApiVersions, SaslHandshake and SaslAuthenticate are taken, in frames of `sasl.server.max.receive.size`, within a
time limit. Then the connection belongs to the dispatcher. A failed login is answered after
`connection.failed.authentication.delay.ms`, the same whatever was wrong, and the connection is closed. After
SaslHandshake v0 the mechanism's messages come as they are, without Kafka's headers.

A session that ends (`connections.max.reauth.ms`, or the life of a token) leaves a `SessionGuard` in front of the
dispatcher: a SaslHandshake begins another exchange, for the same user by the same mechanism, and after the end of the
session any other request closes the connection (KIP-368). All other connections pay nothing for that.
"""

import logging
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.machines.sasl.mechanism import SaslError, ServerMechanism
from barnabas.net.connection import Connection
from barnabas.net.context import RequestHandler
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.net.timers import Timers
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import RequestHeader, decode_request_header, encode_response
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.server.request import Principal
from barnabas.server.sessions import Session

logger = logging.getLogger(__name__)

Reply = bytes | Parts | Deferred[Parts] | None
MAX_VERSION = {ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}
API_KEY = struct.Struct(">h")
REAUTHENTICATION_INTERVAL_MS = 1_000
"""A client that authenticates again sooner than this after its last time is refused, as in Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    mechanisms: tuple[str, ...]
    begin: Callable[[str], ServerMechanism] = field(repr=False)
    """The broker's side of an exchange by that mechanism."""
    prepare: Callable[[str, bytes], Deferred[None] | None]
    """(mechanism, message) -> what has to be waited for before the message can be looked at"""
    session_ms: Mapping[str, int]
    """By mechanism: after how long a client must authenticate again; 0 for never."""
    failure_delay_ms: int
    timeout_ms: int
    first_frame_max_bytes: int
    frame_max_bytes: int


class SaslGate:
    """One per connection, until its login; another one for each time it authenticates again (`previous`)."""

    __slots__ = (
        "_clock",
        "_connection",
        "_dispatcher",
        "_exchange",
        "_is_failing",
        "_mechanism",
        "_previous",
        "_raw",
        "_settings",
        "_timer",
        "_timers",
    )

    def __init__(
        self,
        connection: Connection,
        dispatcher: RequestHandler,
        settings: SaslSettings,
        timers: Timers,
        clock: Clock,
        previous: Session | None = None,
    ) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._settings = settings
        self._timers = timers
        self._clock = clock
        self._previous = previous
        self._mechanism: str | None = None
        self._exchange: ServerMechanism | None = None
        self._raw = False  # whether messages come without headers
        self._is_failing = False
        self._timer: Any = timers.call_after(settings.timeout_ms, self._on_late)

    def on_request(self, connection: Connection, frame: memoryview) -> Reply:
        if self._is_failing:
            return None
        if self._raw:
            message = bytes(frame)
            return self._when_prepared(message, lambda: self._authenticate_raw(message))
        header = decode_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS and self._mechanism is None and self._previous is None:
            return self._dispatcher.on_request(connection, frame)
        if header.api_key not in MAX_VERSION:
            raise ProtocolError(f"request {header.api_key} before authentication")
        if not 0 <= header.api_version <= MAX_VERSION[ApiKey(header.api_key)]:  # type: ignore[call-arg]
            raise ProtocolError(f"version {header.api_version} of request {header.api_key} is not supported")
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return self._handshake(header, frame)
        return self._authenticate(header, frame)

    def on_closed(self, connection: Connection) -> None:
        self._cancel_timer()
        self._dispatcher.on_closed(connection)

    def _handshake(self, header: RequestHeader, frame: memoryview) -> Reply:
        request = decode(SaslHandshakeRequest, header.api_version, frame, header.body_position)[0]
        error = ErrorCode.NONE
        if self._mechanism is not None:
            error = ErrorCode.ILLEGAL_SASL_STATE
        elif request.mechanism not in self._settings.mechanisms:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        response = SaslHandshakeResponse(error_code=error, mechanisms=list(self._settings.mechanisms))
        encoded = encode_response(response, header.api_version, header.correlation_id)
        if error:
            return self._fail(encoded, error.name)
        self._mechanism = request.mechanism
        self._exchange = self._settings.begin(request.mechanism)
        self._raw = header.api_version == 0
        return encoded

    def _authenticate(self, header: RequestHeader, frame: memoryview) -> Reply:
        request = decode(SaslAuthenticateRequest, header.api_version, frame, header.body_position)[0]
        message = bytes(request.auth_bytes)
        return self._when_prepared(message, lambda: self._answer(header, message))

    def _when_prepared(self, message: bytes, answer: Callable[[], Reply]) -> Reply:
        """The answer, or later; nothing else is read from the connection meanwhile."""
        mechanism = self._mechanism
        ready = None if mechanism is None else self._settings.prepare(mechanism, message)
        if ready is None:
            return answer()
        connection = self._connection
        connection.pause_for_long_request()

        def go_on(_: None) -> Parts | Deferred[Parts]:
            connection.resume_after_long_request()
            found = answer()
            return [found] if isinstance(found, bytes) else found or []

        return ready.then(go_on)

    def _answer(self, header: RequestHeader, message: bytes) -> Reply:
        session_ms = 0
        if self._exchange is None:
            error, text = ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received before SaslHandshake"
        else:
            try:
                answer, session_ms = self._respond(self._exchange, message)
            except SaslError as refused:
                error, text = ErrorCode.SASL_AUTHENTICATION_FAILED, str(refused)
            else:
                response = SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=session_ms)
                return encode_response(response, header.api_version, header.correlation_id)
        response = SaslAuthenticateResponse(error_code=error, error_message=text, auth_bytes=b"")
        return self._fail(encode_response(response, header.api_version, header.correlation_id), error.name)

    def _authenticate_raw(self, message: bytes) -> Reply:
        assert self._exchange is not None
        try:
            answer, _ = self._respond(self._exchange, message)
        except SaslError:
            return self._fail(b"", ErrorCode.SASL_AUTHENTICATION_FAILED.name)
        return struct.pack(">i", len(answer)) + answer

    def _respond(self, exchange: ServerMechanism, message: bytes) -> tuple[bytes, int]:
        """The mechanism's next message; after its last one the peer is logged in, for so many milliseconds (0: as long
        as the connection). Raises SaslError."""
        if self._previous is not None and self._mechanism != self._previous.mechanism:
            raise SaslError(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication of"
                f" mechanism '{self._previous.mechanism}'"
            )
        answer = exchange.respond(message)
        return (answer, self._log_in(exchange)) if exchange.is_done else (answer, 0)

    def _log_in(self, exchange: ServerMechanism) -> int:
        connection, mechanism = self._connection, self._mechanism
        assert mechanism is not None
        principal = Principal("User", exchange.username)
        if self._previous is not None and principal != self._previous.principal:
            before = self._previous.principal
            raise SaslError(
                f"Cannot change principals during re-authentication from {before.type}.{before.name}:"
                f" {principal.type}.{principal.name}"
            )
        self._cancel_timer()
        limits = [limit] if (limit := self._settings.session_ms.get(mechanism, 0)) > 0 else []
        if exchange.expires_at_ms is not None:
            limits.append(exchange.expires_at_ms - self._clock.now_ms())
        session_ms = max(0, min(limits)) if limits else None
        now_ms = self._clock.monotonic_ms()
        session = Session(
            principal=principal,
            mechanism=mechanism,
            expires_at_ms=None if session_ms is None else now_ms + session_ms,
            is_token=exchange.is_token,
        )
        if self._previous is not None:
            logger.debug("%r: %s has authenticated again", connection, principal)
        connection.session = session
        connection.max_frame_bytes = self._settings.frame_max_bytes
        connection.handler = self._dispatcher
        if session.expires_at_ms is not None:
            begun_ms = None if self._previous is None else now_ms
            connection.handler = SessionGuard(
                self._dispatcher, self._settings, self._timers, self._clock, session, begun_ms
            )
        return session_ms or 0

    def _fail(self, response: bytes, why: str) -> Deferred[Parts]:
        """The response, late; then the connection is closed. Nothing else is read from it."""
        logger.info("%r: authentication failed (%s): closing", self._connection, why)
        self._is_failing = True
        self._cancel_timer()
        self._connection.pause_reading()
        reply: Deferred[Parts] = Deferred()

        def answer() -> None:
            if not self._connection.closed:
                reply.complete([response] if response else [])
                self._connection.finish()

        self._timer = self._timers.call_after(self._settings.failure_delay_ms, answer)
        return reply

    def _on_late(self) -> None:
        logger.info("%r: not authenticated within %d ms: closing", self._connection, self._settings.timeout_ms)
        self._connection.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timers.cancel(self._timer)
            self._timer = None


class SessionGuard:
    """In front of the dispatcher on a connection whose session ends: closes it then, or takes another login."""

    __slots__ = ("_begun_ms", "_clock", "_dispatcher", "_expires_at_ms", "_session", "_settings", "_timers")

    def __init__(
        self,
        dispatcher: RequestHandler,
        settings: SaslSettings,
        timers: Timers,
        clock: Clock,
        session: Session,
        begun_ms: int | None,
    ) -> None:
        """`begun_ms` is when the client authenticated again, if it has."""
        assert session.expires_at_ms is not None
        self._dispatcher = dispatcher
        self._settings = settings
        self._timers = timers
        self._clock = clock
        self._session = session
        self._expires_at_ms = session.expires_at_ms
        self._begun_ms = begun_ms

    def on_request(self, connection: Connection, frame: memoryview) -> Reply:
        now_ms = self._clock.monotonic_ms()
        if len(frame) >= API_KEY.size and API_KEY.unpack_from(frame)[0] == ApiKey.SASL_HANDSHAKE:
            if self._begun_ms is None or now_ms - self._begun_ms >= REAUTHENTICATION_INTERVAL_MS:
                gate = SaslGate(connection, self._dispatcher, self._settings, self._timers, self._clock, self._session)
                connection.handler = gate
                connection.max_frame_bytes = self._settings.first_frame_max_bytes
                return gate.on_request(connection, frame)
        elif now_ms >= self._expires_at_ms:
            raise ProtocolError(f"the session of {self._session.principal} has ended, and it did not log in again")
        return self._dispatcher.on_request(connection, frame)

    def on_closed(self, connection: Connection) -> None:
        self._dispatcher.on_closed(connection)
