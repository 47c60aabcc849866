"""Who is at the other end of a connection, as its handshake has shown: `Connection.session`.

Set once per connection, before its first request is handled: by `listener_security`, or by `sasl_gate` after a login.
"""

from dataclasses import dataclass

from barnabas.server.request import ANONYMOUS, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    principal: Principal
    mechanism: str | None = None
    """The SASL mechanism; None on listeners without SASL."""
    expires_at_ms: int | None = None
    """On the monotonic clock; None: as long as the connection."""
    is_token: bool = False
    """Whether a delegation token stood in for the user."""


ANONYMOUS_SESSION = Session(principal=ANONYMOUS)
