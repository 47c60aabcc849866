"""Java's standard serializers: bytes as Java writes them, and what they refuse."""

from __future__ import annotations

import math
import struct
import uuid
from typing import Any

import pytest

from barnabas import serializers

ID = uuid.UUID("7d444840-9dc0-11d1-b245-5ffdce74fad2")
# As Java lays them out: big-endian two's complement and IEEE 754, text in UTF-8, a UUID as text.
WRITTEN = [
    ("Short", 1, "0001"),
    ("Short", -32768, "8000"),
    ("Integer", 1, "00000001"),
    ("Integer", -2, "fffffffe"),
    ("Integer", 2147483647, "7fffffff"),
    ("Long", 1 << 40, "0000010000000000"),
    ("Long", -1, "ffffffffffffffff"),
    ("Float", 1.5, "3fc00000"),
    ("Float", -0.0, "80000000"),
    ("Float", math.inf, "7f800000"),
    ("Double", 0.1, "3fb999999999999a"),
    ("Double", -2, "c000000000000000"),
    ("Boolean", True, "01"),
    ("Boolean", False, "00"),
    ("String", "Gr\u00fc\u00dfe \U0001f600", "4772c3bcc39f6520f09f9880"),
    ("String", "", ""),
    ("UUID", ID, str(ID).encode().hex()),
    ("ByteArray", b"\x00\xff", "00ff"),
    ("Bytes", b"\x00\xff", "00ff"),
    ("ByteBuffer", memoryview(b"xabcx")[1:4], "616263"),
]


def of(name: str, *arguments: Any) -> Any:
    return getattr(serializers, name)(*arguments)


@pytest.mark.parametrize(("kind", "value", "written"), WRITTEN)
def test_bytes_are_those_of_java(kind: str, value: Any, written: str) -> None:
    data = of(f"{kind}Serializer")(value)
    assert type(data) is bytes and data.hex() == written
    assert of(f"{kind}Deserializer")(data) == value


@pytest.mark.parametrize("name", serializers.__all__)
def test_nothing_stays_nothing(name: str) -> None:
    assert of(name)(None) is None


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("UTF-16", "feff004100e4"),
        ("utf-16", "feff004100e4"),
        ("UTF-16LE", "4100e400"),
        ("UTF-32", "00000041000000e4"),
        ("ISO-8859-1", "41e4"),
        ("US-ASCII", "413f"),
        ("UTF8", "41c3a4"),
    ],
)
def test_encodings_are_those_of_java(encoding: str, written: str) -> None:
    data = of("StringSerializer", encoding)("A\u00e4")
    assert data.hex() == written
    assert of("StringDeserializer", encoding)(data) == ("A?" if encoding == "US-ASCII" else "A\u00e4")


def test_marks_and_bytes_that_are_no_text() -> None:
    utf16 = of("StringDeserializer", "UTF-16")
    assert utf16(bytes.fromhex("fffe4100")) == utf16(bytes.fromhex("feff0041")) == utf16(bytes.fromhex("0041")) == "A"
    assert of("StringSerializer", "UTF-16")("") == b""
    assert of("StringDeserializer")(b"a\xffb") == "a\ufffdb"
    assert of("StringSerializer")("a\ud800b") == b"a?b"


def test_the_encoding_comes_from_the_options() -> None:
    configs = {"serializer.encoding": "utf-16", "key.serializer.encoding": "latin-1"}
    key, value = of("StringSerializer"), of("StringSerializer")
    key.configure(configs, True)
    value.configure(configs, False)
    assert (key("\u00e4"), value("\u00e4")) == (b"\xe4", b"\xfe\xff\x00\xe4")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("IntegerSerializer", 1 << 31),
        ("IntegerSerializer", "1"),
        ("IntegerSerializer", True),
        ("IntegerSerializer", 1.0),
        ("ShortSerializer", 40_000),
        ("FloatSerializer", 1e300),
        ("BooleanSerializer", 1),
        ("StringSerializer", b"x"),
        ("UUIDSerializer", str(ID)),
        ("ByteBufferSerializer", "x"),
        ("IntegerDeserializer", b"abc"),
        ("LongDeserializer", b"abcd"),
        ("BooleanDeserializer", b"\x02"),
        ("UUIDDeserializer", b"no"),
        ("VoidDeserializer", b""),
    ],
)
def test_what_is_refused(name: str, given: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, struct.error)):
        of(name)(given)


def test_void_writes_nothing() -> None:
    assert of("VoidSerializer")("anything") is None
