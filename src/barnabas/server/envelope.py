"""A client's request inside of an Envelope, on its way from the broker that received it to the controller.

`forwarding.py` seals requests, `handlers/envelope.py` opens them. The principal travels as Kafka's default principal
data, the address as the bytes of an IP address.
"""

import ipaddress

from barnabas.errors import ProtocolError
from barnabas.protocol.messages.default_principal_data import DefaultPrincipalData
from barnabas.protocol.messages.envelope import EnvelopeRequest
from barnabas.protocol.versioned import decode_versioned, encode_versioned
from barnabas.server.request import Principal, RequestContext

PRINCIPAL_VERSION = 0
UNKNOWN_HOST = "unknown"


def seal(context: RequestContext, frame: bytes) -> EnvelopeRequest:
    """`frame` is the request with its header, without the size prefix."""
    return EnvelopeRequest(
        request_data=frame,
        request_principal=principal_bytes(context.principal),
        client_host_address=_address_bytes(context.connection.peer_host),
    )


def principal_bytes(principal: Principal) -> bytes:
    return encode_versioned(DefaultPrincipalData(type=principal.type, name=principal.name), PRINCIPAL_VERSION)


def principal_of(envelope: EnvelopeRequest) -> Principal:
    """Raises ProtocolError: a broker always says on whose behalf it asks."""
    if envelope.request_principal is None:
        raise ProtocolError("an envelope without a principal")
    data, _ = decode_versioned(DefaultPrincipalData, envelope.request_principal)
    return Principal(data.type, data.name)


def host_of(envelope: EnvelopeRequest) -> str:
    try:
        return str(ipaddress.ip_address(envelope.client_host_address))
    except ValueError:
        return UNKNOWN_HOST


def _address_bytes(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host).packed
    except ValueError:
        return b""
