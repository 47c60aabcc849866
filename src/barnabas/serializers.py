"""Java's standard serializers and deserializers: the same bytes, under the same names.

    Producer("localhost:9092", key_serializer=LongSerializer(), value_serializer=StringSerializer("utf-16"))
    Consumer("localhost:9092", key_deserializer=LongDeserializer(), value_deserializer=StringDeserializer("utf-16"))

Each is a callable: a value to bytes, or bytes to a value; None, which deletes a key from a compacted topic, stays None.
In a properties file the Java class names stand for these. Numbers are big-endian. `configure(configs, is_key)` is
called by the client that uses one; a serializer of your own may have it as well, and `close()`.
"""

import codecs
import struct
import uuid
from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "BooleanDeserializer",
    "BooleanSerializer",
    "ByteArrayDeserializer",
    "ByteArraySerializer",
    "ByteBufferDeserializer",
    "ByteBufferSerializer",
    "BytesDeserializer",
    "BytesSerializer",
    "DoubleDeserializer",
    "DoubleSerializer",
    "FloatDeserializer",
    "FloatSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "LongDeserializer",
    "LongSerializer",
    "ShortDeserializer",
    "ShortSerializer",
    "StringDeserializer",
    "StringSerializer",
    "UUIDDeserializer",
    "UUIDSerializer",
    "VoidDeserializer",
    "VoidSerializer",
]

_BIG_ENDIAN_MARK: Final = b"\xfe\xff"
_LITTLE_ENDIAN_MARK: Final = b"\xff\xfe"


class _NumberSerializer:
    layout: struct.Struct
    kinds: tuple[type, ...]

    def __call__(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, self.kinds) or isinstance(value, bool):
            raise TypeError(f"{type(self).__name__} takes a number, not {type(value).__name__}")
        return self.layout.pack(value)


class _NumberDeserializer:
    layout: struct.Struct

    def __call__(self, data: bytes | None) -> Any:
        if data is None:
            return None
        if len(data) != self.layout.size:
            raise ValueError(f"{type(self).__name__} takes {self.layout.size} bytes, not {len(data)}")
        return self.layout.unpack(data)[0]


class ShortSerializer(_NumberSerializer):
    """A whole number in 2 bytes."""

    layout, kinds = struct.Struct(">h"), (int,)


class ShortDeserializer(_NumberDeserializer):
    """A whole number from 2 bytes."""

    layout = struct.Struct(">h")


class IntegerSerializer(_NumberSerializer):
    """A whole number in 4 bytes."""

    layout, kinds = struct.Struct(">i"), (int,)


class IntegerDeserializer(_NumberDeserializer):
    """A whole number from 4 bytes."""

    layout = struct.Struct(">i")


class LongSerializer(_NumberSerializer):
    """A whole number in 8 bytes."""

    layout, kinds = struct.Struct(">q"), (int,)


class LongDeserializer(_NumberDeserializer):
    """A whole number from 8 bytes."""

    layout = struct.Struct(">q")


class FloatSerializer(_NumberSerializer):
    """A number in the 4 bytes of IEEE 754."""

    layout, kinds = struct.Struct(">f"), (float, int)


class FloatDeserializer(_NumberDeserializer):
    """A number from the 4 bytes of IEEE 754."""

    layout = struct.Struct(">f")


class DoubleSerializer(_NumberSerializer):
    """A number in the 8 bytes of IEEE 754."""

    layout, kinds = struct.Struct(">d"), (float, int)


class DoubleDeserializer(_NumberDeserializer):
    """A number from the 8 bytes of IEEE 754."""

    layout = struct.Struct(">d")


class BooleanSerializer:
    """True or False in one byte."""

    def __call__(self, value: bool | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, bool):
            raise TypeError(f"BooleanSerializer takes True or False, not {type(value).__name__}")
        return b"\x01" if value else b"\x00"


