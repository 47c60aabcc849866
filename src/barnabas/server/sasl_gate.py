"""The way in on a SASL listener: takes the frames of a connection until its peer has authenticated.

Only ApiVersions, SaslHandshake and SaslAuthenticate are taken, in frames of `sasl.server.max.receive.size`, within a
time limit. Then the connection belongs to the dispatcher. A failed login is answered after
`connection.failed.authentication.delay.ms`, the same whatever was wrong, and the connection is closed. After
SaslHandshake v0 the mechanism's messages come as they are, without Kafka's headers.
"""

import hmac
import logging
import secrets
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.plain import read_plain
from barnabas.machines.sasl.scram_server import INVALID, ScramCredential, ScramServer
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
PLAIN = "PLAIN"
WRONG_PASSWORD = "Authentication failed: Invalid username or password"
NOBODY = "\0"
"""Compared with in place of the password of a user that does not exist: no password that was sent has a NUL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(repr=False)
    scram_credential: Callable[[str, str], ScramCredential | None]
    """(mechanism, user) -> the credential that holds now"""
    fake_key: bytes = field(repr=False)
    failure_delay_ms: int
    timeout_ms: int
    frame_max_bytes: int


class SaslGate:
    """One per connection, until its login."""

    __slots__ = (
        "_connection",
        "_dispatcher",
        "_is_failing",
        "_mechanism",
        "_raw",
        "_scram",
        "_settings",
        "_timer",
        "_timers",
    )

    def __init__(
        self, connection: Connection, dispatcher: RequestHandler, settings: SaslSettings, timers: Timers
    ) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._settings = settings
        self._timers = timers
        self._mechanism: str | None = None
        self._scram: ScramServer | None = None
        self._raw = False  # whether messages come without headers
        self._is_failing = False
        self._timer: Any = timers.call_after(settings.timeout_ms, self._on_late)

    def on_request(self, connection: Connection, frame: memoryview) -> Reply:
        if self._is_failing:
            return None
        if self._raw:
            return self._authenticate_raw(bytes(frame))
        header = decode_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS and self._mechanism is None:
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
        self._mechanism = mechanism = request.mechanism
        if mechanism != PLAIN:
            find = partial(self._settings.scram_credential, mechanism)
            self._scram = ScramServer(mechanism, find, secrets.token_urlsafe(24), self._settings.fake_key)
        self._raw = header.api_version == 0
        return encoded

    def _authenticate(self, header: RequestHeader, frame: memoryview) -> Reply:
        request = decode(SaslAuthenticateRequest, header.api_version, frame, header.body_position)[0]
        if self._mechanism is None:
            error, text = ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received before SaslHandshake"
        else:
            try:
                answer = self._respond(bytes(request.auth_bytes))
            except SaslError as refused:
                error, text = ErrorCode.SASL_AUTHENTICATION_FAILED, str(refused)
            else:
                response = SaslAuthenticateResponse(auth_bytes=answer)
                return encode_response(response, header.api_version, header.correlation_id)
        response = SaslAuthenticateResponse(error_code=error, error_message=text, auth_bytes=b"")
        return self._fail(encode_response(response, header.api_version, header.correlation_id), error.name)

    def _authenticate_raw(self, message: bytes) -> Reply:
        try:
            answer = self._respond(message)
        except SaslError:
            return self._fail(b"", ErrorCode.SASL_AUTHENTICATION_FAILED.name)
        return struct.pack(">i", len(answer)) + answer

    def _respond(self, message: bytes) -> bytes:
        """The mechanism's next message; after its last one the peer is logged in. Raises SaslError."""
        scram = self._scram
        if scram is None:
            self._log_in(self._check_plain(message))
            return b""
        try:
            answer = scram.respond(message)
        except SaslError:
            raise SaslError(f"{INVALID} {self._mechanism}") from None
        if scram.is_done:
            self._log_in(scram.username)
        return answer

    def _check_plain(self, message: bytes) -> str:
        try:
            authorization_id, username, password = read_plain(message)
        except SaslError:
            raise SaslError(WRONG_PASSWORD) from None
        expected = self._settings.plain_users.get(username)
        known = NOBODY if expected is None else expected
        is_right = hmac.compare_digest(known.encode(), password.encode())
        if not is_right or expected is None or authorization_id not in ("", username):
            raise SaslError(WRONG_PASSWORD)
        return username

    def _log_in(self, username: str) -> None:
        connection = self._connection
        self._cancel_timer()
        connection.session = Session(principal=Principal("User", username), mechanism=self._mechanism)
        connection.max_frame_bytes = self._settings.frame_max_bytes
        connection.handler = self._dispatcher

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
