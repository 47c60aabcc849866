"""Envelope (key 58), v0: a broker passes a client's request on to the controller (KIP-590). Flexible.

`request_data` is the client's request with its header, without the size prefix; `response_data` likewise. The principal
is whom the broker authenticated, the address that of the client.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT16, field, message


@message(api_key=ApiKey.ENVELOPE, versions=(0, 0), flexible=0)
class EnvelopeRequest:
    request_data: bytes = field(BYTES)
    request_principal: bytes | None = field(BYTES, nullable=0)
    client_host_address: bytes = field(BYTES)


@message(api_key=ApiKey.ENVELOPE, versions=(0, 0), flexible=0)
class EnvelopeResponse:
    response_data: bytes | None = field(BYTES, nullable=0, default=None)
    error_code: int = field(INT16)
