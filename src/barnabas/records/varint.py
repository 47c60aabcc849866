"""Zigzag varints, in which a record keeps its lengths and deltas.

The reader handles the one-byte case itself, since most lengths are below 64, and calls this for the rest.
"""

from typing import Final

from barnabas.errors import ErrorCode, KafkaError

_SMALL_COUNT: Final = 1024
_INT64_RANGE: Final = 1 << 64
_INT64_SIGN: Final = 1 << 63


def _encode(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    output = bytearray()
    while rest > 0x7F:
        output.append(rest & 0x7F | 0x80)
        rest >>= 7
    output.append(rest)
    return bytes(output)


_SMALL: Final = tuple(_encode(value) for value in range(_SMALL_COUNT))


def encode_varint(value: int) -> bytes:
    """`value` must be in the range of a signed 64-bit integer."""
    return _SMALL[value] if 0 <= value < _SMALL_COUNT else _encode(value)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """A signed 32-bit integer and the position after it; IndexError if the data end first."""
    first = data[position]
    if first >= 0x80:
        second = data[position + 1]
        if second < 0x80:
            value = first & 0x7F | second << 7
            return (value >> 1) ^ -(value & 1), position + 2
    return _decode(data, position, max_bytes=5, mask=0xFFFF_FFFF)


def decode_varlong(data: bytes, position: int) -> tuple[int, int]:
    """A signed 64-bit integer and the position after it; IndexError if the data end first."""
    return _decode(data, position, max_bytes=10, mask=0xFFFF_FFFF_FFFF_FFFF)


def _decode(data: bytes, position: int, max_bytes: int, mask: int) -> tuple[int, int]:
    value = shift = 0
    for index in range(position, position + max_bytes):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= mask
            return (value >> 1) ^ -(value & 1), index + 1
        shift += 7
    raise KafkaError(ErrorCode.INVALID_RECORD, f"a varint is longer than {max_bytes} bytes")


def wrap_int64(value: int) -> int:
    """The sum of two timestamps as Java's long has it, so that a hostile delta cannot leave the range of the files."""
    return (value + _INT64_SIGN) % _INT64_RANGE - _INT64_SIGN