class BooleanDeserializer:
    """True or False from one byte."""

    def __call__(self, data: bytes | None) -> bool | None:
        if data is None:
            return None
        if data not in (b"\x00", b"\x01"):
            raise ValueError(f"BooleanDeserializer takes one byte, 0 or 1, not {data[:8]!r}")
        return data == b"\x01"


class _Encoded:
    """Text in an encoding: given here, or in the client's options `key.serializer.encoding` and so on."""

    _option = "serializer.encoding"

    def __init__(self, encoding: str = "utf-8") -> None:
        self._set(encoding)

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        encoding = configs.get(f"{'key' if is_key else 'value'}.{self._option}") or configs.get(self._option)
        if encoding:
            self._set(encoding)

    def _set(self, encoding: str) -> None:
        self._codec = codecs.lookup(encoding).name

    def _encode(self, text: str) -> bytes:
        """As Java: what the encoding does not have becomes "?", UTF-16 is big-endian with a mark."""
        if self._codec == "utf-16":
            return _BIG_ENDIAN_MARK + text.encode("utf-16-be", "replace") if text else b""
        return text.encode("utf-32-be" if self._codec == "utf-32" else self._codec, "replace")

    def _decode(self, data: bytes) -> str:
        """As Java: bytes that are no text become U+FFFD; without a mark UTF-16 and UTF-32 are big-endian."""
        codec = self._codec
        if codec == "utf-16":
            codec = "utf-16" if data[:2] in (_BIG_ENDIAN_MARK, _LITTLE_ENDIAN_MARK) else "utf-16-be"
        elif codec == "utf-32":
            codec = "utf-32" if data[:4] in (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE) else "utf-32-be"
        return str(data, codec, "replace")


class StringSerializer(_Encoded):
    """Text in an encoding, UTF-8 by default."""

    def __call__(self, value: str | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise TypeError(f"StringSerializer takes text, not {type(value).__name__}")
        return self._encode(value)


class StringDeserializer(_Encoded):
    """Text from bytes in an encoding, UTF-8 by default."""

    _option = "deserializer.encoding"

    def __call__(self, data: bytes | None) -> str | None:
        return None if data is None else self._decode(data)


class UUIDSerializer(_Encoded):
    """A UUID as its 36 characters."""

    def __call__(self, value: uuid.UUID | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, uuid.UUID):
            raise TypeError(f"UUIDSerializer takes a uuid.UUID, not {type(value).__name__}")
        return self._encode(str(value))


class UUIDDeserializer(_Encoded):
    """A UUID from its 36 characters."""

    _option = "deserializer.encoding"

    def __call__(self, data: bytes | None) -> uuid.UUID | None:
        return None if data is None else uuid.UUID(self._decode(data))


class ByteArraySerializer:
    """Bytes as they are, which is what a client without a serializer takes."""

    def __call__(self, value: bytes | None) -> bytes | None:
        return value


class ByteArrayDeserializer:
    """Bytes as they are."""

    def __call__(self, data: bytes | None) -> bytes | None:
        return data


class BytesSerializer(ByteArraySerializer):
    """Bytes as they are; Java's Bytes wraps an array."""


class BytesDeserializer(ByteArrayDeserializer):
    """Bytes as they are; Java's Bytes wraps an array."""


class ByteBufferSerializer:
    """Anything that has a buffer: bytes, bytearray, memoryview, array."""

    def __call__(self, value: Any) -> bytes | None:
        return None if value is None else bytes(memoryview(value))


class ByteBufferDeserializer:
    """A memoryview, as Java gives a ByteBuffer."""

    def __call__(self, data: bytes | None) -> memoryview | None:
        return None if data is None else memoryview(data)


class VoidSerializer:
    """Nothing, whatever the value."""

    def __call__(self, value: object) -> None:
        return None


class VoidDeserializer:
    """Nothing; bytes are an error."""

    def __call__(self, data: bytes | None) -> None:
        if data is not None:
            raise ValueError(f"VoidDeserializer takes nothing, not {len(data)} bytes")
