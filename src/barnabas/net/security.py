"""What a listener demands of a connection before its requests are served; the broker implements it per listener."""

import ssl
from typing import TYPE_CHECKING, Protocol

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
