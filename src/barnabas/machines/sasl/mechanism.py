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
