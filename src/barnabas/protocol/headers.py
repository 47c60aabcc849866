"""Request and response headers, and whole frames with their size prefix.

    request v1   int16 api key, int16 version, int32 correlation id, nullable string client id
    request v2   the same, then a tagged section (for requests whose body is flexible)
    response v0  int32 correlation id
    response v1  the same, then a tagged section; ApiVersions responses are always v0, since the client does not know
                 the versions yet

`decode_request_header` runs once per request, before anything about the sender is known.
"""

import struct
from collections.abc import Generator
from typing import Any, NamedTuple

from barnabas.errors import ProtocolError
from barnabas.protocol.api import FIRST_FLEXIBLE_VERSION, NEVER_FLEXIBLE, ApiKey
from barnabas.protocol.compiler import encode_in_slices, encode_into, is_flexible, schema_of
from barnabas.protocol.primitives import (
    Buffer,
    GatherBuffer,
    skip_tagged_fields,
    take_string,
    write_nullable_string,
)
from barnabas.protocol.schema import RecordsRegion

_REQUEST_START = struct.Struct(">hhih")
_REQUEST_FIXED = struct.Struct(">hhi")
_CORRELATION_ID = struct.Struct(">i")
_SIZE = struct.Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def decode_request_header(frame: Buffer) -> RequestHeader:
    """The header of a frame (without its size prefix). Unknown keys and versions are passed through as numbers.

    For an unknown newer version of a flexible API the header is read as v2, since later versions are flexible too.
    """
    try:
        api_key, api_version, correlation_id, length = _REQUEST_START.unpack_from(frame)
        client_id: str | None
        if length == -1:
            client_id, position = None, 10
        else:
            client_id, position = take_string(frame, 10, length)
        if api_version >= FIRST_FLEXIBLE_VERSION.get(api_key, NEVER_FLEXIBLE):
            position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    except (struct.error, IndexError) as error:
        raise ProtocolError("request header is cut short") from error
    except UnicodeDecodeError as error:
        raise ProtocolError("client id is not UTF-8") from error
    # Half the cost of the named constructor, once per request.
    return tuple.__new__(RequestHeader, (api_key, api_version, correlation_id, client_id, position))


def encode_request(message: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole request frame, size prefix included."""
    out = bytearray(4)
    out += _REQUEST_FIXED.pack(_api_key(message), version, correlation_id)
    write_nullable_string(out, client_id)
    if is_flexible(message, version):
        out.append(0)
    encode_into(out, message, version)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def encode_response(message: Any, version: int, correlation_id: int) -> bytes:
    """A whole response frame, size prefix included."""
    out = bytearray(4)
    _write_response(out, message, version, correlation_id)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def encode_response_in_slices(
    out: GatherBuffer, message: Any, version: int, correlation_id: int
) -> Generator[None, None, list[memoryview | RecordsRegion]]:
    """`encode_response_parts` for a large response: yields wherever others may be served."""
    out += bytes(4)
    _write_response_header(out, message, version, correlation_id)
    yield from encode_in_slices(out, message, version)
    return _gathered(out)


def encode_response_parts(message: Any, version: int, correlation_id: int) -> list[memoryview | RecordsRegion]:
    """A whole response frame in parts: records fields that are regions of files stay regions, for sendfile."""
    out = GatherBuffer()
    out += bytes(4)
    _write_response(out, message, version, correlation_id)
    return _gathered(out)


def _gathered(out: GatherBuffer) -> list[memoryview | RecordsRegion]:
    _SIZE.pack_into(out, 0, len(out) - 4 + sum(region.length for _, region in out.regions))
    view, start = memoryview(out), 0
    parts: list[memoryview | RecordsRegion] = []
    for position, region in out.regions:
        parts += (view[start:position], region)
        start = position
    if start < len(view):
        parts.append(view[start:])
    return parts


def decode_response_header(message: type[Any], version: int, frame: Buffer) -> tuple[int, int]:
    """(correlation id, where the body begins) of a response frame without its size prefix."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        position = skip_tagged_fields(frame, 4) if _has_tagged_header(message, version) else 4
    except (struct.error, IndexError) as error:
        raise ProtocolError("response header is cut short") from error
    return correlation_id, position


def _write_response(out: bytearray, message: Any, version: int, correlation_id: int) -> None:
    _write_response_header(out, message, version, correlation_id)
    encode_into(out, message, version)


def _write_response_header(out: bytearray, message: Any, version: int, correlation_id: int) -> None:
    out += _CORRELATION_ID.pack(correlation_id)
    if _has_tagged_header(message, version):
        out.append(0)


def _has_tagged_header(message: Any, version: int) -> bool:
    return is_flexible(message, version) and schema_of(message).api_key != ApiKey.API_VERSIONS


def _api_key(message: Any) -> int:
    api_key = schema_of(message).api_key
    if api_key is None:
        raise ValueError(f"{schema_of(message).name} is not a request")
    return api_key
