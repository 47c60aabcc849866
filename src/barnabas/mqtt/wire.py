"""The primitive types of MQTT: variable byte integers, strings, binary data. No I/O.

Readers take a view of one packet and a position, and raise MqttError with MALFORMED_PACKET if the bytes end first.
"""

import struct
from typing import Final

from barnabas.mqtt.reason_codes import malformed

MAX_VARIABLE: Final = 268_435_455
UINT16: Final = struct.Struct(">H")
UINT32: Final = struct.Struct(">I")


def encode_variable(value: int) -> bytes:
    """A variable byte integer: seven bits a byte, the lowest first."""
    if value < 0x80:
        return bytes((value,))
    if value > MAX_VARIABLE:
        raise ValueError(f"{value} does not fit into a variable byte integer")
    output = bytearray()
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    output.append(value)
    return bytes(output)


def read_variable(view: memoryview | bytes, position: int) -> tuple[int, int]:
    """A variable byte integer and the position after it; at most four bytes, in the shortest form."""
    value = shift = 0
    for index in range(position, min(position + 4, len(view))):
        byte = view[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if not byte and shift:
                raise malformed("a length is not in its shortest form")
            return value, index + 1
        shift += 7
    raise malformed("a length has more than four bytes" if shift == 28 else "the packet ends within a length")


def read_byte(view: memoryview, position: int) -> tuple[int, int]:
    if position >= len(view):
        raise malformed("the packet ends before its last field")
    return view[position], position + 1


def read_uint16(view: memoryview, position: int) -> tuple[int, int]:
    if position + 2 > len(view):
        raise malformed("the packet ends before its last field")
    return view[position] << 8 | view[position + 1], position + 2


def read_uint32(view: memoryview, position: int) -> tuple[int, int]:
    if position + 4 > len(view):
        raise malformed("the packet ends before its last field")
    value: int = UINT32.unpack_from(view, position)[0]
    return value, position + 4


def read_binary(view: memoryview, position: int) -> tuple[bytes, int]:
    size, position = read_uint16(view, position)
    end = position + size
    if end > len(view):
        raise malformed(f"a field of {size} bytes in a packet that has {len(view) - position} left")
    return bytes(view[position:end]), end


def read_text(view: memoryview, position: int) -> tuple[str, int]:
    data, position = read_binary(view, position)
    return as_text(data), position


def as_text(data: bytes) -> str:
    """UTF-8 without U+0000; surrogates are refused by the decoder."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise malformed("a string is not UTF-8") from None
    if "\0" in text:
        raise malformed("a string has the character U+0000")
    return text


def encode_binary(data: bytes) -> bytes:
    if len(data) > 0xFFFF:
        raise ValueError(f"a field of {len(data)} bytes, at most 65535 are possible")
    return UINT16.pack(len(data)) + data


def encode_text(text: str) -> bytes:
    return encode_binary(text.encode())
