"""SaslHandshake (key 17), v0-v1: choose a SASL mechanism. Not flexible.

v0 is followed by bare SASL tokens on the connection; v1 by SaslAuthenticate requests (KIP-152).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, STRING, array, field, message


@message(api_key=ApiKey.SASL_HANDSHAKE, versions=(0, 1), flexible=None)
class SaslHandshakeRequest:
    mechanism: str = field(STRING)


@message(api_key=ApiKey.SASL_HANDSHAKE, versions=(0, 1), flexible=None)
class SaslHandshakeResponse:
    error_code: int = field(INT16)
    mechanisms: list[str] = field(array(STRING))
