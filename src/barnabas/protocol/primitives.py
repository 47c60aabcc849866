"""Readers and writers of the protocol's primitive types, used by the compiled codecs and the headers.

A reader takes (buffer, position) and returns (value, next position). It checks every length against the bytes that
remain before it takes memory, and raises ProtocolError; for a fixed-size read past the end it may let struct.error or
IndexError through, which `compiler.decode` turns into ProtocolError. A writer appends to a bytearray.

    string          int16 length, UTF-8      nullable: length -1
    compact string  uvarint length + 1       nullable: 0
    bytes, records  int32 length             compact: uvarint length + 1
    array           int32 count              compact: uvarint count + 1
    tagged section  uvarint count, then (uvarint tag, uvarint size, bytes) in order of tags
"""

import struct
from collections.abc import Sequence
from typing import Any

from barnabas.errors import ProtocolError
from barnabas.protocol.schema import Records, RecordsRegion

Buffer = bytes | bytearray | memoryview

MAX_STRING_BYTES = 0x7FFF
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class GatherBuffer(bytearray):
    """An output in which regions of files are omitted and recorded with their position."""

    def __init__(self) -> None:
        super().__init__()
        self.regions: list[tuple[int, RecordsRegion]] = []


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    value = buffer[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise ProtocolError("varint does not fit 32 bits")
            return value, position
    raise ProtocolError("varint is longer than 5 bytes")


def write_unsigned_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_compact_length(buffer: Buffer, position: int) -> tuple[int, int]:
    value = buffer[position]
    if value < 0x80:
        return value - 1, position + 1
    value, position = read_unsigned_varint(buffer, position)
    return value - 1, position


def write_length32(out: bytearray, length: int) -> None:
    out += _INT32.pack(length)


def write_compact_length(out: bytearray, length: int) -> None:
    if length < 0x7F:
        out.append(length + 1)
    else:
        write_unsigned_varint(out, length + 1)


def take_string(buffer: Buffer, position: int, length: int) -> tuple[str, int]:
    end = position + length
    if length < 0 or end > len(buffer):
        raise ProtocolError(f"string of {length} bytes where {len(buffer) - position} remain")
    if length > MAX_STRING_BYTES:
        raise ProtocolError(f"string of {length} bytes is too long")
    return str(buffer[position:end], "utf-8"), end


def take_bytes(buffer: Buffer, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if length < 0 or end > len(buffer):
        raise ProtocolError(f"{length} bytes where {len(buffer) - position} remain")
    return bytes(buffer[position:end]), end


def take_records(buffer: Buffer, position: int, length: int) -> tuple[memoryview, int]:
    end = position + length
    if length < 0 or end > len(buffer):
        raise ProtocolError(f"{length} bytes of records where {len(buffer) - position} remain")
    return memoryview(buffer)[position:end], end


def read_string(buffer: Buffer, position: int) -> tuple[str, int]:
    return take_string(buffer, position + 2, _INT16.unpack_from(buffer, position)[0])


def read_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    (length,) = _INT16.unpack_from(buffer, position)
    return (None, position + 2) if length == -1 else take_string(buffer, position + 2, length)


def read_compact_string(buffer: Buffer, position: int) -> tuple[str, int]:
    length, position = read_compact_length(buffer, position)
    return take_string(buffer, position, length)


def read_compact_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    length, position = read_compact_length(buffer, position)
    return (None, position) if length == -1 else take_string(buffer, position, length)


def cut_text(text: str | None, max_bytes: int = MAX_STRING_BYTES, mark: str = "...") -> str | None:
    """The text, cut and marked if it has more bytes than a string of the protocol can have.

    An error message may quote what a client sent, so it can exceed the limit.
    """
    if text is None or len(text) * 4 <= max_bytes or len(encoded := text.encode()) <= max_bytes:
        return text
    return encoded[: max_bytes - len(mark)].decode(errors="ignore") + mark


def write_string(out: bytearray, value: str) -> None:
    encoded = value.encode()
    out += _INT16.pack(len(encoded))
    out += encoded


def write_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_compact_string(out: bytearray, value: str) -> None:
    encoded = value.encode()
    length = len(encoded)
    if length > MAX_STRING_BYTES:
        raise ValueError(f"string of {length} bytes is too long")
    write_compact_length(out, length)
    out += encoded


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def write_records(out: bytearray, value: Records, *, compact: bool) -> None:
    """Bytes are copied into `out`; a region of a file is only recorded, for the code that joins the parts."""
    length = len(value) if isinstance(value, (bytes, bytearray, memoryview)) else value.length
    if compact:
        write_compact_length(out, length)
    else:
        out += _INT32.pack(length)
    if isinstance(value, (bytes, bytearray, memoryview)):
        out += value
    elif isinstance(out, GatherBuffer):
        out.regions.append((len(out), value))
    else:
        raise ValueError("records that are a region of a file can only be encoded into parts")


def check_count(buffer: Buffer, position: int, count: int, min_size: int) -> None:
    """An array may not claim more elements than the remaining bytes can hold."""
    if count < 0 or count * min_size > len(buffer) - position:
        raise ProtocolError(f"array of {count} elements where {len(buffer) - position} bytes remain")


def take_numbers(buffer: Buffer, position: int, count: int, code: str, size: int) -> tuple[list[Any], int]:
    check_count(buffer, position, count, size)
    return list(struct.unpack_from(f">{count}{code}", buffer, position)), position + count * size


def write_numbers(out: bytearray, values: Sequence[Any], code: str) -> None:
    out += struct.pack(f">{len(values)}{code}", *values)


def skip_tagged_fields(buffer: Buffer, position: int) -> int:
    """Tagged fields may come from newer peers; unknown ones are skipped."""
    count, position = read_tagged_count(buffer, position)
    for _ in range(count):
        _, end, position = read_tag(buffer, position)
        position = end
    return position


def read_tagged_count(buffer: Buffer, position: int) -> tuple[int, int]:
    count, position = read_unsigned_varint(buffer, position)
    check_count(buffer, position, count, 2)
    return count, position


def read_tag(buffer: Buffer, position: int) -> tuple[int, int, int]:
    """(tag, where its value ends, where its value begins)"""
    tag, position = read_unsigned_varint(buffer, position)
    size, position = read_unsigned_varint(buffer, position)
    end = position + size
    if end > len(buffer):
        raise ProtocolError(f"tagged field of {size} bytes where {len(buffer) - position} remain")
    return tag, end, position


def check_tag_end(position: int, end: int) -> None:
    if position != end:
        raise ProtocolError("tagged field does not have the size it states")
