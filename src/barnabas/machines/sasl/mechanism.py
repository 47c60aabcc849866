"""The interface of a mechanism, for the code that exchanges its bytes."""

from typing import Protocol


class SaslError(Exception):
    """The other side's bytes do not satisfy the mechanism. Never holds a password or a proof."""


class ClientMechanism(Protocol):
    @property
    def name(self) -> str: ...

    def begin(self) -> bytes:
        """The first message."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """The reply to the server's message, or None once the mechanism is satisfied. Raises SaslError."""
        ...


class ServerMechanism(Protocol):
    """The broker's side of one exchange."""

    @property
    def is_done(self) -> bool:
        """Whether the client has shown who it is."""
        ...

    @property
    def username(self) -> str: ...

    @property
    def expires_at_ms(self) -> int | None:
        """When what the client has shown ends, on the wall clock; None if it does not end."""
        ...

    @property
    def is_token(self) -> bool:
        """Whether a delegation token stood in for the user."""
        ...

    def respond(self, message: bytes) -> bytes:
        """The reply. Raises SaslError, whose text goes to the client: it must not tell which users there are."""
        ...
