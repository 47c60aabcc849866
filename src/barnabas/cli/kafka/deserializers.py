"""Java's deserializers by class name, as the console consumer uses them: bytes to the text that Java would print."""

import struct
import uuid
from collections.abc import Callable, Mapping

from barnabas.cli.data.java_text import double_text, float_text

PACKAGE = "org.apache.kafka.common.serialization."
Deserializer = Callable[[bytes], str]


class DeserializationFailed(Exception):
    """The bytes are not what the deserializer takes."""


def deserializer(class_name: str, properties: Mapping[str, str]) -> Deserializer | None:
    """None if there is no such class here; `properties` have what was given below the deserializer's own prefix."""
    name = class_name.removeprefix(PACKAGE)
    if name == "StringDeserializer":
        encoding = next((text for key, text in properties.items() if key.endswith("encoding")), "utf-8")
        return lambda content: content.decode(encoding, errors="replace")
    return _BY_NAME.get(name)


def _number(name: str, layout: str, text: Callable[[float], str]) -> Deserializer:
    size = struct.calcsize(layout)

    def read(content: bytes) -> str:
        if len(content) != size:
            raise DeserializationFailed(f"Size of data received by {name}Deserializer is not {size}")
        return text(struct.unpack(layout, content)[0])

    return read


def _boolean(content: bytes) -> str:
    if content not in (b"\0", b"\1"):
        raise DeserializationFailed("Unexpected byte received by BooleanDeserializer: it takes one of 0 and 1")
    return "true" if content == b"\1" else "false"


def _uuid(content: bytes) -> str:
    try:
        return str(uuid.UUID(content.decode()))
    except ValueError as error:
        raise DeserializationFailed(f"Error parsing data into UUID: {error}") from None


def _printable(content: bytes) -> str:
    """`Bytes.toString`: printable ASCII as it is, all else, the backslash too, as \\xNN."""
    return "".join(chr(byte) if 32 <= byte <= 126 and byte != 92 else f"\\x{byte:02X}" for byte in content)


def _void(content: bytes) -> str:
    raise DeserializationFailed("Data should be null for a VoidDeserializer.")


_BY_NAME: Mapping[str, Deserializer] = {
    "IntegerDeserializer": _number("Integer", ">i", str),
    "LongDeserializer": _number("Long", ">q", str),
    "ShortDeserializer": _number("Short", ">h", str),
    "DoubleDeserializer": _number("Double", ">d", double_text),
    "FloatDeserializer": _number("Float", ">f", float_text),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "BytesDeserializer": _printable,
    "ByteArrayDeserializer": lambda content: content.decode(errors="replace"),
    "ByteBufferDeserializer": lambda content: f"java.nio.HeapByteBuffer[pos=0 lim={len(content)} cap={len(content)}]",
    "VoidDeserializer": _void,
}
