"""Messages that carry their own version: records of the coordinators' logs, and the consumer protocol inside JoinGroup.

    value         int16 version, message
    key           int16 record type, message v0
    subscription  int16 version, message

Kafka reads these files and we read Kafka's. A key of an unknown type belongs to a newer release: the caller must skip
that record.
"""

import struct
from typing import Any, TypeVar

from barnabas.errors import ProtocolError
from barnabas.protocol.compiler import decode, encode_into, schema_of
from barnabas.protocol.primitives import Buffer

M = TypeVar("M")
_INT16 = struct.Struct(">h")


def encode_versioned(message: Any, version: int) -> bytes:
    out = bytearray(_INT16.pack(version))
    encode_into(out, message, version)
    return bytes(out)


def decode_versioned(message: type[M], buffer: Buffer, *, newest_known: bool = False) -> tuple[M, int]:
    """(message, its version). With `newest_known`, a later version is read as the newest declared one.

    The consumer protocol allows that, as its versions only ever append fields; a record of a log does not.
    """
    version = read_int16(buffer)
    if newest_known:
        version = min(version, schema_of(message).max_version)
    return decode(message, version, buffer, 2)[0], version


def encode_record_key(key: Any) -> bytes:
    record_type = schema_of(key).record_type
    if record_type is None:
        raise ValueError(f"{schema_of(key).name} is not the key of a record")
    out = bytearray(_INT16.pack(record_type))
    encode_into(out, key, 0)
    return bytes(out)


def decode_record_key(key: type[M], buffer: Buffer) -> M:
    """The key as that class; the caller has selected the class by `read_int16`, the record type."""
    return decode(key, 0, buffer, 2)[0]


def read_int16(buffer: Buffer) -> int:
    """The record type of a key, or the version of a value."""
    if len(buffer) < 2:
        raise ProtocolError("a record's key or value is shorter than its version")
    number: int = _INT16.unpack_from(buffer)[0]
    return number
