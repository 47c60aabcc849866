"""The client's side of a login: SaslHandshake, then SaslAuthenticate until the mechanism is satisfied (KIP-152).

Requests out, responses in. Clients and links between brokers send them over connections of their own.
"""

from barnabas.machines.sasl.mechanism import ClientMechanism
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

HANDSHAKE_VERSION = 1
"""Before it the mechanism's messages had no headers, and a failed login no error."""
RENEWED_SHARE = (0.85, 0.95)
"""A session is renewed after a random share of its life between these, as Java's client does."""


class LoginRefusedError(Exception):
    """The broker has refused. `code` is its error, `offered` the mechanisms that it takes instead."""

    def __init__(self, code: int, text: str = "", offered: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.offered = offered


class ClientLogin:
    """One login; `lifetime_ms` of the session is known at its end, 0 for as long as the connection."""

    def __init__(self, mechanism: ClientMechanism) -> None:
        self._mechanism = mechanism
        self.lifetime_ms = 0

    def begin(self) -> SaslHandshakeRequest:
        return SaslHandshakeRequest(mechanism=self._mechanism.name)

    def on_handshake(self, response: SaslHandshakeResponse) -> SaslAuthenticateRequest:
        """Raises LoginRefusedError."""
        if response.error_code:
            raise LoginRefusedError(response.error_code, offered=tuple(response.mechanisms))
        return SaslAuthenticateRequest(auth_bytes=self._mechanism.begin())

    def on_authenticate(self, response: SaslAuthenticateResponse) -> SaslAuthenticateRequest | None:
        """None at the end. A SCRAM proof takes milliseconds of work, as many as the broker chooses: not for a loop.

        Raises LoginRefusedError, and SaslError where the broker's own bytes do not satisfy the mechanism.
        """
        if response.error_code:
            raise LoginRefusedError(response.error_code, response.error_message or "authentication failed")
        self.lifetime_ms = int(response.session_lifetime_ms)
        message = self._mechanism.respond(response.auth_bytes)
        return None if message is None else SaslAuthenticateRequest(auth_bytes=message)
