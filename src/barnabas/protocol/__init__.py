"""Kafka's wire protocol as bytes <-> values: no I/O, no clock, no state.

All bytes of sockets and coordinator logs pass through `encode` and `decode`. `messages/` has one file per API; each
message is declared once, with the versions of every field, and compiled on first use.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
    encode_response_parts,
)

__all__ = [
    "ApiKey",
    "RequestHeader",
    "decode",
    "decode_request_header",
    "decode_response_header",
    "encode",
    "encode_request",
    "encode_response",
    "encode_response_parts",
]
