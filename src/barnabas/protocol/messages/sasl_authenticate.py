"""SaslAuthenticate (key 36), v0-v2: one step of a SASL exchange (KIP-152).

v1 session lifetime (KIP-368); v2 flexible. The bytes stay out of repr: they hold passwords and proofs.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT16, INT64, TEXT, field, message


@message(api_key=ApiKey.SASL_AUTHENTICATE, versions=(0, 2), flexible=2)
class SaslAuthenticateRequest:
    auth_bytes: bytes = field(BYTES, secret=True)


@message(api_key=ApiKey.SASL_AUTHENTICATE, versions=(0, 2), flexible=2)
class SaslAuthenticateResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    auth_bytes: bytes = field(BYTES, secret=True)
    session_lifetime_ms: int = field(INT64, since=1, ignorable=True)
