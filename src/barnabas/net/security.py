"""What a listener demands of a connection before its requests are served, and what a link shows at the other end.

The broker implements both: `ListenerSecurity` per listener, `LinkSecurity` once, for the listener of brokers.
"""

import ssl
from typing import TYPE_CHECKING, Protocol

from barnabas.machines.sasl.mechanism import ClientMechanism
from barnabas.transport.channel import Channel

if TYPE_CHECKING:
    from barnabas.net.connection import Connection


class ListenerSecurity(Protocol):
    @property
    def handshake_timeout_ms(self) -> int:
        """How long a peer may take for its TLS handshake."""
        ...

    def tls_context(self) -> ssl.SSLContext | None:
        """For the next connection; None where the listener does not use TLS."""
        ...

    def on_connected(self, connection: "Connection", channel: Channel) -> None:
        """The connection is open and, with TLS, encrypted: say who it is, or whose handler finds that out."""
        ...


class LinkSecurity(Protocol):
    def tls_context(self) -> ssl.SSLContext | None:
        """For the next connection; None for plain text."""
        ...

    async def mechanism(self) -> ClientMechanism | None:
        """For one login; None where there is none. Raises SaslError."""
        ...

    def on_connected(self, address: str) -> None:
        """A connection is ready for requests."""
        ...

    def on_denied(self, address: str, why: str) -> None:
        """One of both ends does not accept the other. The link tries again, after a pause."""
        ...
